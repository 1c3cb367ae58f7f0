//! The groups of leases: which lease is a part of which, and to which candidate each part is assigned.
//!
//! A Lease names its group by a label; where there is no Lease yet, or it has no label, that of its oldest candidate
//! with one counts. A group in which parts or members have changed is assigned anew before the next of its parts is decided,
//! once for all of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use elector_protocol::{GroupCounts, Instant, LeaseGroup, LeaseKey};

/// Namespace and name of a group.
pub(super) type GroupKey = (Arc<str>, Arc<str>);

/// Every group of which a lease is known that candidates name.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) known: HashMap<GroupKey, KnownGroup>,
    /// Those to be assigned anew though none of their parts is to be decided.
    pub(super) touched: BTreeSet<GroupKey>,
    /// When each is to be looked at again if nothing is seen before.
    wakes: BTreeSet<(Instant, GroupKey)>,
    pub(super) news: Vec<GroupNews>,
}

/// A group has other numbers than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupNews {
    pub(crate) namespace: Arc<str>,
    pub(crate) before: GroupCounts,
    pub(crate) after: GroupCounts,
}

#[derive(Debug, Default)]
pub(super) struct KnownGroup {
    pub(super) group: LeaseGroup,
    /// The parts that have changed since the group was assigned.
    pub(super) unseen: Vec<Arc<str>>,
    /// Its place among the wakes.
    wake: Option<Instant>,
    /// Its numbers as reported last.
    counts: GroupCounts,
}

// === impl Groups ===

impl Groups {
    /// When there is something to do in a group if nothing is seen before.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// A lease is no part of this group any more.
    pub(super) fn remove(&mut self, key: GroupKey, part: &str) {
        let Some(known) = self.known.get_mut(&key) else {
            return;
        };
        known.unseen.retain(|unseen| **unseen != *part);
        known.group.handle_part_gone(part);
        if !known.group.is_empty() || !known.unseen.is_empty() {
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
    pub(super) fn report(&mut self, key: &GroupKey) {
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
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<LeaseKey> {
        let mut due = Vec::new();
        while self.wake_at().is_some_and(|at| at <= now) {
            let Some((_, key)) = self.wakes.pop_first() else {
                break;
            };
            let Some(known) = self.known.get_mut(&key) else {
                continue;
            };
            known.wake = None;
            for part in known.group.take_due(now) {
                due.push(LeaseKey::new(Arc::clone(&key.0), part));
            }
            self.touched.insert(key);
        }
        due
    }

    pub(super) fn set_wake(&mut self, key: &GroupKey) {
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
