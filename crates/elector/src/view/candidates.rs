//! News of candidates, taken into the view, and which lease each of them names.

use std::collections::BTreeSet;
use std::sync::Arc;

use elector_protocol::elector::NewsSource;
use elector_protocol::{Identity, Instant, LeaseKey, ResourceVersion};

use crate::view::candidate_index::IndexedCandidate;
use crate::view::lease_entry::LeaseEntry;
use crate::view::limits::bytes_of;
use crate::view::overflow::Seniority;
use crate::view::{CandidateSeen, LimitHit, View};

// === impl View ===

impl View {
    /// A list of the candidates of a namespace, or of all, is about to be asked for.
    pub(crate) fn handle_candidate_gap(&mut self, watched: &Option<Arc<str>>) {
        self.candidate_floor
            .insert(watched.clone(), self.newest_candidate);
    }

    /// A complete list of those, at this version of the store.
    pub(crate) fn handle_candidates(
        &mut self,
        now: Instant,
        watched: &Option<Arc<str>>,
        at: ResourceVersion,
        mut candidates: Vec<CandidateSeen>,
    ) {
        let floor = self.candidate_floor.remove(watched);
        let floor = floor.map_or(at, |it| it.max(at));
        self.candidates_listed.insert(watched.clone());
        let listed: BTreeSet<_> = candidates.iter().map(CandidateSeen::name).collect();
        // Removal makes room, and where there is no room for all the oldest are kept.
        let missing: Vec<_> = self
            .candidate_index
            .names(watched)
            .map(|(namespace, name)| (namespace.clone(), name.clone()))
            .filter(|name| !listed.contains(name))
            .collect();
        for (namespace, name) in missing {
            self.handle_candidate_gone(now, &namespace, &name, None);
        }
        candidates.sort_by_cached_key(|seen| Seniority::of(&seen.candidate));
        for seen in candidates {
            // A reply may have brought a later revision than that of the list.
            let known = self.known(&seen).map(|known| known.version);
            if !known.is_some_and(|known| seen.candidate.version < known && known > floor) {
                self.update_candidate(now, seen, NewsSource::List);
            }
        }
    }

    /// An event of a candidate watch.
    pub(crate) fn handle_candidate(&mut self, now: Instant, seen: CandidateSeen) {
        self.update_candidate(now, seen, NewsSource::Watch);
    }

    /// The answer to a write of ours. Where the candidate is not known to exist, the watch knows better.
    pub(crate) fn handle_candidate_reply(&mut self, now: Instant, seen: CandidateSeen) {
        if self.known(&seen).is_some() {
            self.update_candidate(now, seen, NewsSource::OwnWrite);
        }
    }

    /// A candidate was seen deleted, or cannot be read any more.
    pub(crate) fn handle_candidate_gone(
        &mut self,
        now: Instant,
        namespace: &Arc<str>,
        name: &Identity,
        version: Option<ResourceVersion>,
    ) {
        let newer =
            |known: &IndexedCandidate| version.is_some_and(|version| version < known.version);
        if self.candidate_index.get(namespace, name).is_some_and(newer) {
            return;
        }
        let Some(known) = self.candidate_index.remove(namespace, name) else {
            return;
        };
        self.usage.remove(namespace, known.bytes);
        self.unlink_candidate(now, &known.lease, name);
    }

    fn update_candidate(&mut self, now: Instant, seen: CandidateSeen, source: NewsSource) {
        let lease = self.shared(&seen.lease);
        let key = lease.clone();
        let seen = CandidateSeen { lease, ..seen };
        self.guarded(&key, |view| view.apply_candidate(now, seen, source));
    }

    fn apply_candidate(&mut self, now: Instant, seen: CandidateSeen, source: NewsSource) {
        self.newest_candidate = self.newest_candidate.max(seen.candidate.version);
        let known = self.known(&seen).cloned();
        let CandidateSeen {
            lease,
            mut candidate,
        } = seen;
        let known = known.as_ref();
        if known.is_some_and(|known| candidate.version <= known.version)
            && source != NewsSource::List
        {
            return;
        }
        let before = known.map(|known| known.bytes);
        let bytes = bytes_of(&candidate);
        if let Err(full) = self.usage.replace(&lease.namespace, before, bytes) {
            self.handle_candidate_gone(now, &lease.namespace, &candidate.name, None);
            if full.is_new {
                self.limits_hit.push_back(LimitHit::Namespace {
                    lease,
                    candidates: full.candidates,
                    bytes: full.bytes,
                });
            }
            return;
        }
        if let Some(known) = known.filter(|known| known.lease != lease) {
            self.unlink_candidate(now, &known.lease, &candidate.name);
        }
        self.shared_specs.share(&mut candidate);
        let known = IndexedCandidate {
            lease: lease.clone(),
            version: candidate.version,
            bytes,
        };
        self.candidate_index
            .insert(lease.namespace.clone(), candidate.name.clone(), known);
        let absent_since = self.listed_at(&lease.namespace);
        let entry = self
            .elections
            .entry(lease.clone())
            .or_insert_with(|| Box::new(LeaseEntry::new(absent_since)));
        if entry.handle_candidate(now, candidate, source) {
            self.dirty.push_back(lease.clone());
        }
        self.note_waiting(&lease);
    }

    fn known(&self, seen: &CandidateSeen) -> Option<&IndexedCandidate> {
        let (namespace, name) = (&seen.lease.namespace, &seen.candidate.name);
        self.candidate_index.get(namespace, name)
    }

    /// Notes that candidates of this lease wait, when there were none before.
    fn note_waiting(&mut self, key: &LeaseKey) {
        let Some(entry) = self.elections.get_mut(key) else {
            return;
        };
        if let Some(considered) = entry.new_overflow() {
            self.limits_hit.push_back(LimitHit::Lease {
                lease: key.clone(),
                considered,
            });
        }
    }

    /// A candidate does not name this lease any more.
    fn unlink_candidate(&mut self, now: Instant, key: &LeaseKey, name: &Identity) {
        let Some(entry) = self.elections.get_mut(key) else {
            return;
        };
        if !entry.handle_candidate_gone(now, name) {
            return;
        }
        if !entry.has_candidates() {
            entry.object = None;
            entry.expected = None;
        }
        self.dirty.push_back(key.clone());
    }
}
