//! The numbers of candidates of a lease by state.

use elector_protocol::elector::Election;
use elector_protocol::{CandidateRecord, Identity};

/// The state of a candidate, as far as its record and its lease tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CandidateState {
    Leading,
    /// It has acked its last ping, or was never pinged.
    Ready,
    /// It has been pinged and has not acked so far.
    Pinged,
    /// Nothing can be elected with what it offers.
    Ineligible,
}

/// The candidates of one lease by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CandidateCounts([u8; STATES.len()]);

/// Every state.
const STATES: [CandidateState; 4] = [
    CandidateState::Leading,
    CandidateState::Ready,
    CandidateState::Pinged,
    CandidateState::Ineligible,
];

// === impl CandidateState ===

impl CandidateState {
    fn of(candidate: &CandidateRecord, leader: Option<&Identity>) -> Self {
        if leader == Some(&candidate.name) {
            Self::Leading
        } else if candidate.spec.is_err() {
            Self::Ineligible
        } else if candidate.is_pinged() {
            Self::Pinged
        } else {
            Self::Ready
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Leading => "leading",
            Self::Ready => "ready",
            Self::Pinged => "pinged",
            Self::Ineligible => "ineligible",
        }
    }
}

// === impl CandidateCounts ===

impl CandidateCounts {
    /// The values of the label of a state.
    pub(super) fn states() -> impl Iterator<Item = &'static str> {
        STATES.into_iter().map(CandidateState::as_str)
    }

    pub(super) fn of(election: &Election, leader: Option<&Identity>) -> Self {
        let mut counts = Self::default();
        for candidate in election.candidates() {
            // No more than some sixty are considered.
            let count = &mut counts.0[CandidateState::of(candidate, leader) as usize];
            *count = count.saturating_add(1);
        }
        counts
    }

    /// True if each that is counted has been pinged and has not answered.
    pub(super) fn are_silent(self) -> bool {
        let mut others = STATES
            .into_iter()
            .filter(|it| *it != CandidateState::Pinged);
        others.all(|state| self.0[state as usize] == 0)
    }

    /// The states whose number differs from that of `before`, each with the difference.
    pub(super) fn since(self, before: Self) -> impl Iterator<Item = (&'static str, i64)> {
        STATES.into_iter().filter_map(move |state| {
            let number = |counts: Self| i64::from(counts.0[state as usize]);
            let difference = number(self) - number(before);
            (difference != 0).then_some((state.as_str(), difference))
        })
    }
}
