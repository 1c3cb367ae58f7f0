//! The controller of the example, whole and as it is, as two processes on the API server in memory.

#![cfg(all(feature = "connect", feature = "kube5"))]

#[expect(dead_code, reason = "the test calls what the program's main does")]
#[path = "../examples/controller.rs"]
mod controller;

use elector_testing::{TestCluster, eventually};
use kube::Client;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn the_standby_reconciles_when_the_leader_is_cut_off() {
    let world = TestCluster::new();
    world.put(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"observe": ""}},
    }));
    world.put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}));
    let start = |name| {
        let (cluster, client) = (
            world.cluster(name),
            Client::new(world.service(name), "default"),
        );
        world.start(name, |shutdown| {
            controller::program(cluster, client, shutdown)
        })
    };
    let label = |name: &str| {
        let map = world.get("configmaps", "default", name).unwrap();
        map["metadata"]["labels"]["token"]
            .as_str()
            .map(str::to_owned)
    };
    let mut first = start("maps-0");
    first.leads().await;
    let led = first.handle().status().token().unwrap();
    eventually(|| label("a") == Some(led.to_string())).await;
    let second = start("maps-1");
    first.faults().partition(true);
    second.leads().await;
    let token = second.handle().status().token().unwrap();
    assert!(led < token);
    eventually(|| label("a") == Some(token.to_string())).await;
    first.term_report().await.assert_nothing_late();
    assert_eq!(label("other"), None);
}
