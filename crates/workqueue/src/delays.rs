//! Keys that wait for a time: one deadline per key, the earliest wins.

#![expect(
    clippy::disallowed_types,
    reason = "the table by key is looked up, and never gone through"
)]

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

/// When a key is due, and the number of the call that said so, which breaks ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Slot {
    deadline: Duration,
    call: u64,
}

/// A table of deadlines, at most one per key.
#[derive(Clone, Debug)]
pub(crate) struct Delays<K> {
    by_time: BTreeMap<Slot, K>,
    /// Each lease of an elector waits for something, so this is large.
    by_key: HashMap<K, Slot>,
    calls: u64,
}

// === impl Delays ===

impl<K: Eq + Hash + Clone> Delays<K> {
    pub(crate) fn new() -> Self {
        Self {
            by_time: BTreeMap::new(),
            by_key: HashMap::new(),
            calls: 0,
        }
    }

    /// Lets `key` wait for `deadline`, unless it already waits for that time or an earlier one.
    pub(crate) fn insert(&mut self, key: K, deadline: Duration) {
        if let Some(slot) = self.by_key.get(&key) {
            if slot.deadline <= deadline {
                return;
            }
            self.by_time.remove(slot);
        }

        let slot = Slot {
            deadline,
            call: self.calls,
        };
        self.calls += 1;
        self.by_time.insert(slot, key.clone());
        self.by_key.insert(key, slot);
    }

    /// Lets `key` wait for no time any more.
    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(slot) = self.by_key.remove(key) {
            self.by_time.remove(&slot);
        }
    }

    /// Takes the key that is due first and its deadline, if that has come at `now`.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<(Duration, K)> {
        let entry = self.by_time.first_entry()?;
        if entry.key().deadline > now {
            return None;
        }

        let (slot, key) = entry.remove_entry();
        self.by_key.remove(&key);
        Some((slot.deadline, key))
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.by_time
            .first_key_value()
            .map(|(slot, _)| slot.deadline)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(crate) fn clear(&mut self) {
        self.by_time.clear();
        self.by_key.clear();
    }
}
