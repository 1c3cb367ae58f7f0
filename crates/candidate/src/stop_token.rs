//! A token for parts of the work that only need to know when to stop.

use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use elector_protocol::holder::StopReason;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::leadership::Leadership;

/// Tells when the work of a term is to stop. Clones are of the same term.
///
/// It borrows nothing, can be sent and shared, and its future gives nothing, as servers and controllers demand of what
/// ends them:
///
/// ```
/// # use elector_candidate::Leadership;
/// # async fn serve_with(shutdown: impl Future<Output = ()> + Send + Sync + 'static) -> std::io::Result<()> { Ok(()) }
/// async fn work(leadership: Leadership) -> std::io::Result<()> {
///     let token = leadership.stop_token();
///     // `kube::runtime::Controller::graceful_shutdown_on(token.stopped())`,
///     // `axum::serve(listener, router).with_graceful_shutdown(token.stopped())`.
///     serve_with(token.stopped()).await
/// }
/// ```
///
/// It says when to stop. Whether an effect may still take place is for [`Leadership::is_leader`] to say, which stays true
/// while the work drains.
#[derive(Clone, Debug)]
pub struct StopToken {
    leadership: Leadership,
}

/// Waits until the work is to stop: [`StopToken::stopped`].
#[must_use = "futures do nothing unless polled"]
pub struct Stopped {
    // A lock makes the future one that may be shared. It is never taken: to poll is to have it alone.
    reason: Mutex<BoxFuture<'static, StopReason>>,
}

// === impl Leadership ===

impl Leadership {
    /// A token for parts of the work that only need to know when to stop: it can be kept, sent and shared, and its
    /// future gives nothing, as servers and controllers demand of what ends them.
    pub fn stop_token(&self) -> StopToken {
        StopToken {
            leadership: self.clone(),
        }
    }
}

// === impl StopToken ===

impl StopToken {
    /// Waits until the work is to stop. Is done at once when it already is.
    pub fn stopped(&self) -> Stopped {
        let leadership = self.leadership.clone();
        Stopped {
            reason: Mutex::new(async move { leadership.stopped().await }.boxed()),
        }
    }

    /// True once the work is to stop: it was asked to, or the belief is over by the clock, now.
    pub fn is_stopped(&self) -> bool {
        self.reason().is_some()
    }

    /// Why the work is to stop, `None` while it is not.
    pub fn reason(&self) -> Option<StopReason> {
        self.leadership.stop_reason()
    }
}

// === impl Stopped ===

impl Future for Stopped {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let reason = self.reason.get_mut();
        let reason = reason.unwrap_or_else(PoisonError::into_inner);
        reason.poll_unpin(context).map(drop)
    }
}

impl fmt::Debug for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopped").finish_non_exhaustive()
    }
}
