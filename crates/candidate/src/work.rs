//! The work of one term, owned: started with its guard, told to stop, dropped when it does not, and never forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use elector_protocol::holder::StopReason;
use elector_protocol::{Instant, Term};
use elector_runtime::panic_text;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::boxed_work::BoxedWork;
use crate::config::Config;
use crate::finish::Finish;
use crate::leadership::{LeadershipReceiver, LeadershipState};
use crate::stop_limits::StopLimits;
use crate::term_tasks::TermTasks;

/// The work of one term and the tasks that it has spawned. Dropping it drops them.
pub(crate) struct TermWork {
    pub(crate) term: Term,
    /// The future that was made for the term.
    future: JoinSet<Result<(), String>>,
    /// What that has spawned.
    tasks: TermTasks,
    state: watch::Sender<LeadershipState>,
    over: Arc<AtomicBool>,
    /// How long after the end of the belief the work may still act.
    budget: Duration,
    stage: WorkStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkStage {
    Running,
    /// Told to stop.
    Draining {
        until: Instant,
    },
    /// Dropped, which takes effect where the work awaits something.
    Dropped {
        until: Instant,
    },
    Stuck,
}

/// How long dropped work may take to reach a point where it awaits something.
const DROP_GRACE: Duration = Duration::from_secs(1);

// === impl TermWork ===

impl TermWork {
    /// Starts the work of a term as a task of that runtime.
    pub(crate) fn start(
        term: Term,
        deadline: Instant,
        (config, runtime): (&Config, &Handle),
        make: impl FnOnce(LeadershipReceiver) -> BoxedWork,
    ) -> Self {
        let budget = config.stop_budget();
        let (state, receiver) = watch::channel(LeadershipState {
            limits: StopLimits::of(deadline, budget),
            lost: false,
            stop: None,
            stop_by: None,
        });
        let (over, tasks) = (Arc::new(AtomicBool::new(false)), TermTasks::default());
        let receiver = LeadershipReceiver {
            state: receiver,
            over: Arc::clone(&over),
            tasks: tasks.clone(),
            grace: config.grace,
        };
        let mut future = JoinSet::new();
        future.spawn_on(make(receiver), runtime);
        Self {
            term,
            future,
            tasks,
            state,
            over,
            budget,
            stage: WorkStage::Running,
        }
    }

    /// Passes on until when this process believes. How long the work may act follows the last such deadline.
    pub(crate) fn set_deadline(&self, deadline: Option<Instant>) {
        self.state.send_if_modified(|state| {
            let changed = state.deadline() != deadline;
            state.lost = deadline.is_none();
            if let Some(deadline) = deadline {
                state.limits = StopLimits::of(deadline, self.budget);
            }
            changed
        });
    }

    /// Until when the work may act even if the lease is lost, as long as no other holder is known.
    pub(crate) fn limits(&self) -> StopLimits {
        self.state.borrow().limits
    }

    /// Tells the work to stop, and to have stopped by `until`. A later reason replaces an earlier one, a later limit
    /// does not.
    pub(crate) fn stop(&mut self, reason: StopReason, until: Instant) {
        let until = match self.stage {
            WorkStage::Draining { until: before } => before.min(until),
            _ => until,
        };
        self.state.send_modify(|state| {
            state.stop = Some(reason);
            state.stop_by = Some(until);
        });
        if let WorkStage::Running | WorkStage::Draining { .. } = self.stage {
            self.stage = WorkStage::Draining { until };
        }
    }

    /// Whether the work was told to stop, be it by the clock alone.
    pub(crate) fn is_told(&self) -> bool {
        self.stage != WorkStage::Running || self.over.load(Ordering::Acquire)
    }

    /// Whether the work goes on although it was dropped.
    pub(crate) fn is_stuck(&self) -> bool {
        self.stage == WorkStage::Stuck
    }

    /// Whether nothing of the work runs any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.future.is_empty() && self.tasks.is_empty()
    }

    /// Drops the work and its tasks when their time is up. Says whether it has done so now.
    pub(crate) fn enforce(&mut self, now: Instant) -> bool {
        match self.stage {
            WorkStage::Draining { until } if until <= now => {
                self.future.abort_all();
                self.tasks.close();
                self.stage = WorkStage::Dropped {
                    until: now.after(DROP_GRACE),
                };
                true
            }
            WorkStage::Dropped { until } if until <= now => {
                self.stage = WorkStage::Stuck;
                false
            }
            _ => false,
        }
    }

    /// When to look at it again.
    pub(crate) fn limit(&self) -> Option<Instant> {
        match self.stage {
            WorkStage::Draining { until } | WorkStage::Dropped { until } => Some(until),
            WorkStage::Running | WorkStage::Stuck => None,
        }
    }

    /// Waits until the work has returned, a task that it has spawned panics, or nothing of it runs any more. Gives the
    /// reason that the run has to end then, if it has. May be dropped and called again.
    pub(crate) async fn change(&mut self) -> Option<Finish> {
        loop {
            if let Some(message) = self.tasks.take_panic() {
                return Some(Finish::WorkPanicked(message));
            }
            if self.is_gone() {
                return None;
            }
            tokio::select! {
                biased;
                Some(end) = self.future.join_next() => {
                    // What it has spawned may still run.
                    self.tasks.close();
                    return self.finish(end);
                }
                () = self.tasks.changed() => {}
            }
        }
    }

    /// What work that is stopped returns is of no interest, unless it is an error or a panic.
    fn finish(&self, end: Result<Result<(), String>, JoinError>) -> Option<Finish> {
        match end {
            Ok(Ok(())) => (!self.is_told()).then_some(Finish::WorkEnded),
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
        self.tasks.close();
    }
}
