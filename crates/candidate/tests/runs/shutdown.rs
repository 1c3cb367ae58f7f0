//! The end of a run: the candidate leaves, the lease is given up, and no server holds that up.

use std::time::Duration;

use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::TermEnd;
use elector_protocol::Occupancy;
use elector_testing::{OneLease, seconds};

use crate::{RunOutcome, V1BETA1, config, leader, obedient, pass, start};

/// The work has stopped; what is left is for others' convenience, and worth two request timeouts of 2 s.
#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_a_silent_server_for_two_request_timeouts() {
    let cluster = OneLease::new(&[V1BETA1]);
    let mut running = leader(&cluster, config(), obedient).await;
    cluster.faults().partition(true);
    let begun = cluster.now();
    running.shut_down();
    let outcome = running.outcome().await;
    assert_eq!(outcome, RunOutcome::ShutDown(Some(TermEnd::Unconfirmed)));
    let waited = cluster.now().since(begun);
    let holds = waited >= seconds(4) && waited < Duration::from_millis(4_020);
    assert!(holds, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_cannot_be_deleted_does_not_hold_up_the_release() {
    for refused in [500, 403] {
        let cluster = OneLease::new(&[V1BETA1]);
        let mut running = leader(&cluster, config(), obedient).await;
        let rule = Rule::new(Fault::Refuse(refused)).verb(RequestVerb::Delete);
        cluster.inject(rule);
        running.shut_down();
        pass(50).await;
        let expected = Occupancy::Released;
        assert_eq!(cluster.record().occupancy(), expected, "{refused}");
        let outcome = running.outcome().await;
        assert_eq!(outcome, RunOutcome::ShutDown(Some(TermEnd::Released)));
    }
}

/// A ping in the last moment makes the known revision an old one. No elector would delete the object soon: electors
/// ping for half an hour before they collect.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_pinged_while_it_leaves_is_deleted_all_the_same() {
    let cluster = OneLease::new(&[V1BETA1]);
    let mut running = start(&cluster, config(), obedient);
    running.registered().await;
    cluster.faults().freeze_watches(true);
    cluster.ping(V1BETA1, "me");
    let begun = cluster.now();
    running.shut_down();
    assert_eq!(running.outcome().await, RunOutcome::ShutDown(None));
    assert!(cluster.candidate(V1BETA1).is_none());
    let what: Vec<_> = cluster
        .object_requests_since(begun)
        .into_iter()
        .map(|request| request.what)
        .collect();
    assert_eq!(
        what,
        [
            "DELETE leasecandidates/me",
            "GET leasecandidates/me",
            "DELETE leasecandidates/me"
        ]
    );
}

/// The time for the server begins when the work has stopped, however long that took; two replies may need nearly all of it.
#[tokio::test(start_paused = true)]
async fn a_long_drain_takes_no_time_from_the_release() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, config(), |leadership| async move {
        leadership.stopped().await;
        pass(9_000).await;
        Ok(0)
    })
    .await;
    cluster.slow(Duration::from_millis(950), Duration::from_millis(950));
    running.releases().await;
    assert!(cluster.candidate(V1BETA1).is_none());
    assert_eq!(cluster.record().occupancy(), Occupancy::Released);
}
