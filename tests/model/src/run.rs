//! A run: the world that is searched, the rule that is broken in it, and the verdict that must come of it.

use std::time::Duration;

use elector_protocol::holder::{Acquisition, HolderConfig, HolderMode, TakeoverPolicy};
use elector_protocol::{CandidateTiming, ElectorTiming, Identity, StrategyName};

use super::clocks::{ALL, Mix};
use super::mutant::Mutant;
use super::restraint::Restraint;
use super::store::{Fence, Interference, Lax, LeaseStore, NAMES, Property, identity};
use super::witness::Witnesses;

/// One world to search, and the verdict that must come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The rules of every second life of an elector, where they are others than those of the life before.
    pub(super) next_life: Option<LifeRules>,
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
    /// The way of the processes to their terms.
    pub(super) mode: ModelMode,
    /// The longest lease duration given to processes that acquire; W, if none.
    pub(super) flag: Option<Duration>,
    /// Overrides their wait for a Lease that is missing or unproven.
    pub(super) grace: Option<Duration>,
    /// True if the first process bears another name in every second life.
    pub(super) renames: bool,
    /// True if the work of a term that has lapsed may take its time, before the next one begins.
    pub(super) slow_stops: bool,
    /// True if a process's machine may be suspended for a tick, and its time of day be set ahead by one.
    pub(super) drifts: bool,
    /// True if each process keeps an instance lock.
    pub(super) rejoins: bool,
    /// True if an elector may ping at any time, whatever becomes of it.
    pub(super) pinged: bool,
    /// True if the electors may write the Lease.
    pub(super) electors_write: bool,
    /// True if the first candidate is better than the others, so that they are asked to make room.
    pub(super) ranked: bool,
    /// Where the lease is a lock of electors, of which two may believe (R17).
    pub(super) lock: Option<ModelLock>,
    /// True if there are two leases of a group, for which all candidates stand, the last of them from some time on.
    pub(super) group: bool,
    /// True if waits double once (R5, R16, R23), so that failures and withdrawals are counted up to two.
    pub(super) doubles: bool,
    /// True if an operator freezes the lease and prefers the worst candidate, and takes each back, at any step.
    pub(super) operated: bool,
    /// True if steps that can begin no term happen at once, a crash that costs nothing but time is left out, and so is a
    /// break of an elector's watch where no Lease is deleted.
    pub(super) hurries: bool,
    /// True if a process forgets a write of unknown outcome as soon as nothing can show it any more.
    pub(super) forgets: bool,
    /// True if the best candidate must be within reach as a leader, rather than any.
    pub(super) best: bool,
    /// Its part in a full check.
    pub(super) full: Full,
    /// The verdict that must come of it.
    pub(super) expectation: Expectation,
}

/// The constants that a run may vary, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// W of the candidates, and `W_max` of the electors.
    pub(super) lease: u64,
    /// H of the candidates.
    pub(super) belief: u64,
    /// A: how long a grant waits for its accept.
    pub(super) accept: u64,
    /// R: how long a holder waits between renewals.
    pub(super) renew: u64,
    /// The time for which an electee that did not accept is passed over.
    pub(super) passed_over: u64,
    /// For how long a pre-emption counts, and how many there may be.
    pub(super) preemptions: (u64, u8),
}

/// The rules of an elector whose flags were changed while it was down, or whose build is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LifeRules {
    /// `W_max` as configured.
    pub(super) lease: u64,
    /// A: how long a grant waits for its accept.
    pub(super) accept: u64,
    /// True if its order of the candidates is the other way round.
    pub(super) reversed: bool,
}

/// The way of a process to its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelMode {
    /// It accepts grants.
    Elected,
    /// It acquires as soon as the lease is free.
    Plain,
    /// It accepts grants, and acquires after the fallback.
    Auto,
}

/// A lock that electors hold, at times beside the elector that is built into kube-apiserver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModelLock {
    /// The number of electors; the other processes are built-in ones. That one waits as any holder does, and it
    /// goes on until its own deadline where its watch lags as far.
    pub(super) electors: usize,
    /// True if a holder that is no elector is replaced at once.
    pub(super) displaces: bool,
    /// The wait of an elector that took the lock, before it acts.
    pub(super) quiet: Duration,
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
    /// It grows: these clocks, and this number of electors that lag.
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

/// More than an acquisition may be delayed without a look at the Lease (R18).
pub(super) const LATE: Duration = Duration::from_secs(1);
/// The time for which a lease is free before a process in auto mode takes it: a tick of any clock.
const FALLBACK: Duration = Duration::from_secs(2);

// === impl Timing ===

impl Timing {
    /// Two ticks of a fast clock for W and two of a slow one for H: equality, the limit of safety.
    pub(super) const USUAL: Self = Self {
        lease: 6,
        belief: 4,
        accept: 3,
        renew: 2,
        passed_over: 0,
        preemptions: (0, 1),
    };
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
            && (self.grace.is_none() || self.lock.is_some())
            && self.lax == Lax::Nothing
            && !matches!(self.fence, Fence::Term(_))
            && !self.must_be_caught()
    }

    /// True if its processes may acquire the lease themselves.
    pub(super) fn acquires(&self) -> bool {
        self.mode != ModelMode::Elected
    }

    /// The first name of the process of an index.
    pub(super) fn name_of(&self, index: usize) -> usize {
        if self.one_name { 0 } else { index }
    }

    /// The name that it bears in the life after one of this name.
    pub(super) fn next_name(&self, index: usize, name: usize) -> usize {
        let spare = NAMES.len() - 1;
        match index {
            0 if self.renames && name != spare => spare,
            _ => self.name_of(index),
        }
    }

    /// The member of a group that a process is.
    pub(super) fn member(&self, process: usize) -> Identity {
        identity(NAMES[process])
    }

    /// True if the watch of a process shows the Lease.
    pub(super) fn shows(&self, store: &LeaseStore) -> bool {
        store.lease.is_some() && (store.labelled || self.mutant != Some(Mutant::WatchByLabel))
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
            unlabels: _,
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

    /// The judge of preferences, by the rules, whatever a mutant makes of them.
    pub(super) fn restraint(&self) -> Restraint {
        let rules = Self {
            mutant: None,
            ..*self
        };
        Restraint::new(&rules.elector_timing(), rules.longest_failure())
    }

    /// For how long a hand-over that failed counts: where waits double, until the next one can have failed too. Nothing where
    /// hand-overs are not held back.
    pub(super) fn longest_failure(&self) -> Duration {
        if self.mutant == Some(Mutant::ForgetFailures) || self.timing.preemptions.0 == 0 {
            return Duration::ZERO;
        }
        let Timing {
            accept,
            passed_over,
            preemptions: (window, _),
            ..
        } = self.timing;
        let next = if self.doubles {
            passed_over + 2 * accept
        } else {
            0
        };
        Duration::from_secs(window.max(passed_over + next))
    }

    /// The constants of the electors.
    fn elector_timing(&self) -> ElectorTiming {
        let second = Duration::from_secs(1);
        let never = second * 3600;
        let passed_over = match self.mutant {
            Some(Mutant::NoPassOver) => Duration::ZERO,
            _ => Duration::from_secs(self.timing.passed_over),
        };
        let longest = match self.mutant {
            Some(Mutant::NeverDouble) => 1,
            _ if self.doubles => 2,
            _ => 1,
        };
        let by_what_was_seen =
            self.announced || matches!(self.mutant, Some(Mutant::SeenIsLongest(_)));
        ElectorTiming {
            accept_window: self.accept_window(),
            accept_window_max: self.accept_window() * longest,
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
            passed_over_max: passed_over * longest,
            preemptions: match self.mutant {
                Some(Mutant::NoBudget) => ElectorTiming::PREEMPTIONS_MAX,
                _ => self.timing.preemptions.1,
            },
            preemption_window: Duration::from_secs(self.timing.preemptions.0),
            // Ages are told apart up to a few seconds, so these are never reached.
            re_ping_after: never,
            ping_interval: never,
            candidate_validity: never,
        }
    }

    /// The constants of the electors in the lives that take turns.
    pub(super) fn timings_of_lives(&self) -> [ElectorTiming; 2] {
        let first = self.elector_timing();
        let next = self.next_life.map_or_else(
            || first.clone(),
            |rules| ElectorTiming {
                accept_window: Duration::from_secs(rules.accept),
                accept_window_max: Duration::from_secs(rules.accept),
                max_lease_duration: Duration::from_secs(rules.lease),
                ..first.clone()
            },
        );
        [first, next]
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

    /// The configuration of the production holder of this name.
    pub(super) fn holder_config(&self, name: usize) -> HolderConfig {
        // Under a lock the processes are electors, and the rest of them the built-in one.
        let is_elector = self.lock.is_some_and(|lock| name < lock.electors);
        let displaces = self.lock.is_some_and(|lock| lock.displaces);
        let acquisition = |strategy| Acquisition {
            strategy,
            max_lease_duration: self.flag.unwrap_or(self.lease_duration()),
            absent_lease_grace: self.grace.filter(|_| self.lock.is_none() || is_elector),
            takeover: if is_elector && displaces {
                TakeoverPolicy::AllButElectors
            } else {
                TakeoverPolicy::None
            },
        };
        HolderConfig {
            identity: if is_elector {
                Identity::of_elector(NAMES[name], 0)
            } else {
                identity(NAMES[name])
            },
            timing: CandidateTiming {
                lease_duration: match self.mutant {
                    Some(Mutant::ForgetOwnDuration) => Duration::from_secs(1),
                    _ => self.lease_duration(),
                },
                ..self.candidate_timing()
            },
            mode: match self.mode {
                ModelMode::Elected => HolderMode::Elected,
                ModelMode::Plain => HolderMode::Plain(acquisition(None)),
                ModelMode::Auto => HolderMode::Auto {
                    fallback: FALLBACK,
                    acquisition: acquisition(Some(StrategyName::oldest_emulation_version())),
                },
            },
            life: None,
        }
    }

    /// The longest wait of a process after what it saw or sent; one that acquires counts on until it is late.
    pub(super) fn longest_wait(&self) -> Duration {
        let acquisition = match self.mode {
            ModelMode::Elected => Duration::ZERO,
            ModelMode::Plain => LATE + self.lease_duration(),
            ModelMode::Auto => LATE + self.lease_duration() + FALLBACK,
        };
        acquisition.max(self.renew_deadline())
    }

    /// The time for which the restart of a wait counts: until the wait is over, and until the acquisition is late.
    pub(super) fn longest_restart(&self) -> Duration {
        let fallback = match self.mode {
            ModelMode::Auto => FALLBACK,
            ModelMode::Elected | ModelMode::Plain => Duration::ZERO,
        };
        let timing = self.candidate_timing();
        fallback.max(timing.retry_period + CandidateTiming::RETRY_MIN) + LATE
    }
}
