//! The strategies that candidates wish for, and the order of each as docs/strategies.md has it: the judges of a run compare
//! by this order, and production code by its own.

use serde::{Deserialize, Serialize};

/// A strategy that Elector decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PlannedStrategy {
    /// The oldest version leads.
    #[default]
    Oldest,
    /// The newest version leads.
    Newest,
    /// The highest priority leads, and the oldest version among equals.
    Priority,
    /// The leader that there is leads.
    Sticky,
}

// === impl PlannedStrategy ===

impl PlannedStrategy {
    pub(super) const ALL: [Self; 4] = [Self::Oldest, Self::Newest, Self::Priority, Self::Sticky];

    /// Its name in the API.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Oldest => "OldestEmulationVersion",
            Self::Newest => "elector.dev/newest-version",
            Self::Priority => "elector.dev/priority",
            Self::Sticky => "elector.dev/sticky",
        }
    }

    /// The rank of a candidate by its emulation version, its binary version and its priority: the lower one is better.
    pub(crate) const fn rank(self, (emulation, binary): (u64, u64), priority: u64) -> [u64; 3] {
        match self {
            Self::Oldest => [0, emulation, binary],
            Self::Newest => [0, u64::MAX - binary, u64::MAX - emulation],
            Self::Priority => [u64::MAX - priority, emulation, binary],
            Self::Sticky => [0; 3],
        }
    }
}
