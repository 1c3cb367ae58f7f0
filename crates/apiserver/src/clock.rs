//! The only source of wall-clock time.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

/// Tells the server what time it is. Timers are tokio's; this is only for what objects say.
///
/// ```
/// use elector_apiserver::WallClock;
///
/// let clock = WallClock::new(|| "2026-01-02T03:04:05Z".parse().expect("a constant"));
/// assert_eq!(clock.now().to_string(), "2026-01-02T03:04:05Z");
/// ```
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

// === impl WallClock ===

impl WallClock {
    /// A clock that shows what the function returns.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    /// A clock that showed `epoch` when this was called and then follows tokio's timers, so that a paused runtime
    /// stops it. To be called within the runtime.
    #[must_use]
    pub fn following_timers(epoch: Timestamp) -> Self {
        let start = tokio::time::Instant::now();
        Self::new(move || {
            let elapsed = start.elapsed();
            epoch.checked_add(elapsed).unwrap_or(Timestamp::MAX)
        })
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// The time in whole seconds, as metadata has it.
    pub(crate) fn stamp(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WallClock({})", self.now())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_stands_still_with_the_timers() {
        let epoch: Timestamp = "2026-01-02T03:04:05.9Z".parse().unwrap();
        let clock = WallClock::following_timers(epoch);
        assert_eq!(clock.stamp(), "2026-01-02T03:04:05Z");
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(clock.stamp(), "2026-01-02T04:04:05Z");
    }
}
