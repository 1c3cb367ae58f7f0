//! News of leases, taken into the view: lists, events, responses, reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use elector_protocol::elector::NewsSource;
use elector_protocol::{Instant, LeaseKey, ResourceVersion};

use crate::leadership_change::ExpectedGrant;
use crate::view::lease_entry::LeaseEntry;
use crate::view::observed::covers;
use crate::view::{LeaseSeen, LeaseVersion, Restored, View};

// === impl View ===

impl View {
    /// A list of the leases of a namespace, or of all, is about to be asked for: the watch before it broke off.
    pub(crate) fn handle_lease_gap(&mut self, watched: &Option<Arc<str>>) {
        self.lease_floor.insert(watched.clone(), self.newest_lease);
    }

    /// A complete list of those, at this version of the store.
    ///
    /// # Errors
    ///
    /// When it shows a Lease older than what was known before it was asked for, or than a revision that it has to contain;
    /// the view must then be thrown away.
    pub(crate) fn handle_leases(
        &mut self,
        now: Instant,
        watched: &Option<Arc<str>>,
        at: ResourceVersion,
        leases: Vec<LeaseSeen>,
    ) -> Result<(), Restored> {
        let floor = self.lease_floor.remove(watched).map_or(at, |it| it.max(at));
        let listed: BTreeSet<LeaseKey> = leases.iter().map(|seen| seen.key.clone()).collect();
        let restored = leases.iter().any(|seen| {
            let known = self.lease_version(&seen.key);
            matches!((known, seen.version), (Some(known), Some(version)) if version < known && known <= floor)
        });
        if restored {
            return Err(Restored);
        }
        self.leases_listed.insert(watched.clone(), now);
        for seen in leases {
            let newer_known = |known| seen.version.is_some_and(|version| version < known);
            // A reply may have brought a later revision than that of the list.
            if !self.lease_version(&seen.key).is_some_and(newer_known) {
                self.update_lease(now, seen, NewsSource::List);
            }
        }
        let mut missing: Vec<LeaseKey> = self
            .elections
            .keys()
            .filter(|key| covers(watched, &key.namespace) && !listed.contains(key))
            .cloned()
            .collect();
        missing.sort_unstable();
        for key in missing {
            self.lease_gone(now, &key, None, NewsSource::List);
        }
        Ok(())
    }

    /// True if an event of a lease watch with this revision brings nothing new.
    pub(crate) fn has_seen(&self, revision: &LeaseVersion) -> bool {
        let Some(entry) = self.elections.get(&revision.key) else {
            return false;
        };
        let known = entry.election.lease().map(|lease| lease.version);
        // An object that is wanted for a write may still be missing.
        known.is_some()
            && revision.version <= known
            && (entry.object.is_some() || !entry.has_candidates())
    }

    /// An event of a lease watch.
    pub(crate) fn handle_lease(&mut self, now: Instant, seen: LeaseSeen) {
        self.update_lease(now, seen, NewsSource::Watch);
    }

    /// A deletion that a lease watch delivered.
    pub(crate) fn handle_lease_gone(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        version: Option<ResourceVersion>,
    ) {
        self.lease_gone(now, key, version, NewsSource::Watch);
    }

    /// The answer to a write of ours. Where the Lease is not known to exist, the watch knows better.
    pub(crate) fn handle_lease_reply(&mut self, now: Instant, seen: LeaseSeen) {
        if self.lease_version(&seen.key).is_some() {
            self.update_lease(now, seen, NewsSource::OwnWrite);
        }
    }

    /// The answer to a GET, sent when `asked_at` was the newest revision known. What came between is not known.
    ///
    /// # Errors
    ///
    /// When it is older than `asked_at`; the view must then be thrown away.
    pub(crate) fn handle_lease_read(
        &mut self,
        now: Instant,
        seen: LeaseSeen,
        asked_at: Option<ResourceVersion>,
    ) -> Result<(), Restored> {
        let (Some(known), Some(version)) = (self.lease_version(&seen.key), seen.version) else {
            return Ok(());
        };
        if asked_at.is_some_and(|asked_at| version < asked_at) {
            return Err(Restored);
        }
        if version > known {
            self.update_lease(now, seen, NewsSource::List);
        } else if version == known
            && let Some(entry) = self.elections.get_mut(&seen.key)
            && entry.has_candidates()
            && seen.object.is_some()
        {
            entry.object = seen.object;
        }
        Ok(())
    }

    /// A lease is to be judged anew: its object is at hand now, or a write lost a race. Not after a write that failed,
    /// where the next one waits for its pause.
    pub(crate) fn look_again(&mut self, key: &LeaseKey) {
        self.dirty.push_back(key.clone());
    }

    /// A POST of ours was answered.
    pub(crate) fn handle_created(&mut self, now: Instant, key: &LeaseKey) {
        if let Some(entry) = self.elections.get_mut(key) {
            entry.election.handle_created(now);
            self.dirty.push_back(key.clone());
        }
    }

    /// A grant is about to be written; when its record appears, this is why.
    pub(crate) fn expect_grant(&mut self, key: &LeaseKey, expected: ExpectedGrant) {
        if let Some(entry) = self.elections.get_mut(key) {
            entry.expected = Some(Box::new(expected));
        }
    }

    fn update_lease(&mut self, now: Instant, seen: LeaseSeen, source: NewsSource) {
        let key = self.shared(&seen.key);
        let seen = LeaseSeen {
            key: key.clone(),
            ..seen
        };
        self.guarded(&key, |view| view.apply_lease(now, seen, source));
    }

    fn apply_lease(&mut self, now: Instant, seen: LeaseSeen, source: NewsSource) {
        if let Some(version) = seen.version {
            self.newest_lease = self.newest_lease.max(version);
        }
        let absent_since = self.listed_at(&seen.key.namespace);
        let entry = self
            .elections
            .entry(seen.key.clone())
            .or_insert_with(|| Box::new(LeaseEntry::new(absent_since)));
        let snapshot = match seen.snapshot {
            Ok(snapshot) => snapshot,
            Err(_)
                if source == NewsSource::Watch
                    && entry
                        .election
                        .lease()
                        .is_some_and(|lease| seen.version <= Some(lease.version)) =>
            {
                return;
            }
            Err(fault) => {
                entry.set_fault(fault);
                if entry.has_candidates() {
                    self.dirty.push_back(seen.key);
                }
                return;
            }
        };
        let known = entry.election.lease().cloned();
        entry.fault = None;
        let fresh = known
            .as_ref()
            .is_none_or(|known| known.version < snapshot.version);
        let version = snapshot.version;
        // The record of a lease that was not known before is no change: it may be of long ago.
        let first_seen = !std::mem::replace(&mut entry.known, true);
        if fresh {
            entry.label = seen.group;
        }
        entry.handle_lease(now, snapshot, source);
        if !entry.has_candidates() {
            // Nothing is decided about it; the figures follow it.
            if fresh && entry.abandoned().is_some() {
                self.dirty.push_back(seen.key);
            }
            return;
        }
        if entry
            .election
            .lease()
            .is_some_and(|lease| lease.version == version)
        {
            // The watch may bring again what a read has brought.
            if fresh || seen.object.is_some() {
                entry.object = seen.object;
            }
        }
        if !fresh {
            return;
        }
        if !first_seen {
            let before = known.as_ref().map(|known| &known.record);
            let after = entry.election.lease().map(|lease| &lease.record);
            let after = after.cloned();
            self.changes
                .extend(entry.change(&seen.key, before, after.as_ref()));
        }
        self.dirty.push_back(seen.key);
    }

    fn lease_gone(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        version: Option<ResourceVersion>,
        source: NewsSource,
    ) {
        if let Some(version) = version {
            self.newest_lease = self.newest_lease.max(version);
        }
        let Some(entry) = self.elections.get_mut(key) else {
            return;
        };
        let known = entry.election.lease().map(|lease| lease.record.clone());
        let was_followed = entry.abandoned().is_some();
        entry.fault = None;
        entry.label = None;
        entry.known = true;
        entry.handle_lease_gone(now, version, source);
        if entry.election.lease().is_some() {
            return;
        }
        if !entry.has_candidates() {
            if was_followed {
                self.dirty.push_back(key.clone());
            }
            return;
        }
        entry.object = None;
        self.changes.extend(entry.change(key, known.as_ref(), None));
        self.dirty.push_back(key.clone());
    }
}
