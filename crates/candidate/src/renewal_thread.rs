//! A thread of their own for requests and renewals, so that work which blocks its executor keeps the lease.
//!
//! ```text
//!  caller's executor                           thread "elector"
//!  run: makes the work of each term <── order ── campaign: machines, watches, requests, stop
//!       shutdown ───────────────────────────────>   │
//!  the work, a task of that executor <──── aborts ──┘
//! ```

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::campaign::Campaign;
use crate::leadership::Leadership;
use crate::outcome::{RunError, RunOutcome};

/// A thread with a runtime of one thread. When this is dropped, all that runs there is dropped, and the thread ends.
#[derive(Debug)]
pub(crate) struct RenewalThread {
    runtime: Handle,
    _stop: oneshot::Sender<Infallible>,
}

/// The work of a term as the caller's function has made it, or the panic in which that ended.
type MadeWork<F> = Result<F, Box<dyn Any + Send>>;

// === impl RenewalThread ===

impl RenewalThread {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When the machine has no room for it.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("elector".to_owned());
        thread.spawn(move || {
            let stopped: Result<Infallible, _> = runtime.block_on(stopped);
            drop(stopped);
            // Nothing is left, save perhaps a look-up of the server's address that blocks a thread.
            runtime.shutdown_background();
        })?;
        Ok(Self {
            runtime: handle,
            _stop: stop,
        })
    }

    /// Runs a future there. It is dropped where this one is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let mut tasks = JoinSet::new();
        tasks.spawn_on(future, &self.runtime);
        match tasks.join_next().await {
            Some(Ok(done)) => done,
            Some(Err(error)) => resume_unwind(error.into_panic()),
            None => unreachable!("the set has one task"),
        }
    }

    /// Runs a campaign there, whose work is made and runs here.
    pub(crate) async fn run_campaign<F, T, E>(
        &self,
        campaign: Campaign,
        mut work: impl FnMut(Leadership) -> F,
        shutdown: impl Future,
    ) -> Result<RunOutcome<T, E>, RunError>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let (orders, mut ordered) = mpsc::channel(1);
        let order = move |leadership: Leadership| order_work(orders.clone(), leadership);
        // Outlives the campaign, which would take its end for a shutdown.
        let (tell, told) = oneshot::channel::<Infallible>();
        let mut tell = Some(tell);
        let mut campaign = pin!(self.run(campaign.run(order, told)));
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                ended = &mut campaign => return ended,
                Some((leadership, give)) = ordered.recv() => {
                    let made: MadeWork<F> = catch_unwind(AssertUnwindSafe(|| work(leadership)));
                    // The term may have ended meanwhile.
                    let _: Result<(), MadeWork<F>> = oneshot::Sender::send(give, made);
                }
                _ = &mut shutdown, if tell.is_some() => drop(tell.take()),
            }
        }
    }
}

/// The work of a term, made by the caller of the run and run as a part of this future.
async fn order_work<F: Future>(
    orders: mpsc::Sender<(Leadership, oneshot::Sender<MadeWork<F>>)>,
    leadership: Leadership,
) -> F::Output {
    let (give, given) = oneshot::channel();
    let ordered = orders.send((leadership, give)).await;
    let made = match ordered {
        Ok(()) => given.await.ok(),
        Err(_) => None,
    };
    match made {
        Some(Ok(work)) => work.await,
        Some(Err(panic)) => resume_unwind(panic),
        // The run was dropped, and this will be.
        None => std::future::pending().await,
    }
}
