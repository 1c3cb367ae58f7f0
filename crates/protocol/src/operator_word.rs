//! What operators say of a lease, by annotations on it (R16).

use std::time::Duration;

use crate::names::Identity;
use crate::time::Timestamp;

/// An operator's word on one Lease. Each part counts until its time, by the wall clock of the elector that judges it
/// ([R16](crate::rules#r16)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OperatorWord {
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

// === impl OperatorWord ===

impl OperatorWord {
    /// How much longer no live leader makes room; `None` where the lease is not frozen at `wall`.
    pub fn frozen_for(&self, wall: Timestamp) -> Option<Duration> {
        remaining(self.freeze?, wall)
    }

    /// The candidate that goes before all others at `wall`, and for how much longer.
    pub fn preferred_for(&self, wall: Timestamp) -> Option<(&Identity, Duration)> {
        let preference = self.prefer.as_deref()?;
        Some((&preference.candidate, remaining(preference.until, wall)?))
    }
}

/// The time from `wall` to `until`, `None` where that is over.
fn remaining(until: Timestamp, wall: Timestamp) -> Option<Duration> {
    let micros = until.as_micros().saturating_sub(wall.as_micros());
    let micros = u64::try_from(micros).ok().filter(|micros| *micros > 0)?;
    Some(Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_counts_until_its_time_and_not_at_it() {
        let at = |micros| Timestamp::from_micros(micros).unwrap();
        let candidate = Identity::new("a").unwrap();
        let until = at(10);
        let prefer = OperatorPreference {
            candidate: candidate.clone(),
            until,
        };
        let word = OperatorWord {
            freeze: Some(until),
            prefer: Some(Box::new(prefer)),
        };
        let left = Duration::from_micros(1);
        assert_eq!(word.frozen_for(at(9)), Some(left));
        assert_eq!(word.preferred_for(at(9)), Some((&candidate, left)));
        for late in [at(10), at(11), Timestamp::MAX] {
            assert_eq!(word.frozen_for(late), None);
            assert_eq!(word.preferred_for(late), None);
        }
        assert!(word.frozen_for(Timestamp::MIN).is_some());
    }
}
