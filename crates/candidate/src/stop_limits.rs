//! Until when the work of a term may act: the one place where that is computed.

use std::time::Duration;

use elector_protocol::Instant;

/// Until when the work of a term may act unless another renewal succeeds, on the holder's clock.
///
/// Work in this process is held to it by the candidate. Work that runs in another process may be held to it by that
/// process too, so that it also ends where this one is stopped: tell it the limits of
/// [`Leadership::stop_limits`](crate::Leadership::stop_limits) again after each renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopLimits {
    /// When the belief ends. Work that was not told to stop before is told then.
    pub deadline: Instant,
    /// Until when it may act if it is told at the deadline:
    /// [`Config::stop_budget`](crate::Config::stop_budget) later.
    pub lease_limit: Instant,
}

// === impl StopLimits ===

impl StopLimits {
    pub(crate) const fn of(deadline: Instant, budget: Duration) -> Self {
        Self {
            deadline,
            lease_limit: deadline.after(budget),
        }
    }

    /// When work is to be gone that is told to stop at `told` and may take `grace` for it: no later than the lease
    /// allows. After a pause that may have passed already, and then it is dropped, or killed, at once.
    #[must_use]
    pub fn stop_by(&self, told: Instant, grace: Duration) -> Instant {
        told.after(grace).min(self.lease_limit)
    }
}
