//! Ready keys: first in, first out within a group, and the groups in turn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroUsize;
use std::time::Duration;

/// The ready keys of all groups.
///
/// A group is *open* while it is not paused and has a free worker. Each open group with ready keys stands in the order
/// once; taking a key moves its group to the end.
#[derive(Clone, Debug)]
pub(crate) struct Turns<K, G> {
    /// The groups that have ready keys, busy workers or a pause.
    groups: BTreeMap<G, KeyGroup<K>>,
    order: VecDeque<G>,
    /// When pauses end.
    pauses: BTreeSet<(Duration, G)>,
    /// The most workers that may have keys of one group.
    workers: NonZeroUsize,
    ready: usize,
}

#[derive(Clone, Debug)]
struct KeyGroup<K> {
    ready: VecDeque<K>,
    busy: usize,
    paused_until: Option<Duration>,
    /// True if it stands in the order.
    ordered: bool,
}

// === impl Turns ===

impl<K, G: Ord + Clone> Turns<K, G> {
    pub(crate) const fn new(workers: NonZeroUsize) -> Self {
        Self {
            groups: BTreeMap::new(),
            order: VecDeque::new(),
            pauses: BTreeSet::new(),
            workers,
            ready: 0,
        }
    }

    /// The number of ready keys, those of groups that are not open included.
    pub(crate) const fn len(&self) -> usize {
        self.ready
    }

    /// Puts a key behind all others of its group.
    pub(crate) fn push(&mut self, group: &G, key: K) {
        let known = self.groups.entry(group.clone()).or_default();
        known.ready.push_back(key);
        self.ready += 1;
        self.settle(group);
    }

    /// Gives a worker the first key of the group whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<K> {
        let group = self.order.pop_front()?;
        let known = self.groups.get_mut(&group)?;
        known.ordered = false;
        let key = known.ready.pop_front()?;
        known.busy += 1;
        self.ready -= 1;
        self.settle(&group);
        Some(key)
    }

    /// Takes a worker of a group back.
    pub(crate) fn done(&mut self, group: &G) {
        if let Some(known) = self.groups.get_mut(group) {
            known.busy = known.busy.saturating_sub(1);
            self.settle(group);
        }
    }

    /// Keeps a group out of the order until that time, in the place of what was said before.
    pub(crate) fn pause(&mut self, group: &G, until: Duration) {
        self.end_pause(group);
        let known = self.groups.entry(group.clone()).or_default();
        known.paused_until = Some(until);
        if std::mem::take(&mut known.ordered) {
            self.order.retain(|ordered| ordered != group);
        }
        self.pauses.insert((until, group.clone()));
    }

    /// Ends the pauses that are over at `now`.
    pub(crate) fn resume(&mut self, now: Duration) {
        while let Some((until, group)) = self.pauses.first().cloned()
            && until <= now
        {
            self.resume_group(&group);
        }
    }

    /// Ends the pause of a group.
    pub(crate) fn resume_group(&mut self, group: &G) {
        self.end_pause(group);
        self.settle(group);
    }

    /// Ends all pauses.
    pub(crate) fn resume_all(&mut self) {
        self.resume(Duration::MAX);
    }

    /// When the first pause ends of a group that has ready keys.
    pub(crate) fn resumes_at(&self) -> Option<Duration> {
        let has_ready = |group| {
            let group: Option<&KeyGroup<K>> = self.groups.get(group);
            group.is_some_and(|group| !group.ready.is_empty())
        };
        let mut pauses = self.pauses.iter();
        Some(pauses.find(|(_, group)| has_ready(group))?.0)
    }

    fn end_pause(&mut self, group: &G) {
        if let Some(known) = self.groups.get_mut(group)
            && let Some(until) = known.paused_until.take()
        {
            self.pauses.remove(&(until, group.clone()));
        }
    }

    /// Puts a group at the end of the order if it belongs there, and forgets one that has nothing left.
    fn settle(&mut self, group: &G) {
        let Some(known) = self.groups.get_mut(group) else {
            return;
        };
        let open = known.paused_until.is_none() && known.busy < self.workers.get();
        if open && !known.ready.is_empty() && !known.ordered {
            known.ordered = true;
            self.order.push_back(group.clone());
        } else if known.ready.is_empty() && known.busy == 0 && known.paused_until.is_none() {
            self.groups.remove(group);
        }
    }
}

// === impl KeyGroup ===

impl<K> Default for KeyGroup<K> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            busy: 0,
            paused_until: None,
            ordered: false,
        }
    }
}
