//! Witnesses: the events that a safe run must reach, since a check of a world in which nothing happens would pass.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of events that were reached, or are to be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Witnesses(u32);

/// In the order of their bits.
const NAMES: [&str; 14] = [
    "a candidate leads",
    "a crashed holder is replaced",
    "a holder is asked to make room",
    "a holder hands over",
    "a candidate leads after a deletion",
    "a process has two writes under way",
    "a signal leaves the record as it was",
    "the third candidate leads",
    "a holder believes while an elector lists the unheld record that it knew before",
    "a process acquires an expired lease",
    "a process acquires a released lease",
    "a process acquires an unheld lease that nothing proves free",
    "a grant is accepted while an acquisition is under way",
    "a lock is taken from a holder that goes on",
];

// === impl Witnesses ===

impl Witnesses {
    /// Nothing.
    pub(super) const NONE: Self = Self(0);
    /// A candidate leads.
    pub(super) const LEADS: Self = Self(1);
    /// The lease of a holder that crashed while it led is granted to another.
    pub(super) const TAKES_OVER: Self = Self(2);
    /// A holder is asked to make room.
    pub(super) const YIELDS: Self = Self(4);
    /// A holder writes its successor.
    pub(super) const HANDS_OVER: Self = Self(8);
    /// A candidate leads under a Lease that was created after a deletion.
    pub(super) const RETURNS: Self = Self(16);
    /// A process that gave up a write sends another, and both may land.
    pub(super) const TWO_MESSAGES: Self = Self(32);
    /// A preference is written or withdrawn, and every stop-watch runs on.
    pub(super) const SIGNALS: Self = Self(64);
    /// The third candidate leads.
    pub(super) const THIRD: Self = Self(128);
    /// An elector lists, and finds an unproven record as it knew it, in a newer revision; a term that it missed goes
    /// on.
    pub(super) const RECURS: Self = Self(256);

    /// A process acquires a lease whose holder has not renewed it.
    pub(super) const TAKES_EXPIRED: Self = Self(512);
    /// A process acquires a lease whose holder has let go.
    pub(super) const TAKES_RELEASED: Self = Self(1024);
    /// A process acquires a born or an emptied lease, after W or because nothing was there for as long.
    pub(super) const TAKES_UNPROVEN: Self = Self(2048);
    /// An electee accepts its grant while another process's acquisition may land.
    pub(super) const BESIDE: Self = Self(4096);

    /// A lock is taken from a holder that still believes.
    pub(super) const DISPLACES: Self = Self(8192);

    /// These and those.
    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This, if it is so.
    pub(super) fn when(self, so: bool) -> Self {
        if so { self } else { Self::NONE }
    }

    /// True if anything of `other` is among these.
    pub(super) fn include(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Those that are not among `found`.
    pub(super) fn without(self, found: Self) -> Self {
        Self(self.0 & !found.0)
    }
}

impl BitOr for Witnesses {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.and(other)
    }
}

impl BitOrAssign for Witnesses {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl fmt::Display for Witnesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = NAMES
            .iter()
            .enumerate()
            .filter(|(bit, _)| self.0 & (1 << bit) != 0);
        for (index, (_, name)) in names.enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{name}")?;
        }
        Ok(())
    }
}
