//! A thread of their own for requests and renewals, so that work which blocks its executor keeps the lease.

use std::convert::Infallible;
use std::io;
use std::panic::resume_unwind;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// A thread with a runtime of one thread. When this is dropped, all that runs there is dropped, and the thread ends.
#[derive(Debug)]
pub(crate) struct RenewalThread {
    runtime: Handle,
    _stop: oneshot::Sender<Infallible>,
}

// === impl RenewalThread ===

impl RenewalThread {
    /// Starts the thread.
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
}
