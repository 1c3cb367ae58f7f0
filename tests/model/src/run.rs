//! A run: the world that is searched, the rule that is broken in it, and the verdict that must come of it.

use std::time::Duration;

use elector_protocol::{CandidateTiming, ElectorTiming};

use super::acquisition::AcquisitionSetup;
use super::clocks::{ALL, Mix};
use super::mutant::Mutant;
use super::store::{Fence, Interference, Lax, Property};
use super::timing::Timing;
use super::witness::Witnesses;

/// One world to search, and the verdict that must come of it.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub(super) id: &'static str,
    /// Its subject, in a few words.
    pub(super) about: &'static str,
    /// The clocks. Each mix is a world of its own.
    pub(super) mixes: &'static [Mix],
    /// W, H and A.
    pub(super) timing: Timing,
    /// The number of candidates, one to three.
    pub(super) candidates: usize,
    /// The number of electors, one or two.
    pub(super) electors: usize,
    /// The number of electors that see changes of the Lease whenever they like. The others see them at once.
    pub(super) lagging: usize,
    /// The number of revisions that a watch may lag behind before it has to list.
    pub(super) backlog: usize,
    /// True if an elector's write lands later than it is sent. It is conditional on the very revision
    /// that was judged, so to land later is much the same as to be sent later.
    pub(super) slow_electors: bool,
    /// True if a POST lands later than it is sent.
    pub(super) slow_posts: bool,
    /// True if electors crash and start again.
    pub(super) restarts: bool,
    /// True if candidates are pinged and ack. Otherwise all ack at once.
    pub(super) pings: bool,
    /// True if a holder's work may end by itself, so that the holder lets go.
    pub(super) releases: bool,
    /// The number of writes under way that each candidate may have given up.
    pub(super) orphans: usize,
    /// True if the reply to a write that landed may get lost.
    pub(super) lost_replies: bool,
    /// Where it starts.
    pub(super) start: Start,
    /// The changes that strangers may make.
    pub(super) interference: Interference,
    /// The candidate that acks first, and whose writes of the Lease are all refused.
    pub(super) refused_candidate: Option<usize>,
    /// True if all candidates bear one name.
    pub(super) one_name: bool,
    /// True if the electors know W by what the candidates announce alone: the configured `W_max` is A.
    pub(super) announced: bool,
    /// The number held against its predecessors as a token.
    pub(super) fence: Fence,
    /// Which writes the server applies without their condition.
    pub(super) lax: Lax,
    /// The rule that is broken on purpose.
    pub(super) mutant: Option<Mutant>,
    /// Where processes acquire leases themselves: how (R18).
    pub(super) acquisition: Option<AcquisitionSetup>,
    /// True if the best candidate must be within reach as a leader, rather than any.
    pub(super) best: bool,
    /// Its part in a full check.
    pub(super) full: Full,
    /// The verdict that must come of it.
    pub(super) expectation: Expectation,
}

/// Where a world starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// There is no Lease.
    Absent,
    /// The Lease has been released.
    Released,
}

/// The part of a run in a full check, which takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// It is the same.
    Same,
    /// It is searched then only.
    Only,
    /// It grows: these clocks, and so many electors that lag.
    Grows(&'static [Mix], usize),
}

/// The verdict that a run must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    /// Nothing is ever wrong, and these witnesses are met.
    Safe(Witnesses),
    /// The same, and a leader is within reach of every state, without a fault.
    SafeAndLive(Witnesses),
    /// This goes wrong, by the break of this rule.
    Unsafe(Property, &'static str),
    /// Some states have no leader within reach, by the break of this rule.
    Trapped(&'static str),
}

// === impl Run ===

impl Run {
    /// Its id: `MC-`, and letters for what it is about.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// True if it is left to a full check.
    pub fn is_full_only(&self) -> bool {
        self.full == Full::Only
    }

    /// True if a full check searches more than the usual one.
    pub fn is_bigger_in_full(&self) -> bool {
        self.full != Full::Same
    }

    /// True if it is of the rules as they ship, of our candidates, and of a server that keeps R2.
    pub(super) fn is_as_shipped(&self) -> bool {
        self.mutant.is_none()
            && self.acquisition.is_none_or(AcquisitionSetup::is_as_shipped)
            && self.lax == Lax::Nothing
            && self.fence != Fence::Term
            && !self.must_be_caught()
    }

    /// True if its electors behave alike, clocks apart.
    pub(super) fn has_like_electors(&self) -> bool {
        matches!(self.lagging, 0 | 2) && !self.slow_electors
    }

    /// True if the check must find it unsafe or trapped.
    pub(super) fn must_be_caught(&self) -> bool {
        !self.breaks().is_empty()
    }

    /// The rule that is broken in it, if any.
    pub(super) fn breaks(&self) -> &'static str {
        match self.expectation {
            Expectation::Unsafe(_, rule) | Expectation::Trapped(rule) => rule,
            Expectation::Safe(_) | Expectation::SafeAndLive(_) => "",
        }
    }

    /// True if a stranger may write a record of term zero.
    pub(super) fn strangers_restart_terms(&self) -> bool {
        let Interference {
            deletions,
            creations,
            blanks,
            wipes: _,
            object_deletions: _,
        } = self.interference;
        deletions + creations + blanks > 0
    }

    /// The same run as a full check searches it.
    #[must_use]
    pub fn in_full(self) -> Self {
        match self.full {
            Full::Grows(mixes, lagging) => Self {
                mixes,
                lagging,
                ..self
            },
            Full::Same | Full::Only => self,
        }
    }

    /// Which clocks are tried, for the table.
    pub(super) fn clocks(&self) -> String {
        match self.mixes {
            [_] => "worst".to_owned(),
            mixes => format!("{} of {}", mixes.len(), ALL.len()),
        }
    }

    /// True if a property is looked at. A run with a mutant looks at what it must break alone: most mutants break
    /// a rule of form on their way, and to find that would prove less.
    pub(super) fn checks(&self, property: Property) -> bool {
        match self.expectation {
            Expectation::Unsafe(expected, _) => property == expected,
            Expectation::Trapped(_) => false,
            Expectation::Safe(_) | Expectation::SafeAndLive(_) => {
                // A mutant that is safe and not a move of ours costs nothing but the rule of form.
                property != Property::AllowedMove || self.mutant.is_none_or(Mutant::is_well_formed)
            }
        }
    }

    /// W of the candidates.
    pub(super) fn lease_duration(&self) -> Duration {
        Duration::from_secs(self.timing.lease)
    }

    /// H of the candidates.
    pub(super) fn renew_deadline(&self) -> Duration {
        Duration::from_secs(self.timing.belief)
    }

    /// A of electors and candidates.
    pub(super) fn accept_window(&self) -> Duration {
        Duration::from_secs(self.timing.accept)
    }

    /// The constants of the electors.
    pub(super) fn elector_timing(&self) -> ElectorTiming {
        let second = Duration::from_secs(1);
        let never = second * 3600;
        let passed_over = match self.mutant {
            Some(Mutant::NoPassOver) => Duration::ZERO,
            _ => Duration::from_secs(self.timing.passed_over),
        };
        let by_what_was_seen = self.announced || self.mutant == Some(Mutant::SeenIsLongest);
        ElectorTiming {
            accept_window: self.accept_window(),
            accept_window_max: self.accept_window(),
            ack_window: second * 2,
            ack_window_unmarked: second * 2,
            fresh: if self.pings { second * 2 } else { never / 2 },
            max_lease_duration: if by_what_was_seen {
                self.accept_window()
            } else {
                self.lease_duration()
            },
            absent_lease_grace: (self.mutant == Some(Mutant::MissingIsFree))
                .then_some(Duration::ZERO),
            passed_over,
            passed_over_max: passed_over,
            preemptions: self.timing.preemptions.1,
            preemption_window: Duration::from_secs(self.timing.preemptions.0),
            // Ages are told apart up to a few seconds, so these are never reached.
            re_ping_after: never,
            ping_interval: never,
            candidate_validity: never,
        }
    }

    /// The constants of the candidates.
    pub(super) fn candidate_timing(&self) -> CandidateTiming {
        CandidateTiming {
            lease_duration: self.lease_duration(),
            renew_deadline: self.renew_deadline(),
            renew_interval: Duration::from_secs(self.timing.renew),
            retry_period: CandidateTiming::RETRY_MIN * 2,
            request_timeout: Duration::from_secs(1),
            accept_window: self.accept_window(),
        }
    }
}
