//! A request that is under way, or none.

use std::fmt;

use futures::future::BoxFuture;

/// Room for one request of a kind: its loop sends the next one when the response to the last has come.
///
/// ```
/// use elector_runtime::RequestSlot;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut slot = RequestSlot::default();
/// slot.send(Box::pin(async { "an answer" }));
/// assert!(slot.is_taken());
/// assert_eq!(slot.response().await, "an answer");
/// assert!(!slot.is_taken());
/// # }
/// ```
pub struct RequestSlot<T>(Option<BoxFuture<'static, T>>);

// === impl RequestSlot ===

impl<T> RequestSlot<T> {
    /// Sends a request: it is on its way while [`response`](Self::response) is awaited. One that was under way is given
    /// up.
    pub fn send(&mut self, request: BoxFuture<'static, T>) {
        self.0 = Some(request);
    }

    /// True if a request is under way.
    pub const fn is_taken(&self) -> bool {
        self.0.is_some()
    }

    /// Takes the request that is under way out of the slot, which is free then.
    pub fn take(&mut self) -> Option<BoxFuture<'static, T>> {
        self.0.take()
    }

    /// Gives up the request that is under way. It may have been applied.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Waits for the response to the request that is under way; forever, while there is none. Dropping this future
    /// loses nothing.
    pub async fn response(&mut self) -> T {
        let Some(request) = &mut self.0 else {
            return std::future::pending().await;
        };
        let response = request.await;
        self.0 = None;
        response
    }
}

impl<T> Default for RequestSlot<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> fmt::Debug for RequestSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RequestSlot")
            .field(&self.is_taken())
            .finish()
    }
}
