//! The wait of a failed key: an exponential backoff of its own.

use std::collections::BTreeMap;
use std::time::Duration;

/// The delay of a key's n-th failure: base · 2ⁿ⁻¹, never above the cap.
///
/// ```
/// use std::time::Duration;
///
/// use elector_workqueue::Backoff;
///
/// let backoff = Backoff::new(Duration::from_millis(5), Duration::from_secs(5));
/// assert_eq!(backoff.delay(3), Duration::from_millis(40));
/// assert_eq!(backoff.delay(u32::MAX), Duration::from_secs(5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
}

/// Decides how long a failed key waits before it is tried again.
///
/// Each key has a [`Backoff`] of its own, which counts its failures in a row. Nothing bounds the retries
/// of all keys together.
///
/// ```
/// use std::time::Duration;
///
/// use elector_workqueue::{Backoff, RateLimiter};
///
/// let backoff = Backoff::new(Duration::from_millis(5), Duration::from_secs(5));
/// let mut limiter = RateLimiter::new(backoff);
///
/// assert_eq!(limiter.when("a"), Duration::from_millis(5));
/// assert_eq!(limiter.when("a"), Duration::from_millis(10));
/// assert_eq!(limiter.when("b"), Duration::from_millis(5));
///
/// limiter.forget(&"a"); // it succeeded
/// assert_eq!(limiter.when("a"), Duration::from_millis(5));
/// ```
#[derive(Clone, Debug)]
pub struct RateLimiter<K> {
    backoff: Backoff,
    failures: BTreeMap<K, u32>,
}

// === impl Backoff ===

impl Backoff {
    /// A backoff whose first delay is `base` and whose largest is `cap`.
    ///
    /// A cap below the base makes every delay the cap.
    pub const fn new(base: Duration, cap: Duration) -> Self {
        Self { base, cap }
    }

    /// The delay after `failures` earlier failures: base · 2^`failures`, at most the cap.
    ///
    /// Exact up to the cap, for any count.
    pub fn delay(&self, failures: u32) -> Duration {
        // A `Duration` holds fewer than 2^95 nanoseconds: 95 doublings take the smallest past any cap.
        const DOUBLINGS: u32 = 95;

        let mut delay = self.base;
        for _ in 0..failures.min(DOUBLINGS) {
            if delay >= self.cap {
                break;
            }
            delay = delay.saturating_add(delay);
        }
        delay.min(self.cap)
    }
}

// === impl RateLimiter ===

impl<K: Ord + Clone> RateLimiter<K> {
    /// A limiter that lets each key wait by this backoff.
    pub const fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            failures: BTreeMap::new(),
        }
    }

    /// Counts a failure of `key` and returns how long it has to wait.
    pub fn when(&mut self, key: K) -> Duration {
        let failures = self.failures.entry(key).or_insert(0);
        let delay = self.backoff.delay(*failures);
        *failures = failures.saturating_add(1);
        delay
    }

    /// Forgets the failures of `key`: it succeeded, or it is gone for good.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// The number of failures of `key` that are remembered.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn backoff_doubles_up_to_the_cap() {
        let table = [
            // (what, base, cap, failures, delay)
            ("first", ms(5), s(5), 0, ms(5)),
            ("second", ms(5), s(5), 1, ms(10)),
            ("last below a 5 s cap", ms(5), s(5), 9, ms(2_560)),
            ("first at a 5 s cap", ms(5), s(5), 10, s(5)),
            (
                "last below client-go's cap",
                ms(5),
                s(1_000),
                17,
                ms(655_360),
            ),
            ("first at client-go's cap", ms(5), s(1_000), 18, s(1_000)),
            ("at the count's limit", ms(5), s(1_000), u32::MAX, s(1_000)),
            ("cap below base", s(2), s(1), 0, s(1)),
            ("cap equal to base", s(2), s(2), 7, s(2)),
            ("no base", s(0), s(1), u32::MAX, s(0)),
            (
                "no cap worth the name",
                s(1),
                Duration::MAX,
                u32::MAX,
                Duration::MAX,
            ),
            (
                "smallest base, largest cap",
                Duration::from_nanos(1),
                Duration::MAX,
                95,
                Duration::MAX,
            ),
            (
                "smallest base stays exact past 32 doublings",
                Duration::from_nanos(1),
                s(1_000),
                33,
                Duration::from_nanos(1 << 33),
            ),
        ];
        for (what, base, cap, failures, delay) in table {
            assert_eq!(Backoff::new(base, cap).delay(failures), delay, "{what}");
        }
    }
}
