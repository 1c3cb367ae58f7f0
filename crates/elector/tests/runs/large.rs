//! Objects with much in them that no decision needs: it is not kept, and no write loses it.

use elector_testing::{CANDIDATES, LEASES, ScriptedCandidate, TestCluster, millis, pass, seconds};
use serde_json::json;

use crate::RunningElector;

/// (R2) The elector reads a large Lease anew when it has something to write, and writes all of it; the ping of a
/// candidate touches its pingTime alone.
#[tokio::test(start_paused = true)]
async fn what_large_objects_hold_survives_a_fail_over() {
    let (cluster, _elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.0.0");
    let _next = ScriptedCandidate::start(&cluster, "ns", "next", "l", "1.1.0");
    assert!(cluster.held_by("ns", "l", "old").await < seconds(1));
    let large = "x".repeat(100_000);
    for (plural, name) in [(LEASES, "l"), (CANDIDATES, "next")] {
        cluster.edit(plural, "ns", name, |object| {
            object["metadata"]["annotations"]["example.com/large"] = json!(large);
        });
    }
    pass(seconds(60)).await;
    let before = cluster.count_requests("GET", "leases/l");
    let pings = cluster.count_requests("PATCH", "leasecandidates/next");
    drop(old);
    assert!(cluster.held_by("ns", "l", "next").await < millis(16_000));
    assert!(cluster.count_requests("PATCH", "leasecandidates/next") > pings);
    assert!(cluster.count_requests("GET", "leases/l") > before);
    for (plural, name) in [(LEASES, "l"), (CANDIDATES, "next")] {
        let object = cluster.read(plural, "ns", name).unwrap();
        let kept = object["metadata"]["annotations"]["example.com/large"].as_str();
        assert_eq!(kept.map(str::len), Some(large.len()), "{plural}");
    }
    pass(seconds(60)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("next"));
    let reads = cluster.count_requests("GET", "leases/l");
    assert!(reads - before < 8, "{} reads for one grant", reads - before);
}
