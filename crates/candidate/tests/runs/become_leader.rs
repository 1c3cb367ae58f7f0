//! Terms that the caller holds by a guard, in the place of a run with work.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use elector_candidate::{
    AfterFailure, AfterTerm, Candidate, CandidateHandle, Config, LeaderGuard, Mode, RunError,
    RunOutcome, TermEnd,
};
use elector_protocol::Identity;
use elector_protocol::holder::{Loss, StopReason};
use elector_testing::{OneLease, eventually, seconds};
use tokio::task::JoinHandle;

use crate::{V1BETA1, config, pass};

/// A candidate that is waiting to become the leader.
struct WaitingCaller {
    handle: CandidateHandle,
    guard: JoinHandle<Result<LeaderGuard, RunError>>,
}

fn wait_to_lead(cluster: &OneLease, config: Config) -> WaitingCaller {
    let candidate = Candidate::new(config, cluster.cluster()).unwrap();
    let candidate = candidate.with_clock(cluster.clock()).with_seed(0);
    wait_by(candidate)
}

fn wait_by(candidate: Candidate) -> WaitingCaller {
    WaitingCaller {
        handle: candidate.handle(),
        guard: tokio::spawn(candidate.become_leader()),
    }
}

/// A guard, and the handle of its candidate.
async fn leader(cluster: &OneLease, config: Config) -> (LeaderGuard, CandidateHandle) {
    granted(cluster, wait_to_lead(cluster, config)).await
}

async fn granted(cluster: &OneLease, waiting: WaitingCaller) -> (LeaderGuard, CandidateHandle) {
    eventually(|| cluster.candidate(V1BETA1).is_some()).await;
    assert!(!waiting.guard.is_finished());
    cluster.grant("me");
    let guard = tokio::time::timeout(seconds(120), waiting.guard).await;
    (guard.unwrap().unwrap().unwrap(), waiting.handle)
}

/// The end of the term of a guard that is released.
async fn released(guard: LeaderGuard) -> RunOutcome<(), Infallible> {
    let ended = tokio::time::timeout(seconds(120), guard.release()).await;
    ended.unwrap().unwrap()
}

fn is_free(cluster: &OneLease) -> bool {
    cluster.record().holder.is_none() && cluster.candidate(V1BETA1).is_none()
}

#[tokio::test(start_paused = true)]
async fn a_guard_leads_until_it_is_released() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (guard, handle) = leader(&cluster, config()).await;
    assert!(guard.is_leader() && handle.is_leader_under(guard.token()));
    // As long as it is there, the lease is renewed.
    pass(60_000).await;
    assert!(guard.is_leader() && guard.stop_token().reason().is_none());
    let outcome = released(guard).await;
    let term = TermEnd::Released;
    assert_eq!(outcome, RunOutcome::WorkEnded { value: (), term });
    assert!(is_free(&cluster) && !handle.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_dropped_releases_the_lease_beside_the_program() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (guard, handle) = leader(&cluster, config()).await;
    let clone = guard.clone();
    drop(guard);
    eventually(|| is_free(&cluster)).await;
    assert!(!handle.is_leader() && !clone.is_leader());
    assert_eq!(clone.stopped().await, StopReason::ShutDown);
}

#[tokio::test(start_paused = true)]
async fn a_guard_tells_of_a_loss_by_the_clock_and_by_news() {
    let by = Identity::new("other");
    for (silent, loss) in [(true, Loss::DeadlinePassed), (false, Loss::Taken { by })] {
        let cluster = OneLease::new(&[V1BETA1]);
        // For one term, whatever the configuration says.
        let mut config = config();
        config.after_term = AfterTerm::CampaignAgain;
        config.after_failure = AfterFailure::Retry;
        let (guard, _) = leader(&cluster, config).await;
        pass(1_000).await;
        if silent {
            cluster.faults().partition(true);
        } else {
            cluster.grant("other");
        }
        let told = tokio::time::timeout(seconds(11), guard.stopped()).await;
        assert_eq!(told.unwrap(), StopReason::Lost(loss.clone()));
        assert!(!guard.is_leader());
        assert_eq!(
            guard.time_to_stop().as_millis(),
            if silent { 3_750 } else { 0 }
        );
        let outcome = released(guard).await;
        assert_eq!(outcome, RunOutcome::TermEnded(TermEnd::Lost(loss)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_handed_over_when_the_guard_is_released_and_not_before() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (guard, _) = leader(&cluster, config()).await;
    cluster.prefer("better");
    let to = Identity::new("better").unwrap();
    assert_eq!(
        guard.stopped().await,
        StopReason::HandOver { to: to.clone() }
    );
    pass(9_000).await;
    assert!(guard.is_leader(), "it leads until it has stopped");
    assert_eq!(cluster.record().holder, Identity::new("me"));
    let outcome = released(guard).await;
    let end = TermEnd::HandedOver { to: to.clone() };
    assert_eq!(outcome, RunOutcome::TermEnded(end));
    assert_eq!(cluster.record().holder, Some(to));
}

/// The holder of the guard cannot be dropped, so the lease cannot be given away under it.
#[tokio::test(start_paused = true)]
async fn a_guard_that_is_kept_too_long_leaves_the_lease_to_expire() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (guard, handle) = leader(&cluster, config()).await;
    cluster.prefer("better");
    guard.stopped().await;
    pass(30_000).await;
    assert_eq!(
        cluster.record().holder,
        Identity::new("me"),
        "not handed over"
    );
    let renewed = cluster.last("PUT leases/web");
    assert!(cluster.now().since(renewed) > seconds(15), "nor renewed");
    assert!(!guard.is_leader() && !handle.is_leader());
    assert!(handle.check_work().is_err(), "which a probe is told");
    let outcome = released(guard).await;
    assert_eq!(outcome, RunOutcome::TermEnded(TermEnd::WorkStillRuns));
}

#[tokio::test(start_paused = true)]
async fn what_the_guard_has_spawned_is_gone_before_the_lease_is_given_away() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (guard, _) = leader(&cluster, config()).await;
    let task = guard.spawn(pending::<()>());
    let outcome = released(guard).await;
    assert!(task.await.unwrap_err().is_cancelled());
    assert!(
        matches!(outcome, RunOutcome::WorkEnded { .. }),
        "{outcome:?}"
    );
    assert!(is_free(&cluster));
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_what_the_guard_has_spawned_tells_it_to_stop_and_is_told_at_the_end() {
    let cluster = OneLease::new(&[V1BETA1]);
    let mut config = config();
    config.after_failure = AfterFailure::Retry;
    let (guard, _) = leader(&cluster, config).await;
    let task = guard.spawn(async { panic!("as the test wants it") });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!(guard.stopped().await, StopReason::ShutDown);
    let outcome = released(guard).await;
    let RunOutcome::WorkPanicked { message, term } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (&*message, term),
        ("as the test wants it", TermEnd::Released)
    );
}

#[tokio::test(start_paused = true)]
async fn a_guard_of_a_process_that_is_unwell_is_told_to_stop_and_its_release_says_why() {
    let cluster = OneLease::new(&[V1BETA1]);
    let well = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&well);
    let candidate = Candidate::new(config(), cluster.cluster()).unwrap();
    let candidate = candidate.with_clock(cluster.clock()).with_health(move || {
        let answer = asked.load(Ordering::SeqCst).then_some(());
        async move { answer.ok_or("the disk is full") }
    });
    let (guard, _) = granted(&cluster, wait_by(candidate)).await;
    well.store(false, Ordering::SeqCst);
    let told = tokio::time::timeout(seconds(60), guard.stopped()).await;
    assert_eq!(told.unwrap(), StopReason::ShutDown);
    assert!(guard.is_leader(), "it leads until it has stopped");
    let outcome = released(guard).await;
    let RunOutcome::Unwell { error, term } = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((&*error, term), ("the disk is full", TermEnd::Released));
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_waits_no_more_leaves_nothing_behind() {
    let cluster = OneLease::new(&[V1BETA1]);
    let waiting = wait_to_lead(&cluster, config());
    eventually(|| cluster.candidate(V1BETA1).is_some()).await;
    waiting.guard.abort();
    assert!(waiting.guard.await.unwrap_err().is_cancelled());
    cluster.forget_requests();
    cluster.grant("me");
    pass(60_000).await;
    assert_eq!(cluster.requests(), []);
    assert!(!waiting.handle.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_go_on_is_an_error() {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.register("default", "me", "another", "1.0.0");
    let waiting = wait_to_lead(&cluster, config());
    let ended = tokio::time::timeout(seconds(120), waiting.guard).await;
    let error = ended.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, RunError::BoundElsewhere { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn without_an_election_the_guard_is_there_at_once() {
    let cluster = OneLease::new(&[V1BETA1]);
    let mut config = config();
    config.mode = Mode::Disabled;
    let guard = wait_to_lead(&cluster, config).guard.await.unwrap().unwrap();
    pass(60_000).await;
    assert!(guard.is_leader());
    let outcome = released(guard).await;
    assert!(
        matches!(outcome, RunOutcome::WorkEnded { .. }),
        "{outcome:?}"
    );
    assert_eq!(cluster.requests(), []);
}
