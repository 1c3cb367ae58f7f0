//! Candidates that name a lease and are not considered, since others came before them.

use std::collections::{BTreeMap, BTreeSet};

use elector_protocol::{CandidateRecord, Identity, Timestamp, Uid};

/// The order in which candidates are considered. Objects that are being deleted come last, before them those that gave
/// their place away because they did not answer; of two that were created in the same second the uid decides, which no
/// client can choose, so that every elector considers the same ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seniority {
    deleting: bool,
    silent: bool,
    created: Timestamp,
    uid: Uid,
}

/// The candidates of one lease that wait for a place: most have none.
#[derive(Debug, Default)]
pub(super) struct OverflowCandidates(Option<Box<WaitingCandidates>>);

#[derive(Debug, Default)]
struct WaitingCandidates {
    records: BTreeMap<Identity, (Seniority, CandidateRecord)>,
    order: BTreeSet<(Seniority, Identity)>,
}

// === impl Seniority ===

impl Seniority {
    pub(super) fn of(candidate: &CandidateRecord) -> Self {
        Self {
            deleting: candidate.deleting,
            silent: false,
            created: candidate.created,
            uid: candidate.uid.clone(),
        }
    }
}

// === impl OverflowCandidates ===

impl OverflowCandidates {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The candidate that gets the next place.
    pub(super) fn oldest(&self) -> Option<&(Seniority, Identity)> {
        self.0.as_ref()?.order.first()
    }

    /// The candidate that gets the place of one that does not answer.
    pub(super) fn successor(&self) -> Option<&Identity> {
        let (seniority, name) = self.oldest()?;
        (!seniority.deleting && !seniority.silent).then_some(name)
    }

    /// A revision of a candidate for which there is no place. One that did not answer comes last until it writes again.
    pub(super) fn insert(&mut self, candidate: CandidateRecord) {
        let known = self.remove(&candidate.name);
        let silent = known.is_some_and(|(seniority, known)| {
            seniority.silent && known.uid == candidate.uid && known.renew == candidate.renew
        });
        self.put(candidate, silent);
    }

    /// A candidate that has given its place away because it does not answer.
    pub(super) fn insert_silent(&mut self, candidate: CandidateRecord) {
        self.put(candidate, true);
    }

    pub(super) fn take(&mut self, name: &Identity) -> Option<CandidateRecord> {
        self.remove(name).map(|(_, candidate)| candidate)
    }

    fn put(&mut self, candidate: CandidateRecord, silent: bool) {
        let seniority = Seniority {
            silent,
            ..Seniority::of(&candidate)
        };
        let waiting = self.0.get_or_insert_default();
        waiting
            .order
            .insert((seniority.clone(), candidate.name.clone()));
        waiting
            .records
            .insert(candidate.name.clone(), (seniority, candidate));
    }

    fn remove(&mut self, name: &Identity) -> Option<(Seniority, CandidateRecord)> {
        let waiting = self.0.as_mut()?;
        let (seniority, candidate) = waiting.records.remove(name)?;
        waiting.order.remove(&(seniority.clone(), name.clone()));
        self.0.take_if(|waiting| waiting.records.is_empty());
        Some((seniority, candidate))
    }
}
