//! Lists and watches by ranges of objects. Recorded answers say how the parameter is read; here is which objects come.

use std::collections::BTreeSet;

use elector_apiserver::{ApiServer, Config};
use http::StatusCode;
use serde_json::Value;

use crate::common::{LEASES, client, create, get, watch};

const LOWER: &str = "0x0000000000000000%27,%270x8000000000000000";
const UPPER: &str = "0x8000000000000000%27,%270x10000000000000000";

fn server(sharding: bool) -> ApiServer {
    ApiServer::new(Config {
        sharding,
        ..Config::default()
    })
}

fn query(range: &str) -> String {
    format!("shardSelector=shardRange(object.metadata.uid,%27{range}%27)")
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

async fn listed(server: &ApiServer, range: &str) -> BTreeSet<String> {
    let path = format!("{LEASES}?{}", query(range));
    let me = client(server, "me");
    let (status, list) = get(&me, &path).await;
    assert_eq!(status, StatusCode::OK);
    list["items"].as_array().unwrap().iter().map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn each_object_is_in_one_of_two_ranges_of_lists_and_of_watches() {
    let server = server(true);
    let me = client(&server, "me");
    let (mut lower, mut upper) = (
        watch(&me, &query(LOWER)).await,
        watch(&me, &query(UPPER)).await,
    );
    let names: BTreeSet<_> = (0..20).map(|number| format!("lease-{number}")).collect();
    for name in &names {
        create(&me, name).await;
    }
    let (low, high) = (listed(&server, LOWER).await, listed(&server, UPPER).await);
    assert!(!low.is_empty() && !high.is_empty());
    assert!(low.is_disjoint(&high));
    assert_eq!(&low | &high, names);
    for (frames, listed) in [(&mut lower, low), (&mut upper, high)] {
        let mut watched = BTreeSet::new();
        while watched.len() < listed.len() {
            let frame = frames.next().await.unwrap().unwrap();
            watched.insert(name(&frame["object"]));
        }
        assert_eq!(watched, listed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_gate_passes_over_the_parameter() {
    let server = server(false);
    create(&client(&server, "me"), "a").await;
    for range in [LOWER, UPPER, "0x0%27,%27nonsense"] {
        assert_eq!(listed(&server, range).await.len(), 1);
    }
}
