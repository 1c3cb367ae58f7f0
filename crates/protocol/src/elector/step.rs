//! The elector's step: from what was observed to what to do next.
//!
//! Read [`Step::decide`] top down: strategy first, then the eligible candidates, then what the Lease allows. The rule
//! that a branch follows is named where it is followed.

use std::collections::BTreeSet;

use crate::elector::contenders::Contenders;
use crate::elector::decision::{Decision, Effect, GrantCause, Reason};
use crate::elector::free_lease::FreeLease;
use crate::elector::observation::{Liveness, ObservedCandidate};
use crate::elector::ping_round::{PingPurpose, PingRound};
use crate::elector::ranking::rejection;
use crate::elector::state::{Election, Settings};
use crate::elector::wake::{Wake, WakeReason};
use crate::lease::Occupancy;
use crate::lease_watch::{LeasePresence, ObservedLease};
use crate::names::Identity;
use crate::order::Contender;
use crate::resolution::Resolution;
use crate::strategy::Strategy;
use crate::time::{Instant, Timestamp};

/// One step in the making.
pub(super) struct Step<'a> {
    pub(super) election: &'a Election,
    pub(super) settings: &'a Settings,
    pub(super) now: Instant,
    pub(super) wall: Timestamp,
    pub(super) effects: Vec<Effect>,
    /// The candidates that a ping in `effects` is for.
    pub(super) pinged: BTreeSet<&'a Identity>,
    pub(super) wake: Option<Wake>,
}

// === impl Election ===

impl Election {
    /// Decides what to do now.
    ///
    /// `now` is this elector's monotonic clock, `wall` the time to write into records; it is compared with no time that
    /// was read but those until which an operator's word counts. Calling this again without new observations decides the same.
    pub fn step(&self, now: Instant, wall: Timestamp, settings: &Settings) -> Decision {
        let mut step = Step {
            election: self,
            settings,
            now,
            wall,
            effects: Vec::new(),
            pinged: BTreeSet::new(),
            wake: None,
        };
        let reason = match self.watch.presence() {
            LeasePresence::Unknown => Reason::NotSynced,
            LeasePresence::Absent { .. } => step.decide(None),
            LeasePresence::Present(watched) => step.decide(Some(watched)),
        };
        step.maintain_candidates();
        Decision {
            effects: step.effects,
            wake: step.wake,
            reason,
        }
    }

    /// The strategy that this lease is elected under now, by the wishes of the candidates that are not known to be
    /// silent; of all, when all are. One that stands down (R16) wishes nothing.
    pub(super) fn resolve(&self, now: Instant, wall: Timestamp, settings: &Settings) -> Resolution {
        let valid = || {
            self.candidates
                .iter()
                .filter_map(|seen| Some((seen, seen.offer(now, wall)?)))
        };
        // So nearly always, and then it is all the same who is silent.
        if let Some(strategy) = Resolution::agreed(valid().map(|(_, spec)| spec)) {
            return Resolution::One(strategy.clone());
        }
        let silent = |seen: &ObservedCandidate| {
            seen.liveness(now, None, &settings.timing) == Liveness::Silent
        };
        let audible = valid()
            .filter(|(seen, _)| !silent(seen))
            .map(|(seen, spec)| (&seen.candidate.name, spec));
        match Resolution::of(audible) {
            Resolution::NoWish => {
                Resolution::of(valid().map(|(seen, spec)| (&seen.candidate.name, spec)))
            }
            resolution => resolution,
        }
    }
}

// === impl Step ===

impl<'a> Step<'a> {
    /// Decides about a Lease, or about a name that is known to have none.
    fn decide(&mut self, lease: Option<&'a ObservedLease>) -> Reason {
        // S11: a lease that no candidate names is never written.
        if self.election.candidates.is_empty() {
            return Reason::NoCandidate;
        }
        self.wake_for_stand_downs();
        let strategy = match self.election.resolve(self.now, self.wall, self.settings) {
            Resolution::One(strategy) => strategy,
            Resolution::NoWish => return self.none_eligible(None),
            Resolution::Conflict(conflict) => {
                self.ping_disagreeing(&conflict);
                return Reason::StrategyConflict(conflict);
            }
        };
        let Some(contenders) = self.election.contenders(&strategy, self.now, self.wall) else {
            return self.on_foreign_strategy(lease, strategy);
        };
        if contenders.ranked.is_empty() {
            return self.none_eligible(Some(contenders.order.strategy));
        }
        let overrides = lease.map(|lease| &lease.snapshot.overrides);
        if let Some((_, remaining)) =
            overrides.and_then(|overrides| overrides.preferred_for(self.wall))
        {
            self.wake(self.now.after(remaining), WakeReason::OperatorPreference);
        }
        let Some(watched) = lease else {
            return self.create(&contenders);
        };
        match watched.snapshot.record.occupancy() {
            Occupancy::Held(holder) => self.on_held(watched, holder, &contenders),
            Occupancy::Released => {
                let free = self.unheld(watched, GrantCause::Released, watched.since);
                self.elect(&free, &contenders)
            }
            Occupancy::Unproven => {
                let ready_at = self.proven_free_at(watched);
                let free = self.unheld(watched, GrantCause::Unheld, ready_at);
                self.elect(&free, &contenders)
            }
        }
    }

    /// A held record is free once its duration is over, and by no rumour of its holder before that (R13).
    fn on_held(
        &mut self,
        watched: &'a ObservedLease,
        holder: &'a Identity,
        contenders: &Contenders<'a>,
    ) -> Reason {
        let record = &watched.snapshot.record;
        // R4: a record without a usable duration counts as long as any candidate's could.
        let duration = record
            .duration()
            .unwrap_or_else(|| self.election.longest_lease(&self.settings.timing));
        let late_at = self.election.late_at(watched, &self.settings.timing);
        let accepted = !record.is_unaccepted_grant();
        if self.now >= late_at {
            let (holder, after) = (holder.clone(), duration);
            let cause = match accepted {
                true => GrantCause::Expired { holder, after },
                false => GrantCause::NotAccepted { holder, after },
            };
            let free = FreeLease {
                watched,
                cause,
                round: late_at,
                ready_at: watched.expires_at(duration),
                previous_holder: record.holder.as_ref(),
            };
            return self.elect(&free, contenders);
        }
        let late = match accepted {
            true => WakeReason::HolderLate,
            false => WakeReason::AcceptLate,
        };
        self.wake(late_at, late);
        if !accepted {
            let holder = holder.clone();
            return Reason::AwaitAccept { holder };
        }
        let Some(incumbent) = self.election.candidates.get(holder) else {
            return Reason::HolderIsNoCandidate(holder.clone());
        };
        self.on_candidate_holder(incumbent, watched, contenders)
    }

    /// Pings the candidates that are to be pinged for this purpose, and says what the round came to.
    pub(super) fn ping_round(
        &mut self,
        candidates: &[Contender<'a>],
        purpose: &PingPurpose<'_>,
    ) -> PingRound<'a> {
        let timing = &self.settings.timing;
        let round = PingRound::new(self.now, self.election, candidates, purpose, timing);
        for (seen, ping) in &round.pings {
            self.ping(seen, Some(*ping));
        }
        if let Some(Wake { at, why }) = round.wake {
            self.wake(at, why);
        }
        round
    }

    /// Writes a ping, at most one for each candidate in one step.
    pub(super) fn ping(&mut self, seen: &'a ObservedCandidate, ping: Option<Timestamp>) {
        let candidate = &seen.candidate;
        let Some(ping) = ping else { return };
        if !self.pinged.insert(&candidate.name) {
            return;
        }
        self.effects.push(Effect::Ping {
            name: candidate.name.clone(),
            uid: candidate.uid.clone(),
            version: candidate.version,
            ping,
        });
    }

    /// A candidate may lead again when an operator's time for it is over (R16).
    fn wake_for_stand_downs(&mut self) {
        let candidates = self.election.candidates.iter();
        let ends = candidates.filter_map(|seen| seen.stand_down(self.now, self.wall)?.1.ok());
        if let Some(first) = ends.min() {
            self.wake(self.now.after(first), WakeReason::StandDown);
        }
    }

    fn none_eligible(&self, strategy: Option<&dyn Strategy>) -> Reason {
        let unfit = |seen: &ObservedCandidate| rejection(seen, self.now, self.wall, strategy);
        let mut rejected = self
            .election
            .candidates
            .iter()
            .filter_map(|seen| Some((seen, unfit(seen)?)));
        let Some((first, rejection)) = rejected.next() else {
            return Reason::NoCandidate;
        };
        Reason::NoEligible {
            name: first.candidate.name.clone(),
            rejection,
            others: rejected.count(),
        }
    }

    pub(super) fn wake(&mut self, at: Instant, why: WakeReason) {
        Wake::note(&mut self.wake, at, why);
    }
}
