//! Candidates that a stranger makes unreadable after they were valid: what they said before does not count any more.

use elector_testing::{CANDIDATES, TestCluster, millis, pass, seconds};
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
        let (cluster, _elector) = RunningElector::settled(TestCluster::new()).await;
        let kept = cluster.keep("default", "l", "plain");
        let _best = cluster.candidate("default", "best", "l", "1.0.0");
        let _other = cluster.candidate("default", "other", "l", "1.1.0");
        pass(seconds(20)).await;
        let overwritten = cluster.now();
        let mut spec = unreadable.clone();
        let mut swap = || {
            cluster.edit(CANDIDATES, "default", "best", |fields| {
                std::mem::swap(&mut spec, &mut fields["spec"]);
            });
        };
        swap();
        pass(seconds(1)).await;
        drop(kept);
        let waited = cluster.held_by("default", "l", "other").await;
        assert!(waited < millis(15_100), "{unreadable}: {waited:?}");
        let best = cluster.requests_since(overwritten, &["PATCH", "leasecandidates/best"]);
        assert!(pinged || best.is_empty(), "{unreadable}: {best:?}");
        // Once it can be read again it takes part again.
        swap();
        cluster.held_by("default", "l", "best").await;
    }
}
