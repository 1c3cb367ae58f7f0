//! The candidates of one lease, by name.

use crate::elector::observation::ObservedCandidate;
use crate::names::Identity;
use crate::renumber::{Renumber, Renumbering};

/// The candidates of one lease, in the order of their names, in one block without a gap: an elector has one of these for
/// each lease, few of them change in number, and most have three entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ObservedCandidates(Vec<ObservedCandidate>);

// === impl ObservedCandidates ===

impl ObservedCandidates {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, ObservedCandidate> {
        self.0.iter()
    }

    pub(super) fn contains(&self, name: &Identity) -> bool {
        self.place(name).is_ok()
    }

    pub(super) fn get(&self, name: &Identity) -> Option<&ObservedCandidate> {
        self.0.get(self.place(name).ok()?)
    }

    pub(super) fn get_mut(&mut self, name: &Identity) -> Option<&mut ObservedCandidate> {
        let place = self.place(name).ok()?;
        self.0.get_mut(place)
    }

    /// Puts a candidate in the place of the one of its name, if there is one.
    pub(super) fn insert(&mut self, candidate: ObservedCandidate) {
        match self.place(&candidate.candidate.name) {
            Ok(place) => self.0[place] = candidate,
            Err(place) => {
                self.0.reserve_exact(1);
                self.0.insert(place, candidate);
            }
        }
    }

    pub(super) fn remove(&mut self, name: &Identity) {
        if let Ok(place) = self.place(name) {
            self.0.remove(place);
            self.0.shrink_to_fit();
        }
    }

    /// Where the candidate of this name is, or would be.
    fn place(&self, name: &Identity) -> Result<usize, usize> {
        self.0
            .binary_search_by(|seen| seen.candidate.name.cmp(name))
    }
}

impl Renumber for ObservedCandidates {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.0.renumber(by);
    }
}
