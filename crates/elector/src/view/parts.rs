//! Leases as parts of groups: looked at, assigned, and woken.

use std::sync::Arc;

use elector_protocol::elector::Settings;
use elector_protocol::{Instant, LeaseKey, Timestamp};

use crate::view::View;
use crate::view::groups::{GroupKey, GroupNews};
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
    /// A lease has changed, and so has the part that it is, if it is one: its group looks at it before the next of its parts is
    /// decided.
    pub(crate) fn note_part(&mut self, key: &LeaseKey) {
        let Some(entry) = self.elections.get_mut(key) else {
            return;
        };
        let named = entry.named_group();
        if entry.group != named {
            let before = std::mem::replace(&mut entry.group, named);
            entry.is_unseen = false;
            if let Some(before) = before {
                self.groups
                    .remove((Arc::clone(&key.namespace), before), &key.name);
            }
        }
        let Some(name) = &entry.group else {
            entry.election.handle_assigned(None);
            return;
        };
        if !std::mem::replace(&mut entry.is_unseen, true) {
            let group = (Arc::clone(&key.namespace), Arc::clone(name));
            let known = self.groups.known.entry(group).or_default();
            known.unseen.push(Arc::clone(&key.name));
        }
    }

    /// The group of a lease is to be assigned anew, whether or not any part of it is decided.
    pub(crate) fn touch_group(&mut self, key: &LeaseKey) {
        if let Some(name) = self.group_of(key) {
            self.groups
                .touched
                .insert((Arc::clone(&key.namespace), name));
        }
    }

    /// The memory of a lease is thrown away; what is seen next puts it into its group again.
    pub(super) fn leave_group(&mut self, key: &LeaseKey) {
        let entry = self.elections.get_mut(key);
        if let Some(group) = entry.and_then(|entry| entry.group.take()) {
            self.groups
                .remove((Arc::clone(&key.namespace), group), &key.name);
        }
    }

    /// True if groups are to be assigned anew now.
    pub(crate) fn has_touched_groups(&self) -> bool {
        !self.groups.touched.is_empty()
    }

    /// Assigns the groups anew that nothing but time, or the loss of a part, has changed.
    pub(crate) fn assign_groups(&mut self, now: Instant, wall: Timestamp, settings: &Settings) {
        for key in std::mem::take(&mut self.groups.touched) {
            self.assign_group(now, wall, settings, &key);
        }
    }

    /// Assigns the group of a lease anew that is to be decided: time alone makes a holder late and a candidate silent.
    pub(crate) fn assign_group_of(
        &mut self,
        now: Instant,
        wall: Timestamp,
        settings: &Settings,
        key: &LeaseKey,
    ) {
        self.note_part(key);
        if let Some(name) = self.group_of(key) {
            let group = (Arc::clone(&key.namespace), name);
            self.assign_group(now, wall, settings, &group);
        }
    }

    /// Looks at what has changed of a group, and assigns it anew. Leases that are to be led by another candidate than before
    /// are dirty then.
    fn assign_group(&mut self, now: Instant, wall: Timestamp, settings: &Settings, key: &GroupKey) {
        let Some(known) = self.groups.known.get_mut(key) else {
            return;
        };
        for part in std::mem::take(&mut known.unseen) {
            let lease = LeaseKey::new(Arc::clone(&key.0), part);
            let Some(entry) = self.elections.get_mut(&lease) else {
                continue;
            };
            entry.is_unseen = false;
            let part = entry.election.part(&key.1, now, wall, settings);
            known.group.handle_part(now, &lease.name, part);
            // An election that began anew knows nothing of it.
            entry
                .election
                .handle_assigned(known.group.assigned(&lease.name));
        }
        if known.group.is_changed(now) {
            for change in known.group.assign(now) {
                let lease = LeaseKey::new(Arc::clone(&key.0), change.part);
                let lease = self.shared(&lease);
                if let Some(entry) = self.elections.get_mut(&lease) {
                    entry.election.handle_assigned(change.candidate);
                    self.dirty.push_back(lease);
                }
            }
            self.groups.report(key);
        }
        self.groups.set_wake(key);
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

    /// The group of a lease, as it was when the lease changed last.
    pub(crate) fn group_of(&self, key: &LeaseKey) -> Option<Arc<str>> {
        self.elections.get(key)?.group.clone()
    }

    /// A group whose numbers have changed, and that has not been reported yet.
    pub(crate) fn next_group_news(&mut self) -> Option<GroupNews> {
        self.groups.news.pop()
    }
}
