//! Words of operators on a lease and on its candidates that do not count (R16).

use crate::elector::ranking::RankedCandidate;
use crate::elector::state::Election;
use crate::names::Identity;
use crate::operator_overrides::{
    OperatorOverrides, OperatorPreference, OutOfTime, StandDown, remaining,
};
use crate::time::{Instant, Timestamp};

/// A part of an operator's word that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IgnoredOverride {
    /// The freeze is over, or its end is too far ahead.
    Freeze {
        /// When it ends.
        until: Timestamp,
        /// Why it does not count.
        why: OutOfTime,
    },
    /// The preference is over, or its end is too far ahead.
    Preference(OperatorPreference, OutOfTime),
    /// No eligible candidate has that name.
    NotEligible(OperatorPreference),
    /// A candidate was to stand down, which is over, or the end of it is too far ahead.
    StandDown {
        /// The candidate.
        candidate: Identity,
        /// Until when.
        until: Timestamp,
        /// Why it does not count.
        why: OutOfTime,
    },
}

// === impl IgnoredOverride ===

impl IgnoredOverride {
    /// The part of an operator's word on the lease that counts at `wall`, and the rest.
    pub(super) fn split(
        said: &OperatorOverrides,
        wall: Timestamp,
        candidates: &[RankedCandidate],
    ) -> (OperatorOverrides, Vec<Self>) {
        let mut counts = said.clone();
        let mut ignored = Vec::new();
        if let Some(until) = said.freeze
            && let Err(why) = remaining(until, wall)
        {
            counts.freeze = None;
            ignored.push(Self::Freeze { until, why });
        }
        if let Some(preference) = said.prefer.as_deref().cloned() {
            let mut ranked = candidates
                .iter()
                .filter(|candidate| candidate.rank.is_some());
            if let Err(why) = remaining(preference.until, wall) {
                counts.prefer = None;
                ignored.push(Self::Preference(preference, why));
            } else if !ranked.any(|candidate| candidate.name == preference.candidate) {
                counts.prefer = None;
                ignored.push(Self::NotEligible(preference));
            }
        }
        (counts, ignored)
    }

    /// The times said of candidates that do not count, by the candidates' names.
    pub(super) fn of_candidates(
        election: &Election,
        now: Instant,
        wall: Timestamp,
    ) -> impl Iterator<Item = Self> {
        let candidates = election.candidates.iter();
        candidates.filter_map(move |seen| {
            let (StandDown::Until(until), Err(why)) = seen.stand_down(now, wall)? else {
                return None;
            };
            let candidate = seen.candidate.name.clone();
            Some(Self::StandDown {
                candidate,
                until,
                why,
            })
        })
    }
}
