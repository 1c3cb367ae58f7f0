//! The clocks of one simulated process: a rate, an offset, steps of the time of day, and suspension.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::{Instant, Timestamp};
use elector_runtime::Clock;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::Instant as Real;

/// Clocks that run on tokio's time at a rate of their own.
///
/// Like the production clock, the holder's never falls behind what the time of day gained: a step forward counts, one
/// back does not. The elector's clock can be stopped, as CLOCK_MONOTONIC stops while a machine is suspended.
#[derive(Clone)]
pub struct SimClock(Arc<ClockParts>);

struct ClockParts {
    start: Real,
    /// Its rate, in millionths of real time.
    rate: u64,
    state: Mutex<ClockState>,
}

struct ClockState {
    /// The time of day at the start plus all steps, in microseconds.
    wall: i64,
    /// The time that steps forward have added to the holder's clock.
    gained: Duration,
    /// The standstill of the elector's clock so far, in its own time.
    stood: Duration,
    /// Its reading when it was stopped, while it is.
    stopped: Option<Duration>,
}

/// The longest sleep of a timer before it looks at its clock again, as in the production clock.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The rate of real time.
pub const TRUE_RATE: u64 = 1_000_000;

// === impl SimClock ===

impl SimClock {
    /// Clocks that start now, run at `rate` millionths of real time, and show this time of day.
    #[must_use]
    pub fn start(rate: u64, wall_micros: i64) -> Self {
        let state = ClockState {
            wall: wall_micros,
            gained: Duration::ZERO,
            stood: Duration::ZERO,
            stopped: None,
        };
        Self(Arc::new(ClockParts {
            start: Real::now(),
            rate,
            state: Mutex::new(state),
        }))
    }

    /// Its rate, in millionths of real time.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.0.rate
    }

    /// Sets the time of day forward or back by this number of microseconds.
    pub fn step(&self, micros: i64) {
        let mut state = self.0.state.lock();
        state.wall = state.wall.saturating_add(micros);
        if let Ok(forward) = u64::try_from(micros) {
            state.gained += Duration::from_micros(forward);
        }
    }

    /// Stops the elector's clock, or lets it go on from where it stood.
    pub fn stop(&self, stopped: bool) {
        let elapsed = self.elapsed();
        let mut state = self.0.state.lock();
        match (stopped, state.stopped) {
            (true, None) => state.stopped = Some(elapsed),
            (false, Some(since)) => {
                state.stood += elapsed.saturating_sub(since);
                state.stopped = None;
            }
            _ => {}
        }
    }

    /// The real time in which this clock counts `local`.
    #[must_use]
    pub fn real(&self, local: Duration) -> Duration {
        scale(local, TRUE_RATE, self.0.rate)
    }

    /// The time that this clock counts in `real`.
    #[must_use]
    pub fn local(&self, real: Duration) -> Duration {
        scale(real, self.0.rate, TRUE_RATE)
    }

    /// Local time since the start, without steps and stops.
    fn elapsed(&self) -> Duration {
        self.local(self.0.start.elapsed())
    }
}

impl Clock for SimClock {
    fn monotonic(&self) -> Instant {
        let elapsed = self.elapsed();
        let state = self.0.state.lock();
        let reading = state.stopped.unwrap_or(elapsed);
        Instant::from_epoch(reading.saturating_sub(state.stood))
    }

    fn holder(&self) -> Instant {
        Instant::from_epoch(self.elapsed() + self.0.state.lock().gained)
    }

    fn wall(&self) -> Timestamp {
        let elapsed = i64::try_from(self.elapsed().as_micros()).unwrap_or(i64::MAX);
        let micros = self.0.state.lock().wall.saturating_add(elapsed);
        Timestamp::from_micros(micros).unwrap_or(Timestamp::MAX)
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        let clock = self.clone();
        Box::pin(async move { clock.sleep_in_steps(deadline, Clock::monotonic).await })
    }

    fn sleep_until_holder(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        Box::pin(self.sleep_in_steps(deadline, Clock::holder))
    }
}

impl SimClock {
    async fn sleep_in_steps(&self, deadline: Instant, read: fn(&Self) -> Instant) {
        loop {
            let wait = deadline.since(read(self));
            if wait.is_zero() {
                return;
            }
            // Timers have a grain of a millisecond, and a shorter sleep would be none.
            let sleep_time = self
                .real(wait)
                .min(LONGEST_SLEEP)
                .max(Duration::from_millis(1));
            tokio::time::sleep(sleep_time).await;
        }
    }
}

impl fmt::Debug for SimClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimClock({} ppm)", self.0.rate)
    }
}

fn scale(time: Duration, by: u64, of: u64) -> Duration {
    let nanos = time.as_nanos() * u128::from(by) / u128::from(of);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn each_clock_errs_to_its_own_side() {
        let clock = SimClock::start(900_000, 0);
        tokio::time::sleep(seconds(10)).await;
        assert_eq!(clock.holder(), Instant::from_epoch(seconds(9)));
        clock.step(60_000_000);
        clock.step(-600_000_000);
        assert_eq!(clock.holder(), Instant::from_epoch(seconds(69)));
        assert_eq!(clock.wall().as_micros(), (9 + 60 - 600) * 1_000_000);
        clock.stop(true);
        tokio::time::sleep(seconds(10)).await;
        assert_eq!(clock.monotonic(), Instant::from_epoch(seconds(9)));
        assert_eq!(clock.holder(), Instant::from_epoch(seconds(78)));
        clock.stop(false);
        clock.sleep_until(Instant::from_epoch(seconds(18))).await;
        assert_eq!(clock.monotonic(), Instant::from_epoch(seconds(18)));
        assert_eq!(clock.0.start.elapsed(), seconds(30));
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_wakes_up_soon_after_its_clock_was_set_forward() {
        let clock = SimClock::start(TRUE_RATE, 0);
        let setter = clock.clone();
        tokio::spawn(async move {
            tokio::time::sleep(seconds(5)).await;
            setter.step(3_600_000_000);
        });
        clock
            .sleep_until_holder(Instant::from_epoch(seconds(1000)))
            .await;
        assert!(clock.0.start.elapsed() <= seconds(6));
    }
}
