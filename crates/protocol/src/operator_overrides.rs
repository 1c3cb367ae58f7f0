//! Operators' overrides of a lease and of its candidates: their words, by annotations (R16).

use std::time::Duration;

use crate::names::Identity;
use crate::time::{Instant, Timestamp};

/// An operator's words on one Lease. Each of them counts until its time, by the wall clock of the elector that judges it
/// ([R16](crate::rules#r16)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperatorOverrides {
    /// Annotation `elector.dev/freeze`: until when no live leader makes room.
    pub freeze: Option<Timestamp>,
    /// Annotation `elector.dev/prefer`: the candidate that is to lead.
    // Most leases have none, and each revision of a Lease carries this.
    pub prefer: Option<Box<OperatorPreference>>,
}

/// The candidate that an operator wants to lead, for a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperatorPreference {
    /// The candidate. It need not exist.
    pub candidate: Identity,
    /// Until when it goes before all others.
    pub until: Timestamp,
}

/// An operator's word on one candidate: it is not to lead. Annotation `elector.dev/stand-down`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StandDown {
    /// Until that time.
    Until(Timestamp),
    /// `true`: for [`LONGEST_OVERRIDE`] from when a process first saw it.
    Untimed,
}

/// Why a word that can be read does not count now. `Display` is a fragment that follows the word and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum OutOfTime {
    /// It is over.
    #[error("is over")]
    Over,
    /// It ends later than [`LONGEST_OVERRIDE`] from now.
    #[error("is more than a day ahead")]
    TooFarAhead,
}

/// The longest time until a word's end: a day. An admission policy has no clock, so a word that would outlive all
/// who know of it is refused by those who read it.
pub const LONGEST_OVERRIDE: Duration = Duration::from_secs(24 * 60 * 60);

// === impl OperatorOverrides ===

impl OperatorOverrides {
    /// The time left in which no live leader makes room; `None` where the lease is not frozen at `wall`.
    pub fn frozen_for(&self, wall: Timestamp) -> Option<Duration> {
        remaining(self.freeze?, wall).ok()
    }

    /// The candidate that goes before all others at `wall`, and for how much longer.
    pub fn preferred_for(&self, wall: Timestamp) -> Option<(&Identity, Duration)> {
        let preference = self.prefer.as_deref()?;
        let remaining = remaining(preference.until, wall).ok()?;
        Some((&preference.candidate, remaining))
    }
}

// === impl StandDown ===

impl StandDown {
    /// The time left of a stand-down at `now`, which is `wall` by the wall clock, by a word that this process
    /// first saw at `since`.
    ///
    /// # Errors
    ///
    /// Why it does not count.
    pub fn remaining(
        self,
        since: Instant,
        now: Instant,
        wall: Timestamp,
    ) -> Result<Duration, OutOfTime> {
        match self {
            Self::Until(until) => remaining(until, wall),
            Self::Untimed => match LONGEST_OVERRIDE.saturating_sub(now.since(since)) {
                Duration::ZERO => Err(OutOfTime::Over),
                left => Ok(left),
            },
        }
    }
}

/// The time from `wall` to `until`, where a word counts that ends then.
pub(crate) fn remaining(until: Timestamp, wall: Timestamp) -> Result<Duration, OutOfTime> {
    let micros = until.as_micros().saturating_sub(wall.as_micros());
    match Duration::from_micros(u64::try_from(micros).unwrap_or_default()) {
        Duration::ZERO => Err(OutOfTime::Over),
        left if left > LONGEST_OVERRIDE => Err(OutOfTime::TooFarAhead),
        left => Ok(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros).unwrap()
    }

    #[test]
    fn a_word_counts_for_the_day_before_its_time_and_not_at_it() {
        let candidate = Identity::new("a").unwrap();
        let until = at(10);
        let prefer = OperatorPreference {
            candidate: candidate.clone(),
            until,
        };
        let overrides = OperatorOverrides {
            freeze: Some(until),
            prefer: Some(Box::new(prefer)),
        };
        let stand_down = |wall| {
            let early = Instant::default();
            StandDown::Until(until).remaining(early, early, wall)
        };
        for (wall, left) in [(at(9), 1), (at(10 - DAY), DAY)] {
            let left = Duration::from_micros(left.unsigned_abs());
            assert_eq!(overrides.frozen_for(wall), Some(left));
            assert_eq!(overrides.preferred_for(wall), Some((&candidate, left)));
            assert_eq!(stand_down(wall), Ok(left));
        }
        for (wall, why) in [
            (at(10), OutOfTime::Over),
            (at(11), OutOfTime::Over),
            (Timestamp::MAX, OutOfTime::Over),
            (at(9 - DAY), OutOfTime::TooFarAhead),
            (Timestamp::MIN, OutOfTime::TooFarAhead),
        ] {
            assert_eq!(overrides.frozen_for(wall), None);
            assert_eq!(overrides.preferred_for(wall), None);
            assert_eq!(stand_down(wall), Err(why));
        }
    }

    #[test]
    fn what_stands_down_without_a_time_does_for_a_day() {
        let since = Instant::from_epoch(Duration::from_secs(7));
        let after = |passed| StandDown::Untimed.remaining(since, since.after(passed), at(0));
        let moment = Duration::from_nanos(1);
        assert_eq!(after(Duration::ZERO), Ok(LONGEST_OVERRIDE));
        assert_eq!(after(LONGEST_OVERRIDE - moment), Ok(moment));
        assert_eq!(after(LONGEST_OVERRIDE), Err(OutOfTime::Over));
    }
}
