//! The end of a run: the candidate leaves, the lease is given up, and no server holds that up.

use std::time::Duration;

use elector_apiserver::{Fault, Rule, Verb};
use elector_candidate::{RunOutcome, TermEnd};
use elector_protocol::Occupancy;
use http::StatusCode;

use crate::stage::{Stage, V1BETA1};
use crate::{config, eventually, leader, obedient, pass, seconds, start};

/// The work has stopped; what is left is for others' convenience, and worth two request timeouts of 2 s.
#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_a_silent_server_for_two_request_timeouts() {
    let stage = Stage::new(&[V1BETA1]).await;
    let mut running = leader(&stage, V1BETA1, config(), obedient).await;
    stage.faults().partition(true);
    let asked = stage.now();
    running.shut_down();
    let outcome = running.outcome().await;
    assert_eq!(outcome, RunOutcome::ShutDown(Some(TermEnd::Unconfirmed)));
    let waited = stage.now().since(asked);
    assert!(
        waited >= seconds(4) && waited < Duration::from_millis(4_020),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn two_answers_that_take_nearly_their_timeouts_are_waited_for() {
    let stage = Stage::new(&[V1BETA1]).await;
    let mut running = leader(&stage, V1BETA1, config(), obedient).await;
    stage.slow(Duration::from_millis(950), Duration::from_millis(950));
    running.shut_down();
    let outcome = running.outcome().await;
    assert_eq!(outcome, RunOutcome::ShutDown(Some(TermEnd::Released)));
    assert!(stage.candidate(V1BETA1).await.is_none());
    assert_eq!(stage.record().await.occupancy(), Occupancy::Released);
}

/// The time for the server begins when the work has stopped, however long that took.
#[tokio::test(start_paused = true)]
async fn a_long_drain_takes_nothing_from_the_farewell() {
    let stage = Stage::new(&[V1BETA1]).await;
    let mut running = leader(&stage, V1BETA1, config(), |leadership| async move {
        leadership.stopped().await;
        pass(9_000).await;
        Ok(0)
    })
    .await;
    stage.slow(Duration::from_millis(900), Duration::from_millis(900));
    running.shut_down();
    let outcome = running.outcome().await;
    assert_eq!(outcome, RunOutcome::ShutDown(Some(TermEnd::Released)));
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_cannot_be_deleted_does_not_hold_up_the_release() {
    for refused in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::FORBIDDEN] {
        let stage = Stage::new(&[V1BETA1]).await;
        let mut running = leader(&stage, V1BETA1, config(), obedient).await;
        let rule = Rule::new(Fault::Refuse(refused)).verb(Verb::Delete);
        stage.faults().inject(rule);
        running.shut_down();
        pass(50).await;
        assert_eq!(
            stage.record().await.occupancy(),
            Occupancy::Released,
            "{refused}"
        );
        let outcome = running.outcome().await;
        assert_eq!(outcome, RunOutcome::ShutDown(Some(TermEnd::Released)));
    }
}

/// An elector's question in the last moment makes the known revision an old one. Nobody else would delete the object
/// soon: electors ask for half an hour before they collect.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_was_asked_in_the_moment_of_its_farewell_is_deleted_all_the_same() {
    let stage = Stage::new(&[V1BETA1]).await;
    let mut running = start(&stage, V1BETA1, config(), obedient);
    running.registered().await;
    stage.faults().freeze_watches(true);
    stage.ping(V1BETA1).await;
    let asked = stage.now();
    running.shut_down();
    assert_eq!(running.outcome().await, RunOutcome::ShutDown(None));
    assert!(stage.candidate(V1BETA1).await.is_none());
    let what: Vec<_> = stage
        .asked_since(asked)
        .into_iter()
        .map(|asked| asked.what)
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

#[tokio::test(start_paused = true)]
async fn a_release_that_meets_a_change_by_somebody_else_is_judged_and_written_again() {
    let stage = Stage::new(&[V1BETA1]).await;
    let mut running = leader(&stage, V1BETA1, config(), obedient).await;
    stage.faults().freeze_watches(true);
    stage.label().await;
    running.shut_down();
    let outcome = running.outcome().await;
    assert_eq!(outcome, RunOutcome::ShutDown(Some(TermEnd::Released)));
    let lease = stage.lease().await.unwrap();
    assert_eq!(lease.record().unwrap().occupancy(), Occupancy::Released);
    assert!(
        lease
            .metadata
            .labels
            .is_some_and(|labels| labels.contains_key("seen"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_release_of_a_lease_that_was_taken_meanwhile_is_not_written() {
    let stage = Stage::new(&[V1BETA1]).await;
    let mut running = leader(&stage, V1BETA1, config(), obedient).await;
    stage.faults().freeze_watches(true);
    stage.grant("other").await;
    let taken = stage.lease().await;
    running.shut_down();
    eventually(|| running.run.is_finished()).await;
    assert_eq!(stage.lease().await, taken);
}
