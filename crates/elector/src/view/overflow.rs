//! Candidates that name a lease and are not considered, since others came before them.

use std::collections::{BTreeMap, BTreeSet};

use elector_protocol::{CandidateRecord, Identity, Timestamp, Uid};

/// The order in which candidates are considered. Objects that are being deleted come last; of two that were created in
/// the same second the uid decides, which no client can choose, so that every elector considers the same ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seniority {
    deleting: bool,
    created: Timestamp,
    uid: Uid,
}

/// The candidates of one lease that wait for a place: most have none.
#[derive(Debug, Default)]
pub(super) struct OverflowCandidates(Option<Box<WaitingCandidates>>);

#[derive(Debug, Default)]
struct WaitingCandidates {
    records: BTreeMap<Identity, CandidateRecord>,
    order: BTreeSet<(Seniority, Identity)>,
}

// === impl Seniority ===

impl Seniority {
    pub(super) fn of(candidate: &CandidateRecord) -> Self {
        Self {
            deleting: candidate.deleting,
            created: candidate.created,
            uid: candidate.uid.clone(),
        }
    }
}

// === impl OverflowCandidates ===

impl OverflowCandidates {
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |waiting| waiting.records.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The candidate that gets the next place.
    pub(super) fn oldest(&self) -> Option<&(Seniority, Identity)> {
        self.0.as_ref()?.order.first()
    }

    pub(super) fn insert(&mut self, candidate: CandidateRecord) {
        self.remove(&candidate.name);
        let waiting = self.0.get_or_insert_default();
        let place = (Seniority::of(&candidate), candidate.name.clone());
        waiting.order.insert(place);
        waiting.records.insert(candidate.name.clone(), candidate);
    }

    pub(super) fn remove(&mut self, name: &Identity) -> Option<CandidateRecord> {
        let waiting = self.0.as_mut()?;
        let candidate = waiting.records.remove(name)?;
        let place = (Seniority::of(&candidate), name.clone());
        waiting.order.remove(&place);
        self.0.take_if(|waiting| waiting.records.is_empty());
        Some(candidate)
    }
}
