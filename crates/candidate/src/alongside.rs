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

use crate::error::Error;
use crate::finish::{Finish, RunEnd};
use crate::health_monitor::one_line;
use crate::resolved_config::ResolvedConfig;

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
    lease: LeaseKey,
    clock: Arc<dyn Clock>,
    /// The time that they have to stop.
    grace: Duration,
    tasks: JoinSet<String>,
    running: Vec<RunningPart>,
    /// The first that ended before a shutdown.
    end: Option<PartEnd>,
}

struct RunningPart {
    name: String,
    task: AbortHandle,
    stop: oneshot::Sender<Infallible>,
}

/// The end of a part that was not asked for.
struct PartEnd {
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
    pub(crate) fn start(
        parts: Vec<RunPart>,
        config: &ResolvedConfig,
        clock: Arc<dyn Clock>,
    ) -> Self {
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
            lease: config.lease.clone(),
            clock,
            grace: config.given.grace,
            running: running.collect(),
            tasks,
            end: None,
        }
    }

    /// Waits for the first part that ends. May be dropped and called again.
    pub(crate) async fn ended(&mut self) {
        let Some(ended) = self.tasks.join_next_with_id().await else {
            return std::future::pending().await;
        };
        let PartEnd { part, how } = self.end_of(ended);
        let lease = &self.lease;
        tracing::error!(%lease, part, how, "a part that runs alongside the work has ended: ending the run");
        self.end = Some(PartEnd { part, how });
    }

    /// The report of a run that ended so, once its parts have stopped: an error of the work comes before the end of a
    /// part, and that before how the term ended. Work that returned by itself had ended the run already.
    pub(crate) async fn report(mut self, ended: Result<RunEnd, Error>) -> Result<RunEnd, Error> {
        self.stop().await;
        let end = ended?;
        match (self.end, &end.reason) {
            (None, _)
            | (_, Finish::WorkEnded | Finish::WorkFailed(_) | Finish::WorkPanicked(_)) => Ok(end),
            (Some(PartEnd { part, how }), _) => Err(Error::PartEnded {
                part,
                how,
                term: end.term,
            }),
        }
    }

    /// Tells the parts to stop, and waits for as long as they may take. A part that listens to nobody is dropped at once.
    async fn stop(&mut self) {
        for part in &self.running {
            if part.stop.is_closed() {
                part.task.abort();
            }
        }
        let names: Vec<_> = self.running.drain(..).map(|part| part.name).collect();
        for patience in [self.grace, DROP_GRACE] {
            let until = self.clock.holder().after(patience);
            tokio::select! {
                biased;
                () = async { while self.tasks.join_next().await.is_some() {} } => return,
                () = self.clock.sleep_until_holder(until) => self.tasks.abort_all(),
            }
        }
        let (lease, left) = (&self.lease, self.tasks.len());
        tracing::warn!(%lease, left, parts = names.join(","), "parts that run alongside the work do not stop: they block their threads");
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
