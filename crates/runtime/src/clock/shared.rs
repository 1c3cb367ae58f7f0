//! An instant of the holder's clock, passed to another process on the same machine.

use std::time::Duration;

use elector_protocol::Instant;
use serde::{Deserialize, Serialize};

use super::{Clock as _, HolderReading, SystemClock};

/// An instant of a holder's clock as readings of the machine's own clocks, for another process on that machine.
///
/// It has come as soon as *one* of the two clocks shows its reading: so the process that is told waits no longer than the
/// one that tells, whatever happens to the time of day in between, and however long either is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedInstant {
    /// The reading of CLOCK_BOOTTIME then.
    boot: Duration,
    /// The reading of CLOCK_REALTIME then.
    wall: Duration,
}

// === impl SystemClock ===

impl SystemClock {
    /// An instant of [`Clock::holder`](super::Clock::holder) of this process, to be passed to another one.
    pub fn share(&self, instant: Instant) -> SharedInstant {
        SharedInstant::of(instant, self.holder_reading())
    }

    /// An instant that another process has reported, on [`Clock::holder`](super::Clock::holder) of this one. One before the
    /// start of this clock becomes that start.
    pub fn adopt(&self, shared: SharedInstant) -> Instant {
        shared.on(self.holder_reading())
    }
}

// === impl SharedInstant ===

impl SharedInstant {
    /// The time until then, in any process on the machine. Zero once it has come.
    pub fn remaining(&self) -> Duration {
        let clock = SystemClock::start();
        clock.adopt(*self).since(clock.holder())
    }

    fn of(instant: Instant, now: HolderReading) -> Self {
        // It may have passed already.
        let then = |clock: Duration| {
            let later = clock.saturating_add(instant.since_epoch());
            later.saturating_sub(now.elapsed.since_epoch())
        };
        Self {
            boot: then(now.boot),
            wall: then(now.wall),
        }
    }

    fn on(self, now: HolderReading) -> Instant {
        let by = |then: Duration, clock: Duration| {
            let later = then.saturating_add(now.elapsed.since_epoch());
            Instant::from_epoch(later.saturating_sub(clock))
        };
        by(self.boot, now.boot).min(by(self.wall, now.wall))
    }
}

#[cfg(test)]
mod tests {
    use super::super::HolderClock;
    use super::*;

    fn started(boot: u64, wall: u64) -> HolderClock {
        HolderClock::start(Duration::from_secs(boot), Duration::from_secs(wall))
    }

    fn at(clock: &mut HolderClock, boot: u64, wall: u64) -> HolderReading {
        clock.reading(Duration::from_secs(boot), Duration::from_secs(wall))
    }

    fn instant(elapsed: u64) -> Instant {
        Instant::from_epoch(Duration::from_secs(elapsed))
    }

    #[test]
    fn both_processes_count_to_the_same_moment() {
        let (mut teller, mut told) = (started(100, 5000), started(107, 5007));
        let shared = SharedInstant::of(instant(20), at(&mut teller, 110, 5010));
        // Twenty seconds after 100 are thirteen after 107, whenever the message is read.
        assert_eq!(shared.on(at(&mut told, 111, 5011)), instant(13));
        assert_eq!(shared.on(at(&mut told, 140, 5040)), instant(13));
    }

    #[test]
    fn a_time_of_day_that_is_set_in_between_brings_the_moment_nearer_or_does_nothing() {
        let shared = SharedInstant::of(instant(20), at(&mut started(100, 5000), 110, 5010));
        let left = |wall: u64| {
            let now = at(&mut started(100, 5000), 112, wall);
            shared.on(now).since(now.elapsed).as_secs()
        };
        assert_eq!(left(5012), 8);
        assert_eq!(left(5016), 4, "set forward by four seconds");
        assert_eq!(left(1000), 8, "set back");
    }

    /// The gain of one process from a time of day that was set forward is not passed on.
    #[test]
    fn each_process_counts_for_itself_how_far_the_time_of_day_was_set_forward() {
        let (mut teller, mut told) = (started(100, 5000), started(100, 5000));
        // Forward by an hour and back again, which the other has not seen.
        at(&mut teller, 101, 8601);
        let now = at(&mut teller, 102, 5002);
        assert_eq!(now.elapsed, instant(3602));
        let shared = SharedInstant::of(instant(3612), now);
        assert_eq!(shared.on(at(&mut told, 103, 5003)), instant(12));
    }

    #[test]
    fn an_instant_of_one_clock_is_as_far_away_for_another_one() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        let teller = SystemClock::start();
        let shared = teller.share(teller.holder().after(hour));
        let told = SystemClock::start();
        let left = told.adopt(shared).since(told.holder());
        for left in [left, shared.remaining()] {
            assert!(hour - minute < left && left <= hour, "{left:?}");
        }
        assert_eq!(teller.share(teller.holder()).remaining(), Duration::ZERO);
    }

    #[test]
    fn what_has_passed_stays_passed() {
        let shared = SharedInstant::of(instant(20), at(&mut started(100, 5000), 160, 5060));
        let now = at(&mut started(150, 5050), 161, 5061);
        assert_eq!(shared.on(now), instant(0));
    }
}
