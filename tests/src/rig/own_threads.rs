//! Threads apart from those of a test, for what must not wait for the test, nor hold it up.

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// A runtime of two threads. Dropping it, which may happen anywhere, ends its tasks where they are.
pub struct OwnThreads(Option<Runtime>);

/// The number of threads.
const THREADS: usize = 2;

// === impl OwnThreads ===

impl OwnThreads {
    /// Starts the threads.
    pub fn start() -> Result<Self> {
        let mut threads = Builder::new_multi_thread();
        let runtime = threads.worker_threads(THREADS).enable_all().build();
        Ok(Self(Some(runtime.context("failed to start threads")?)))
    }

    /// Starts a task on them.
    pub fn spawn<F>(&self, task: F) -> Result<JoinHandle<F::Output>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let runtime = self.0.as_ref().context("the threads have ended")?;
        Ok(runtime.spawn(task))
    }
}

impl Drop for OwnThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
