//! The time that work has to stop, and the rest of it when the lease is lost meanwhile (R10, R12).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_candidate::{Config, Event, Leadership, Mode, TermEnd};
use elector_protocol::holder::{Loss, StopReason};
use elector_protocol::{Identity, Instant, LeaseRecord};
use elector_testing::{CapturedLog, OneLease, SentRequest, eventually, seconds};

use crate::{Result, RunOutcome, RunningCandidate, V1BETA1, config, leader, obedient, pass};

/// When work that does not stop was dropped.
type DropInstant = Arc<Mutex<Option<Instant>>>;

/// Tells when it is dropped.
struct DropTime(OneLease, DropInstant);

impl Drop for DropTime {
    fn drop(&mut self) {
        *self.1.lock().unwrap() = Some(self.0.now());
    }
}

/// A leader whose work never stops by itself.
async fn stubborn(cluster: &OneLease, config: Config) -> (RunningCandidate, DropInstant) {
    let dropped = DropInstant::default();
    let (seen, at) = (cluster.clone(), Arc::clone(&dropped));
    let work = move |_: Leadership| {
        let on_drop = DropTime(seen.clone(), Arc::clone(&at));
        async move {
            let _on_drop = on_drop;
            std::future::pending::<Result>().await
        }
    };
    (leader(cluster, config, work).await, dropped)
}

async fn when(dropped: &DropInstant) -> Instant {
    eventually(|| dropped.lock().unwrap().is_some()).await;
    dropped.lock().unwrap().unwrap()
}

fn graceful(grace: u64) -> Config {
    config().grace(seconds(grace))
}

/// Between the end of a belief and the first moment at which another candidate may lead lies the effect grace, W − H. The
/// work is gone when a quarter of it is left, however long it may take to stop otherwise.
#[tokio::test(start_paused = true)]
async fn after_a_loss_the_work_is_dropped_before_another_candidate_can_lead() {
    let (log, cluster) = (CapturedLog::capture(), OneLease::new(&[V1BETA1]));
    let (running, dropped) = stubborn(&cluster, graceful(60)).await;
    pass(7_000).await;
    let renewed = cluster.last("PUT leases/web");
    cluster.faults().partition(true);
    let dropped = when(&dropped).await.since(renewed);
    assert_eq!(dropped.as_millis(), 13_750);
    assert_eq!(log.lines("the work did not stop in time").len(), 1);
    assert_eq!(running.end().await.0, TermEnd::Lost(Loss::DeadlinePassed));
}

/// The time to stop ends with the lease. It does not begin anew when a process that was paused notices the loss.
#[tokio::test(start_paused = true)]
async fn after_a_pause_the_work_has_what_is_left_of_the_lease() {
    for (paused_until, dropped_after) in [(11_000, 13_750), (13_000, 13_750), (20_000, 20_000)] {
        let cluster = OneLease::new(&[V1BETA1]);
        let (running, dropped) = stubborn(&cluster, graceful(60)).await;
        pass(7_000).await;
        let renewed = cluster.last("PUT leases/web");
        cluster.faults().partition(true);
        let left = renewed
            .after(Duration::from_millis(paused_until))
            .since(cluster.now());
        tokio::time::advance(left).await;
        let dropped = when(&dropped).await.since(renewed).as_millis();
        assert!(
            (dropped_after..dropped_after + 20).contains(&dropped),
            "paused until {paused_until} ms, dropped after {dropped} ms"
        );
        assert_eq!(running.end().await.0, TermEnd::Lost(Loss::DeadlinePassed));
    }
}

#[tokio::test(start_paused = true)]
async fn work_is_dropped_at_once_when_another_holder_is_known() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (running, dropped) = stubborn(&cluster, graceful(60)).await;
    cluster.grant("other");
    let taken = cluster.now();
    let dropped = when(&dropped).await.since(taken);
    assert!(dropped < Duration::from_millis(20), "{dropped:?}");
    let by = Identity::new("other");
    assert_eq!(running.end().await.0, TermEnd::Lost(Loss::Taken { by }));
}

/// A way to lose the lease.
type Lose = fn(&OneLease);

/// Each reason to stop comes with a time of its own, and the first of these times counts (R10, R12). Afterwards nothing is
/// written, not even what the work drained for.
#[tokio::test(start_paused = true)]
async fn a_loss_in_the_middle_of_a_drain_gives_no_more_time() {
    let losses: [(Lose, u64, u128); 3] = [
        (|cluster| cluster.grant("other"), 10, 1_000),
        (
            |cluster| {
                let emptied = |record: &LeaseRecord| LeaseRecord {
                    holder: None,
                    ..record.clone()
                };
                cluster.write(emptied);
            },
            2,
            2_000,
        ),
        (|cluster| cluster.faults().partition(true), 60, 13_750),
    ];
    for (lose, grace, expected) in losses {
        for shuts_down in [true, false] {
            let cluster = OneLease::new(&[V1BETA1]);
            let mut config = graceful(grace);
            config = config.mode(Mode::Elected);
            let (mut running, dropped) = stubborn(&cluster, config).await;
            let begun = cluster.now();
            if shuts_down {
                running.shut_down();
            } else {
                cluster.prefer("better");
            }
            pass(1_000).await;
            lose(&cluster);
            let took = when(&dropped).await.since(begun).as_millis();
            assert!(took.abs_diff(expected) < 50, "{took} ms of {expected}");
            let (end, at) = running.end().await;
            assert!(matches!(end, TermEnd::Lost(_)), "{end}");
            let holder = cluster.record().holder;
            cluster.heal();
            pass(20_000).await;
            // A record that nobody has changed since makes room for the one preferred (R20).
            let released = grace == 60 && !shuts_down;
            assert_eq!(cluster.record().holder, holder.filter(|_| !released));
            let writes = cluster.object_requests_since(at);
            let is_write = |request: &SentRequest| request.what == "PUT leases/web";
            assert_eq!(writes.iter().any(is_write), released, "{writes:?}");
        }
    }
}

/// Work that drains may have to do something else once the lease is lost: the belief is over then.
#[tokio::test(start_paused = true)]
async fn work_that_drains_is_told_of_a_loss_as_well() {
    let cluster = OneLease::new(&[V1BETA1]);
    let reasons = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&reasons);
    let mut running = leader(&cluster, graceful(60), move |leadership: Leadership| {
        let heard = Arc::clone(&heard);
        async move {
            let first = leadership.stopped().await;
            heard.lock().unwrap().push(first);
            while leadership.is_leader() {
                pass(10).await;
            }
            let second = leadership.stopped().await;
            heard.lock().unwrap().push(second);
            Ok(0)
        }
    })
    .await;
    running.shut_down();
    pass(2_000).await;
    cluster.faults().partition(true);
    eventually(|| reasons.lock().unwrap().len() == 2).await;
    let lost = StopReason::Lost(Loss::DeadlinePassed);
    let expected = [StopReason::ShutDown, lost.clone()];
    assert_eq!(*reasons.lock().unwrap(), expected);
    let told = |why: &StopReason| {
        running.count(|event| matches!(event, Event::Stopping { reason: told, .. } if told == why))
    };
    assert_eq!((told(&StopReason::ShutDown), told(&lost)), (1, 1));
}

/// Stop, then release (R12): while anything of the work runs, the record keeps its holder, for a successor too.
#[tokio::test(start_paused = true)]
async fn a_successor_is_written_only_when_nothing_of_the_work_runs_any_more() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (running, dropped) = stubborn(&cluster, graceful(8)).await;
    cluster.prefer("better");
    let begun = cluster.now();
    while dropped.lock().unwrap().is_none() {
        assert_eq!(cluster.record().holder, Identity::new("me"));
        pass(10).await;
    }
    assert!(when(&dropped).await.since(begun) >= seconds(8));
    let to = Identity::new("better").unwrap();
    assert_eq!(running.end().await.0, TermEnd::HandedOver { to });
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_to_end_with_its_term_ends_with_a_lost_one_too() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, config().one_term(true), obedient).await;
    cluster.grant("other");
    let by = Identity::new("other");
    let lost = TermEnd::Lost(Loss::Taken { by });
    assert_eq!(running.outcome().await, RunOutcome::TermEnded(lost));
    let holds = cluster.candidate(V1BETA1).is_none();
    assert!(holds, "it leaves as after any other end");
}
