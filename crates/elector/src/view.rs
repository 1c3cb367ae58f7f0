//! Knowledge of every lease and candidate: an index from a lease to its election.
//!
//! ```text
//!   lists and events of two watches, replies, reads ──> View ──> elections, one for each lease
//!                                                        ├──> next_dirty():  keys to step
//!                                                        └──> next_change(): leadership changes to tell
//! ```
//!
//! The view performs no I/O and reads no clock. It knows three things that one election cannot: which candidate names
//! which lease, since when a name that was never seen has been absent (the last complete list), and which object a
//! revision of a Lease came from, so that a write carries all of it.
//!
//! A small part is kept, whatever objects hold: of a candidate what decisions need, of a Lease the object too unless it
//! is large. A lease that no candidate names costs its small record and a stop-watch, so that a first candidate finds the
//! watch warm; its object is not kept and it is never stepped.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use elector_api::{Lease, Malformed};
use elector_protocol::elector::Election;
use elector_protocol::{
    Identity, Instant, LeaseKey, LeaseSnapshot, ObservedLease, ResourceVersion,
};
use elector_runtime::panic_text;

use crate::leadership_change::LeadershipChange;
use crate::view::candidate_index::CandidateIndex;
use crate::view::groups::Groups;
use crate::view::lease_entry::LeaseEntry;
use crate::view::limits::Usage;
use crate::view::observed::{covers, is_kept};
use crate::view::shared_specs::SharedSpecs;

mod candidate_index;
mod candidates;
mod capacity;
mod groups;
mod lease_entry;
mod leases;
mod limits;
mod observed;
mod overflow;
mod partial_lists;
mod parts;
mod shared_specs;

pub(crate) use groups::GroupNews;
#[cfg(test)]
pub(crate) use limits::{LEASE_CANDIDATES, NAMESPACE_CANDIDATES};
pub(crate) use observed::{CandidateSeen, LeaseSeen, LeaseVersion, ObjectName, ParsedCandidate};
pub(crate) use partial_lists::{CandidateList, LeaseList};

/// The store is older than what was seen of it: it was restored from a backup. Everything known is void (R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Restored;

/// All elections, as one elector saw them.
#[derive(Debug)]
pub(crate) struct View {
    /// The namespaces that are listed by themselves; `None` is all of them.
    watched: BTreeSet<Option<Arc<str>>>,
    /// When the leases of each were last listed completely.
    leases_listed: BTreeMap<Option<Arc<str>>, Instant>,
    candidates_listed: BTreeSet<Option<Arc<str>>>,
    /// The newest revision of any lease that was known when its list was asked for.
    lease_floor: BTreeMap<Option<Arc<str>>, ResourceVersion>,
    newest_lease: ResourceVersion,
    /// The same for candidates.
    candidate_floor: BTreeMap<Option<Arc<str>>, ResourceVersion>,
    newest_candidate: ResourceVersion,
    /// Looked up several times for each event, and gone through rarely. Boxed: a large map is half empty.
    elections: HashMap<LeaseKey, Box<LeaseEntry>>,
    candidate_index: CandidateIndex,
    groups: Groups,
    shared_specs: SharedSpecs,
    dirty: VecDeque<LeaseKey>,
    changes: VecDeque<LeadershipChange>,
    usage: Usage,
    limits_hit: VecDeque<LimitHit>,
    panics: Vec<(LeaseKey, String)>,
}

/// For how many keys there is room while none is dirty.
const IDLE_ROOM: usize = 1024;

/// More was registered than is considered or kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LimitHit {
    /// Of one lease.
    Lease { lease: LeaseKey, considered: usize },
    /// Of one namespace.
    Namespace {
        /// The lease that the first candidate names which is left out.
        lease: LeaseKey,
        candidates: usize,
        bytes: usize,
    },
    /// Of the requests of one namespace.
    Writes {
        /// The lease whose requests were too many.
        lease: LeaseKey,
    },
}

// === impl LimitHit ===

impl LimitHit {
    /// The lease at which it was noticed.
    pub(crate) fn lease(&self) -> &LeaseKey {
        match self {
            Self::Lease { lease, .. } | Self::Namespace { lease, .. } | Self::Writes { lease } => {
                lease
            }
        }
    }
}

// === impl View ===

impl View {
    /// A view that has seen nothing; it is synced when the leases and candidates of each namespace have been listed.
    pub(crate) fn new(watched: impl IntoIterator<Item = Option<Arc<str>>>) -> Self {
        Self {
            watched: watched.into_iter().collect(),
            leases_listed: BTreeMap::new(),
            candidates_listed: BTreeSet::new(),
            lease_floor: BTreeMap::new(),
            newest_lease: ResourceVersion(0),
            candidate_floor: BTreeMap::new(),
            newest_candidate: ResourceVersion(0),
            elections: HashMap::new(),
            candidate_index: CandidateIndex::default(),
            groups: Groups::default(),
            shared_specs: SharedSpecs::default(),
            dirty: VecDeque::new(),
            changes: VecDeque::new(),
            usage: Usage::default(),
            limits_hit: VecDeque::new(),
            panics: Vec::new(),
        }
    }

    /// True if both first lists are complete, in every namespace. Before that no step may have an effect.
    pub(crate) fn is_synced(&self) -> bool {
        let listed =
            |of| self.leases_listed.contains_key(of) && self.candidates_listed.contains(of);
        self.watched.iter().all(listed)
    }

    /// A key whose election has something new to judge.
    pub(crate) fn next_dirty(&mut self) -> Option<LeaseKey> {
        let next = self.dirty.pop_front();
        if next.is_none() {
            // A list of thousands leaves much room behind.
            self.dirty.shrink_to(IDLE_ROOM);
        }
        next
    }

    /// A leadership change that has not been reported yet.
    pub(crate) fn next_change(&mut self) -> Option<LeadershipChange> {
        self.changes.pop_front()
    }

    /// A limit that was hit, and has not been reported yet.
    pub(crate) fn next_limit_hit(&mut self) -> Option<LimitHit> {
        self.limits_hit.pop_front()
    }

    /// Leases whose objects made the code fail, each with the panic's text. Their memory was thrown away.
    pub(crate) fn take_panics(&mut self) -> Vec<(LeaseKey, String)> {
        std::mem::take(&mut self.panics)
    }

    /// Has those considered that wait where no candidate of a lease answers, and says whether there are any.
    pub(crate) fn replace_silent(
        &mut self,
        key: &LeaseKey,
        now: Instant,
        silent: &[Identity],
    ) -> bool {
        let entry = self.elections.get_mut(key);
        entry.is_some_and(|entry| entry.replace_silent(now, silent))
    }

    /// The election of a lease that candidates name, or the reason why its Lease cannot be judged.
    pub(crate) fn election(&self, key: &LeaseKey) -> Option<Result<&Election, &Malformed>> {
        let entry = self.elections.get(key)?;
        entry.has_candidates().then_some(match &entry.fault {
            Some(fault) => Err(fault),
            None => Ok(&entry.election),
        })
    }

    /// Every lease that a candidate names, in their order.
    pub(crate) fn keys(&self) -> Vec<&LeaseKey> {
        let elections = self.elections.iter();
        let keys = elections.filter_map(|(key, entry)| entry.has_candidates().then_some(key));
        let mut keys: Vec<_> = keys.collect();
        keys.sort_unstable();
        keys
    }

    /// The Lease of a lease that is elected and that no candidate names any more.
    pub(crate) fn abandoned(&self, key: &LeaseKey) -> Option<&ObservedLease> {
        self.elections.get(key)?.abandoned()
    }

    /// Every such lease, in no order.
    pub(crate) fn abandoned_keys(&self) -> impl Iterator<Item = &LeaseKey> {
        let elections = self.elections.iter();
        elections.filter_map(|(key, entry)| entry.abandoned().map(|_| key))
    }

    /// The object of this very revision of a Lease, if there is one at hand. One that was read because it is large is
    /// not kept any longer.
    pub(crate) fn take_lease_object(
        &mut self,
        key: &LeaseKey,
        version: ResourceVersion,
    ) -> Option<Lease> {
        let entry = self.elections.get_mut(key)?;
        let snapshot = entry.election.lease()?;
        if snapshot.version != version {
            return None;
        }
        let object = entry.object.as_ref()?.lease(key, snapshot);
        entry.object.take_if(|object| !is_kept(object));
        object
    }

    /// The newest revision of a Lease that is known.
    pub(crate) fn lease(&self, key: &LeaseKey) -> Option<&LeaseSnapshot> {
        self.elections.get(key)?.election.lease()
    }

    /// Its version.
    pub(crate) fn lease_version(&self, key: &LeaseKey) -> Option<ResourceVersion> {
        Some(self.lease(key)?.version)
    }

    /// Drops what is not worth remembering; to be called once in a while.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.elections
            .retain(|_, entry| !entry.election.is_forgettable(now));
    }

    /// Lets one lease take something in. If that makes the code fail, its memory is thrown away, and what is seen
    /// next starts it anew; the others go on.
    fn guarded(&mut self, key: &LeaseKey, take: impl FnOnce(&mut Self)) {
        let Err(panic) = catch_unwind(AssertUnwindSafe(|| take(self))) else {
            return;
        };
        self.panics.push((key.clone(), panic_text(&*panic)));
        self.leave_group(key);
        self.elections
            .insert(key.clone(), Box::new(LeaseEntry::new(None)));
        for known in self.candidate_index.remove_of(key) {
            self.usage.remove(&key.namespace, known.bytes);
        }
    }

    /// The same key, in the texts that are kept already: each object brings its own.
    fn shared(&self, key: &LeaseKey) -> LeaseKey {
        match self.elections.get_key_value(key) {
            Some((shared, _)) => shared.clone(),
            None => LeaseKey::new(self.usage.shared(key.namespace.clone()), key.name.clone()),
        }
    }

    /// When the leases of a namespace were last listed completely.
    fn listed_at(&self, namespace: &Arc<str>) -> Option<Instant> {
        let covering = self
            .leases_listed
            .iter()
            .filter(|(watched, _)| covers(watched, namespace));
        covering.map(|(_, at)| *at).max()
    }
}

#[cfg(test)]
mod tests;
