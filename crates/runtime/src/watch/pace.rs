//! The pace at which one watch may bother its server.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::time::Instant;

use super::options::WatchOptions;

/// A watch that lasted this long was healthy, so a failure after it is a first one.
const HEALTHY: Duration = Duration::from_secs(10);

/// Pauses between requests: a floor between openings, and a capped, jittered backoff after failures.
///
/// Only a watch that lived resets the backoff. A list that succeeds does not: a server that answers lists and breaks
/// watches would be listed without end.
#[derive(Debug)]
pub(super) struct Pace {
    options: WatchOptions,
    failures: u32,
    opened: Option<Instant>,
    not_before: Option<Instant>,
    jitter: StdRng,
}

// === impl Pace ===

impl Pace {
    pub(super) fn new(options: WatchOptions) -> Self {
        Self {
            jitter: StdRng::seed_from_u64(options.seed),
            options,
            failures: 0,
            opened: None,
            not_before: None,
        }
    }

    /// Waits until the next request may go out.
    pub(super) async fn wait(&self) {
        if let Some(instant) = self.not_before {
            tokio::time::sleep_until(instant).await;
        }
    }

    /// A watch was opened.
    pub(super) fn opened(&mut self) {
        let now = Instant::now();
        self.opened = Some(now);
        self.not_before = Some(now + self.options.floor);
    }

    /// A watch ended as it should.
    pub(super) fn closed(&mut self) {
        self.forgive();
        self.opened = None;
    }

    /// A request failed.
    pub(super) fn failed(&mut self) {
        self.forgive();
        self.opened = None;
        let doubled = self
            .options
            .backoff_min
            .saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        let pause = doubled.min(self.options.backoff_max);
        let at = Instant::now() + pause.mul_f64(self.jitter.random_range(0.5..=1.0));
        self.not_before = Some(self.not_before.map_or(at, |floor| floor.max(at)));
    }

    fn forgive(&mut self) {
        if self
            .opened
            .is_some_and(|opened| opened.elapsed() >= HEALTHY)
        {
            self.failures = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn waited(pace: &Pace) -> Duration {
        let start = Instant::now();
        pace.wait().await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_to_the_cap_and_spread() {
        let mut spread = Vec::new();
        for seed in [1, 2] {
            let mut pace = Pace::new(WatchOptions::candidate(seed));
            assert_eq!(waited(&pace).await, Duration::ZERO);
            for millis in [200u64, 400, 800, 1600, 3200, 5000, 5000] {
                pace.failed();
                let waited = waited(&pace).await;
                let full = Duration::from_millis(millis);
                let holds = waited >= full / 2 && waited <= full + Duration::from_millis(1);
                assert!(holds, "{waited:?} of {full:?}");
                spread.push(waited);
            }
        }
        assert_ne!(spread[..7], spread[7..]);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_watch_that_lived_resets_the_backoff() {
        let mut pace = Pace::new(WatchOptions::candidate(0));
        for _ in 0..8 {
            pace.failed();
            pace.wait().await;
        }
        pace.opened();
        tokio::time::advance(HEALTHY - Duration::from_secs(1)).await;
        pace.closed();
        tokio::time::advance(Duration::from_secs(1)).await;
        pace.failed();
        assert!(waited(&pace).await >= Duration::from_millis(2500));
        pace.opened();
        tokio::time::advance(HEALTHY).await;
        pace.failed();
        assert!(waited(&pace).await <= Duration::from_millis(201));
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_a_floor_between_openings() {
        let mut pace = Pace::new(WatchOptions::candidate(0));
        pace.opened();
        pace.closed();
        assert_eq!(waited(&pace).await, Duration::from_secs(1));
        // A failure does not undercut it.
        pace.opened();
        pace.failed();
        assert_eq!(waited(&pace).await, Duration::from_secs(1));
        pace.opened();
        tokio::time::advance(Duration::from_secs(30)).await;
        pace.closed();
        assert_eq!(waited(&pace).await, Duration::ZERO);
    }
}
