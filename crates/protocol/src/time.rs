//! Two notions of time, kept apart.
//!
//! [`Instant`] is one process's own clock, for waiting and for stop-watches. [`Timestamp`] is what stands in an
//! object, written by some other machine: it is compared for equality and, within one object, for order, but never
//! with a clock (R4); the end of an operator's word is the exception (R16).

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

/// A reading of the calling process's own clock: the time since an epoch that only this process knows.
///
/// The elector reads CLOCK_MONOTONIC, the holder the larger elapsed time of CLOCK_BOOTTIME and CLOCK_REALTIME ([R9]);
/// both are the shell's affair.
///
/// [R9]: crate::rules#r9
///
/// It reaches 584 years, in nanoseconds; later times are that end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(NonZeroU64); // so that an `Option` takes no more room: an elector keeps ten for each candidate

/// One moment by both clocks of a process that holds, or waits for, a lease ([R9]).
///
/// A process measures its own belief by the clock that ran faster, and the silence of other holders by the one that may
/// stand still: so each error points the safe way. A process whose two clocks are one, as in a test, says
/// [`Moment::same`].
///
/// [R9]: crate::rules#r9
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    /// By the holder's clock, the larger elapsed time of CLOCK_BOOTTIME and CLOCK_REALTIME: how long a belief lasts.
    pub holder: Instant,
    /// By CLOCK_MONOTONIC: how long another holder's record has been seen unchanged.
    pub monotonic: Instant,
}

/// A wire time in microseconds since the Unix epoch, the resolution of MicroTime.
///
/// Always within the years 1 to 9999, the range that the API server reads and writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(NonZeroU64); // one more than the microseconds since `MIN`

/// The microseconds of [`Timestamp::MIN`].
const MIN_MICROS: i64 = -62_135_596_800_000_000;
/// The microseconds of [`Timestamp::MAX`].
const MAX_MICROS: i64 = 253_402_300_799_999_999;

// === impl Instant ===

impl Instant {
    /// The reading `elapsed` after the process's epoch.
    pub const fn from_epoch(elapsed: Duration) -> Self {
        let nanos = elapsed.subsec_nanos() as u64;
        let seconds = elapsed.as_secs().saturating_mul(1_000_000_000);
        Self(NonZeroU64::MIN.saturating_add(seconds.saturating_add(nanos)))
    }

    /// The time since the process's epoch.
    pub const fn since_epoch(self) -> Duration {
        Duration::from_nanos(self.0.get() - 1)
    }

    /// The time since `earlier`, zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// This instant moved into the future; it stays at the end of time rather than overflow.
    #[must_use]
    pub const fn after(self, duration: Duration) -> Self {
        Self::from_epoch(self.since_epoch().saturating_add(duration))
    }

    /// This instant moved into the past, to the process's epoch at most.
    #[must_use]
    pub const fn before(self, duration: Duration) -> Self {
        Self::from_epoch(self.since_epoch().saturating_sub(duration))
    }
}

impl Default for Instant {
    /// The process's epoch.
    fn default() -> Self {
        Self::from_epoch(Duration::ZERO)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instant").field(&self.since_epoch()).finish()
    }
}

// === impl Moment ===

impl Moment {
    /// The moment of a process that has one clock.
    pub const fn same(instant: Instant) -> Self {
        Self {
            holder: instant,
            monotonic: instant,
        }
    }

    /// The reading of the holder's clock at which the monotonic one will show `at`, or some time before: the holder's
    /// clock may run faster, and a process that is woken early looks again.
    #[must_use]
    pub const fn when_monotonic(self, at: Instant) -> Instant {
        self.holder.after(at.since(self.monotonic))
    }
}

// === impl Timestamp ===

impl Timestamp {
    /// 0001-01-01T00:00:00Z.
    pub const MIN: Self = Self(NonZeroU64::MIN);
    /// 9999-12-31T23:59:59.999999Z.
    pub const MAX: Self = Self(NonZeroU64::MIN.saturating_add(MAX_MICROS.abs_diff(MIN_MICROS)));

    /// A time from microseconds since the Unix epoch, `None` outside of the years 1 to 9999.
    pub const fn from_micros(micros: i64) -> Option<Self> {
        if micros < MIN_MICROS || micros > MAX_MICROS {
            return None;
        }
        Some(Self(
            NonZeroU64::MIN.saturating_add(micros.abs_diff(MIN_MICROS)),
        ))
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        MIN_MICROS.saturating_add_unsigned(self.0.get() - 1)
    }

    /// One microsecond later, the smallest step that the wire shows; `None` at the end of year 9999.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        Self::from_micros(self.as_micros() + 1)
    }

    /// `now`, or one microsecond beside `previous` where the two are equal ([R11]): it must differ, it need not grow.
    ///
    /// [R11]: crate::rules#r11
    #[must_use]
    pub fn differing_from(self, previous: Option<Self>) -> Self {
        if previous != Some(self) {
            return self;
        }
        self.next()
            .or(Self::from_micros(self.as_micros() - 1))
            .unwrap_or(self)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Timestamp").field(&self.as_micros()).finish()
    }
}

impl fmt::Display for Timestamp {
    /// Microseconds since the epoch; the API crate knows the calendar.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}µs", self.as_micros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewal_differs_even_at_the_end_of_time() {
        let end = Timestamp::MAX;
        assert_ne!(end.differing_from(Some(end)), end);
        let now = Timestamp::from_micros(5).unwrap();
        assert_eq!(now.differing_from(Timestamp::from_micros(9)), now);
        assert_eq!(now.differing_from(Some(now)), now.next().unwrap());
    }

    #[test]
    fn stop_watches_never_run_backwards() {
        let early = Instant::from_epoch(Duration::from_secs(1));
        let late = early.after(Duration::MAX);
        assert_eq!(early.since(late), Duration::ZERO);
        assert!(late.since(early) > Duration::from_secs(500 * 365 * 86_400));
        assert_eq!(late, Instant::from_epoch(Duration::MAX));
        assert_eq!(format!("{early:?}"), "Instant(1s)");
    }

    #[test]
    fn a_wire_time_reads_as_it_was_given() {
        for micros in [MIN_MICROS, -1, 0, 1, MAX_MICROS] {
            assert_eq!(Timestamp::from_micros(micros).unwrap().as_micros(), micros);
        }
        assert_eq!(Timestamp::from_micros(MIN_MICROS), Some(Timestamp::MIN));
        assert_eq!(Timestamp::from_micros(MAX_MICROS), Some(Timestamp::MAX));
        assert_eq!(Timestamp::from_micros(MIN_MICROS - 1), None);
        assert_eq!(Timestamp::from_micros(MAX_MICROS + 1), None);
        let early = Timestamp::from_micros(-5).unwrap();
        assert_eq!(format!("{early} {early:?}"), "-5µs Timestamp(-5)");
    }
}
