//! Something that goes on until it is dropped.

use tokio::task::JoinHandle;

/// Something that goes on beside the test until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends it"]
pub struct BackgroundTask(JoinHandle<()>);

// === impl BackgroundTask ===

impl BackgroundTask {
    /// Begins it.
    pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
