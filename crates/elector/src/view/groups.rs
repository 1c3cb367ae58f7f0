//! The groups of leases: which lease is a part of which, and to which candidate each part is assigned.
//!
//! A Lease names its group by a label; where there is no Lease yet, or it has no label, that of its oldest candidate
//! with one counts. A group is assigned anew when one of its parts or members has changed, once for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use elector_protocol::elector::Settings;
use elector_protocol::{GroupCounts, Instant, LeaseGroup, LeaseKey, Timestamp};

use crate::view::View;
use crate::view::lease_entry::LeaseEntry;

/// Namespace and name of a group.
type GroupKey = (Arc<str>, Arc<str>);

/// Every group of which a lease is known that candidates name.
#[derive(Debug, Default)]
pub(super) struct Groups {
    known: BTreeMap<GroupKey, KnownGroup>,
    /// Those to be assigned anew.
    touched: BTreeSet<GroupKey>,
    /// When each is to be looked at again if nothing is seen before.
    wakes: BTreeSet<(Instant, GroupKey)>,
    news: Vec<GroupNews>,
}

/// A group has other numbers than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupNews {
    pub(crate) namespace: Arc<str>,
    pub(crate) before: GroupCounts,
    pub(crate) after: GroupCounts,
}

#[derive(Debug, Default)]
struct KnownGroup {
    group: LeaseGroup,
    /// Its place among the wakes.
    wake: Option<Instant>,
    /// Its numbers as reported last.
    counts: GroupCounts,
}

// === impl Groups ===

impl Groups {
    /// When there is something to do in a group if nothing is seen before.
    fn wake_at(&self) -> Option<Instant> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// A lease is no part of this group any more.
    fn remove(&mut self, key: GroupKey, part: &str) {
        let Some(known) = self.known.get_mut(&key) else {
            return;
        };
        known.group.handle_part_gone(part);
        if !known.group.is_empty() {
            self.touched.insert(key);
            return;
        }
        self.report(&key);
        if let Some(wake) = self.known.remove(&key).and_then(|known| known.wake) {
            self.wakes.remove(&(wake, key.clone()));
        }
        self.touched.remove(&key);
    }

    /// Notes the numbers of a group for the figures, where they are others than before.
    fn report(&mut self, key: &GroupKey) {
        let Some(known) = self.known.get_mut(key) else {
            return;
        };
        let after = known.group.counts();
        let before = std::mem::replace(&mut known.counts, after);
        if before != after {
            let namespace = Arc::clone(&key.0);
            let news = GroupNews {
                namespace,
                before,
                after,
            };
            self.news.push(news);
        }
    }

    /// The parts that have changed by time alone, and of which groups.
    fn take_due(&mut self, now: Instant) -> Vec<LeaseKey> {
        let mut due = Vec::new();
        while self.wake_at().is_some_and(|at| at <= now) {
            let Some((_, key)) = self.wakes.pop_first() else {
                break;
            };
            let Some(known) = self.known.get_mut(&key) else {
                continue;
            };
            known.wake = None;
            while let Some(part) = known.group.next_due(now) {
                due.push(LeaseKey::new(Arc::clone(&key.0), part));
            }
            self.touched.insert(key);
        }
        due
    }

    fn set_wake(&mut self, key: &GroupKey) {
        let Some(known) = self.known.get_mut(key) else {
            return;
        };
        let wake = known.group.wake_at();
        let before = std::mem::replace(&mut known.wake, wake);
        if before == wake {
            return;
        }
        if let Some(before) = before {
            self.wakes.remove(&(before, key.clone()));
        }
        if let Some(wake) = wake {
            self.wakes.insert((wake, key.clone()));
        }
    }
}

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
