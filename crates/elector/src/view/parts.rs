//! Leases as parts of groups: looked at, assigned, and woken.

use std::sync::Arc;

use elector_protocol::elector::Settings;
use elector_protocol::{Instant, LeaseKey, Timestamp};

use crate::view::View;
use crate::view::groups::GroupNews;
use crate::view::lease_entry::LeaseEntry;

// === impl LeaseEntry ===

impl LeaseEntry {
    /// The group that it is a part of now.
    fn named_group(&self) -> Option<Arc<str>> {
        if self.fault.is_some() || !self.has_candidates() {
            return None;
        }
        let of_candidates = || {
            let membership = self.election.membership()?;
            Some(Arc::clone(&membership.group))
        };
        self.label.clone().or_else(of_candidates)
    }
}

// === impl View ===

impl View {
    /// Looks at a lease as a part of its group, if it has one: to be called when something of it has changed, and before it
    /// is decided.
    pub(crate) fn look_at_part(
        &mut self,
        now: Instant,
        wall: Timestamp,
        settings: &Settings,
        key: &LeaseKey,
    ) {
        let Some(entry) = self.elections.get_mut(key) else {
            return;
        };
        let named = entry.named_group();
        if entry.group != named {
            let before = std::mem::replace(&mut entry.group, named);
            if let Some(before) = before {
                self.groups
                    .remove((Arc::clone(&key.namespace), before), &key.name);
            }
        }
        let Some(name) = &entry.group else {
            entry.election.handle_assigned(None);
            return;
        };
        let part = entry.election.part(name, now, wall, settings);
        let group = (Arc::clone(&key.namespace), Arc::clone(name));
        let known = self.groups.known.entry(group.clone()).or_default();
        known.group.handle_part(now, &key.name, part);
        // An election that began anew knows nothing of it.
        entry
            .election
            .handle_assigned(known.group.assigned(&key.name));
        self.groups.touched.insert(group);
    }

    /// The memory of a lease is thrown away; what is seen next puts it into its group again.
    pub(super) fn leave_group(&mut self, key: &LeaseKey) {
        let entry = self.elections.get_mut(key);
        if let Some(group) = entry.and_then(|entry| entry.group.take()) {
            self.groups
                .remove((Arc::clone(&key.namespace), group), &key.name);
        }
    }

    /// Assigns the groups anew of which something has changed. Leases that are to be led by another candidate than before
    /// are dirty then.
    pub(crate) fn assign_groups(&mut self, now: Instant) {
        for key in std::mem::take(&mut self.groups.touched) {
            let Some(known) = self.groups.known.get_mut(&key) else {
                continue;
            };
            if !known.group.is_changed(now) {
                self.groups.set_wake(&key);
                continue;
            }
            let changes = known.group.assign(now);
            for change in changes {
                let lease = LeaseKey::new(Arc::clone(&key.0), change.part);
                let lease = self.shared(&lease);
                if let Some(entry) = self.elections.get_mut(&lease) {
                    entry.election.handle_assigned(change.candidate);
                    self.dirty.push_back(lease);
                }
            }
            self.groups.report(&key);
            self.groups.set_wake(&key);
        }
    }

    /// Marks what has changed by time alone: parts are dirty, and their groups are to be assigned anew.
    pub(crate) fn wake_groups(&mut self, now: Instant) {
        for lease in self.groups.take_due(now) {
            let lease = self.shared(&lease);
            self.dirty.push_back(lease);
        }
    }

    /// When there is something to do in a group if nothing is seen before.
    pub(crate) fn groups_wake_at(&self) -> Option<Instant> {
        self.groups.wake_at()
    }

    /// The group of a lease whose Lease is to be created.
    pub(crate) fn group_of(&self, key: &LeaseKey) -> Option<Arc<str>> {
        self.elections.get(key)?.group.clone()
    }

    /// A group whose numbers have changed, and that has not been reported yet.
    pub(crate) fn next_group_news(&mut self) -> Option<GroupNews> {
        self.groups.news.pop()
    }
}
