//! The lease that each candidate names, by namespace, and the number of bytes kept of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use elector_protocol::{Identity, LeaseKey, ResourceVersion};

use crate::view::observed::covers;

/// Every candidate that is kept, considered or waiting.
#[derive(Debug, Default)]
pub(super) struct CandidateIndex(BTreeMap<Arc<str>, BTreeMap<Identity, IndexedCandidate>>);

/// A candidate, and the lease that it names.
#[derive(Clone, Debug)]
pub(super) struct IndexedCandidate {
    pub(super) lease: LeaseKey,
    pub(super) version: ResourceVersion,
    /// The bytes kept of it.
    pub(super) bytes: usize,
}

// === impl CandidateIndex ===

impl CandidateIndex {
    pub(super) fn get(&self, namespace: &str, name: &Identity) -> Option<&IndexedCandidate> {
        self.0.get(namespace)?.get(name)
    }

    pub(super) fn insert(&mut self, namespace: Arc<str>, name: Identity, known: IndexedCandidate) {
        self.0.entry(namespace).or_default().insert(name, known);
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &Identity) -> Option<IndexedCandidate> {
        let candidates = self.0.get_mut(namespace)?;
        let known = candidates.remove(name);
        if candidates.is_empty() {
            self.0.remove(namespace);
        }
        known
    }

    /// The names of a watched namespace or of all, with their namespaces.
    pub(super) fn names<'a>(
        &'a self,
        watched: &'a Option<Arc<str>>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Identity)> {
        let namespaces = self
            .0
            .iter()
            .filter(|(namespace, _)| covers(watched, namespace));
        namespaces.flat_map(|(namespace, candidates)| {
            candidates.keys().map(move |name| (namespace, name))
        })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// Takes out all that name this lease.
    pub(super) fn remove_of(&mut self, lease: &LeaseKey) -> Vec<IndexedCandidate> {
        let Some(candidates) = self.0.get_mut(&lease.namespace) else {
            return Vec::new();
        };
        let removed = candidates.extract_if(.., |_, known| known.lease == *lease);
        let removed = removed.map(|(_, known)| known).collect();
        if candidates.is_empty() {
            self.0.remove(&lease.namespace);
        }
        removed
    }
}
