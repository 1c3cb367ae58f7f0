//! The hash of a key, and ranges of hashes.

/// A range of hashes, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardRange {
    start: u64,
    /// The last hash of the range: the end of the last one, 2^64, is no number of 64 bits.
    last: u64,
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a of 64 bits over the text, as KEP-5866 hashes a field.
///
/// ```
/// assert_eq!(elector_protocol::shard::shard_hash("abc"), 0xe71f_a219_0541_574b);
/// ```
pub const fn shard_hash(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let (mut hash, mut place) = (FNV_OFFSET, 0);
    while place < bytes.len() {
        hash = (hash ^ bytes[place] as u64).wrapping_mul(FNV_PRIME);
        place += 1;
    }
    hash
}

// === impl ShardRange ===

impl ShardRange {
    /// The range from one hash to another, both in it. `None` where the last one is the smaller.
    pub const fn new(start: u64, last: u64) -> Option<Self> {
        if start > last {
            return None;
        }
        Some(Self { start, last })
    }

    /// The first hash.
    pub const fn start(self) -> u64 {
        self.start
    }

    /// The last hash.
    pub const fn last(self) -> u64 {
        self.last
    }

    /// True if the hash is in it.
    pub const fn contains(self, hash: u64) -> bool {
        self.start <= hash && hash <= self.last
    }

    /// Both as one, where nothing lies between them.
    pub(super) fn joined(self, next: Self) -> Option<Self> {
        let touches = next.start <= self.last.saturating_add(1) && self.start <= next.start;
        touches.then(|| Self {
            start: self.start,
            last: self.last.max(next.last),
        })
    }
}
