//! An elector of several namespaces: each is listed by itself, and what one list says is said of that one alone.

use elector::{Config, Event, LeadershipChange, Scope};
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{CANDIDATES, LEASES, TestCluster, eventually, millis, pass, seconds};
use serde_json::json;

use crate::RunningElector;

/// The namespace and the resource of each list.
const LISTS: [(&str, &str); 4] = [
    ("a", LEASES),
    ("b", LEASES),
    ("a", CANDIDATES),
    ("b", CANDIDATES),
];

fn both() -> Config {
    Config {
        scope: Scope::Namespaces(["a".into(), "b".into()].into()),
        ..Config::default()
    }
}

/// A released lease, which may be granted at once.
async fn released(cluster: &TestCluster, namespace: &str) {
    let spec = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
    cluster.put_lease(namespace, "l", spec);
}

/// Makes the elector list the leases or the candidates of a namespace anew, and nothing else.
async fn relist(cluster: &TestCluster, namespace: &str, resource: &str) {
    let start = cluster.now();
    // A watch is opened anew every 30 s, and this one is refused, as its history is forgotten.
    let gone = Rule::new(Fault::Refuse(410)).verb(RequestVerb::Watch);
    cluster.inject(gone.resource(resource).namespace(namespace).times(1));
    let watch = format!("namespaces/{namespace}/{resource}?");
    let refused = [watch.as_str(), "watch=true"];
    eventually(|| !cluster.requests_since(start, &refused).is_empty()).await;
}

/// No effect before all first lists are complete, those of every namespace.
#[tokio::test(start_paused = true)]
async fn nothing_is_written_before_both_kinds_are_listed_in_every_namespace() {
    for slow in LISTS {
        let cluster = TestCluster::new();
        let mut candidates = Vec::new();
        for namespace in ["a", "b"] {
            released(&cluster, namespace).await;
            candidates.push(cluster.candidate(namespace, "x", "l", "1.0.0"));
        }
        let start = cluster.now();
        let delay = Rule::new(Fault::Delay(seconds(4))).verb(RequestVerb::List);
        cluster.inject(delay.resource(slow.1).namespace(slow.0));
        let elector = RunningElector::start(&cluster, both());
        pass(millis(3_990)).await;
        // A list on its way comes late all the same.
        cluster.heal();
        assert_eq!(elector.lives(), 0, "{slow:?}");
        let writes = cluster.requests_since(start, &[]);
        let writes: Vec<_> = writes
            .iter()
            .filter(|request| !request.what.starts_with("GET"))
            .collect();
        assert!(writes.is_empty(), "{slow:?}: {writes:?}");
        for namespace in ["a", "b"] {
            let holds = cluster.held_by(namespace, "l", "x").await < seconds(1);
            assert!(holds, "{slow:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_one_namespace_takes_nothing_from_another() {
    let cluster = TestCluster::new();
    let elector = RunningElector::start(&cluster, both());
    pass(seconds(20)).await;
    let kept = cluster.keep("b", "l", "plain");
    let _candidate = cluster.candidate("b", "y", "l", "1.0.0");
    pass(seconds(5)).await;
    let start = cluster.now();
    relist(&cluster, "a", LEASES).await;
    relist(&cluster, "a", CANDIDATES).await;
    pass(seconds(5)).await;
    let posts = cluster.requests_since(start, &["POST"]);
    assert!(posts.is_empty(), "{posts:?}");
    let deleted = |event: &Event| {
        matches!(
            event,
            Event::LeadershipChanged(LeadershipChange { holder: None, .. })
        )
    };
    assert_eq!(elector.count(deleted), 0);
    // Its candidate is known still, and its stop-watch has never been started anew: by now it has all it takes.
    drop(kept);
    let waited = cluster.held_by("b", "l", "y").await;
    let holds = waited > seconds(12) && waited < millis(15_100);
    assert!(holds, "{waited:?}");
}
