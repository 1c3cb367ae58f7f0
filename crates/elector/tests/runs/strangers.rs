//! A stranger that annotates a Lease, once or all the time: what it costs an election (R2, R4, R6).

use elector::Config;
use elector_testkit::{LEASES, MemoryCluster, ScriptedCandidate, millis, pass, seconds};
use serde_json::json;

use crate::RunningElector;

fn annotate(cluster: &MemoryCluster) {
    cluster.put(LEASES, "ns", "l", |fields| {
        fields["metadata"]["annotations"]["stranger"] = "was here".into();
    });
}

/// (R6 a) The proof of absence outlives the conflict.
#[tokio::test(start_paused = true)]
async fn one_annotation_of_a_new_lease_costs_no_time_and_no_read() {
    let cluster = MemoryCluster::without_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    cluster.before_next_put(LEASES, annotate);
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "a").await < millis(100));
    assert!(!cluster.awaits_put());
    assert_eq!(cluster.count_requests("GET", "leases/l"), 0);
}

/// (R4) What the read shows may have been held since the watch fell silent.
#[tokio::test(start_paused = true)]
async fn an_unheld_lease_is_read_when_the_watch_is_silent_and_is_waited_for_anew() {
    let cluster = MemoryCluster::without_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    cluster.before_next_put(LEASES, |cluster| {
        cluster.faults().freeze_watches_of(LEASES);
        annotate(cluster);
    });
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(millis(1_900)).await;
    assert_eq!(cluster.count_requests("GET", "leases/l"), 0);
    pass(millis(200)).await;
    assert_eq!(cluster.count_requests("GET", "leases/l"), 1);
    assert_eq!(cluster.count_requests("PUT", "leases/l"), 1);
    let rest = cluster.held_by("ns", "l", "a").await;
    assert!((millis(14_800)..seconds(16)).contains(&rest), "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_lease_that_is_annotated_all_the_time_is_granted_in_time() {
    let cluster = MemoryCluster::without_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _stranger = cluster.annotate_all_the_time("ns", "l");
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    let waited = cluster.held_by("ns", "l", "a").await;
    assert!(waited < seconds(2), "{waited:?}");
    assert!(cluster.count_requests("PUT", "leases/l") > 3, "no race");
}

#[tokio::test(start_paused = true)]
async fn an_unheld_lease_that_is_annotated_all_the_time_is_granted_in_time() {
    let released = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
    for (spec, longest) in [(json!({"holderIdentity": ""}), 15), (released, 0)] {
        let cluster = MemoryCluster::without_gate();
        cluster.put_lease("ns", "l", spec);
        let _stranger = cluster.annotate_all_the_time("ns", "l");
        let _elector = RunningElector::start(&cluster, Config::default());
        let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
        let waited = cluster.held_by("ns", "l", "a").await;
        let expected = seconds(longest)..seconds(longest + 2);
        assert!(expected.contains(&waited), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_lease_that_is_annotated_all_the_time_is_handed_over_and_follows_a_crash_in_time() {
    let cluster = MemoryCluster::without_gate();
    let elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _next = ScriptedCandidate::start(&cluster, "ns", "next", "l", "1.1.0");
    assert!(cluster.held_by("ns", "l", "next").await < seconds(1));
    let _stranger = cluster.annotate_all_the_time("ns", "l");
    let best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    let waited = cluster.held_by("ns", "l", "best").await;
    assert!(waited < seconds(2), "{waited:?}");
    let term = cluster.term("ns", "l");
    pass(seconds(60)).await;
    assert_eq!(cluster.term("ns", "l"), term, "a healthy leader leads on");
    drop(best);
    let waited = cluster.held_by("ns", "l", "next").await;
    assert!(waited < seconds(17), "{waited:?}");
    assert_eq!(elector.lives(), 1);
}
