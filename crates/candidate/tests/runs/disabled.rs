//! A disabled election: the work runs at once, and nothing is asked of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use elector_candidate::{Candidate, Cluster, Config, Event, Leadership, Mode, TermEnd};
use elector_testing::{CapturedLog, OneLease, eventually};

use crate::{RunOutcome, RunningCandidate, V1BETA1, config, pass, start};

fn disabled() -> Config {
    config().mode(Mode::Disabled)
}

/// The server is away all the time, and nothing asks it.
fn cluster() -> OneLease {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.faults().partition(true);
    cluster
}

fn leads(running: &RunningCandidate) -> bool {
    running.count(|event| matches!(event, Event::Leading { .. })) > 0
}

#[tokio::test(start_paused = true)]
async fn the_work_runs_at_once_its_guard_says_yes_and_no_request_is_sent() {
    let log = CapturedLog::capture();
    let cluster = cluster();
    let drained = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&drained);
    let begun = cluster.now();
    let running = start(&cluster, disabled(), move |leadership: Leadership| {
        let done = Arc::clone(&done);
        async move {
            leadership.stopped().await;
            tokio::time::sleep(Duration::from_secs(8)).await;
            done.store(true, Ordering::SeqCst);
            Ok(0)
        }
    });
    eventually(|| leads(&running)).await;
    assert!(cluster.now().since(begun) < Duration::from_millis(10));
    let guard = running.guard();
    assert_eq!((guard.term(), guard.token()), (0, 0));
    pass(24 * 3600 * 1_000).await;
    assert!(guard.is_leader() && guard.stop_reason().is_none());
    assert!(running.handle.is_leader());
    let handle = running.handle.clone();
    running.releases().await;
    let holds = drained.load(Ordering::SeqCst);
    assert!(holds, "dropped before its grace was over");
    assert!(!guard.is_leader() && !handle.is_leader());
    assert_eq!(cluster.requests().len(), 0);
    let warnings = log.lines("WARN");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let holds = warnings[0].contains("leader election is disabled");
    assert!(holds, "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn work_ends_and_fails_as_elsewhere() {
    let ended = start(&cluster(), disabled(), |_| async { Ok(7) });
    let term = TermEnd::Released;
    let seven = RunOutcome::WorkEnded { value: 7, term };
    assert_eq!(ended.outcome().await, seven);
    let failed = start(&cluster(), disabled(), |_| async { Err("disk full") });
    let (error, term) = ("disk full".to_owned(), TermEnd::Released);
    let expected = RunOutcome::WorkFailed { error, term };
    assert_eq!(failed.outcome().await, expected);
    let panicked = start(&cluster(), disabled(), |_| async { panic!("at line 3") });
    let (message, term) = ("at line 3".to_owned(), TermEnd::Released);
    let expected = RunOutcome::WorkPanicked { message, term };
    assert_eq!(panicked.outcome().await, expected);
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_is_tried_again_and_work_that_does_not_stop_is_dropped() {
    let config = disabled().retry_work(true);
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&attempts);
    let cluster = cluster();
    let running = start(&cluster, config, move |_| {
        let attempt = count.fetch_add(1, Ordering::SeqCst);
        async move {
            if attempt == 0 {
                return Err("not yet");
            }
            std::future::pending().await
        }
    });
    eventually(|| attempts.load(Ordering::SeqCst) == 2).await;
    // The two terms have the same number and the same token.
    let first = running.guards.lock().unwrap()[0].clone();
    assert!(running.guard().is_leader() && !first.is_leader());
    let (told, events) = (cluster.now(), Arc::clone(&running.events));
    running.releases().await;
    let took = cluster.now().since(told);
    let holds = took >= Duration::from_secs(10) && took < Duration::from_secs(12);
    assert!(holds, "{took:?}");
    let events = events.lock().unwrap();
    let stops = events
        .iter()
        .filter(|(event, _)| matches!(event, Event::Stopping { .. }));
    assert_eq!(stops.count(), 1, "told once, though it did not stop");
}

/// Where there is no cluster, as on the machine of a developer.
#[tokio::test]
async fn a_disabled_election_needs_no_cluster() {
    assert!(config().needs_cluster() && !disabled().needs_cluster());
    let candidate = Candidate::new(disabled(), Cluster::none()).unwrap();
    let work = |leadership: Leadership| async move { Ok::<_, std::io::Error>(leadership.token()) };
    let run = candidate.run(work, std::future::pending::<()>());
    let ended = tokio::time::timeout(Duration::from_secs(60), run).await;
    let term = TermEnd::Released;
    let expected = RunOutcome::WorkEnded { value: 0, term };
    assert_eq!(RunOutcome::from(ended.unwrap()), expected);
}

/// The same with a client of its own, which finds none.
#[cfg(feature = "connect")]
#[tokio::test]
async fn a_kubeconfig_that_is_not_there_is_an_error_to_connect() {
    let nowhere = elector_candidate::ClientArgs::of_kubeconfig("/nowhere/kubeconfig");
    let error = Cluster::connect_with(&nowhere).await.unwrap_err();
    let holds = matches!(error, elector_candidate::Error::Connect(_));
    assert!(holds, "{error}");
    assert!(error.to_string().contains("/nowhere/kubeconfig"), "{error}");
}
