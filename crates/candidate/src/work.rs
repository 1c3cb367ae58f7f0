//! The work of one term, owned: started with its guard, told to stop, dropped when it does not, and never forgotten.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use elector_protocol::holder::StopReason;
use elector_protocol::{Instant, Term};
use elector_runtime::panic_text;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::leadership::{LeadershipReceiver, LeadershipState};

/// The work of one term. Dropping it drops the work.
pub(crate) struct TermWork<T, E> {
    pub(crate) term: Term,
    tasks: JoinSet<Result<T, E>>,
    state: watch::Sender<LeadershipState>,
    over: Arc<AtomicBool>,
    stage: WorkStage,
}

/// How the work ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WorkEnd<T, E> {
    Ended(T),
    Failed(E),
    Panicked(String),
    /// It did not stop in time and was dropped.
    Dropped,
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

/// How long a dropped work may take to reach a point where it awaits something.
const DROP_GRACE: Duration = Duration::from_secs(1);

// === impl TermWork ===

impl<T: Send + 'static, E: Send + 'static> TermWork<T, E> {
    /// Makes the work of a term and starts it as a task of its own. A panic while it is made counts as its own.
    pub(crate) fn start<F>(
        term: Term,
        state: LeadershipState,
        make: impl FnOnce(LeadershipReceiver) -> F,
    ) -> Self
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let (state, receiver) = watch::channel(state);
        let over = Arc::new(AtomicBool::new(false));
        let receiver = LeadershipReceiver {
            state: receiver,
            over: Arc::clone(&over),
        };
        let mut tasks = JoinSet::new();
        match catch_unwind(AssertUnwindSafe(|| make(receiver))) {
            Ok(work) => drop(tasks.spawn(work)),
            Err(panic) => drop(tasks.spawn(async { resume_unwind(panic) })),
        }
        Self {
            term,
            tasks,
            state,
            over,
            stage: WorkStage::Running,
        }
    }

    /// Passes on until when this process believes.
    pub(crate) fn set_deadline(&self, deadline: Option<Instant>) {
        self.state.send_if_modified(|state| {
            let changed = state.deadline != deadline;
            state.deadline = deadline;
            changed
        });
    }

    /// Tells the work to stop, and to have stopped by `until`. A later reason replaces an earlier one, a later limit
    /// does not.
    pub(crate) fn stop(&mut self, reason: StopReason, until: Instant) {
        self.state.send_modify(|state| state.stop = Some(reason));
        self.stage = match self.stage {
            WorkStage::Running => WorkStage::Draining { until },
            WorkStage::Draining { until: before } => WorkStage::Draining {
                until: before.min(until),
            },
            later => later,
        };
    }

    /// Whether the work was told to stop, be it by the clock alone.
    pub(crate) fn is_told(&self) -> bool {
        self.stage != WorkStage::Running || self.over.load(Ordering::Acquire)
    }

    /// Whether the work goes on although it was dropped.
    pub(crate) fn is_stuck(&self) -> bool {
        self.stage == WorkStage::Stuck
    }

    /// Drops the work when its time is up. Returns when to look again.
    pub(crate) fn enforce(&mut self, now: Instant) -> Option<Instant> {
        match self.stage {
            WorkStage::Draining { until } if until <= now => {
                self.tasks.abort_all();
                self.stage = WorkStage::Dropped {
                    until: now.after(DROP_GRACE),
                };
            }
            WorkStage::Dropped { until } if until <= now => self.stage = WorkStage::Stuck,
            _ => {}
        }
        match self.stage {
            WorkStage::Draining { until } | WorkStage::Dropped { until } => Some(until),
            WorkStage::Running | WorkStage::Stuck => None,
        }
    }

    /// Waits until nothing of the work runs any more. May be dropped and called again.
    pub(crate) async fn end(&mut self) -> WorkEnd<T, E> {
        match self.tasks.join_next().await {
            Some(Ok(Ok(value))) => WorkEnd::Ended(value),
            Some(Ok(Err(error))) => WorkEnd::Failed(error),
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => WorkEnd::Panicked(panic_text(&*panic)),
                Err(_) => WorkEnd::Dropped,
            },
            None => WorkEnd::Dropped,
        }
    }
}
