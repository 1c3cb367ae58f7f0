//! The objects that a read is of.

use elector_protocol::shard::ShardSelector;

/// The objects that a list or a watch brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReadSpan {
    /// All: the server does not select by ranges.
    Whole,
    Ranges(ShardSelector),
}

// === impl ReadSpan ===

impl ReadSpan {
    /// True if it is of no other ranges than these.
    pub(super) fn is_current(&self, led: &ShardSelector) -> bool {
        match self {
            Self::Whole => true,
            Self::Ranges(ranges) => ranges == led,
        }
    }
}
