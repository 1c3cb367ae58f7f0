//! News of a watch: the kinds that end a term, and those that call for a read first (R10).

use std::time::Duration;

use elector_candidate::TermEnd;
use elector_protocol::holder::Loss;
use elector_testing::{OneLease, SentRequest, eventually};

use crate::{V1BETA1, config, leader, obedient, pass};

const GET: &str = "GET leases/web";

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_read_calls_for_a_read() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, config(), obedient).await;
    pass(500).await;
    let spoilt = cluster.now();
    cluster.overwrite_lease("renewTime", "soon".into());
    pass(100).await;
    let requests = cluster.object_requests_since(spoilt);
    let is_read = |request: &SentRequest| request.what == GET;
    assert!(requests.iter().any(is_read), "{requests:?}");
    assert!(running.guard().is_leader());
    // The object cannot confirm the term either, so belief ends at its deadline.
    assert_eq!(running.end().await.0, TermEnd::Lost(Loss::DeadlinePassed));
}

/// A complete list that is newer than what is known, and in which the Lease is missing, is news of its deletion.
#[tokio::test(start_paused = true)]
async fn a_lease_that_a_list_does_not_show_is_lost_at_once() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, config(), obedient).await;
    pass(3_500).await;
    let renewed = cluster.last("PUT leases/web");
    cluster.faults().freeze_watches(true);
    cluster.delete_lease();
    cluster.compact();
    let deleted = cluster.now();
    cluster.faults().break_watches();
    let (end, at) = running.end().await;
    assert_eq!(end, TermEnd::Lost(Loss::Deleted));
    let took = at.since(deleted);
    assert!(took <= Duration::from_millis(1_500), "{took:?}");
    // Nothing else has told.
    assert_eq!(cluster.last("PUT leases/web"), renewed);
}

/// A deleted candidate is no lost lease (R13): a stranger that deletes it has not taken the lease.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_candidate_is_deleted_registers_at_once_and_leads_on() {
    for list in [false, true] {
        let cluster = OneLease::new(&[V1BETA1]);
        let running = leader(&cluster, config(), obedient).await;
        pass(20_000).await;
        let before = cluster.candidate(V1BETA1).unwrap().metadata.uid;
        if list {
            cluster.faults().freeze_watches(true);
        }
        cluster.delete_candidate(V1BETA1);
        let deleted = cluster.now();
        if list {
            cluster.compact();
            cluster.faults().break_watches();
        }
        while cluster.candidate(V1BETA1).is_none() {
            let waited = cluster.now().since(deleted);
            let longest = if list { 1_500 } else { 20 };
            assert!(waited <= Duration::from_millis(longest), "{waited:?}");
            pass(1).await;
        }
        assert_ne!(cluster.candidate(V1BETA1).unwrap().metadata.uid, before);
        eventually(|| cluster.now().since(deleted) > Duration::from_secs(20)).await;
        assert!(running.guard().is_leader() && !running.is_disturbed());
    }
}
