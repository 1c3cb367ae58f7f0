//! The ends of runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use elector_candidate::{Error, Leadership, TermEnd};
use elector_protocol::Occupancy;
use elector_testing::OneLease;
use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};

use crate::{RunOutcome, V1BETA1, config, leader, obedient, start};

/// Work that does not wait to be stopped.
type Work = fn(Leadership) -> BoxFuture<'static, crate::Result>;

#[tokio::test(start_paused = true)]
async fn a_shutdown_before_leading_touches_no_lease() {
    let cluster = OneLease::new(&[V1BETA1]);
    let mut running = start(&cluster, config(), obedient);
    running.registered().await;
    running.shut_down();
    assert_eq!(running.outcome().await, RunOutcome::ShutDown(None));
    assert_eq!(cluster.history(), ["register", "withdraw"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_stops_the_work_withdraws_and_only_then_releases() {
    let cluster = OneLease::new(&[V1BETA1]);
    let drained = Arc::new(AtomicBool::new(false));
    let (done, seen) = (Arc::clone(&drained), cluster.clone());
    let running = leader(&cluster, config(), move |leadership: Leadership| {
        let (done, seen) = (Arc::clone(&done), seen.clone());
        async move {
            leadership.stopped().await;
            tokio::time::sleep(Duration::from_secs(8)).await;
            let holds = leadership.is_leader();
            assert!(holds, "renewals go on while the work drains");
            assert!(seen.record().holder.is_some(), "released with work alive");
            done.store(true, Ordering::SeqCst);
            Ok(0)
        }
    })
    .await;
    running.releases().await;
    assert!(drained.load(Ordering::SeqCst));
    let history = cluster.history();
    assert_eq!(history[..3], ["register", "grant me", "accept"]);
    assert_eq!(history.last().unwrap(), "release");
    let renewals = history.iter().filter(|deed| *deed == "renew").count();
    assert_eq!(renewals, 2, "{history:?}");
    assert!(history.contains(&"withdraw".to_owned()));
    assert_eq!(cluster.record().occupancy(), Occupancy::Released);
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_fails_or_panics_releases_the_lease_and_its_outcome_says_so() {
    let term = || TermEnd::Released;
    let panicked = |message: &str| RunOutcome::WorkPanicked {
        message: message.to_owned(),
        term: term(),
    };
    let (value, error) = (42, "disk full".to_owned());
    let ended = RunOutcome::WorkEnded {
        value,
        term: term(),
    };
    let failed = RunOutcome::WorkFailed {
        error,
        term: term(),
    };
    let cases: [(Work, _); 4] = [
        (|_| ready(Ok(42)).boxed(), ended),
        (|_| ready(Err("disk full")).boxed(), failed),
        (
            |_| async { panic!("out of cheese") }.boxed(),
            panicked("out of cheese"),
        ),
        // While the work is made.
        (|_| panic!("no work today"), panicked("no work today")),
    ];
    for (work, expected) in cases {
        let cluster = OneLease::new(&[V1BETA1]);
        let running = start(&cluster, config(), work);
        running.registered().await;
        cluster.grant("me");
        assert_eq!(running.outcome().await, expected);
        let history = ["register", "grant me", "accept", "withdraw", "release"];
        assert_eq!(cluster.history(), history);
    }
}

/// After a pause of the process, the work may learn from its guard that the term is over before the candidate comes
/// round to tell it. That it then returns is obedience, and no end by itself: the candidate campaigns again.
#[tokio::test(start_paused = true)]
async fn work_that_obeys_the_clock_before_it_is_told_has_not_ended_by_itself() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, config(), |leadership: Leadership| async move {
        while leadership.is_leader() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(7)
    })
    .await;
    // As if the process had been stopped: the timer of the work is due first, so the work wakes first.
    tokio::time::advance(Duration::from_secs(20)).await;
    cluster.grant("other");
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.grant("me");
    running.leads(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_belongs_to_another_lease_is_an_error() {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.register("default", "me", "db", "1.0.0");
    let running = start(&cluster, config(), obedient);
    let error = running.result().await.unwrap_err();
    assert!(matches!(&error, Error::Registration { candidate, .. } if candidate.as_str() == "me"));
    let expected = "register me: its LeaseCandidate belongs to the lease db and cannot change that";
    assert_eq!(error.to_string(), expected);
    assert!(cluster.candidate(V1BETA1).is_some());
}
