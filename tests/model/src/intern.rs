//! Parts of states, each kept once and named by a number.

use std::collections::HashMap;
use std::hash::Hash;
use std::rc::Rc;

use foldhash::fast::FixedState;
use indexmap::IndexSet;

/// A map whose keys need no defence against an adversary.
pub(super) type QuickMap<K, V> = HashMap<K, V, FixedState>;

/// All parts of one kind that were ever met.
pub(super) struct Interner<T> {
    parts: IndexSet<Rc<T>, FixedState>,
    /// Their numbers by address: most parts of a state are those of the state before.
    addresses: QuickMap<usize, u32>,
}

// === impl Interner ===

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            parts: IndexSet::default(),
            addresses: QuickMap::default(),
        }
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// The number of a part; equal parts have equal numbers.
    pub(super) fn index(&mut self, part: &Rc<T>) -> u32 {
        if let Some(index) = self.addresses.get(&address(part)) {
            return *index;
        }
        let (index, new) = self.parts.insert_full(Rc::clone(part));
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        if new {
            // The part is kept, so its address is its own for ever.
            self.addresses.insert(address(part), index);
        }
        index
    }

    /// The part of a number.
    pub(super) fn part(&self, index: u32) -> Rc<T> {
        Rc::clone(&self.parts[index as usize])
    }
}

/// The address of a part.
pub(super) fn address<T>(part: &Rc<T>) -> usize {
    Rc::as_ptr(part).addr()
}
