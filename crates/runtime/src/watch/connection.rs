//! One watch as it is read: what it tells, and how it ends.

use std::time::Duration;

use futures::stream::{BoxStream, Stream, StreamExt};
use kube::api::WatchEvent as Wire;
use tokio::time::Instant;

use crate::request::Cause;

/// The answer to one watch request.
pub(super) struct WatchConnection<K> {
    events: BoxStream<'static, kube::Result<Wire<K>>>,
    asked: Instant,
    opened: Instant,
    /// The duration for which the watch was asked.
    timeout: Duration,
    /// True once it has told something.
    was_of_use: bool,
}

/// The next word of a watch.
pub(super) enum WatchWord<K> {
    /// Something changed, or did not.
    Event(Wire<K>),
    /// The watch ended when it should.
    Ended,
    /// The watch ended before its time, without a reason. Load balancers end long watches, and so does a server that is
    /// killed: the client takes a connection that broke by an unexpected end for one that was closed.
    EndedEarly,
    /// The watch failed.
    Failed(Cause),
}

/// The delay with which a watch may end before it counts as dead.
const SILENCE: Duration = Duration::from_secs(5);

/// A watch that ends sooner and told nothing was of no use: its server, or what stands before it, lets no watch live. One
/// that told something has its reader behind the server, which ends a watch that does not take its events in time: a
/// pause would make it more. It is also what the two clocks may differ by at the end of a watch.
const SHORTEST: Duration = Duration::from_secs(1);

// === impl WatchConnection ===

impl<K: 'static> WatchConnection<K> {
    /// A watch that was asked for at `asked` and opened now.
    pub(super) fn new(
        events: impl Stream<Item = kube::Result<Wire<K>>> + Send + 'static,
        asked: Instant,
        timeout: Duration,
    ) -> Self {
        Self {
            events: events.boxed(),
            asked,
            opened: Instant::now(),
            timeout,
            was_of_use: false,
        }
    }

    /// Its next word. Dropping this future loses nothing.
    pub(super) async fn next(&mut self) -> WatchWord<K> {
        let silent = self.timeout + SILENCE;
        match tokio::time::timeout_at(self.opened + silent, self.events.next()).await {
            Ok(Some(Ok(event))) => {
                self.was_of_use = true;
                WatchWord::Event(event)
            }
            Ok(Some(Err(error))) => WatchWord::Failed(Cause::of(error)),
            Ok(None) if self.opened.elapsed() < SHORTEST && !self.was_of_use => {
                let why = "the watch ended as soon as it was open";
                WatchWord::Failed(Cause::Unreachable(why.to_owned()))
            }
            // Counted from the request, as the server cannot have begun before it.
            Ok(None) if self.asked.elapsed() + SHORTEST < self.timeout => WatchWord::EndedEarly,
            Ok(None) => WatchWord::Ended,
            Err(_) => WatchWord::Failed(Cause::TimedOut(silent)),
        }
    }
}
