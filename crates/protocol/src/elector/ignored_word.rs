//! What operators say of a lease that does not count (R16).

use crate::elector::ranking::RankedCandidate;
use crate::operator_word::{OperatorPreference, OperatorWord};
use crate::time::Timestamp;

/// A part of an operator's word that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IgnoredWord {
    /// The freeze is over.
    FreezeOver {
        /// When it ended.
        until: Timestamp,
    },
    /// The preference is over.
    PreferenceOver(OperatorPreference),
    /// No eligible candidate has that name.
    NotEligible(OperatorPreference),
}

// === impl IgnoredWord ===

impl IgnoredWord {
    /// What counts of an operator's word at `wall`, and what does not.
    pub(super) fn split(
        said: &OperatorWord,
        wall: Timestamp,
        candidates: &[RankedCandidate],
    ) -> (OperatorWord, Vec<Self>) {
        let mut counts = said.clone();
        let mut ignored = Vec::new();
        if let Some(until) = said.freeze.filter(|_| said.frozen_for(wall).is_none()) {
            counts.freeze = None;
            ignored.push(Self::FreezeOver { until });
        }
        if let Some(preference) = said.prefer.as_deref().cloned() {
            let is_over = said.preferred_for(wall).is_none();
            let mut ranked = candidates
                .iter()
                .filter(|candidate| candidate.rank.is_some());
            if is_over {
                counts.prefer = None;
                ignored.push(Self::PreferenceOver(preference));
            } else if !ranked.any(|candidate| candidate.name == preference.candidate) {
                counts.prefer = None;
                ignored.push(Self::NotEligible(preference));
            }
        }
        (counts, ignored)
    }
}
