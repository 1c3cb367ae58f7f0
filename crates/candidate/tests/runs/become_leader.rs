//! Terms that the caller holds by a guard, in the place of a run with work.

use elector_candidate::{Candidate, CandidateHandle, Config, Error, HeldLease, TermEnd};
use elector_protocol::Identity;
use elector_protocol::holder::{Loss, StopReason};
use elector_testing::{OneLease, eventually, seconds};
use tokio::task::JoinHandle;

use crate::{RunOutcome, V1BETA1, config, connected, pass};

/// A candidate that is waiting to become the leader.
struct WaitingCaller {
    handle: CandidateHandle,
    guard: JoinHandle<Result<HeldLease, Error>>,
}

fn wait_to_lead(cluster: &OneLease, config: Config) -> WaitingCaller {
    let candidate = Candidate::new(config, connected(cluster)).unwrap();
    WaitingCaller {
        handle: candidate.handle(),
        guard: tokio::spawn(candidate.become_leader()),
    }
}

/// A guard, and the handle of its candidate.
async fn leader(cluster: &OneLease, config: Config) -> (HeldLease, CandidateHandle) {
    let waiting = wait_to_lead(cluster, config);
    eventually(|| cluster.candidate(V1BETA1).is_some()).await;
    assert!(!waiting.guard.is_finished());
    cluster.grant("me");
    let guard = tokio::time::timeout(seconds(120), waiting.guard).await;
    (guard.unwrap().unwrap().unwrap(), waiting.handle)
}

/// The end of the term of a guard that is released.
async fn released(guard: HeldLease) -> RunOutcome<()> {
    let ended = tokio::time::timeout(seconds(120), guard.release()).await;
    ended.unwrap().into()
}

fn is_free(cluster: &OneLease) -> bool {
    cluster.record().holder.is_none() && cluster.candidate(V1BETA1).is_none()
}

#[tokio::test(start_paused = true)]
async fn a_guard_leads_until_it_is_released() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (guard, handle) = leader(&cluster, config()).await;
    assert!(guard.is_leader() && handle.is_leader());
    // As long as it is there, the lease is renewed.
    pass(60_000).await;
    assert!(guard.is_leader() && guard.stop_reason().is_none());
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
        let config = config().one_term(false).retry_work(true);
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
        let expected = if silent { 3_750 } else { 0 };
        assert_eq!(guard.time_to_stop().as_millis(), expected);
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
    let expected = StopReason::HandOver { to: to.clone() };
    assert_eq!(guard.stopped().await, expected);
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
    let expected = Identity::new("me");
    assert_eq!(cluster.record().holder, expected, "not handed over");
    let renewed = cluster.last("PUT leases/web");
    assert!(cluster.now().since(renewed) > seconds(15), "nor renewed");
    assert!(!guard.is_leader() && !handle.is_leader());
    assert!(handle.check_live().is_err(), "which a probe is told");
    let outcome = released(guard).await;
    assert_eq!(outcome, RunOutcome::TermEnded(TermEnd::WorkStillRuns));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_go_on_is_an_error() {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.register("default", "me", "another", "1.0.0");
    let waiting = wait_to_lead(&cluster, config());
    let ended = tokio::time::timeout(seconds(120), waiting.guard).await;
    let error = ended.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, Error::Registration { .. }), "{error}");
}
