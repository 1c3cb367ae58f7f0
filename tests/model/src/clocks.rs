//! Clocks: how fast each process's clock runs, and how time passes.

use std::time::Duration;

/// The clocks of one world: seconds for each tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mix {
    /// Of the candidates.
    pub(super) candidates: [u64; 3],
    /// Of the electors.
    pub(super) electors: [u64; 2],
}

/// The effect of a transition on the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// No time passes.
    Stands,
    /// Every clock goes on by its rate.
    Passes,
    /// The same, but this candidate's clocks stand still.
    PassesBut(usize),
    /// The same, but this candidate's machine is suspended: its monotonic clock stands still.
    Suspends(usize),
    /// This candidate's time of day is set ahead, and its holder's clock gains; no time passes.
    Gains(usize),
}

/// One tick of a fast clock, and the duration that a record is shortened to.
pub(super) const TICK: Duration = Duration::from_secs(3);
/// The same on the wire.
pub(super) const TICK_SECONDS: i32 = 3;
/// Slow holders, fast electors: the worst case.
pub(super) const WORST: &[Mix] = &[mix([2, 2, 2], [3, 3])];
/// The worst case, one with unlike candidates, and the opposite of the worst.
pub(super) const SOME: &[Mix] = &[
    mix([2, 2, 2], [3, 3]),
    mix([2, 3, 2], [3, 3]),
    mix([3, 3, 3], [2, 2]),
];
/// A slow and a fast clock, of processes that wait for each other, and the fast ones of electors.
pub(super) const UNLIKE: &[Mix] = &[mix([2, 3, 2], [3, 3])];
/// Every mix of processes that wait for each other, where which is which makes no difference.
pub(super) const PEERS: &[Mix] = &[
    mix([2, 3, 2], [3, 3]),
    mix([2, 2, 2], [3, 3]),
    mix([3, 3, 3], [3, 3]),
];
/// The same where it does.
pub(super) const UNLIKE_PEERS: &[Mix] = &[mix([2, 3, 2], [3, 3]), mix([3, 2, 3], [3, 3])];
/// All of these.
pub(super) const PEERS_APART: &[Mix] = &[
    mix([2, 3, 2], [3, 3]),
    mix([3, 2, 3], [3, 3]),
    mix([2, 2, 2], [3, 3]),
    mix([3, 3, 3], [3, 3]),
];
/// Every mix of like electors.
pub(super) const ALL: &[Mix] = &[
    mix([2, 2, 2], [3, 3]),
    mix([2, 3, 2], [3, 3]),
    mix([3, 2, 3], [3, 3]),
    mix([3, 3, 3], [3, 3]),
    mix([2, 2, 2], [2, 2]),
    mix([2, 3, 2], [2, 2]),
    mix([3, 2, 3], [2, 2]),
    mix([3, 3, 3], [2, 2]),
];

// === impl Time ===

impl Time {
    /// True if any clock goes on.
    pub(super) fn passes(self) -> bool {
        self != Self::Stands
    }

    /// The time that passes by the holder's clock of the candidate of this index, and by its monotonic one.
    pub(super) fn of_candidate(self, index: usize, rate: u64) -> (u64, u64) {
        match self {
            Self::PassesBut(stopped) if stopped == index => (0, 0),
            Self::Suspends(asleep) if asleep == index => (rate, 0),
            Self::Gains(ahead) if ahead == index => (rate, 0),
            Self::Stands | Self::Gains(_) => (0, 0),
            Self::Passes | Self::PassesBut(_) | Self::Suspends(_) => (rate, rate),
        }
    }

    /// The time that passes for an elector.
    pub(super) fn of_elector(self, rate: u64) -> u64 {
        match self {
            Self::Stands | Self::Gains(_) => 0,
            Self::Passes | Self::PassesBut(_) | Self::Suspends(_) => rate,
        }
    }
}

const fn mix(candidates: [u64; 3], electors: [u64; 2]) -> Mix {
    Mix {
        candidates,
        electors,
    }
}
