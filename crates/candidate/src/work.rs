//! The work of one term, owned: started with its guard, asked to stop, dropped when it does not, and never forgotten.

use std::time::Duration;

use elector_protocol::Instant;
use elector_runtime::panic_text;
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinSet};

use crate::boxed_work::MakeWork;
use crate::finish::Finish;
use crate::leadership::Leadership;

/// The work of one term and the tasks that it has spawned. Dropping it drops them.
pub(crate) struct TermWork {
    /// The guard that the work was given.
    pub(crate) guard: Leadership,
    /// The future that was made for the term.
    future: JoinSet<Result<(), String>>,
    stage: WorkStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkStage {
    /// It may have been asked to stop.
    Running,
    /// Dropped, which takes effect where the work awaits something.
    Dropped {
        until: Instant,
    },
    /// Dropped, and what is left of it was killed.
    Killed {
        until: Instant,
    },
    Stuck,
}

/// The time that dropped work may take to reach a point where it awaits something.
const DROP_GRACE: Duration = Duration::from_secs(1);

/// The time that the kernel may take for what was killed, which acts no more: a process that dies may have to wait for a
/// disk, or for memory that others are searched for.
const KILL_GRACE: Duration = Duration::from_secs(10);

// === impl TermWork ===

impl TermWork {
    /// Starts the work of a term as a task of that runtime.
    pub(crate) fn start(guard: Leadership, runtime: &Handle, make: &mut MakeWork<'_>) -> Self {
        let mut future = JoinSet::new();
        let work = make(guard.clone());
        future.spawn_on(guard.timely(work), runtime);
        Self {
            guard,
            future,
            stage: WorkStage::Running,
        }
    }

    /// True if the work goes on although it was dropped.
    pub(crate) fn is_stuck(&self) -> bool {
        self.stage == WorkStage::Stuck
    }

    /// True once nothing of the work runs any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.future.is_empty() && self.guard.tasks.is_empty()
    }

    /// True if nothing of the work can act any more, and what was killed is still there.
    fn is_killed(&self) -> bool {
        self.future.is_empty() && self.guard.tasks.are_killed()
    }

    /// Drops the work and its tasks when their time is up. Says whether it has done so now.
    pub(crate) fn enforce(&mut self, now: Instant) -> bool {
        if self.limit().is_none_or(|limit| now < limit) {
            return false;
        }
        let stage = self.stage;
        self.stage = match stage {
            WorkStage::Running => {
                self.future.abort_all();
                self.guard.tasks.close();
                let until = now.after(DROP_GRACE);
                WorkStage::Dropped { until }
            }
            WorkStage::Dropped { .. } if self.is_killed() => {
                let until = now.after(KILL_GRACE);
                WorkStage::Killed { until }
            }
            _ => WorkStage::Stuck,
        };
        stage == WorkStage::Running
    }

    /// When to look at it again.
    pub(crate) fn limit(&self) -> Option<Instant> {
        match self.stage {
            WorkStage::Running => self.guard.stop_by(),
            WorkStage::Dropped { until } | WorkStage::Killed { until } => Some(until),
            WorkStage::Stuck => None,
        }
    }

    /// Waits until the work has returned, a task that it has spawned panics, or nothing of it runs any more. Gives the
    /// reason that the run has to end then, if it has. May be dropped and called again.
    pub(crate) async fn change(&mut self) -> Option<Finish> {
        loop {
            if let Some(message) = self.guard.tasks.take_panic() {
                return Some(Finish::WorkPanicked(message));
            }
            if self.is_gone() {
                return None;
            }
            tokio::select! {
                biased;
                Some(end) = self.future.join_next() => {
                    // Tasks that it has spawned may still run.
                    self.guard.tasks.close();
                    return self.finish(end);
                }
                () = self.guard.tasks.changed() => {}
            }
        }
    }

    /// The result of work that is stopped is of no interest, unless it is an error or a panic.
    fn finish(&self, end: Result<Result<(), String>, JoinError>) -> Option<Finish> {
        match end {
            Ok(Ok(())) => (!self.guard.is_told()).then_some(Finish::WorkEnded),
            Ok(Err(error)) => Some(Finish::WorkFailed(error)),
            // It panicked, or did not stop in time and was dropped.
            Err(error) => {
                let panic = error.try_into_panic().ok()?;
                Some(Finish::WorkPanicked(panic_text(&*panic)))
            }
        }
    }
}

impl Drop for TermWork {
    fn drop(&mut self) {
        // A clone of the guard keeps the tasks, and must not keep them alive.
        self.guard.tasks.close();
    }
}

#[cfg(test)]
#[cfg(all(feature = "supervise", feature = "test-util"))]
mod tests {
    use std::future::ready;

    use elector_protocol::holder::{Loss, StopReason};
    use futures::FutureExt as _;
    use tokio::sync::oneshot::channel;
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::TestTerm;

    /// The executor comes round to the work first, and to what drops it or hears of a renewal later.
    #[tokio::test(start_paused = true)]
    async fn work_whose_time_is_up_is_not_polled_unless_a_late_answer_prolongs_it() {
        for is_task in [false, true] {
            let term = TestTerm::new();
            term.expire_after(DROP_GRACE);
            let ((start, started), (act, mut acted)) = (channel::<()>(), channel());
            let mut work = Some(started.map(|started| act.send(started).unwrap()));
            let mut make = |guard: Leadership| {
                let work = work.take().unwrap();
                if is_task {
                    guard.spawn(work).map(|_| Ok(())).boxed()
                } else {
                    work.map(Ok).boxed()
                }
            };
            let mut work = TermWork::start(term.leadership(), &Handle::current(), &mut make);
            let (guard, wait) = (work.guard.clone(), Duration::from_secs(10_000));
            let limit = guard.lease_limit().unwrap();
            sleep(guard.remaining() + limit.since(guard.deadline().unwrap())).await;
            start.send(()).unwrap();
            assert!(timeout(wait, &mut acted).await.is_err());
            term.expire_after(wait * 2);
            assert!(timeout(wait, acted).await.unwrap().unwrap().is_ok());
            assert!(work.change().await.is_some());
        }
    }

    #[tokio::test]
    async fn what_blocks_is_left_behind_after_a_second_and_what_was_killed_after_ten_more() {
        for (killed, blocked, returns, left_after) in [
            (2, 0, true, 11),
            (2, 0, false, 1),
            (2, 1, true, 1),
            (0, 1, true, 1),
        ] {
            let term = TestTerm::new();
            let guard = term.leadership();
            let entries: Vec<_> = (0..killed + blocked).map_while(|_| guard.hold()).collect();
            for entry in &entries[..killed] {
                entry.note_killed();
            }
            let mut make = |_| ready(Ok(())).boxed();
            let mut work = TermWork::start(guard, &Handle::current(), &mut make);
            if returns {
                assert!(work.change().await.is_some());
            }
            term.stop(StopReason::Lost(Loss::DeadlinePassed));
            let limit = work.limit().unwrap();
            let mut last = limit;
            while let Some(next) = work.limit() {
                last = next;
                assert_eq!(work.enforce(next), next == limit);
            }
            assert!(work.is_stuck() && !work.is_gone());
            assert_eq!(last.since(limit), Duration::from_secs(left_after));
        }
    }
}
