//! The wait of work for its stop, as a future that may be kept, sent and shared.

use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use elector_protocol::holder::StopReason;
use futures::FutureExt as _;
use futures::future::BoxFuture;

/// Waits until the work is to stop: [`Leadership::stopped`](crate::Leadership::stopped).
pub(crate) struct Stopped {
    // A lock makes the future one that may be shared. It is never taken: to poll is to have it alone.
    reason: Mutex<BoxFuture<'static, StopReason>>,
}

// === impl Stopped ===

impl Stopped {
    pub(crate) fn new(reason: impl Future<Output = StopReason> + Send + 'static) -> Self {
        Self {
            reason: Mutex::new(reason.boxed()),
        }
    }
}

impl Future for Stopped {
    type Output = StopReason;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<StopReason> {
        let reason = self.reason.get_mut();
        let reason = reason.unwrap_or_else(PoisonError::into_inner);
        reason.poll_unpin(context)
    }
}
