//! Work that fails, and is tried again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use elector_candidate::{Config, Event, Leadership, TermEnd};
use elector_protocol::holder::Loss;
use elector_testing::{OneLease, eventually, millis};

use crate::{RunOutcome, RunningCandidate, V1BETA1, config, leader, obedient, pass, start};

fn retrying() -> Config {
    config().retry_work(true)
}

/// The reports of failed work: the error, and the pause.
fn failures(running: &RunningCandidate) -> Vec<(String, Duration)> {
    let events = running.events.lock().unwrap();
    let failures = events.iter().filter_map(|(event, _)| match event {
        Event::WorkFailed {
            error, retry_after, ..
        } => Some((error.clone(), *retry_after)),
        _ => None,
    });
    failures.collect()
}

/// While it rests it is no candidate, so the lease is never held for nothing; then it leads again, with new work.
#[tokio::test(start_paused = true)]
async fn work_that_fails_gives_its_term_up_and_is_tried_again_after_a_pause() {
    let cluster = OneLease::new(&[V1BETA1]);
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let running = start(&cluster, retrying(), move |leadership: Leadership| {
        let attempt = count.fetch_add(1, Ordering::SeqCst);
        async move {
            match attempt {
                0 => Err("disk full"),
                1 => panic!("at line 3"),
                _ => obedient(leadership).await,
            }
        }
    });
    running.registered().await;
    cluster.grant("me");
    eventually(|| failures(&running).len() == 1).await;
    // It does not hold the lease for nothing, nor ask to be elected meanwhile.
    assert_eq!(cluster.record().holder, None);
    assert_eq!(cluster.candidate(V1BETA1), None);
    let (error, pause) = failures(&running).remove(0);
    assert_eq!(error, "disk full");
    let second = Duration::from_secs(1);
    assert!((second / 2..=second).contains(&pause), "{pause:?}");
    let failed = cluster.now();
    eventually(|| running.count(|event| *event == Event::Registered) == 2).await;
    // The failure was seen up to a poll of this test late.
    assert!(cluster.now().since(failed) + millis(20) >= pause);
    cluster.grant("me");
    eventually(|| failures(&running).len() == 2).await;
    let (error, longer) = failures(&running).remove(1);
    assert_eq!(error, "panic: at line 3");
    assert!((second..=second * 2).contains(&longer), "{longer:?}");
    eventually(|| running.count(|event| *event == Event::Registered) == 3).await;
    cluster.grant("me");
    running.leads(3).await;
    pass(60_000).await;
    assert!(running.guard().is_leader());
    assert_eq!(made.load(Ordering::SeqCst), 3);
    let history = cluster.history();
    let first = ["register", "grant me", "accept", "withdraw", "release"];
    assert_eq!(history[..5], first);
}

/// Where the caller wants to begin afresh after a loss, the loss comes first.
#[tokio::test(start_paused = true)]
async fn a_run_that_ends_with_its_term_does_not_try_again_after_a_loss() {
    let cluster = OneLease::new(&[V1BETA1]);
    let config = retrying().one_term(true);
    let running = leader(&cluster, config, |leadership: Leadership| async move {
        leadership.stopped().await;
        Err("cut off")
    })
    .await;
    cluster.faults().partition(true);
    let outcome = running.outcome().await;
    let failed = RunOutcome::WorkFailed {
        error: "cut off".to_owned(),
        term: TermEnd::Lost(Loss::DeadlinePassed),
    };
    assert_eq!(outcome, failed);
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_in_a_shutdown_is_not_tried_again() {
    let cluster = OneLease::new(&[V1BETA1]);
    let fails = |leadership: Leadership| async move {
        leadership.stopped().await;
        Err("not flushed")
    };
    let mut running = leader(&cluster, retrying(), fails).await;
    running.shut_down();
    let (error, term) = ("not flushed".to_owned(), TermEnd::Released);
    let failed = RunOutcome::WorkFailed { error, term };
    assert_eq!(running.outcome().await, failed);
}
