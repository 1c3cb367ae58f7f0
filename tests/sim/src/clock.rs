//! The clocks of one simulated process: a rate, an offset, steps of the time of day, and suspension.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use elector_runtime::{ClockSource, SystemClock};
use parking_lot::Mutex;
use tokio::time::Instant as Real;

/// The production clocks of a process, over readings that run on tokio's time at a rate of their own.
#[derive(Clone)]
pub struct SimClock {
    readings: SimReadings,
    production: Arc<SystemClock<SimReadings>>,
}

/// The readings of a simulated machine. CLOCK_MONOTONIC can be stopped, as while a machine is suspended.
#[derive(Clone)]
pub struct SimReadings(Arc<ReadingParts>);

struct ReadingParts {
    start: Real,
    /// Their rate, in millionths of real time.
    rate: u64,
    state: Mutex<ReadingState>,
}

struct ReadingState {
    /// The time of day at the start plus all steps, in microseconds.
    wall: i64,
    /// The standstill of CLOCK_MONOTONIC so far, in its own time.
    stood: Duration,
    /// The reading at which it was stopped, while it is.
    stopped: Option<Duration>,
}

/// The rate of real time.
pub const TRUE_RATE: u64 = 1_000_000;

// === impl SimClock ===

impl SimClock {
    /// Clocks that start now, run at `rate` millionths of real time, and show this time of day.
    #[must_use]
    pub fn start(rate: u64, wall_micros: i64) -> Self {
        let state = ReadingState {
            wall: wall_micros,
            stood: Duration::ZERO,
            stopped: None,
        };
        let readings = SimReadings(Arc::new(ReadingParts {
            start: Real::now(),
            rate,
            state: Mutex::new(state),
        }));
        let production = Arc::new(SystemClock::over(readings.clone()));
        Self {
            readings,
            production,
        }
    }

    /// The clocks for the production code.
    #[must_use]
    pub fn production(&self) -> Arc<SystemClock<SimReadings>> {
        Arc::clone(&self.production)
    }

    /// Its rate, in millionths of real time.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.readings.0.rate
    }

    /// Sets the time of day forward or back by this number of microseconds.
    pub fn step(&self, micros: i64) {
        let mut state = self.readings.0.state.lock();
        state.wall = state.wall.saturating_add(micros);
    }

    /// Stops the elector's clock, or lets it go on from where it stood.
    pub fn stop(&self, stopped: bool) {
        let elapsed = self.readings.boottime();
        let mut state = self.readings.0.state.lock();
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
        scale(local, TRUE_RATE, self.rate())
    }

    /// The time that this clock counts in `real`.
    #[must_use]
    pub fn local(&self, real: Duration) -> Duration {
        scale(real, self.rate(), TRUE_RATE)
    }
}

impl Deref for SimClock {
    type Target = SystemClock<SimReadings>;

    fn deref(&self) -> &Self::Target {
        &self.production
    }
}

impl fmt::Debug for SimClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimClock({} ppm)", self.rate())
    }
}

// === impl SimReadings ===

impl ClockSource for SimReadings {
    fn monotonic(&self) -> Duration {
        let elapsed = self.boottime();
        let state = self.0.state.lock();
        state.stopped.unwrap_or(elapsed).saturating_sub(state.stood)
    }

    fn boottime(&self) -> Duration {
        scale(self.0.start.elapsed(), self.0.rate, TRUE_RATE)
    }

    fn realtime(&self) -> Duration {
        let elapsed = i64::try_from(self.boottime().as_micros()).unwrap_or(i64::MAX);
        let micros = self.0.state.lock().wall.saturating_add(elapsed);
        Duration::from_micros(u64::try_from(micros).unwrap_or_default())
    }

    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send {
        // Timers have a grain of a millisecond, and a shorter sleep would be none.
        let real = scale(time, TRUE_RATE, self.0.rate);
        tokio::time::sleep(real.max(Duration::from_millis(1)))
    }
}

fn scale(time: Duration, by: u64, of: u64) -> Duration {
    let nanos = time.as_nanos() * u128::from(by) / u128::from(of);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use elector_protocol::Instant;
    use elector_runtime::Clock as _;

    use super::*;
    use crate::names::EPOCH;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn each_clock_errs_to_its_own_side() {
        let (clock, start) = (SimClock::start(900_000, EPOCH), Real::now());
        tokio::time::sleep(seconds(10)).await;
        assert_eq!(clock.holder(), Instant::from_epoch(seconds(9)));
        clock.step(60_000_000);
        assert_eq!(clock.holder(), Instant::from_epoch(seconds(69)));
        clock.step(-600_000_000);
        assert_eq!(clock.holder(), Instant::from_epoch(seconds(69)));
        assert_eq!(clock.wall().as_micros(), EPOCH + (9 + 60 - 600) * 1_000_000);
        clock.stop(true);
        tokio::time::sleep(seconds(10)).await;
        assert_eq!(clock.monotonic(), Instant::from_epoch(seconds(9)));
        assert_eq!(clock.holder(), Instant::from_epoch(seconds(78)));
        clock.stop(false);
        clock.sleep_until(Instant::from_epoch(seconds(18))).await;
        assert_eq!(clock.monotonic(), Instant::from_epoch(seconds(18)));
        assert_eq!(start.elapsed(), seconds(30));
    }
}
