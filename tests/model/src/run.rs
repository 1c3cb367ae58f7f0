//! A run: which world is searched, which rule is broken in it, and which verdict must come of it.

use std::time::Duration;

use elector_protocol::{CandidateTiming, ElectorTiming};

use super::reserve::Reserve;
use super::shortcut::Shortcut;
use super::store::{Property, Whims};
use super::witness::Witnesses;

/// One world to search, and what must come of it.
#[derive(Clone, Debug)]
pub struct Run {
    pub(super) id: &'static str,
    /// What it is about, in a few words.
    pub(super) about: &'static str,
    /// The clocks. Each mix is a world of its own.
    pub(super) mixes: &'static [Mix],
    /// How many candidates, one or two.
    pub(super) candidates: usize,
    /// How many electors, one or two.
    pub(super) electors: usize,
    /// How many of the electors see changes of the Lease whenever they like. The others see them at once.
    pub(super) lagging: usize,
    /// How many revisions a watch may lag behind before it has to list.
    pub(super) backlog: usize,
    /// Whether an elector's write takes its time, or lands when it is sent. It is conditional on the very revision
    /// that was judged, so to land later is much the same as to be sent later.
    pub(super) slow_electors: bool,
    /// Whether electors crash and start again.
    pub(super) restarts: bool,
    /// Whether candidates are asked and answer. Otherwise all answer at once.
    pub(super) asks: bool,
    /// Whether a holder's work may end by itself, so that the holder lets go.
    pub(super) releases: bool,
    /// How many writes that a candidate gave up may be under way, for each candidate.
    pub(super) orphans: usize,
    /// Whether the reply to a write that landed may get lost.
    pub(super) lost_replies: bool,
    /// Where it starts.
    pub(super) start: Start,
    /// What strangers may do.
    pub(super) whims: Whims,
    /// The candidate that answers first and whose writes of the Lease are all refused.
    pub(super) lame: Option<usize>,
    /// The rule that is broken on purpose.
    pub(super) shortcut: Option<Shortcut>,
    /// Where holders are client-go's: which electors reserve, and how holders count (R3 d).
    pub(super) reserve: Option<Reserve>,
    /// Whether it is the best candidate that must be within reach as a leader, or any.
    pub(super) best: bool,
    /// What must come of it.
    pub(super) expectation: Expectation,
}

/// The clocks of one world: seconds for each tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mix {
    /// Of the candidates.
    pub(super) candidates: [u64; 2],
    /// Of the electors.
    pub(super) electors: [u64; 2],
}

/// Where a world starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// There is no Lease.
    Absent,
    /// The Lease has been released.
    Released,
}

/// The verdict that a run must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    /// Nothing is ever wrong, and these witnesses are met.
    Safe(Witnesses),
    /// The same, and a leader is within reach of every state, without a fault.
    SafeAndLive(Witnesses),
    /// This goes wrong.
    Unsafe(Property),
    /// Some states have no leader within reach.
    Trapped,
}

/// W of the candidates, and `W_max` of the electors.
pub(super) const LEASE_DURATION: Duration = Duration::from_secs(6);
/// H of the candidates: two ticks of a slow clock, as W is two ticks of a fast one. Equality is the limit of safety.
pub(super) const RENEW_DEADLINE: Duration = Duration::from_secs(4);
/// A: how long a grant waits for its accept.
pub(super) const ACCEPT_WINDOW: Duration = Duration::from_secs(3);

/// Slow holders, fast electors: the worst case.
pub(super) const WORST: &[Mix] = &[mix([2, 2], [3, 3])];
/// The worst case, one with unlike candidates, and the opposite of the worst.
pub(super) const SOME: &[Mix] = &[
    mix([2, 2], [3, 3]),
    mix([2, 3], [3, 3]),
    mix([3, 3], [2, 2]),
];
/// Every mix of like electors.
pub(super) const ALL: &[Mix] = &[
    mix([2, 2], [3, 3]),
    mix([2, 3], [3, 3]),
    mix([3, 2], [3, 3]),
    mix([3, 3], [3, 3]),
    mix([2, 2], [2, 2]),
    mix([2, 3], [2, 2]),
    mix([3, 2], [2, 2]),
    mix([3, 3], [2, 2]),
];

// === impl Run ===

impl Run {
    /// Its id: `MC-`, and letters for what it is about.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// The same run with electors that all lag, or one of them where candidates are asked, and with every mix of clocks
    /// where it has several: minutes and gigabytes, not seconds.
    #[must_use]
    pub fn at_large(self) -> Self {
        Self {
            mixes: if self.mixes.len() > 1 {
                ALL
            } else {
                self.mixes
            },
            lagging: if self.asks { 1 } else { self.electors },
            ..self
        }
    }

    /// Which clocks are tried, for the table.
    pub(super) fn clocks(&self) -> String {
        match self.mixes {
            [_] => "worst".to_owned(),
            mixes => format!("{} of {}", mixes.len(), ALL.len()),
        }
    }

    /// Whether a property is looked at. A run with a shortcut looks at what it must break alone: most shortcuts break
    /// a rule of form on their way, and to find that would prove less.
    pub(super) fn checks(&self, property: Property) -> bool {
        match self.expectation {
            Expectation::Unsafe(expected) => property == expected,
            Expectation::Trapped => false,
            Expectation::Safe(_) | Expectation::SafeAndLive(_) => true,
        }
    }

    /// The constants of the electors.
    pub(super) fn elector_timing(&self) -> ElectorTiming {
        let second = Duration::from_secs(1);
        let never = second * 3600;
        let passed_over = match self.shortcut {
            Some(Shortcut::NobodyPassedOver) => Duration::ZERO,
            _ if self.asks => second * 2,
            _ => Duration::ZERO,
        };
        ElectorTiming {
            accept_window: ACCEPT_WINDOW,
            accept_window_max: ACCEPT_WINDOW,
            ack_window: second * 2,
            ack_window_unmarked: second * 2,
            fresh: if self.asks { second * 2 } else { never / 2 },
            max_lease_duration: LEASE_DURATION,
            absent_lease_grace: (self.shortcut == Some(Shortcut::MissingIsFree))
                .then_some(Duration::ZERO),
            passed_over,
            passed_over_max: passed_over,
            // Ages are told apart up to a few seconds, so these are never reached.
            raise_after: never,
            ping_interval: never,
            candidate_validity: never,
        }
    }

    /// The constants of the candidates.
    pub(super) fn candidate_timing(&self) -> CandidateTiming {
        CandidateTiming {
            lease_duration: match self.shortcut {
                Some(Shortcut::ShortLease) => LEASE_DURATION / 2,
                _ => LEASE_DURATION,
            },
            renew_deadline: RENEW_DEADLINE,
            renew_interval: Duration::from_secs(2),
            retry_period: CandidateTiming::RETRY_MIN * 2,
            request_timeout: Duration::from_secs(1),
            accept_window: ACCEPT_WINDOW,
        }
    }
}

const fn mix(candidates: [u64; 2], electors: [u64; 2]) -> Mix {
    Mix {
        candidates,
        electors,
    }
}
