//! One lease, and what the figures show of it.

use elector_protocol::{Instant, ResourceVersion};

use crate::metrics::candidate_counts::CandidateCounts;
use crate::metrics::observed_leadership::ObservedLeadership;
use crate::metrics::obstacle::Obstacle;

/// A lease that is followed.
pub(super) struct MeasuredLease {
    pub(super) leadership: ObservedLeadership,
    pub(super) version: Option<ResourceVersion>,
    pub(super) candidates: CandidateCounts,
    pub(super) obstacle: Option<Obstacle>,
    /// True while a check of its expiry is under way.
    pub(super) is_checked: bool,
    /// True if its candidates have to be counted.
    pub(super) is_stale: bool,
    pub(super) shown: Option<ShownLease>,
    /// True if it was led at any time since its Lease is there.
    pub(super) was_led: bool,
    /// True if its last holder stopped and let go.
    is_released: bool,
    has_candidates: bool,
}

/// A lease as the figures show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShownLease {
    pub(super) state: LeadershipState,
    pub(super) obstacle: Option<Obstacle>,
    /// Since when it lacks a leader that it should have.
    pub(super) leaderless_since: Option<Instant>,
    /// Since when its leader is asked to make room.
    pub(super) preferred_since: Option<Instant>,
}

/// The state of a lease in the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeadershipState {
    Led,
    /// It has no leader, and candidates.
    Leaderless,
    /// Its last leader gave it up, and no candidate answers: a component at rest.
    Released,
    /// It was led, no leader gave it up, and it has no candidate any more.
    Abandoned,
}

// === impl MeasuredLease ===

impl MeasuredLease {
    pub(super) fn new(leadership: ObservedLeadership, version: Option<ResourceVersion>) -> Self {
        Self {
            leadership,
            version,
            candidates: CandidateCounts::default(),
            obstacle: None,
            is_checked: false,
            is_stale: false,
            shown: None,
            was_led: false,
            is_released: false,
            has_candidates: true,
        }
    }

    /// Its newest record was released or not, and candidates name it or not.
    pub(super) const fn note(&mut self, is_released: bool, has_candidates: bool) {
        self.is_released = is_released;
        self.has_candidates = has_candidates;
        if !has_candidates {
            // Nothing is decided about it.
            self.obstacle = None;
        }
    }

    /// No elector decides here.
    pub(super) fn forget_obstacle(&mut self) {
        self.obstacle = None;
        if let Some(shown) = &mut self.shown {
            shown.obstacle = None;
        }
    }

    /// The lease as it was shown so far, and as it is to be shown from now on.
    pub(super) fn refresh(&mut self, now: Instant) -> (Option<ShownLease>, ShownLease) {
        let before = self.shown;
        let state = self.state();
        self.was_led |= state == LeadershipState::Led;
        let leaderless_since = match state {
            LeadershipState::Led | LeadershipState::Released => None,
            LeadershipState::Leaderless | LeadershipState::Abandoned => match before {
                Some(shown) if shown.leaderless_since.is_some() => shown.leaderless_since,
                // A component that was at rest has been waiting from now on.
                Some(shown) if shown.state == LeadershipState::Released => Some(now),
                _ => self.leadership.leaderless_since(),
            },
        };
        let after = ShownLease {
            state,
            // A component at rest lacks nothing.
            obstacle: self.obstacle.filter(|_| state != LeadershipState::Released),
            leaderless_since,
            preferred_since: self.leadership.preferred_since(),
        };
        self.shown = Some(after);
        (before, after)
    }

    fn state(&self) -> LeadershipState {
        let answers = self.has_candidates && !self.candidates.are_silent();
        if self.leadership.leader().is_some() {
            LeadershipState::Led
        } else if self.is_released && !answers {
            LeadershipState::Released
        } else if self.has_candidates {
            LeadershipState::Leaderless
        } else {
            LeadershipState::Abandoned
        }
    }
}

// === impl LeadershipState ===

impl LeadershipState {
    /// Every state.
    pub(super) const ALL: [Self; 4] =
        [Self::Led, Self::Leaderless, Self::Released, Self::Abandoned];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Led => "led",
            Self::Leaderless => "leaderless",
            Self::Released => "released",
            Self::Abandoned => "abandoned",
        }
    }
}
