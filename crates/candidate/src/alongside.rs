//! Parts that run beside the work of a leader: controllers, servers, webhooks. A lease says that its holder works, so the
//! end of a part is the end of the run.

use std::convert::Infallible;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use elector_protocol::LeaseKey;
use elector_runtime::{Clock, panic_text};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

use crate::boxed_work::{BoxedWork, WorkOrders};
use crate::error::Error;
use crate::finish::{Finish, RunEnd};
use crate::health_monitor::one_line;
use crate::leadership::Leadership;
use crate::renewal_thread::RenewalThread;

/// The future that tells a part to stop, once the lease is given up.
pub(crate) type PartStop = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// A part that is to run beside the work.
pub(crate) struct RunPart {
    name: String,
    /// Gives what the part returned, as text. A candidate may be shared between threads, which no future has to allow.
    future: Mutex<BoxFuture<'static, String>>,
    stop: oneshot::Sender<Infallible>,
}

/// A run loop that has begun, on the caller's executor or on a thread of its own.
pub(crate) struct StartedLoop {
    pub(crate) ended: BoxFuture<'static, Result<RunEnd, Error>>,
    /// Where it leaves its orders for work.
    pub(crate) orders: WorkOrders,
    /// A shutdown, where this is dropped. It outlives the run loop otherwise.
    pub(crate) shutdown: oneshot::Sender<Infallible>,
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

// === impl StartedLoop ===

impl StartedLoop {
    /// Starts a run loop, which takes the end of the channel for a shutdown, on that thread if there is one.
    pub(crate) fn start<F>(
        thread: Option<Arc<RenewalThread>>,
        orders: WorkOrders,
        run_loop: impl FnOnce(oneshot::Receiver<Infallible>) -> F,
    ) -> Self
    where
        F: Future<Output = Result<RunEnd, Error>> + Send + 'static,
    {
        let (shutdown, told) = oneshot::channel();
        let run_loop = run_loop(told);
        let ended = match thread {
            Some(thread) => async move { thread.run(run_loop).await }.boxed(),
            None => run_loop.boxed(),
        };
        Self {
            ended,
            orders,
            shutdown,
        }
    }
}

// === impl RunningParts ===

impl RunningParts {
    /// Starts them on the executor of the caller.
    pub(crate) fn start(
        parts: Vec<RunPart>,
        lease: LeaseKey,
        grace: Duration,
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
            lease,
            clock,
            grace,
            running: running.collect(),
            tasks,
            end: None,
        }
    }

    /// Runs a run loop beside them and beside the caller, whose function makes the work of each term, until it has ended.
    /// Its end and `shutdown` are one to it, and so is that of a part.
    pub(crate) async fn run_beside(
        mut self,
        run_loop: StartedLoop,
        mut make: impl FnMut(Leadership) -> BoxedWork,
        shutdown: impl Future,
    ) -> Result<RunEnd, Error> {
        let StartedLoop {
            mut ended,
            orders,
            shutdown: tell,
        } = run_loop;
        let mut tell = Some(tell);
        let mut shutdown = pin!(shutdown);
        let ended = loop {
            tokio::select! {
                biased;
                order = orders.next() => order.fill(&mut make),
                ended = &mut ended => break ended,
                _ = &mut shutdown, if tell.is_some() => tell = None,
                () = self.ended(), if tell.is_some() => tell = None,
            }
        };
        self.report(ended).await
    }

    /// Waits for the first part that ends. May be dropped and called again.
    async fn ended(&mut self) {
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
    async fn report(mut self, ended: Result<RunEnd, Error>) -> Result<RunEnd, Error> {
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
