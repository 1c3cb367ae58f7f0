//! The number of ranges of a group, and how the names of its leases show it.

use std::fmt;
use std::num::NonZeroU16;

use super::field::ShardField;
use super::range::ShardRange;

/// Equal ranges of all hashes of one field: the parts of a group of leases.
///
/// The layout is in the name of each lease, `NAME-03-of-16`, so that two layouts never share a lease:
///
/// ```
/// use elector_protocol::shard::{ShardField, ShardLayout, shard_hash};
///
/// let layout = ShardLayout::new(ShardField::Uid, 16).unwrap();
/// let index = layout.index_of(shard_hash("5b4eba3a-7b7f-4b5e-a1d6-7d9bf07a6c0e"));
/// let name = layout.lease_name("maps", index);
/// assert_eq!(ShardLayout::of_lease("maps", &name), Some((layout, index)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardLayout {
    field: ShardField,
    count: NonZeroU16,
}

/// The end of the names of a layout by namespaces. Its ranges hold other objects than those of a layout by uids.
const BY_NAMESPACE: &str = "-namespaces";

// === impl ShardLayout ===

impl ShardLayout {
    /// That many equal ranges. `None` for zero.
    pub const fn new(field: ShardField, count: u16) -> Option<Self> {
        match NonZeroU16::new(count) {
            Some(count) => Some(Self { field, count }),
            None => None,
        }
    }

    /// The field whose hash counts.
    pub const fn field(self) -> ShardField {
        self.field
    }

    /// The number of ranges.
    pub const fn count(self) -> u16 {
        self.count.get()
    }

    /// The index of the range that a hash is in, counted from zero.
    pub const fn index_of(self, hash: u64) -> u16 {
        // Below the count, which has 16 bits.
        ((hash as u128 * self.count.get() as u128) >> 64) as u16
    }

    /// The range of that index, `None` past the last one. Ranges differ in size by one hash at most.
    pub const fn range(self, index: u16) -> Option<ShardRange> {
        if index >= self.count.get() {
            return None;
        }
        let last = self.first_hash(index + 1) - 1;
        ShardRange::new(self.first_hash(index) as u64, last as u64)
    }

    /// The name of the lease of a range, for a group of that name: `maps-03-of-16`, and `maps-03-of-16-namespaces` where
    /// the namespace counts.
    pub fn lease_name(self, group: &str, index: u16) -> String {
        format!("{group}-{}", self.part_name(index))
    }

    /// The name of a range within its group: `03-of-16`.
    pub fn part_name(self, index: u16) -> String {
        let (count, end) = (self.count.to_string(), self.name_end());
        let width = count.len();
        format!("{index:0width$}-of-{count}{end}")
    }

    /// The layout and the index that the name of a lease of that group shows, `None` for a name that shows none.
    pub fn of_lease(group: &str, lease: &str) -> Option<(Self, u16)> {
        let part = lease.strip_prefix(group)?.strip_prefix('-')?;
        let (numbers, field) = match part.strip_suffix(BY_NAMESPACE) {
            Some(numbers) => (numbers, ShardField::Namespace),
            None => (part, ShardField::Uid),
        };
        let (index, count) = numbers.split_once("-of-")?;
        let (index, layout) = (index.parse().ok()?, Self::new(field, count.parse().ok()?)?);
        // A name in any other form, `maps-3-of-16` or `maps-+3-of-16`, is not one of ours.
        let is_ours = index < layout.count() && layout.part_name(index) == part;
        is_ours.then_some((layout, index))
    }

    /// The first hash of a range, 2^64 for the one behind the last.
    const fn first_hash(self, index: u16) -> u128 {
        ((index as u128) << 64).div_ceil(self.count.get() as u128)
    }

    const fn name_end(self) -> &'static str {
        match self.field {
            ShardField::Uid => "",
            ShardField::Namespace => BY_NAMESPACE,
        }
    }
}

impl fmt::Display for ShardLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, count } = self;
        write!(f, "{count} ranges of {field}")
    }
}
