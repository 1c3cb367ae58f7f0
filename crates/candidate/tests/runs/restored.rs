//! A store that was restored from a backup under a candidate: its revisions say nothing of what was known (R4).

use std::time::Duration;

use elector_apiserver::{Backup, Switches};
use elector_candidate::TermEnd;
use elector_protocol::holder::Loss;
use elector_protocol::{Identity, Instant};
use elector_testing::{OneLease, seconds};

use crate::{RunningCandidate, V1BETA1, elected, leader, obedient, pass};

const PUT: &str = "PUT leases/web";

/// The end of the watches of a store that is restored: in the middle, or as if the server had closed them.
const ENDS: [fn(&Switches); 2] = [Switches::break_watches, Switches::close_watches];

/// A leader in a store that has gone through many revisions, when it renewed last, a moment ago, and what was stored before.
async fn old_leader(cluster: &OneLease) -> (RunningCandidate, Instant, Backup) {
    let backup = cluster.backup();
    cluster.make_revisions(100);
    let running = leader(cluster, elected(), obedient).await;
    let accepted = cluster.last(PUT);
    while cluster.last(PUT) == accepted {
        pass(1).await;
    }
    pass(100).await;
    (running, cluster.last(PUT), backup)
}

/// The restored record names this process, with its token and its term: it is a record of another life all the same.
#[tokio::test(start_paused = true)]
async fn a_holder_steps_down_at_once_when_a_list_is_below_what_was_seen_and_needs_a_new_grant() {
    for end_watches in ENDS {
        let cluster = OneLease::new(&[V1BETA1]);
        let (running, renewed, backup) = old_leader(&cluster).await;
        cluster.restore_all_but_the_record(&backup);
        let restored = cluster.now();
        end_watches(&cluster.faults());
        let (end, at) = running.end().await;
        assert_eq!(end, TermEnd::Lost(Loss::StoreRestored));
        assert!(
            at.since(restored) <= Duration::from_millis(1_500),
            "{:?}",
            at.since(restored)
        );
        assert_eq!(
            cluster.last(PUT),
            renewed,
            "the watch has told, and no renewal"
        );
        pass(30_000).await;
        assert_eq!(cluster.record().holder, Identity::new("me"));
        assert_eq!(
            cluster.last(PUT),
            renewed,
            "nothing is written to a term of before"
        );
        cluster.grant("me");
        running.leads(2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_holder_steps_down_when_a_read_after_a_conflict_is_below_what_was_seen() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (running, renewed, backup) = old_leader(&cluster).await;
    cluster.restore_all_but_the_record(&backup);
    let (end, at) = running.end().await;
    assert_eq!(end, TermEnd::Lost(Loss::StoreRestored));
    // With the next renewal.
    assert!(at.since(renewed) <= Duration::from_millis(3_400));
    let last = cluster.last(PUT);
    pass(30_000).await;
    assert_eq!(cluster.last(PUT), last);
}

/// A backup that is older than the candidate.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_the_restored_store_does_not_hold_is_registered_again_at_once() {
    for end_watches in ENDS {
        let cluster = OneLease::new(&[V1BETA1]);
        let (_running, _, backup) = old_leader(&cluster).await;
        cluster.restore_all_but_the_record(&backup);
        let restored = cluster.now();
        end_watches(&cluster.faults());
        while cluster.candidate(V1BETA1).is_none() {
            assert!(cluster.now().since(restored) <= seconds(2));
            pass(1).await;
        }
    }
}
