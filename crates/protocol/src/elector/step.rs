//! The elector's step: from what was observed to what to do next.
//!
//! Read [`Step::decide`] top down: strategy first, then who is eligible, then what the Lease allows. The rule that a
//! branch follows is named where it is followed.

use crate::elector::decision::{Action, Decision, Effect, Reason, Vacancy};
use crate::elector::election::{Election, Settings};
use crate::elector::observation::{Liveness, Presence, Seen, Watched};
use crate::elector::poll::{Occasion, Poll};
use crate::elector::vacancy::Opening;
use crate::lease::Occupancy;
use crate::names::Identity;
use crate::order::{Contender, best_first};
use crate::resolution::Resolution;
use crate::strategy::Strategy;
use crate::strategy::name::StrategyName;
use crate::time::{Instant, Timestamp};

/// One step in the making.
pub(super) struct Step<'a> {
    pub(super) election: &'a Election,
    pub(super) settings: &'a Settings,
    pub(super) now: Instant,
    pub(super) wall: Timestamp,
    pub(super) effects: Vec<Effect>,
    pub(super) wake_at: Option<Instant>,
}

// === impl Election ===

impl Election {
    /// Decides what to do now.
    ///
    /// `now` is this elector's monotonic clock, `wall` the time to write into records; it is never compared with any
    /// time that was read. Calling this again without new observations decides the same.
    pub fn step(&self, now: Instant, wall: Timestamp, settings: &Settings) -> Decision {
        let mut step = Step {
            election: self,
            settings,
            now,
            wall,
            effects: Vec::new(),
            wake_at: None,
        };
        let (action, reason) = match &self.presence {
            Presence::Unknown => (Action::Wait, Reason::NotSynced),
            Presence::Absent { since } => step.decide(Err(*since)),
            Presence::Present(watched) => step.decide(Ok(watched)),
        };
        step.keep_house();
        Decision {
            action,
            effects: step.effects,
            wake_at: step.wake_at,
            reason,
        }
    }

    /// The strategy that this lease is elected under now, by the wishes of the candidates that are not known to be
    /// silent; of all, when all are.
    pub(super) fn resolve(&self, now: Instant, settings: &Settings) -> Resolution {
        let valid = || {
            self.candidates
                .values()
                .filter_map(|seen| Some((seen, seen.candidate.spec.as_ref().ok()?)))
        };
        let silent = |seen: &Seen| seen.liveness(now, None, &settings.timing) == Liveness::Silent;
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

    /// The candidates that can be elected under a strategy, the best one first (R16).
    pub(super) fn contenders(
        &self,
        ranking: &dyn Strategy,
        incumbent: Option<&Identity>,
    ) -> Vec<Contender<'_>> {
        let eligible = self
            .candidates()
            .filter(|candidate| candidate.renew.is_some())
            .filter_map(|candidate| {
                let spec = candidate.spec.as_ref().ok()?;
                ranking.eligible(spec).ok()?;
                Some(Contender { candidate, spec })
            });
        best_first(ranking, incumbent, eligible)
    }
}

// === impl Step ===

impl<'a> Step<'a> {
    /// Decides about a Lease, or about a name without one and since when.
    fn decide(&mut self, lease: Result<&'a Watched, Instant>) -> (Action, Reason) {
        // S11: a lease that no candidate names is never written.
        if self.election.candidates.is_empty() {
            return (Action::Leave, Reason::NoCandidate);
        }
        let strategy = match self.election.resolve(self.now, self.settings) {
            Resolution::One(strategy) => strategy,
            Resolution::NoWish => return (Action::None, self.nobody_eligible(None)),
            Resolution::Conflict(conflict) => {
                self.ask_the_disputants(&conflict);
                return (self.wait_or_ping(), Reason::StrategyConflict(conflict));
            }
        };
        let Some(ranking) = strategy.strategy() else {
            return self.serve_foreign(lease, strategy);
        };
        let incumbent = lease
            .ok()
            .and_then(|watched| watched.snapshot.record.holder.as_ref());
        let contenders = self.election.contenders(ranking, incumbent);
        if contenders.is_empty() {
            return (Action::None, self.nobody_eligible(Some(ranking)));
        }
        let watched = match lease {
            Ok(watched) => watched,
            Err(since) => return self.create(since, &contenders, &strategy),
        };
        match watched.snapshot.record.occupancy() {
            Occupancy::Held(holder) => {
                self.attend_held(watched, holder, ranking, &contenders, strategy)
            }
            Occupancy::Released => {
                let opening =
                    self.opening(watched, Vacancy::Released, watched.since, watched.since);
                self.fill(&opening, ranking, &contenders, strategy)
            }
            Occupancy::Unproven => {
                let ready_at = self.proven_free_at(watched);
                let opening = self.opening(watched, Vacancy::Unheld, watched.since, ready_at);
                self.fill(&opening, ranking, &contenders, strategy)
            }
        }
    }

    fn attend_held(
        &mut self,
        watched: &'a Watched,
        holder: &'a Identity,
        ranking: &dyn Strategy,
        contenders: &[Contender<'a>],
        strategy: StrategyName,
    ) -> (Action, Reason) {
        let record = &watched.snapshot.record;
        // R4: a record without a usable duration counts as long as anybody's could.
        let duration = record
            .duration()
            .unwrap_or_else(|| self.election.longest_lease(&self.settings.timing));
        let late_at = watched.since.after(duration * 2 / 3);
        let expires_at = watched.since.after(duration);
        let accepted = !record.is_unaccepted_grant();
        let reserved_from = record.reserved_from();
        if self.now >= late_at {
            let (holder, after) = (holder.clone(), duration);
            let aside = match &reserved_from {
                Some(from) => self.election.candidates.get_key_value(from),
                None => None,
            };
            let aside = aside.map_or(record.holder.as_ref(), |(name, _)| Some(name));
            let vacancy = match reserved_from {
                Some(from) => Vacancy::Reserved { from, after },
                None if accepted => Vacancy::Expired { holder, after },
                None => Vacancy::NotAccepted { holder, after },
            };
            let opening = Opening {
                watched,
                vacancy,
                round: late_at,
                ready_at: expires_at,
                aside,
            };
            return self.fill(&opening, ranking, contenders, strategy);
        }
        self.wake(late_at);
        if let Some(from) = reserved_from {
            let next = contenders.first().map(|best| best.candidate.name.clone());
            let remaining = expires_at.since(self.now);
            return (
                Action::Wait,
                Reason::AwaitReserved {
                    from,
                    next,
                    remaining,
                },
            );
        }
        if !accepted {
            return (
                Action::Wait,
                Reason::AwaitAccept {
                    holder: holder.clone(),
                },
            );
        }
        let Some(incumbent) = self.election.candidates.get(holder) else {
            return (Action::Leave, Reason::HolderIsNoCandidate(holder.clone()));
        };
        self.compare_with(incumbent, watched, ranking, contenders, strategy)
    }

    pub(super) fn poll(
        &mut self,
        contenders: &[Contender<'a>],
        round: Option<Instant>,
        aside: Option<&Identity>,
        failed: Option<&Identity>,
        vacant: bool,
    ) -> Polled<'a> {
        let occasion = Occasion {
            now: self.now,
            round,
            aside,
            failed,
            vacant,
        };
        let poll = Poll::take(self.election, contenders, &occasion, &self.settings.timing);
        for (seen, question) in &poll.questions {
            self.ask(seen, Some(*question));
        }
        if let Some(at) = poll.wake_at {
            self.wake(at);
        }
        let owned = |names: Vec<&Identity>| names.into_iter().cloned().collect();
        Polled {
            elected: poll.elected,
            awaited: owned(poll.awaited),
            silent: owned(poll.silent),
        }
    }

    /// Writes a ping, at most one for each candidate in one step.
    pub(super) fn ask(&mut self, seen: &Seen, ping: Option<Timestamp>) {
        let candidate = &seen.candidate;
        let asked = |effect: &Effect| matches!(effect, Effect::Ping { name, .. } if name == &candidate.name);
        let Some(ping) = ping else { return };
        if self.effects.iter().any(asked) {
            return;
        }
        self.effects.push(Effect::Ping {
            name: candidate.name.clone(),
            uid: candidate.uid.clone(),
            version: candidate.version,
            ping,
        });
    }

    pub(super) fn wait_or_ping(&self) -> Action {
        let pings = |effect: &Effect| matches!(effect, Effect::Ping { .. });
        if self.effects.iter().any(pings) {
            return Action::Ping;
        }
        Action::Wait
    }

    fn nobody_eligible(&self, ranking: Option<&dyn Strategy>) -> Reason {
        let unfit = |seen: &Seen| super::ranking::rejection(&seen.candidate, ranking);
        let mut rejected = self
            .election
            .candidates
            .values()
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

    pub(super) fn wake(&mut self, at: Instant) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }
}

/// The outcome of a poll, its questions already among the effects.
pub(super) struct Polled<'a> {
    pub(super) elected: Option<Contender<'a>>,
    pub(super) awaited: Vec<Identity>,
    pub(super) silent: Vec<Identity>,
}
