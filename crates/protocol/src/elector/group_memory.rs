//! An election's memory of the group that its lease is a part of (R16).

use crate::names::Identity;
use crate::renumber::{Renumber, Renumbering};
use crate::time::Instant;

/// An election's memory of its group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct GroupMemory {
    /// The candidate that the part is assigned to.
    pub(super) assigned: Option<Identity>,
    /// The newest term of a member that ran out.
    pub(super) lapse: Option<Box<Lapse>>,
}

/// A member's term that ran out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lapse {
    pub(super) member: Identity,
    pub(super) at: Instant,
}

// === impl GroupMemory ===

impl Renumber for GroupMemory {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        if !self
            .lapse
            .as_mut()
            .is_some_and(|lapse| by.preemption(&mut lapse.at))
        {
            self.lapse = None;
        }
    }
}
