//! The ends of runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use elector_candidate::{AfterTerm, Leadership, RunError, RunOutcome, TermEnd};
use elector_protocol::holder::Loss;
use elector_protocol::{Identity, Occupancy};
use elector_testing::{OneLease, eventually};
use tokio::sync::Notify;

use crate::{V1BETA1, config, obedient, start};

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
    let mut running = start(&cluster, config(), move |leadership: Leadership| {
        let (done, seen) = (Arc::clone(&done), seen.clone());
        async move {
            leadership.stopped().await;
            tokio::time::sleep(Duration::from_secs(8)).await;
            assert!(
                leadership.is_leader(),
                "renewals go on while the work drains"
            );
            assert!(seen.record().holder.is_some(), "released with work alive");
            done.store(true, Ordering::SeqCst);
            Ok(0)
        }
    });
    running.registered().await;
    cluster.grant("me");
    running.leads(1).await;
    running.shut_down();
    assert_eq!(
        running.outcome().await,
        RunOutcome::ShutDown(Some(TermEnd::Released))
    );
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
async fn work_that_ends_by_itself_releases_and_gives_its_value() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config(), |_| async { Ok(42) });
    running.registered().await;
    cluster.grant("me");
    let outcome = running.outcome().await;
    assert_eq!(
        outcome,
        RunOutcome::WorkEnded {
            value: 42,
            term: TermEnd::Released
        }
    );
    assert_eq!(
        cluster.history(),
        ["register", "grant me", "accept", "withdraw", "release"]
    );
}

/// After a pause of the process, the work may learn from its guard that the term is over before the candidate comes
/// round to tell it. That it then returns is obedience, and no end by itself: the candidate campaigns again.
#[tokio::test(start_paused = true)]
async fn work_that_obeys_the_clock_before_it_is_told_has_not_ended_by_itself() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config(), |leadership: Leadership| async move {
        while leadership.is_leader() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(7)
    });
    running.registered().await;
    cluster.grant("me");
    running.leads(1).await;
    // As if the process had been stopped: the timer of the work is due first, so the work wakes first.
    tokio::time::advance(Duration::from_secs(20)).await;
    cluster.grant("other");
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.grant("me");
    running.leads(2).await;
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_releases_and_gives_its_error() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config(), |_| async { Err("disk full") });
    running.registered().await;
    cluster.grant("me");
    let outcome = running.outcome().await;
    assert_eq!(
        outcome,
        RunOutcome::WorkFailed {
            error: "disk full",
            term: TermEnd::Released
        }
    );
    assert_eq!(cluster.history().last().unwrap(), "release");
}

#[tokio::test(start_paused = true)]
async fn an_error_at_the_moment_of_the_loss_is_not_lost() {
    for delay in [0, 1, 5] {
        // A loss that leaves no time leaves none for a late error either.
        let other_holds = delay == 0;
        let cluster = OneLease::new(&[V1BETA1]);
        let taken = Arc::new(Notify::new());
        let failing = Arc::clone(&taken);
        let running = start(&cluster, config(), move |_| {
            let failing = Arc::clone(&failing);
            async move {
                failing.notified().await;
                tokio::time::sleep(Duration::from_millis(delay)).await;
                Err("late")
            }
        });
        running.registered().await;
        cluster.grant("me");
        running.leads(1).await;
        if other_holds {
            taken.notify_one();
            cluster.grant("other");
        } else {
            cluster.faults().partition(true);
            running.guard().stopped().await;
            taken.notify_one();
        }
        let RunOutcome::WorkFailed { error, term } = running.outcome().await else {
            panic!("the error is lost");
        };
        assert_eq!(error, "late");
        let by = Identity::new("other");
        let loss = match other_holds {
            true => Loss::Taken { by },
            false => Loss::DeadlinePassed,
        };
        assert_eq!(term, TermEnd::Lost(loss));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_caught_and_the_lease_released() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config(), |_| async { panic!("out of cheese") });
    running.registered().await;
    cluster.grant("me");
    let outcome = running.outcome().await;
    assert_eq!(
        outcome,
        RunOutcome::WorkPanicked {
            message: "out of cheese".into(),
            term: TermEnd::Released
        }
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_the_work_is_made_is_its_own() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config(), |leadership: Leadership| {
        assert!(!leadership.is_leader(), "no work today");
        obedient(leadership)
    });
    running.registered().await;
    cluster.grant("me");
    let RunOutcome::WorkPanicked { message, term } = running.outcome().await else {
        panic!("the panic is lost");
    };
    assert_eq!(
        (message.as_str(), term),
        ("no work today", TermEnd::Released)
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_stop_is_dropped_after_its_grace_and_before_the_release() {
    struct DropProbe(OneLease, Arc<AtomicBool>);
    impl Drop for DropProbe {
        fn drop(&mut self) {
            let held = self.0.record().holder.is_some();
            self.1.store(held, Ordering::SeqCst);
        }
    }
    let cluster = OneLease::new(&[V1BETA1]);
    let dropped_while_held = Arc::new(AtomicBool::new(false));
    let (seen, flag) = (cluster.clone(), Arc::clone(&dropped_while_held));
    let mut running = start(&cluster, config(), move |_| {
        let dropped = DropProbe(seen.clone(), Arc::clone(&flag));
        async move {
            let _dropped = dropped;
            std::future::pending().await
        }
    });
    running.registered().await;
    cluster.grant("me");
    running.leads(1).await;
    let begun = tokio::time::Instant::now();
    running.shut_down();
    assert_eq!(
        running.outcome().await,
        RunOutcome::ShutDown(Some(TermEnd::Released))
    );
    assert_eq!(begun.elapsed().as_secs(), 10);
    assert!(dropped_while_held.load(Ordering::SeqCst));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_whose_work_blocks_is_left_to_expire() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(std::sync::Mutex::new(blocked));
    let mut config = config();
    config.grace = Duration::from_millis(10);
    let mut running = start(&cluster, config, move |_| {
        let blocked = Arc::clone(&blocked);
        async move {
            let _ = blocked.lock().unwrap().recv();
            Ok(0)
        }
    });
    running.registered().await;
    cluster.grant("me");
    running.leads(1).await;
    running.shut_down();
    assert_eq!(
        running.outcome().await,
        RunOutcome::ShutDown(Some(TermEnd::WorkStillRuns))
    );
    assert_eq!(cluster.record().holder, Identity::new("me"));
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_not_confirmed_does_not_hold_the_shutdown_up() {
    let cluster = OneLease::new(&[V1BETA1]);
    let mut running = start(&cluster, config(), obedient);
    running.registered().await;
    cluster.grant("me");
    running.leads(1).await;
    cluster.faults().partition(true);
    let begun = tokio::time::Instant::now();
    running.shut_down();
    assert_eq!(
        running.outcome().await,
        RunOutcome::ShutDown(Some(TermEnd::Unconfirmed))
    );
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_leaves_nothing_behind() {
    let cluster = OneLease::new(&[V1BETA1]);
    let guards = Arc::new(std::sync::Mutex::new(Vec::new()));
    let alive = Arc::new(());
    let (kept, work_alive) = (Arc::clone(&guards), Arc::clone(&alive));
    let running = start(&cluster, config(), move |leadership: Leadership| {
        kept.lock().unwrap().push(leadership.clone());
        let alive = Arc::clone(&work_alive);
        async move {
            let _alive = alive;
            std::future::pending().await
        }
    });
    running.registered().await;
    cluster.grant("me");
    running.leads(1).await;
    let guard = guards.lock().unwrap()[0].clone();
    assert!(guard.is_leader());
    running.run.abort();
    let _ = running.run.await;
    assert!(!guard.is_leader());
    guard.stopped().await;
    eventually(|| Arc::strong_count(&alive) == 1).await;
    // Only this test is left, once the client's worker has noticed.
    let tasks = tokio::runtime::Handle::current();
    eventually(|| tasks.metrics().num_alive_tasks() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_may_end_with_its_term() {
    let cluster = OneLease::new(&[V1BETA1]);
    let mut config = config();
    config.after_term = AfterTerm::Return;
    let running = start(&cluster, config, obedient);
    running.registered().await;
    cluster.grant("me");
    running.leads(1).await;
    cluster.prefer("better");
    let to = Identity::new("better").unwrap();
    assert_eq!(
        running.outcome().await,
        RunOutcome::TermEnded(TermEnd::HandedOver { to })
    );
    assert!(cluster.candidate(V1BETA1).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_name_that_belongs_to_another_lease_is_an_error() {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.register("default", "me", "db", "1.0.0");
    let running = start(&cluster, config(), obedient);
    let error = running.result().await.unwrap_err();
    assert!(matches!(&error, RunError::BoundElsewhere { lease, .. } if lease == "db"));
    assert_eq!(
        error.to_string(),
        "register me: its LeaseCandidate belongs to the lease db and cannot change that"
    );
    assert!(cluster.candidate(V1BETA1).is_some());
}
