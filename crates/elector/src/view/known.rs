//! Which lease each candidate names, by namespace, and how much is kept of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use elector_protocol::{Identity, LeaseKey, ResourceVersion};

use crate::view::Area;

/// Every candidate that is kept, considered or waiting.
#[derive(Debug, Default)]
pub(super) struct KnownCandidates(BTreeMap<Arc<str>, BTreeMap<Identity, KnownCandidate>>);

/// A candidate, and the lease that it names.
#[derive(Clone, Debug)]
pub(super) struct KnownCandidate {
    pub(super) lease: LeaseKey,
    pub(super) version: ResourceVersion,
    /// The bytes kept of it.
    pub(super) bytes: usize,
}

// === impl KnownCandidates ===

impl KnownCandidates {
    pub(super) fn get(&self, namespace: &str, name: &Identity) -> Option<&KnownCandidate> {
        self.0.get(namespace)?.get(name)
    }

    pub(super) fn insert(&mut self, namespace: Arc<str>, name: Identity, known: KnownCandidate) {
        self.0.entry(namespace).or_default().insert(name, known);
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &Identity) -> Option<KnownCandidate> {
        let candidates = self.0.get_mut(namespace)?;
        let known = candidates.remove(name);
        if candidates.is_empty() {
            self.0.remove(namespace);
        }
        known
    }

    /// The names of an area, with their namespaces.
    pub(super) fn names<'a>(
        &'a self,
        area: &'a Area,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Identity)> {
        let namespaces = self
            .0
            .iter()
            .filter(|(namespace, _)| area.covers(namespace));
        namespaces.flat_map(|(namespace, candidates)| {
            candidates.keys().map(move |name| (namespace, name))
        })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// Takes out all that name this lease.
    pub(super) fn remove_of(&mut self, lease: &LeaseKey) -> Vec<KnownCandidate> {
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
