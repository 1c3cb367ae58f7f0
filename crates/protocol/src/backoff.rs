//! The pause between failed attempts: doubling, capped, forgotten on success.

use std::time::Duration;

use crate::renumber::renumber;
use crate::time::Instant;

/// The failed attempts in a row, and when the next may start.
///
/// Failures stop counting where the pause stops growing, so that equal behaviour is an equal state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RetryBackoff {
    failures: u8,
    /// True if the last failure was a conflict.
    conflict: bool,
    /// The writes in a row that lost a race.
    lost_races: u8,
    until: Option<Instant>,
}

/// The most writes of one author to one Lease under way at a time: one, and those before it that the watch has shown to be
/// lost ([R2](crate::rules#r2)).
pub const MOST_WRITES_UNDER_WAY: usize = 4;

/// The writes in a row that may lose a race before a pause.
const RACES: u8 = 10;
/// That pause. Each race that is lost answers a write of another, so those who write the most pay for it.
const AFTER_RACES: Duration = Duration::from_millis(10);

// === impl RetryBackoff ===

impl RetryBackoff {
    /// Counts a failure and pauses: `first` after the first one, doubling up to `longest`.
    pub fn fail(&mut self, now: Instant, first: Duration, longest: Duration) {
        let pause = first
            .saturating_mul(1 << self.failures.min(30))
            .min(longest);
        if pause < longest {
            self.failures += 1;
        }
        self.conflict = false;
        self.lost_races = 0;
        self.until = Some(now.after(pause));
    }

    /// Counts a conflict, which says "look again": it costs no pause, unless it follows another one.
    pub(crate) fn conflict(&mut self, now: Instant, first: Duration, longest: Duration) {
        if self.conflict {
            self.fail(now, first, longest);
        } else {
            self.failures = self.failures.max(1);
            self.until = None;
        }
        self.conflict = true;
    }

    /// Counts a write that another one came before. The server is well, so the next one follows at once, and only each
    /// tenth in a row after a pause, which does not grow.
    pub fn lose_race(&mut self, now: Instant) {
        self.failures = self.failures.max(1);
        self.lost_races = self.lost_races % RACES + 1;
        self.until = (self.lost_races == RACES).then(|| now.after(AFTER_RACES));
    }

    /// True if the last attempt lost a race.
    pub(crate) fn has_lost_race(&self) -> bool {
        self.lost_races > 0
    }

    /// Forgets every failure.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// When the next attempt may start, `None` for at once.
    pub fn pause(&mut self, now: Instant) -> Option<Instant> {
        self.until = self.until.filter(|until| *until > now);
        self.until
    }

    /// True if a pause has ended within that time, so that this is the next attempt.
    pub(crate) fn has_just_ended(&self, now: Instant, within: Duration) -> bool {
        self.until
            .is_some_and(|until| until <= now && now <= until.after(within))
    }

    /// True if the last attempt failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.failures > 0
    }
}

renumber!(RetryBackoff { until, lost_races => lost_races });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_their_cap_and_equal_pauses_are_equal_states() {
        let (first, longest) = (Duration::from_millis(250), Duration::from_secs(2));
        let now = Instant::default();
        let mut backoff = RetryBackoff::default();
        let mut pauses = Vec::new();
        for _ in 0..5 {
            backoff.fail(now, first, longest);
            pauses.push(backoff.pause(now).unwrap().since(now).as_millis());
        }
        assert_eq!(pauses, [250, 500, 1000, 2000, 2000]);
        let before = backoff.clone();
        backoff.fail(now, first, longest);
        assert_eq!(backoff, before);
        assert_eq!(backoff.pause(now.after(longest)), None);
        backoff.reset();
        assert_eq!(backoff, RetryBackoff::default());
    }

    #[test]
    fn one_conflict_is_free_and_the_next_is_not() {
        let (first, longest) = (Duration::from_millis(250), Duration::from_secs(2));
        let now = Instant::default();
        let mut backoff = RetryBackoff::default();
        backoff.conflict(now, first, longest);
        assert_eq!(backoff.pause(now), None);
        assert!(backoff.is_failing());
        backoff.conflict(now, first, longest);
        assert_eq!(backoff.pause(now), Some(now.after(first * 2)));
        backoff.fail(now, first, longest);
        backoff.conflict(now, first, longest);
        assert_eq!(backoff.pause(now), None);
    }

    #[test]
    fn each_tenth_lost_race_in_a_row_costs_a_pause_that_does_not_grow() {
        let now = Instant::default();
        let mut backoff = RetryBackoff::default();
        for race in 1..=30 {
            backoff.lose_race(now);
            assert!(backoff.is_failing() && backoff.has_lost_race());
            let costs = (race % 10 == 0).then(|| now.after(Duration::from_millis(10)));
            assert_eq!(backoff.pause(now), costs, "{race}");
        }
        backoff.lose_race(now);
        backoff.reset();
        assert!(!backoff.has_lost_race());
    }
}
