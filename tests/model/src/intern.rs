//! Parts of states, each kept once and named by a number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::rc::Rc;

/// A map whose keys need no defence against an adversary.
pub(super) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

/// All parts of one kind that were ever met.
pub(super) struct Interner<T> {
    indices: QuickMap<Rc<T>, u32>,
    /// The same by address: most parts of a state are those of the state before.
    addresses: QuickMap<usize, u32>,
    parts: Vec<Rc<T>>,
}

/// A hasher that multiplies and folds. Maps compare their keys, so a collision costs time and nothing else.
#[derive(Default)]
pub(super) struct QuickHasher(u64);

// === impl Interner ===

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            indices: QuickMap::default(),
            addresses: QuickMap::default(),
            parts: Vec::new(),
        }
    }
}

impl<T: Eq + Hash> Interner<T> {
    /// The number of a part; equal parts have equal numbers.
    pub(super) fn index(&mut self, part: &Rc<T>) -> u32 {
        if let Some(index) = self.addresses.get(&address(part)) {
            return *index;
        }
        if let Some(index) = self.indices.get(part) {
            return *index;
        }
        let index = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        self.indices.insert(Rc::clone(part), index);
        // The part is kept, so its address is its own for ever.
        self.addresses.insert(address(part), index);
        self.parts.push(Rc::clone(part));
        index
    }

    /// The part of a number.
    pub(super) fn part(&self, index: u32) -> Rc<T> {
        Rc::clone(&self.parts[index as usize])
    }
}

/// Where a part lies.
pub(super) fn address<T>(part: &Rc<T>) -> usize {
    Rc::as_ptr(part).addr()
}

// === impl QuickHasher ===

impl QuickHasher {
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x243f_6a88_85a3_08d3) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word));
        }
        let mut word = [0; 8];
        let rest = chunks.remainder();
        word[..rest.len()].copy_from_slice(rest);
        self.fold(u64::from_le_bytes(word) | (rest.len() as u64) << 56);
    }

    fn write_u8(&mut self, word: u8) {
        self.fold(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.fold(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.fold(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.fold(word as u64);
    }
}
