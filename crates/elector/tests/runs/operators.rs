//! What operators say by annotations.

use elector::Config;
use elector_testkit::{CANDIDATES, MemoryCluster, ScriptedCandidate, pass, seconds};
use serde_json::json;

use crate::RunningElector;

fn annotate(cluster: &MemoryCluster, candidate: &str, stand_down: Option<&str>) {
    cluster.put(CANDIDATES, "ns", candidate, |object| {
        let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
        match stand_down {
            Some(value) => annotations.insert("elector.dev/stand-down".to_owned(), json!(value)),
            None => annotations.remove("elector.dev/stand-down"),
        };
    });
}

/// (R16) It makes room at once, is not elected after a crash of the others, and leads again when it may.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_told_to_stand_down_makes_room() {
    let cluster = MemoryCluster::new();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "best").await < seconds(1));
    let next = ScriptedCandidate::start(&cluster, "ns", "next", "l", "1.1.0");
    pass(seconds(30)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("best"));
    annotate(&cluster, "best", Some("true"));
    assert!(cluster.held_by("ns", "l", "next").await < seconds(3));
    drop(next);
    pass(seconds(60)).await;
    assert_ne!(cluster.holder("ns", "l").as_deref(), Some("best"));
    annotate(&cluster, "best", None);
    assert!(cluster.held_by("ns", "l", "best").await < seconds(3));
}

/// A leader that nobody can follow is worth more than none.
#[tokio::test(start_paused = true)]
async fn the_only_candidate_leads_on_although_it_is_told_to_stand_down() {
    let cluster = MemoryCluster::new();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _only = ScriptedCandidate::start(&cluster, "ns", "only", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "only").await < seconds(1));
    let term = cluster.term("ns", "l");
    annotate(&cluster, "only", Some("true"));
    pass(seconds(120)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("only"));
    assert_eq!(cluster.term("ns", "l"), term);
}

/// A value that means nothing changes nothing.
#[tokio::test(start_paused = true)]
async fn a_value_that_is_not_known_is_ignored() {
    let cluster = MemoryCluster::new();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "best").await < seconds(1));
    let _next = ScriptedCandidate::start(&cluster, "ns", "next", "l", "1.1.0");
    pass(seconds(10)).await;
    annotate(&cluster, "best", Some("yes"));
    pass(seconds(60)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("best"));
}
