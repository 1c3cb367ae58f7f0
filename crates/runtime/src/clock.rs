//! The three clocks of a process, read through one value so that tests and simulation can pass their own.
//!
//! | reading | clock | may err towards | used for |
//! |---|---|---|---|
//! | [`Clock::monotonic`] | CLOCK_MONOTONIC, which stops during suspend | taking over late | the elector's stop-watches (R4) |
//! | [`Clock::holder`] | CLOCK_BOOTTIME, and CLOCK_REALTIME where that ran ahead | stepping down early | a holder's belief (R9) |
//! | [`Clock::wall`] | CLOCK_REALTIME | anything | times that are written, never compared with others' |

mod shared;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use elector_protocol::{Instant, Moment, Timestamp};
use futures::future::BoxFuture;
#[cfg(unix)]
use rustix::time::{ClockId, Timespec, clock_gettime};

pub use self::shared::SharedInstant;

/// The clocks of one process.
pub trait Clock: Send + Sync + 'static {
    /// The elector's clock. Errs to the late side: it stops while the machine is suspended.
    fn monotonic(&self) -> Instant;

    /// The holder's clock. Between two readings it advances by no less than CLOCK_BOOTTIME and CLOCK_REALTIME do.
    fn holder(&self) -> Instant;

    /// Both of them at once.
    fn moment(&self) -> Moment {
        Moment {
            holder: self.holder(),
            monotonic: self.monotonic(),
        }
    }

    /// The time of day in whole microseconds, so that what is written reads back equal.
    fn wall(&self) -> Timestamp;

    /// Waits until [`Self::monotonic`] has reached `deadline`.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()>;

    /// Waits until [`Self::holder`] has reached `deadline`; after a suspend, within a second of waking up.
    fn sleep_until_holder(&self, deadline: Instant) -> BoxFuture<'_, ()>;
}

/// The readings of a machine's clocks, each since an epoch of its own, and its timers.
pub trait ClockSource: Clone + Send + Sync + 'static {
    /// CLOCK_MONOTONIC.
    fn monotonic(&self) -> Duration;

    /// CLOCK_BOOTTIME.
    fn boottime(&self) -> Duration;

    /// CLOCK_REALTIME, since 1970.
    fn realtime(&self) -> Duration;

    /// Waits for this time, by timers that may stop during suspend.
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// The clocks of this machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineClocks;

/// A machine's clocks. Both instants count from the moment this value was made.
#[derive(Debug)]
pub struct SystemClock<S = MachineClocks> {
    source: S,
    monotonic_epoch: Duration,
    holder: Mutex<HolderClock>,
}

/// Clocks that follow `tokio::time`, which tests pause and advance. All three run at the same rate.
#[derive(Debug)]
pub struct TokioClock {
    epoch: tokio::time::Instant,
    wall_at_epoch: Timestamp,
}

/// Elapsed holder time, out of two clocks that are read together.
#[derive(Debug)]
struct HolderClock {
    boot_epoch: Duration,
    /// The lead of the time of day over CLOCK_BOOTTIME when it was last seen to have been set, in nanoseconds.
    ahead: i128,
    /// The gain of the time of day over CLOCK_BOOTTIME by being set forward, all in all.
    gained: Duration,
}

/// The two clocks of a holder, read together, and what they make of its own.
#[derive(Clone, Copy, Debug)]
struct HolderReading {
    boot: Duration,
    wall: Duration,
    elapsed: Instant,
}

/// Both clocks are disciplined alike, so their distance changes only when the time of day is set. Below this it is
/// the time between the two readings.
const NOISE: i128 = 1_000_000;

/// The longest sleep of a holder's timer before it looks at the clock again: timers stop during suspend.
const NAP: Duration = Duration::from_secs(1);

// === impl MachineClocks ===

impl ClockSource for MachineClocks {
    fn monotonic(&self) -> Duration {
        read(ClockId::Monotonic)
    }

    fn boottime(&self) -> Duration {
        read(BOOTTIME)
    }

    fn realtime(&self) -> Duration {
        read(ClockId::Realtime)
    }

    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(time)
    }
}

// === impl SystemClock ===

impl SystemClock {
    /// Starts the clocks of this process.
    pub fn start() -> Self {
        Self::over(MachineClocks)
    }
}

impl<S: ClockSource> SystemClock<S> {
    /// Starts the clocks of a process on the machine of these readings.
    pub fn over(source: S) -> Self {
        Self {
            monotonic_epoch: source.monotonic(),
            holder: Mutex::new(HolderClock::start(source.boottime(), source.realtime())),
            source,
        }
    }

    fn holder_reading(&self) -> HolderReading {
        // A poisoned lock holds a valid state: every update is a single assignment.
        let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        holder.reading(self.source.boottime(), self.source.realtime())
    }
}

impl<S: ClockSource> Clock for SystemClock<S> {
    fn monotonic(&self) -> Instant {
        Instant::from_epoch(self.source.monotonic().saturating_sub(self.monotonic_epoch))
    }

    fn holder(&self) -> Instant {
        self.holder_reading().elapsed
    }

    fn wall(&self) -> Timestamp {
        let micros = i64::try_from(self.source.realtime().as_micros()).ok();
        micros
            .and_then(Timestamp::from_micros)
            .unwrap_or(Timestamp::MAX)
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        let source = self.source.clone();
        let deadline = self.monotonic_epoch.saturating_add(deadline.since_epoch());
        Box::pin(async move {
            // Timers stop with this clock as a rule, so that one sleep is enough.
            while let wait = deadline.saturating_sub(source.monotonic())
                && !wait.is_zero()
            {
                source.sleep(wait).await;
            }
        })
    }

    fn sleep_until_holder(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            while let wait = deadline.since(self.holder())
                && !wait.is_zero()
            {
                self.source.sleep(wait.min(NAP)).await;
            }
        })
    }
}

// === impl TokioClock ===

impl TokioClock {
    /// Clocks that start now, with this time of day.
    pub fn start(wall: Timestamp) -> Self {
        Self {
            epoch: tokio::time::Instant::now(),
            wall_at_epoch: wall,
        }
    }
}

impl Clock for TokioClock {
    fn monotonic(&self) -> Instant {
        Instant::from_epoch(self.epoch.elapsed())
    }

    fn holder(&self) -> Instant {
        self.monotonic()
    }

    fn wall(&self) -> Timestamp {
        let elapsed = i64::try_from(self.epoch.elapsed().as_micros()).unwrap_or(i64::MAX);
        let micros = self.wall_at_epoch.as_micros().saturating_add(elapsed);
        Timestamp::from_micros(micros).unwrap_or(Timestamp::MAX)
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<'static, ()> {
        let wait = deadline.since(self.monotonic());
        Box::pin(tokio::time::sleep(wait))
    }

    fn sleep_until_holder(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        self.sleep_until(deadline)
    }
}

// === impl HolderClock ===

impl HolderClock {
    fn start(boot: Duration, wall: Duration) -> Self {
        Self {
            boot_epoch: boot,
            ahead: distance(wall, boot),
            gained: Duration::ZERO,
        }
    }

    fn reading(&mut self, boot: Duration, wall: Duration) -> HolderReading {
        HolderReading {
            boot,
            wall,
            elapsed: self.elapsed(boot, wall),
        }
    }

    /// A time of day that was set forward adds what it gained; one that was set back takes nothing away, and starts
    /// counting anew. So no interval is ever shorter than either clock says, which a mere maximum of the two would
    /// not give: after a step forward and back it would run backwards.
    fn elapsed(&mut self, boot: Duration, wall: Duration) -> Instant {
        let ahead = distance(wall, boot);
        let gain = ahead - self.ahead;
        if gain.abs() > NOISE {
            self.ahead = ahead;
            let nanos = u64::try_from(gain.max(0)).unwrap_or(u64::MAX);
            self.gained = self.gained.saturating_add(Duration::from_nanos(nanos));
        }
        let elapsed = boot.saturating_sub(self.boot_epoch);
        Instant::from_epoch(elapsed.saturating_add(self.gained))
    }
}

#[cfg(target_os = "linux")]
const BOOTTIME: ClockId = ClockId::Boottime;
// Elsewhere the time of day has to notice a suspend.
#[cfg(not(target_os = "linux"))]
const BOOTTIME: ClockId = ClockId::Monotonic;

/// A reading since the clock's own epoch, zero before it.
#[cfg(unix)]
fn read(clock: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    let nanos = u32::try_from(tv_nsec).unwrap_or(0);
    u64::try_from(tv_sec).map_or(Duration::ZERO, |seconds| Duration::new(seconds, nanos))
}

/// The clocks of a system that is no Unix, on which nothing leads: the plugin of kubectl asks for the time of day.
#[cfg(not(unix))]
#[derive(Clone, Copy, Debug)]
enum ClockId {
    Monotonic,
    Realtime,
}

#[cfg(not(unix))]
fn read(clock: ClockId) -> Duration {
    use std::sync::LazyLock;
    use std::time::{Instant, SystemTime};

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    match clock {
        ClockId::Monotonic => START.elapsed(),
        ClockId::Realtime => {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            since.unwrap_or_default()
        }
    }
}

fn distance(left: Duration, right: Duration) -> i128 {
    let nanos = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX);
    nanos(left).saturating_sub(nanos(right))
}

#[cfg(test)]
mod suspend;
#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_holder_counts_the_clock_that_ran_faster() {
        let mut clock = HolderClock::start(seconds(100), seconds(5000));
        let mut at = |boot, wall| clock.elapsed(seconds(boot), seconds(wall)).since_epoch();
        assert_eq!(at(110, 5010), seconds(10));
        // Set forward by an hour: the belief that was to end in ten seconds has ended.
        assert_eq!(at(111, 8611), seconds(3611));
        // Set back again: nothing is taken away, and nothing runs backwards.
        assert_eq!(at(112, 5012), seconds(3612));
        // A second step forward counts in full.
        assert_eq!(at(113, 5023), seconds(3623));
        // Suspended: both clocks ran on.
        assert_eq!(at(213, 5123), seconds(3723));
    }

    #[test]
    fn reading_twice_does_not_make_the_holder_clock_gain() {
        let mut clock = HolderClock::start(seconds(1), seconds(1));
        for turn in 0..1000 {
            let jitter = Duration::from_micros(turn % 2 * 900);
            clock.elapsed(seconds(2), seconds(2) + jitter);
        }
        let expected = Instant::from_epoch(seconds(1));
        assert_eq!(clock.elapsed(seconds(2), seconds(2)), expected);
    }

    #[test]
    fn slow_drift_is_not_lost_in_the_noise() {
        let mut clock = HolderClock::start(seconds(0), seconds(0));
        let mut last = Instant::default();
        for turn in 1..=1000u64 {
            last = clock.elapsed(seconds(turn), Duration::from_micros(turn * 1_000_500));
        }
        let real = Duration::from_micros(1000 * 1_000_500);
        let holds = real.saturating_sub(last.since_epoch()) <= Duration::from_millis(1);
        assert!(holds, "{last:?}");
    }

    #[tokio::test]
    async fn the_machine_has_these_clocks() {
        let clock = SystemClock::start();
        let (monotonic, holder, wall) = (clock.monotonic(), clock.holder(), clock.wall());
        let deadline = holder.after(Duration::from_millis(20));
        clock.sleep_until_holder(deadline).await;
        assert!(clock.holder() >= deadline);
        clock
            .sleep_until(monotonic.after(Duration::from_millis(30)))
            .await;
        assert!(clock.monotonic().since(monotonic) >= Duration::from_millis(30));
        let without_suspends = MachineClocks.monotonic();
        assert!(MachineClocks.boottime() >= without_suspends);
        // 2025 was over when this was written.
        assert!(wall.as_micros() > 1_767_225_600_000_000);
    }

    #[tokio::test(start_paused = true)]
    async fn virtual_clocks_follow_paused_time() {
        let noon = Timestamp::from_micros(43_200_000_000).unwrap();
        let clock = TokioClock::start(noon);
        let deadline = clock.monotonic().after(seconds(3600));
        clock.sleep_until(deadline).await;
        assert_eq!((clock.monotonic(), clock.holder()), (deadline, deadline));
        assert_eq!(clock.wall().as_micros(), 46_800_000_000);
        clock.sleep_until_holder(deadline.after(seconds(2))).await;
        assert_eq!(clock.holder(), deadline.after(seconds(2)));
    }
}
