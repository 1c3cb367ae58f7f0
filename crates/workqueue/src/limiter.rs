//! How long a failed key waits: its own exponential backoff, and a bucket shared by all keys.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
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

/// A bound on the rate of retries over all keys: `burst` at once, then `qps` per second.
///
/// A bucket starts full and is refilled evenly. Whoever finds it empty reserves a token of the future
/// and waits until that token is there, so callers are served in the order in which they asked.
///
/// ```
/// use std::time::Duration;
///
/// use elector_workqueue::TokenBucket;
///
/// let mut bucket = TokenBucket::client_go();
/// let now = Duration::ZERO;
/// let burst = (0..100).all(|_| bucket.reserve(now).is_zero());
/// assert!(burst);
/// assert_eq!(bucket.reserve(now), Duration::from_millis(100));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Time in which one token grows back.
    interval: Duration,
    /// How far ahead of the present the reservations may run before somebody waits.
    slack: Duration,
    /// When the bucket will be full again, counting every reservation made so far.
    full_at: Duration,
}

/// Decides how long a failed key waits before it is tried again.
///
/// The delay is the larger one of the key's own [`Backoff`] and, where there is one, of the
/// [`TokenBucket`] that all keys share. Both are asked each time, so both count each failure.
///
/// ```
/// use std::time::Duration;
///
/// use elector_workqueue::{Backoff, RateLimiter};
///
/// let backoff = Backoff::new(Duration::from_millis(5), Duration::from_secs(5));
/// let mut limiter = RateLimiter::new(backoff);
/// let now = Duration::ZERO;
///
/// assert_eq!(limiter.when("a", now), Duration::from_millis(5));
/// assert_eq!(limiter.when("a", now), Duration::from_millis(10));
/// assert_eq!(limiter.when("b", now), Duration::from_millis(5));
///
/// limiter.forget(&"a"); // it succeeded
/// assert_eq!(limiter.when("a", now), Duration::from_millis(5));
/// ```
#[derive(Clone, Debug)]
pub struct RateLimiter<K> {
    backoff: Backoff,
    bucket: Option<TokenBucket>,
    failures: BTreeMap<K, u32>,
}

// === impl Backoff ===

impl Backoff {
    /// client-go's default controller backoff: from 5 ms up to 1000 s.
    pub const CLIENT_GO: Self = Self::new(Duration::from_millis(5), Duration::from_secs(1_000));

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

// === impl TokenBucket ===

impl TokenBucket {
    /// A full bucket of `burst` tokens, refilled with `qps` tokens per second.
    pub fn new(qps: NonZeroU32, burst: NonZeroU32) -> Self {
        let interval = Duration::from_secs(1) / qps.get();
        Self {
            interval,
            slack: interval.saturating_mul(burst.get() - 1),
            full_at: Duration::ZERO,
        }
    }

    /// client-go's default controller bucket: 10 per second, 100 at once.
    pub fn client_go() -> Self {
        const QPS: NonZeroU32 = NonZeroU32::new(10).expect("10 is not zero");
        const BURST: NonZeroU32 = NonZeroU32::new(100).expect("100 is not zero");
        Self::new(QPS, BURST)
    }

    /// Reserves one token at `now` and returns how long to wait for it: zero while the burst lasts.
    pub fn reserve(&mut self, now: Duration) -> Duration {
        let start = self.full_at.max(now);
        self.full_at = start.saturating_add(self.interval);
        (start - now).saturating_sub(self.slack)
    }
}

// === impl RateLimiter ===

impl<K: Ord + Clone> RateLimiter<K> {
    /// A limiter with a backoff per key and no bound over all keys.
    pub const fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            bucket: None,
            failures: BTreeMap::new(),
        }
    }

    /// Adds a bound over all keys.
    #[must_use]
    pub fn with_bucket(self, bucket: TokenBucket) -> Self {
        Self {
            bucket: Some(bucket),
            ..self
        }
    }

    /// client-go's default controller limiter: 5 ms · 2ⁿ up to 1000 s, and 10 per second with a burst of 100.
    pub fn client_go() -> Self {
        Self::new(Backoff::CLIENT_GO).with_bucket(TokenBucket::client_go())
    }

    /// Counts a failure of `key` and returns how long it has to wait from `now`.
    pub fn when(&mut self, key: K, now: Duration) -> Duration {
        let failures = self.failures.entry(key).or_insert(0);
        let own = self.backoff.delay(*failures);
        *failures = failures.saturating_add(1);

        let shared = self.bucket.as_mut().map(|bucket| bucket.reserve(now));
        own.max(shared.unwrap_or_default())
    }

    /// Forgets the failures of `key`: it succeeded, or it is gone for good.
    ///
    /// Tokens that it took from the bucket stay taken.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// How many failures of `key` are remembered.
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

    fn bucket(qps: u32, burst: u32) -> TokenBucket {
        TokenBucket::new(
            NonZeroU32::new(qps).unwrap(),
            NonZeroU32::new(burst).unwrap(),
        )
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

    #[test]
    fn limiter_counts_failures_per_key_and_forgets_them() {
        let mut limiter = RateLimiter::new(Backoff::new(ms(5), s(5)));
        assert_eq!(limiter.num_requeues(&"a"), 0);
        assert_eq!(limiter.when("a", s(0)), ms(5));
        assert_eq!(limiter.when("a", s(0)), ms(10));
        assert_eq!(limiter.when("b", s(0)), ms(5));
        assert_eq!(limiter.num_requeues(&"a"), 2);
        assert_eq!(limiter.num_requeues(&"b"), 1);

        limiter.forget(&"a");
        assert_eq!(limiter.num_requeues(&"a"), 0);
        assert_eq!(limiter.num_requeues(&"b"), 1);
        assert_eq!(limiter.when("a", s(0)), ms(5));
        assert_eq!(limiter.when("b", s(0)), ms(10));
    }

    #[test]
    fn bucket_gives_the_burst_then_one_token_per_interval() {
        let mut bucket = bucket(10, 3);
        let now = s(7);
        let delays: Vec<_> = (0..6).map(|_| bucket.reserve(now)).collect();
        assert_eq!(delays, [ms(0), ms(0), ms(0), ms(100), ms(200), ms(300)]);
    }

    #[test]
    fn bucket_refills_with_time_but_not_beyond_the_burst() {
        let mut bucket = bucket(10, 3);
        for _ in 0..5 {
            bucket.reserve(s(0));
        }
        // Two tokens are owed; 350 ms give back three and a half.
        assert_eq!(bucket.reserve(ms(350)), ms(0));
        assert_eq!(bucket.reserve(ms(350)), ms(50));
        // However long it rests, it holds three.
        let delays: Vec<_> = (0..4).map(|_| bucket.reserve(s(9_000))).collect();
        assert_eq!(delays, [ms(0), ms(0), ms(0), ms(100)]);
    }

    #[test]
    fn bucket_survives_the_ends_of_time() {
        let mut bucket = bucket(1, u32::MAX);
        assert_eq!(bucket.reserve(Duration::MAX), ms(0));
        assert_eq!(bucket.reserve(Duration::MAX), ms(0));
    }

    #[test]
    fn limiter_takes_the_longer_of_backoff_and_bucket() {
        let mut limiter = RateLimiter::new(Backoff::new(ms(5), s(5))).with_bucket(bucket(10, 2));
        let now = s(0);
        assert_eq!(
            limiter.when("a", now),
            ms(5),
            "token there, backoff decides"
        );
        assert_eq!(
            limiter.when("b", now),
            ms(5),
            "token there, backoff decides"
        );
        assert_eq!(
            limiter.when("c", now),
            ms(100),
            "bucket empty, bucket decides"
        );

        limiter.forget(&"c");
        assert_eq!(limiter.when("d", now), ms(200), "tokens stay taken");
    }

    #[test]
    fn client_go_defaults_are_client_gos() {
        let mut limiter = RateLimiter::client_go();
        for key in 0..100 {
            assert_eq!(limiter.when(key, s(0)), ms(5), "burst of 100");
        }
        assert_eq!(limiter.when(100, s(0)), ms(100), "10 per second");
        for _ in 0..40 {
            limiter.when(0, s(1_000_000));
        }
        assert_eq!(limiter.when(0, s(2_000_000)), s(1_000), "cap of 1000 s");
    }
}
