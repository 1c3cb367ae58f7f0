//! The time that work has to stop, and the rest of it when the lease is lost meanwhile (R10, R12).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_candidate::{AfterTerm, Config, Event, Leadership, Mode, RunOutcome, TermEnd};
use elector_protocol::holder::{Loss, StopReason};
use elector_protocol::{Identity, Instant, LeaseRecord};
use elector_runtime::Clock as _;
use elector_testing::{OneLease, eventually, seconds};

use crate::{Result, RunningCandidate, V1BETA1, config, leader, obedient, pass};

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
    let mut config = config();
    config.grace = seconds(grace);
    config
}

/// Between the end of a belief and the first moment at which another candidate may lead lies the effect grace, W − H. The
/// work is gone when a quarter of it is left, however long it may take to stop otherwise.
#[tokio::test(start_paused = true)]
async fn after_a_loss_the_work_is_dropped_before_another_candidate_can_lead() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (running, dropped) = stubborn(&cluster, graceful(60)).await;
    pass(7_000).await;
    let renewed = cluster.last("PUT leases/web");
    cluster.faults().partition(true);
    let dropped = when(&dropped).await.since(renewed);
    assert_eq!(dropped.as_millis(), 13_750);
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

/// Time granted for the drain does not outlast the news that another candidate holds the lease (R10, R12).
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_taken_in_the_middle_of_a_drain_leaves_no_time() {
    for lost_after in [1, 4, 8] {
        for shutdown in [true, false] {
            let cluster = OneLease::new(&[V1BETA1]);
            let mut config = graceful(10);
            config.mode = Mode::Elected;
            let (mut running, dropped) = stubborn(&cluster, config).await;
            pass(500).await;
            let begun = cluster.now();
            if shutdown {
                running.shut_down();
            } else {
                cluster.prefer("better");
            }
            pass(lost_after * 1_000).await;
            cluster.grant("other");
            let dropped = when(&dropped).await.since(begun);
            let expected = seconds(lost_after);
            assert!(
                dropped >= expected && dropped < expected + Duration::from_millis(20),
                "lost after {lost_after} s, dropped after {dropped:?}"
            );
            let by = Identity::new("other");
            assert_eq!(
                running.end().await.0,
                TermEnd::Lost(Loss::Taken { by: by.clone() })
            );
            let lost = cluster.now();
            pass(20_000).await;
            assert_eq!(cluster.record().holder, by);
            let writes = cluster.object_requests_since(lost);
            assert!(
                writes
                    .iter()
                    .all(|request| request.what != "PUT leases/web"),
                "{writes:?}"
            );
        }
    }
}

/// Each reason to stop comes with a time of its own, and the first of these times counts.
#[tokio::test(start_paused = true)]
async fn a_loss_in_the_middle_of_a_drain_gives_no_more_time() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (_running, dropped) = stubborn(&cluster, graceful(2)).await;
    cluster.prefer("better");
    let begun = cluster.now();
    pass(1_000).await;
    cluster.write(|record| LeaseRecord {
        holder: None,
        ..record.clone()
    });
    let dropped = when(&dropped).await.since(begun).as_millis();
    assert!((2_000..2_050).contains(&dropped), "{dropped} ms");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_in_the_middle_of_a_drain_ends_the_belief_and_cuts_the_drain_short()
{
    for shutdown in [true, false] {
        let cluster = OneLease::new(&[V1BETA1]);
        let (mut running, dropped) = stubborn(&cluster, graceful(60)).await;
        pass(7_000).await;
        if shutdown {
            running.shut_down();
        } else {
            cluster.prefer("better");
        }
        pass(2_000).await;
        let renewed = cluster.last("PUT leases/web");
        let guard = running.guard();
        cluster.faults().partition(true);
        cluster
            .clock()
            .sleep_until_holder(renewed.after(Duration::from_millis(9_990)))
            .await;
        assert!(guard.is_leader(), "a drain is led through");
        cluster
            .clock()
            .sleep_until_holder(renewed.after(seconds(10)))
            .await;
        assert!(!guard.is_leader());
        let dropped = when(&dropped).await.since(renewed);
        assert_eq!(dropped, Duration::from_millis(13_750));
        assert_eq!(running.end().await.0, TermEnd::Lost(Loss::DeadlinePassed));
        // Afterwards it does nothing, not even what it was draining for.
        cluster.heal();
        pass(20_000).await;
        assert_eq!(cluster.record().holder, Identity::new("me"));
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
    assert_eq!(
        *reasons.lock().unwrap(),
        [StopReason::ShutDown, lost.clone()]
    );
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
    let mut config = config();
    config.after_term = AfterTerm::Return;
    let running = leader(&cluster, config, obedient).await;
    cluster.grant("other");
    let by = Identity::new("other");
    let lost = TermEnd::Lost(Loss::Taken { by });
    assert_eq!(running.outcome().await, RunOutcome::TermEnded(lost));
    assert!(
        cluster.candidate(V1BETA1).is_none(),
        "it leaves as after any other end"
    );
}
