//! Parts that run beside the work of a leader: controllers, servers, webhooks. A lease says that its holder works, so the
//! end of a part is the end of the run.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use elector_protocol::LeaseKey;
use elector_runtime::{Clock, panic_text};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use crate::health_monitor::one_line;
use crate::outcome::{RunError, RunOutcome, TermEnd};

/// The future that tells a part to stop, once the lease is given up.
pub(crate) type PartStop = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// A part that is to run beside the work.
pub(crate) struct RunPart {
    name: String,
    /// Gives what the part returned, as text. A candidate may be shared between threads, which no future has to allow.
    future: Mutex<BoxFuture<'static, String>>,
    stop: oneshot::Sender<Infallible>,
}

/// The parts of a run, as tasks of the caller's executor. They are aborted where this is dropped.
pub(crate) struct RunningParts {
    tasks: JoinSet<String>,
    running: Vec<RunningPart>,
}

struct RunningPart {
    name: String,
    task: AbortHandle,
    stop: oneshot::Sender<Infallible>,
}

/// The end of a part that was not asked for.
pub(crate) struct PartEnd {
    part: String,
    how: String,
}

/// The time that dropped parts have to reach a point where they await something.
const DROP_GRACE: Duration = Duration::from_secs(1);

// === impl RunPart ===

impl RunPart {
    pub(crate) fn new<P>(name: String, part: impl FnOnce(PartStop) -> P) -> Self
    where
        P: IntoFuture<Output: fmt::Debug, IntoFuture: Send + 'static>,
    {
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let Err(_) = stopped.await;
        };
        let part = part(Box::pin(stopped)).into_future();
        let future = part.map(|returned| format!("{returned:?}")).boxed();
        Self {
            name,
            future: Mutex::new(future),
            stop,
        }
    }
}

// === impl RunningParts ===

impl RunningParts {
    /// Starts them on the executor of the caller.
    pub(crate) fn start(parts: Vec<RunPart>) -> Self {
        let mut tasks = JoinSet::new();
        let running = parts.into_iter().map(|part| {
            let future = part.future.into_inner();
            RunningPart {
                task: tasks.spawn(future.unwrap_or_else(PoisonError::into_inner)),
                name: part.name,
                stop: part.stop,
            }
        });
        Self {
            running: running.collect(),
            tasks,
        }
    }

    /// Waits for the first part that ends. May be dropped and called again.
    pub(crate) async fn ended(&mut self, lease: &LeaseKey) -> PartEnd {
        let Some(ended) = self.tasks.join_next_with_id().await else {
            return std::future::pending().await;
        };
        let end = self.end_of(ended);
        let PartEnd { part, how } = &end;
        tracing::error!(%lease, part, how, "a part beside the work has ended: the run ends");
        end
    }

    /// Tells the parts to stop, and waits for as long as they may take. A part that listens to nobody is dropped at once.
    pub(crate) async fn stop(mut self, lease: &LeaseKey, grace: Duration, clock: &Arc<dyn Clock>) {
        for part in &self.running {
            if part.stop.is_closed() {
                part.task.abort();
            }
        }
        let names: Vec<_> = self.running.drain(..).map(|part| part.name).collect();
        for patience in [grace, DROP_GRACE] {
            let until = clock.holder().after(patience);
            tokio::select! {
                biased;
                () = async { while self.tasks.join_next().await.is_some() {} } => return,
                () = clock.sleep_until_holder(until) => self.tasks.abort_all(),
            }
        }
        let left = self.tasks.len();
        tracing::warn!(%lease, left, parts = names.join(","), "parts beside the work still run: they block their threads");
    }

    fn end_of(&mut self, ended: Result<(Id, String), JoinError>) -> PartEnd {
        let (id, how) = match ended {
            Ok((id, returned)) if returned == "()" => (id, "ended".to_owned()),
            Ok((id, returned)) => (id, format!("ended: {}", one_line(&returned))),
            Err(error) => {
                let id = error.id();
                let how = match error.try_into_panic() {
                    Ok(panic) => format!("panicked: {}", one_line(&panic_text(&*panic))),
                    Err(_) => "was aborted".to_owned(),
                };
                (id, how)
            }
        };
        let at = self.running.iter().position(|part| part.task.id() == id);
        let at = at.expect("each task belongs to a part, and ends once");
        PartEnd {
            part: self.running.swap_remove(at).name,
            how,
        }
    }
}

// === impl PartEnd ===

impl PartEnd {
    /// The report of a run in which a part ended: an error of the work before this one, and this one before how the
    /// term ended. Work that returned by itself had ended the run already.
    pub(crate) fn outcome<T, E>(
        self,
        outcome: RunOutcome<T, E>,
    ) -> Result<RunOutcome<T, E>, RunError> {
        let ended = |term: Option<TermEnd>| RunError::PartEnded {
            part: self.part,
            how: self.how,
            term,
        };
        match outcome {
            RunOutcome::ShutDown(term) => Err(ended(term)),
            RunOutcome::TermEnded(term) | RunOutcome::Unwell { term, .. } => Err(ended(Some(term))),
            RunOutcome::WorkEnded { .. }
            | RunOutcome::WorkFailed { .. }
            | RunOutcome::WorkPanicked { .. } => Ok(outcome),
        }
    }
}
