//! Tasks that the work spawns: they end with the term, and it ends with the last of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use elector_candidate::{Event, Leadership, TermEnd, Timing};
use elector_protocol::holder::{Loss, StopReason};
use elector_protocol::{Identity, Instant};
use elector_testing::{OneLease, eventually, seconds};
use futures::StreamExt as _;
use tokio::sync::oneshot;

use crate::{Result, RunOutcome, RunningCandidate, V1BETA1, config, leader, obedient, pass};

/// When a part of a task was dropped, and the holder by the record at that moment.
type DroppedPart = (Instant, Option<Identity>);

/// The dropped parts of tasks, each with the time and the holder by the record.
#[derive(Clone, Default)]
struct DroppedTasks(Arc<Mutex<Vec<DroppedPart>>>);

/// A part of a task, which tells when it is dropped.
struct TaskPart(OneLease, DroppedTasks);

impl Drop for TaskPart {
    fn drop(&mut self) {
        let seen = (self.0.now(), self.0.record().holder);
        self.1.0.lock().unwrap().push(seen);
    }
}

impl DroppedTasks {
    /// Work that never stops, with a task that never stops, and one of its own.
    fn work(&self, cluster: &OneLease) -> impl Fn(&Leadership) + Send + Sync + 'static {
        let (cluster, dropped) = (cluster.clone(), self.clone());
        move |leadership| {
            let parts = [(); 2].map(|()| TaskPart(cluster.clone(), dropped.clone()));
            let [outer, inner] = parts;
            let guard = leadership.clone();
            leadership.spawn(async move {
                let _outer = outer;
                guard.spawn(async move {
                    let _inner = inner;
                    std::future::pending::<()>().await;
                });
                std::future::pending::<()>().await;
            });
        }
    }

    fn seen(&self) -> Vec<(Instant, Option<Identity>)> {
        self.0.lock().unwrap().clone()
    }
}

/// A leader whose work spawns tasks first.
async fn leader_with_tasks<F>(
    cluster: &OneLease,
    work: impl Fn(Leadership) -> F + Send + 'static,
) -> (RunningCandidate, DroppedTasks)
where
    F: Future<Output = Result> + Send + 'static,
{
    let dropped = DroppedTasks::default();
    let spawn = dropped.work(cluster);
    let spawning = move |leadership: Leadership| {
        spawn(&leadership);
        work(leadership)
    };
    (leader(cluster, config(), spawning).await, dropped)
}

/// Blocks a thread until the other side of the channel is dropped, and tells when it has begun to.
fn start_blocking(
    leadership: &Leadership,
    blocked: &Mutex<Option<mpsc::Receiver<()>>>,
) -> oneshot::Receiver<()> {
    let blocked = blocked.lock().unwrap().take().unwrap();
    let (start, started) = oneshot::channel();
    leadership.spawn_blocking(move || {
        start.send(()).unwrap();
        blocked.recv()
    });
    started
}

#[tokio::test(start_paused = true)]
async fn after_a_loss_tasks_are_dropped_with_the_work_that_ignores_its_stop() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (running, dropped) = leader_with_tasks(&cluster, |_| std::future::pending()).await;
    pass(7_000).await;
    let renewed = cluster.last("PUT leases/web");
    cluster.faults().partition(true);
    assert_eq!(running.end().await.0, TermEnd::Lost(Loss::DeadlinePassed));
    let times: Vec<_> = dropped.seen().iter().map(|seen| seen.0).collect();
    assert_eq!(times, [renewed.after(Duration::from_millis(13_750)); 2]);
}

#[tokio::test(start_paused = true)]
async fn tasks_of_work_that_has_returned_are_aborted_before_the_lease_is_handed_over() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (running, dropped) = leader_with_tasks(&cluster, obedient).await;
    // The task of the task is spawned.
    pass(10).await;
    let begun = cluster.now();
    cluster.prefer("better");
    let to = Identity::new("better").unwrap();
    assert_eq!(running.end().await.0, TermEnd::HandedOver { to });
    let seen = dropped.seen();
    let holds = seen
        .iter()
        .all(|(_, holder)| *holder == Identity::new("me"));
    assert!(seen.len() == 2 && holds, "{seen:?}");
    assert!(seen.iter().all(|(at, _)| at.since(begun) < seconds(1)));
}

/// A task that cannot be aborted is waited for: it is told that the work has ended, and the lease is held until it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_is_held_until_the_last_task_has_ended() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Mutex::new(Some(blocked));
    let config = config().timing(Timing::new(seconds(6), seconds(4)));
    let running = leader(&cluster, config, move |leadership: Leadership| {
        let started = start_blocking(&leadership, &blocked);
        async {
            started.await.unwrap();
            Ok(42)
        }
    })
    .await;
    let told = |event: &Event| {
        let reason = StopReason::ShutDown;
        matches!(event, Event::Stopping { reason: why, .. } if *why == reason)
    };
    eventually(|| running.count(told) == 1).await;
    assert_eq!(running.guard().stopped().await, StopReason::ShutDown);
    assert!(running.guard().is_leader(), "it leads as long as it works");
    let told_at = cluster.now();
    eventually(|| cluster.last("PUT leases/web") > told_at).await;
    assert_eq!(cluster.record().holder, Identity::new("me"));
    let stopped = |event: &Event| matches!(event, Event::WorkStopped { .. });
    assert_eq!(running.count(stopped), 0);
    drop(release);
    eventually(|| running.count(stopped) == 1).await;
    let (value, term) = (42, TermEnd::Released);
    let ended = RunOutcome::WorkEnded { value, term };
    assert_eq!(running.outcome().await, ended);
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_a_task_ends_the_run_as_one_of_the_work() {
    for blocking in [false, true] {
        let cluster = OneLease::new(&[V1BETA1]);
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let running = leader(&cluster, config(), move |leadership: Leadership| {
            let count = Arc::clone(&count);
            async move {
                let panics = || panic!("out of cheese");
                let handle = match blocking {
                    true => leadership.spawn_blocking(panics),
                    false => leadership.spawn(async move { panics() }),
                };
                assert!(handle.await.unwrap_err().is_panic());
                leadership.stopped().await;
                count.fetch_add(1, Ordering::SeqCst);
                Ok(0)
            }
        })
        .await;
        let (message, term) = ("out of cheese".to_owned(), TermEnd::Released);
        let panicked = RunOutcome::WorkPanicked { message, term };
        assert_eq!(running.outcome().await, panicked);
        assert_eq!(told.load(Ordering::SeqCst), 1, "the rest may end in order");
    }
}

/// The error that the work returns because its task panicked does not hide the panic.
#[tokio::test(start_paused = true)]
async fn of_a_panic_and_the_error_that_follows_the_panic_is_reported() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, config(), |leadership: Leadership| async move {
        let handle = leadership.spawn(async { panic!("out of cheese") });
        handle.await.map_err(|_| "a task failed")
    })
    .await;
    let RunOutcome::WorkPanicked { message, .. } = running.outcome().await else {
        panic!("the panic is lost");
    };
    assert_eq!(message, "out of cheese");
}

/// Neither a belief, nor the work and its tasks, nor anything of the client.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_leaves_nothing_behind() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (running, dropped) = leader_with_tasks(&cluster, |_| std::future::pending()).await;
    let (guard, handle) = (running.guard(), running.handle.clone());
    assert!(guard.is_leader() && handle.is_leader());
    running.run.abort();
    let _ = running.run.await;
    assert!(!guard.is_leader() && !handle.is_leader());
    assert_eq!(guard.stopped().await, StopReason::ShutDown);
    assert_eq!(handle.changes().count().await, 1, "the status as it stands");
    eventually(|| dropped.seen().len() == 2).await;
    // Only this test is left, once the client's worker has noticed.
    let tasks = tokio::runtime::Handle::current();
    eventually(|| tasks.metrics().num_alive_tasks() == 0).await;
    let late = guard.spawn(async {});
    assert!(late.await.unwrap_err().is_cancelled());
    pass(20_000).await;
    assert_eq!(handle.check_live(), Ok(()));
}
