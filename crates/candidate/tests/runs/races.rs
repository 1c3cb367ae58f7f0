//! Races, played as often as it takes to meet each order of events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use elector_candidate::Leadership;
use elector_testing::OneLease;

use crate::modes::plain;
use crate::{RunOutcome, RunningCandidate, V1BETA1, config, leader, obedient, start};

/// The number that work now, and the most that did so at a time.
#[derive(Default)]
struct Concurrency {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// The work of one, until its future is dropped.
struct CountedWork(Arc<Concurrency>);

#[tokio::test(start_paused = true)]
async fn of_twenty_that_wait_for_the_same_dead_leader_one_follows_a_thousand_times() {
    let cluster = OneLease::new(&[]);
    cluster.write(|record| record.released(elector_testing::TestCluster::start_time()));
    let count = Arc::new(Concurrency::default());
    let join = |number: usize| {
        let count = Arc::clone(&count);
        start(
            &cluster,
            plain(&format!("p{number}")),
            move |leadership: Leadership| {
                let counted = CountedWork::begin(&count);
                async move {
                    let value = obedient(leadership).await;
                    drop(counted);
                    value
                }
            },
        )
    };
    let mut all: Vec<RunningCandidate> = (0..20).map(join).collect();
    let mut leads = leading(&all).await;
    for round in 1..=1000 {
        let dead = all.swap_remove(leads);
        let term = cluster.record().term;
        dead.run.abort();
        drop(dead);
        all.push(join(19 + round));
        leads = leading(&all).await;
        // All that the others have under way comes to its end.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(cluster.record().term, term.next(), "round {round}");
        assert_eq!(all.iter().filter(|one| one.handle.is_leader()).count(), 1);
        assert_eq!(count.now.load(Ordering::SeqCst), 1, "round {round}");
        cluster.forget_requests();
    }
    assert_eq!(count.most.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_and_a_loss_in_ten_thousand_orders_have_one_outcome_that_keeps_the_error() {
    let (mut failed, mut lost) = (0, 0);
    for order in 0..10_000 {
        let (error_after, loss_after) = (order % 100, order / 100);
        let cluster = OneLease::new(&[V1BETA1]);
        let returned = Arc::new(AtomicBool::new(false));
        let returns = Arc::clone(&returned);
        let mut running = leader(&cluster, config(), move |_| {
            let returns = Arc::clone(&returns);
            async move {
                wait(error_after).await;
                returns.store(true, Ordering::SeqCst);
                Err("late")
            }
        })
        .await;
        wait(loss_after).await;
        cluster.grant("other");
        wait(200).await;
        if returned.load(Ordering::SeqCst) {
            failed += 1;
            let outcome = running.outcome().await;
            let RunOutcome::WorkFailed { error, .. } = outcome else {
                panic!("{error_after} and {loss_after}: {outcome:?}");
            };
            assert_eq!(error, "late");
        } else {
            lost += 1;
            running.shut_down();
            let outcome = running.outcome().await;
            assert!(matches!(outcome, RunOutcome::ShutDown(_)), "{outcome:?}");
        }
    }
    assert!(failed > 1000 && lost > 1000, "{failed} and {lost}");
}

/// The place of the one that leads, as soon as one does.
async fn leading(all: &[RunningCandidate]) -> usize {
    for _ in 0..1200 {
        if let Some(place) = all.iter().position(|one| one.handle.is_leader()) {
            return place;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no candidate leads after two minutes");
}

/// Whole milliseconds, the resolution of timers, and turns of other tasks within one.
async fn wait(tenths: u64) {
    tokio::time::sleep(Duration::from_millis(tenths / 10)).await;
    for _ in 0..tenths % 10 {
        tokio::task::yield_now().await;
    }
}

// === impl CountedWork ===

impl CountedWork {
    fn begin(count: &Arc<Concurrency>) -> Self {
        let now = count.now.fetch_add(1, Ordering::SeqCst) + 1;
        count.most.fetch_max(now, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for CountedWork {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}
