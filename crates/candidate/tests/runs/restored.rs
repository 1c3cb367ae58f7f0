//! A store that was restored from a backup under a candidate: its revisions say nothing of what was known (R4).

use std::time::Duration;

use elector_apiserver::{Backup, Faults};
use elector_candidate::TermEnd;
use elector_protocol::holder::Loss;
use elector_protocol::{Identity, Instant};
use elector_testing::{OneLease, eventually, seconds};

use crate::{RunningCandidate, V1BETA1, elected, leader, obedient, pass};

const PUT: &str = "PUT leases/web";

/// The end of the watches of a store that is restored: in the middle, or as if the server had closed them.
const ENDS: [fn(&Faults); 2] = [Faults::break_watches, Faults::close_watches];

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
        let took = at.since(restored);
        assert!(took <= Duration::from_millis(1_500), "{took:?}");
        // The watch has told, and no renewal.
        assert_eq!(cluster.last(PUT), renewed);
        // The backup is older than the candidate.
        eventually(|| cluster.candidate(V1BETA1).is_some()).await;
        assert!(cluster.now().since(restored) <= seconds(2));
        pass(30_000).await;
        assert_eq!(cluster.record().holder, Identity::new("me"));
        // Nothing is written to a term of before.
        assert_eq!(cluster.last(PUT), renewed);
        cluster.grant("me");
        running.leads(2).await;
    }
}
