//! Candidates that a stranger makes unreadable after they were valid: what they said before does not count any more.

use elector::Config;
use elector_testing::{CANDIDATES, EmbeddedCluster, millis, pass, seconds};
use serde_json::json;

use crate::RunningElector;

/// An unreadable object belongs to no election; one with an invalid version stays in it with its rejection. Neither is
/// elected, nor pinged, by what it said before.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_became_unreadable_is_not_elected_by_its_earlier_spec() {
    for (unreadable, pinged) in [
        (json!("nonsense"), false),
        (json!({"leaseName": 7}), false),
        (
            json!({
                "leaseName": "l", "binaryVersion": "one", "emulationVersion": "one",
                "strategy": "OldestEmulationVersion", "renewTime": "2027-01-15T08:00:00.000000Z",
            }),
            true,
        ),
    ] {
        let cluster = EmbeddedCluster::new();
        let _elector = RunningElector::start(&cluster, Config::default());
        pass(seconds(20)).await;
        let kept = cluster.keep("default", "l", "plain");
        let _best = cluster.candidate("default", "best", "l", "1.0.0");
        let _other = cluster.candidate("default", "other", "l", "1.1.0");
        pass(seconds(20)).await;
        let overwritten = cluster.now();
        cluster.put(CANDIDATES, "default", "best", |fields| {
            fields["spec"] = unreadable.clone();
        });
        pass(seconds(1)).await;
        drop(kept);
        let waited = cluster.held_by("default", "l", "other").await;
        assert!(waited < millis(15_100), "{unreadable}: {waited:?}");
        let best = cluster.requests_since(overwritten, &["PATCH", "leasecandidates/best"]);
        assert!(pinged || best.is_empty(), "{unreadable}: {best:?}");
    }
}

/// A holder whose candidate cannot be read counts as one without a candidate, and is never touched (decision 8).
#[tokio::test(start_paused = true)]
async fn a_holder_whose_candidate_became_unreadable_is_not_asked_to_yield() {
    let cluster = EmbeddedCluster::new();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _kept = cluster.keep("default", "l", "old");
    let _old = cluster.candidate("default", "old", "l", "1.1.0");
    pass(seconds(5)).await;
    cluster.put(CANDIDATES, "default", "old", |fields| {
        fields["spec"] = json!("nonsense");
    });
    pass(seconds(1)).await;
    let _best = cluster.candidate("default", "best", "l", "1.0.0");
    let start = cluster.now();
    pass(seconds(30)).await;
    let writes = cluster.requests_since(start, &["PUT", "leases/l"]);
    assert!(writes.is_empty(), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_readable_again_takes_part_again() {
    let cluster = EmbeddedCluster::new();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let kept = cluster.keep("default", "l", "plain");
    let _best = cluster.candidate("default", "best", "l", "1.0.0");
    let _other = cluster.candidate("default", "other", "l", "1.1.0");
    pass(seconds(5)).await;
    let mut spec = json!("nonsense");
    for _ in ["overwritten", "mended"] {
        cluster.put(CANDIDATES, "default", "best", |fields| {
            std::mem::swap(&mut spec, &mut fields["spec"]);
        });
        pass(seconds(5)).await;
    }
    drop(kept);
    cluster.held_by("default", "l", "best").await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_candidate_is_not_elected() {
    let cluster = EmbeddedCluster::new();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let kept = cluster.keep("default", "l", "plain");
    let _other = cluster.candidate("default", "other", "l", "1.1.0");
    let best = cluster.candidate("default", "best", "l", "1.0.0");
    pass(seconds(20)).await;
    drop(best);
    cluster.delete(CANDIDATES, "default", "best");
    let deleted = cluster.now();
    drop(kept);
    let waited = cluster.held_by("default", "l", "other").await;
    assert!(waited < millis(15_100), "{waited:?}");
    let requests = cluster.requests_since(deleted, &["leasecandidates/best"]);
    assert!(requests.is_empty(), "{requests:?}");
}
