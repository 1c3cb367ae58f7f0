//! The tasks that the work of a term has spawned: tracked, stopped with the work, and waited for to the last of them.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use elector_runtime::panic_text;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle, spawn_blocking};

/// The tasks of one term. Clones are of the same term.
#[derive(Clone, Default)]
pub(crate) struct TermTasks {
    shared: Arc<TaskRegistry>,
}

#[derive(Default)]
struct TaskRegistry {
    /// True once nothing of the term may run any more. Set under the lock of `tasks`.
    closed: AtomicBool,
    tasks: Mutex<RunningTasks>,
    /// Tells the session, which alone waits.
    changed: Notify,
}

#[derive(Default)]
struct RunningTasks {
    next: u64,
    /// Those that have not ended.
    running: BTreeMap<u64, RunningTask>,
    /// The first panic that has not been reported.
    panic: Option<String>,
}

#[derive(Default)]
struct RunningTask {
    /// Missing while the task is being spawned.
    handle: Option<AbortHandle>,
    /// True if it only waits for what was killed.
    is_killed: bool,
}

/// The entry of a task in the registry, for as long as anything of the task is there.
pub(crate) struct TaskEntry {
    number: u64,
    registry: Arc<TaskRegistry>,
}

/// A future with its entry. The fields are dropped in this order: the future is gone before the entry is.
struct TrackedFuture<T> {
    future: BoxFuture<'static, std::thread::Result<T>>,
    entry: TaskEntry,
}

// === impl TermTasks ===

impl TermTasks {
    /// Spawns a task of the term, unless the term is over: then the handle is that of a cancelled task.
    pub(crate) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let Some(entry) = self.enter() else {
            return cancelled();
        };
        let number = entry.number;
        let handle = tokio::spawn(TrackedFuture {
            future: AssertUnwindSafe(future).catch_unwind().boxed(),
            entry,
        });
        self.shared.set_handle(number, &handle.abort_handle());
        handle
    }

    /// The same for a function that blocks its thread, and that cannot be cancelled once it runs.
    pub(crate) fn spawn_blocking<T>(
        &self,
        function: impl FnOnce(&TaskEntry) -> T + Send + 'static,
    ) -> JoinHandle<T>
    where
        T: Send + 'static,
    {
        let Some(entry) = self.enter() else {
            return cancelled();
        };
        let number = entry.number;
        let handle = spawn_blocking(move || {
            let entry = entry;
            let function = AssertUnwindSafe(|| function(&entry));
            catch_unwind(function).unwrap_or_else(|panic| {
                entry.registry.note_panic(panic_text(&*panic));
                resume_unwind(panic)
            })
        });
        self.shared.set_handle(number, &handle.abort_handle());
        handle
    }

    /// Aborts all tasks, and refuses new ones from now on.
    pub(crate) fn close(&self) {
        let handles = {
            let tasks = self.shared.lock();
            self.shared.closed.store(true, Ordering::Release);
            tasks
                .running
                .values()
                .filter_map(|task| task.handle.clone())
                .collect::<Vec<_>>()
        };
        // An abort may drop a task on the spot, and its entry takes the lock.
        for handle in handles {
            handle.abort();
        }
    }

    /// True if nothing of any task is left, nor a panic to be taken.
    pub(crate) fn is_empty(&self) -> bool {
        let tasks = self.shared.lock();
        tasks.running.is_empty() && tasks.panic.is_none()
    }

    /// True if all that is left waits for what was killed, and acts no more.
    pub(crate) fn are_killed(&self) -> bool {
        let tasks = self.shared.lock();
        tasks.running.values().all(|task| task.is_killed)
    }

    /// The message of the first panic that has not been taken yet.
    pub(crate) fn take_panic(&self) -> Option<String> {
        self.shared.lock().panic.take()
    }

    /// Waits until a task has ended or panicked. For one waiter.
    pub(crate) async fn changed(&self) {
        self.shared.changed.notified().await;
    }

    /// Counts as a task that cannot be aborted until it is dropped. `None` once the term is over.
    pub(crate) fn enter(&self) -> Option<TaskEntry> {
        let mut tasks = self.shared.lock();
        if self.shared.is_closed() {
            return None;
        }
        let number = tasks.next;
        tasks.next += 1;
        tasks.running.insert(number, RunningTask::default());
        Some(TaskEntry {
            number,
            registry: Arc::clone(&self.shared),
        })
    }
}

impl fmt::Debug for TermTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = self.shared.lock().running.len();
        f.debug_struct("TermTasks")
            .field("running", &running)
            .finish_non_exhaustive()
    }
}

// === impl TaskRegistry ===

impl TaskRegistry {
    fn lock(&self) -> MutexGuard<'_, RunningTasks> {
        // A poisoned lock holds a valid state: every section changes one thing.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn set_handle(&self, number: u64, handle: &AbortHandle) {
        let mut tasks = self.lock();
        if let Some(running) = tasks.running.get_mut(&number) {
            running.handle = Some(handle.clone());
        }
        let closed = self.is_closed();
        drop(tasks);
        // The term has ended while the task was being spawned.
        if closed {
            handle.abort();
        }
    }

    fn note_panic(&self, message: String) {
        self.lock().panic.get_or_insert(message);
        self.changed.notify_one();
    }
}

// === impl TaskEntry ===

impl TaskEntry {
    /// From now on the task only waits for what was killed.
    #[cfg(feature = "supervise")]
    pub(crate) fn note_killed(&self) {
        let mut tasks = self.registry.lock();
        if let Some(task) = tasks.running.get_mut(&self.number) {
            task.is_killed = true;
        }
    }
}

impl fmt::Debug for TaskEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskEntry").field(&self.number).finish()
    }
}

impl Drop for TaskEntry {
    fn drop(&mut self) {
        let task = self.registry.lock().running.remove(&self.number);
        // Outside of the lock: this may be the last that is left of the task.
        drop(task);
        self.registry.changed.notify_one();
    }
}

// === impl TrackedFuture ===

impl<T> Future for TrackedFuture<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // The abort is on its way, and nothing of the task is to run until it arrives.
        if self.entry.registry.is_closed() {
            return Poll::Pending;
        }
        Poll::Ready(match ready!(self.future.as_mut().poll(context)) {
            Ok(output) => output,
            Err(panic) => {
                self.entry.registry.note_panic(panic_text(&*panic));
                resume_unwind(panic)
            }
        })
    }
}

/// The handle of a task that never runs.
fn cancelled<T: Send + 'static>() -> JoinHandle<T> {
    let handle = tokio::spawn(std::future::pending());
    handle.abort();
    handle
}

#[cfg(test)]
mod tests {
    use std::task::Waker;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn what_is_spawned_after_the_end_of_the_term_is_not_even_entered() {
        let tasks = TermTasks::default();
        tasks.close();
        let spawned = tasks.spawn(async {});
        assert!(tasks.is_empty());
        let blocking = tasks.spawn_blocking(|_| {});
        assert!(tasks.is_empty());
        assert!(spawned.await.unwrap_err().is_cancelled());
        assert!(blocking.await.unwrap_err().is_cancelled());
    }

    /// The term ends on one thread while another one is about to poll the task.
    #[test]
    fn a_task_is_not_polled_between_the_end_of_the_term_and_its_abort() {
        let tasks = TermTasks::default();
        let mut task = TrackedFuture {
            future: async { Ok(()) }.boxed(),
            entry: tasks.enter().unwrap(),
        };
        tasks.close();
        let mut context = Context::from_waker(Waker::noop());
        assert!(task.poll_unpin(&mut context).is_pending());
    }

    /// Its handle comes too late to be aborted with the others.
    #[tokio::test]
    async fn a_task_that_is_being_spawned_when_the_term_ends_is_aborted() {
        let tasks = TermTasks::default();
        let entry = tasks.enter().unwrap();
        let number = entry.number;
        let task = tokio::spawn(TrackedFuture::<()> {
            future: std::future::pending().boxed(),
            entry,
        });
        tasks.close();
        tasks.shared.set_handle(number, &task.abort_handle());
        let ended = timeout(Duration::from_secs(20), task).await;
        assert!(ended.unwrap().unwrap_err().is_cancelled());
        assert!(tasks.is_empty());
    }
}
