//! Until when this elector may act, asked at every step and at every poll of a request.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use elector_protocol::Instant;
use elector_runtime::{Clock, Writer};

/// The belief of this elector that it is the one that acts. Clones are the same one.
///
/// It is computed from the holder's clock whenever it is asked for (R9), so a process that stood still learns that it is
/// over before it sends anything.
#[derive(Clone)]
pub(crate) struct ActiveBelief {
    clock: Arc<dyn Clock>,
    /// The first instant of the holder's clock at which the belief is over, in nanoseconds.
    deadline: Arc<AtomicU64>,
    /// True once requests under way come to their end and none is begun.
    closed: Arc<AtomicBool>,
}

/// The deadline of a belief that never ends.
const NEVER: u64 = u64::MAX;

// === impl ActiveBelief ===

impl ActiveBelief {
    /// Of an elector that always acts, since the electors elect none of themselves.
    pub(crate) fn unlimited(clock: Arc<dyn Clock>) -> Self {
        Self::new(clock, NEVER)
    }

    /// Of an elector that does not act yet.
    pub(crate) fn none(clock: Arc<dyn Clock>) -> Self {
        Self::new(clock, 0)
    }

    fn new(clock: Arc<dyn Clock>, deadline: u64) -> Self {
        Self {
            clock,
            deadline: Arc::new(AtomicU64::new(deadline)),
            closed: Arc::default(),
        }
    }

    /// The clock that it is computed from.
    pub(crate) const fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The belief is over at that instant of the holder's clock, or has none.
    pub(crate) fn set(&self, deadline: Option<Instant>) {
        let nanos = deadline.map_or(0, nanos);
        self.deadline.store(nanos, Ordering::Release);
    }

    /// Nothing new may be begun from now on, or it may again.
    pub(crate) fn set_closed(&self, closed: bool) {
        self.closed.store(closed, Ordering::Release);
    }

    /// True if a request may be begun now.
    pub(crate) fn may_begin(&self) -> bool {
        self.holds() && !self.closed.load(Ordering::Acquire)
    }

    /// True if this elector may act now.
    pub(crate) fn holds(&self) -> bool {
        let deadline = self.deadline.load(Ordering::Acquire);
        // Each event asks for this, so a belief that never ends reads no clock.
        deadline == NEVER || nanos(self.clock.holder()) < deadline
    }

    /// For how long it may act if the belief is not prolonged.
    pub(crate) fn remaining(&self) -> Duration {
        let deadline = self.deadline.load(Ordering::Acquire);
        Duration::from_nanos(deadline.saturating_sub(nanos(self.clock.holder())))
    }

    /// A writer whose requests take no longer than the belief lasts.
    pub(crate) fn limit(&self, writer: &Writer) -> Writer {
        writer.with_timeout(writer.cluster().request_timeout().min(self.remaining()))
    }

    /// The outcome of a request; `None` where the belief ended before. Then it is given up, and where it had not been
    /// sent it never is: each time before anything of it goes on, the belief is asked for.
    pub(crate) async fn guard<T>(&self, request: impl Future<Output = T>) -> Option<T> {
        let mut request = pin!(request);
        std::future::poll_fn(|context| match self.holds() {
            true => request.as_mut().poll(context).map(Some),
            false => Poll::Ready(None),
        })
        .await
    }
}

fn nanos(instant: Instant) -> u64 {
    u64::try_from(instant.since_epoch().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use elector_runtime::TokioClock;
    use elector_testing::{TestCluster, millis, pass, seconds};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_ends_by_the_clock() {
        let clock = Arc::new(TokioClock::start(TestCluster::start_time()));
        let belief = ActiveBelief::none(clock.clone());
        assert!(!belief.holds());
        belief.set(Some(clock.holder().after(seconds(10))));
        pass(millis(9_999)).await;
        assert!(belief.holds());
        assert_eq!(belief.remaining(), millis(1));
        pass(millis(1)).await;
        assert!(!belief.holds());
        assert_eq!(belief.remaining(), Duration::ZERO);
        assert!(ActiveBelief::unlimited(clock).holds());
    }

    #[tokio::test(start_paused = true)]
    async fn once_closed_what_is_under_way_goes_on_and_nothing_is_begun() {
        let clock = Arc::new(TokioClock::start(TestCluster::start_time()));
        let belief = ActiveBelief::unlimited(clock);
        assert!(belief.may_begin());
        belief.set_closed(true);
        assert!(belief.holds() && !belief.may_begin());
        assert_eq!(belief.guard(async { "gone on" }).await, Some("gone on"));
        belief.set_closed(false);
        assert!(belief.may_begin());
    }

    /// A request that waits its turn while the belief ends is not begun, and one that is under way does not go on.
    #[tokio::test(start_paused = true)]
    async fn nothing_of_a_request_happens_after_the_belief() {
        let clock = Arc::new(TokioClock::start(TestCluster::start_time()));
        let belief = ActiveBelief::none(clock.clone());
        assert_eq!(belief.guard(async { "begun" }).await, None);
        belief.set(Some(clock.holder().after(seconds(10))));
        assert_eq!(belief.guard(async { "begun" }).await, Some("begun"));
        let two_steps = |first| async move {
            pass(first).await;
            "gone on"
        };
        assert_eq!(belief.guard(two_steps(seconds(1))).await, Some("gone on"));
        assert_eq!(belief.guard(two_steps(seconds(9))).await, None);
    }
}
