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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Moves what is younger than a minute, and says that all else does not count any more.
    struct ForgetOld;

    impl Renumbering for ForgetOld {
        fn preemption(&mut self, instant: &mut Instant) -> bool {
            let counts = *instant > Instant::from_epoch(Duration::from_secs(60));
            *instant = Instant::default();
            counts
        }
    }

    #[test]
    fn a_lapse_is_kept_for_as_long_as_it_counts() {
        for (seconds, kept) in [(61, true), (60, false)] {
            let lapse = Lapse {
                member: Identity::new("a").unwrap(),
                at: Instant::from_epoch(Duration::from_secs(seconds)),
            };
            let mut memory = GroupMemory {
                assigned: None,
                lapse: Some(Box::new(lapse)),
            };
            memory.renumber(&mut ForgetOld);
            let at = memory.lapse.map(|lapse| lapse.at);
            assert_eq!(at, kept.then(Instant::default));
        }
    }
}
