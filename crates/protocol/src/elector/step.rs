//! The elector's step: from what was observed to what to do next.
//!
//! Read [`Step::decide`] top down: strategy first, then who is eligible, then what the Lease allows. The rule that a
//! branch follows is named where it is followed.

use std::cmp::Ordering;

use crate::elector::decision::{Action, Decision, Effect, Reason, Vacancy};
use crate::elector::election::{Election, POST_SETTLES, PreferenceField, Settings};
use crate::elector::observation::{Liveness, Presence, Seen, Watched};
use crate::elector::poll::{Occasion, Poll};
use crate::lease::{LeaseRecord, Occupancy};
use crate::names::Identity;
use crate::order::{Contender, because, best_first};
use crate::strategy::{Ranking, Resolution, Strategy};
use crate::time::{Instant, Timestamp};

/// One step in the making.
struct Step<'a> {
    election: &'a Election,
    settings: &'a Settings,
    now: Instant,
    wall: Timestamp,
    effects: Vec<Effect>,
    wake_at: Option<Instant>,
}

/// An unheld or expired record, or the lack of one.
struct Opening<'a> {
    watched: &'a Watched,
    vacancy: Vacancy,
    /// When the round began: late, unheld or expired.
    round: Instant,
    /// When the lease may be granted.
    ready_at: Instant,
    aside: Option<&'a Identity>,
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
        let (action, reason) = step.decide();
        if action != Action::Leave || !self.candidates.is_empty() {
            step.keep_house();
        }
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
        ranking: &dyn Ranking,
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
    fn decide(&mut self) -> (Action, Reason) {
        if self.election.presence == Presence::Unknown {
            return (Action::Wait, Reason::NotSynced);
        }
        // S11: a lease that no candidate names is never written.
        if self.election.candidates.is_empty() {
            return (Action::Leave, Reason::NoCandidate);
        }
        let strategy = match self.election.resolve(self.now, self.settings) {
            Resolution::One(strategy) => strategy,
            Resolution::NoWish => return (Action::None, self.nobody_eligible(None)),
            Resolution::Conflict(conflict) => {
                self.ask_the_disputants(&conflict.binary);
                return (self.wait_or_ping(), Reason::StrategyConflict(conflict));
            }
        };
        let Some(ranking) = strategy.ranking() else {
            return self.serve_foreign(strategy);
        };
        let incumbent = self
            .election
            .lease()
            .and_then(|lease| lease.record.holder.as_ref());
        let contenders = self.election.contenders(ranking, incumbent);
        if contenders.is_empty() {
            return (Action::None, self.nobody_eligible(Some(ranking)));
        }
        match &self.election.presence {
            Presence::Unknown => (Action::Wait, Reason::NotSynced),
            Presence::Absent { since } => self.create(*since, &contenders, strategy),
            Presence::Present(watched) => match watched.snapshot.record.occupancy() {
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
            },
        }
    }

    /// A Lease that does not exist: POST a born record, and ask meanwhile (R2, R6).
    fn create(
        &mut self,
        since: Instant,
        contenders: &[Contender<'a>],
        strategy: Strategy,
    ) -> (Action, Reason) {
        if let Some(settled) = self
            .election
            .posted
            .map(|posted| posted.after(POST_SETTLES))
            && self.now < settled
        {
            self.wake(settled);
            return (Action::Wait, Reason::AwaitCreated);
        }
        self.effects
            .push(Effect::Create(LeaseRecord::born(Some(strategy))));
        self.poll(contenders, Some(since), None, None, true);
        (Action::Create, Reason::Missing)
    }

    /// When an unproven record may be granted (R6): at once where the watch proves long absence and no holder since,
    /// otherwise when this very record has been seen unchanged for `W_max`.
    fn proven_free_at(&self, watched: &Watched) -> Instant {
        let timing = &self.settings.timing;
        let grace = timing
            .absent_lease_grace
            .unwrap_or_else(|| self.election.longest_lease(timing));
        match watched.absent_before {
            Some(absent) if absent >= grace => watched.since,
            _ => watched.since.after(grace),
        }
    }

    fn opening(
        &self,
        watched: &'a Watched,
        vacancy: Vacancy,
        round: Instant,
        ready_at: Instant,
    ) -> Opening<'a> {
        Opening {
            watched,
            vacancy,
            round,
            ready_at,
            aside: self.election.last_holder.as_ref(),
        }
    }

    fn attend_held(
        &mut self,
        watched: &'a Watched,
        holder: &'a Identity,
        ranking: &dyn Ranking,
        contenders: &[Contender<'a>],
        strategy: Strategy,
    ) -> (Action, Reason) {
        let record = &watched.snapshot.record;
        // R4: a record without a usable duration counts as long as anybody's could.
        let duration = record
            .duration()
            .unwrap_or_else(|| self.election.longest_lease(&self.settings.timing));
        let late_at = watched.since.after(duration * 2 / 3);
        let expires_at = watched.since.after(duration);
        let accepted = !record.is_unaccepted_grant();
        if self.now >= late_at {
            let (holder, after) = (holder.clone(), duration);
            let vacancy = if accepted {
                Vacancy::Expired { holder, after }
            } else {
                Vacancy::NotAccepted { holder, after }
            };
            let opening = Opening {
                watched,
                vacancy,
                round: late_at,
                ready_at: expires_at,
                aside: record.holder.as_ref(),
            };
            return self.fill(&opening, ranking, contenders, strategy);
        }
        self.wake(late_at);
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

    /// A live holder that is a candidate: prefer a strictly better one, or withdraw a preference (R7, R16).
    fn compare_with(
        &mut self,
        incumbent: &'a Seen,
        watched: &'a Watched,
        ranking: &dyn Ranking,
        contenders: &[Contender<'a>],
        strategy: Strategy,
    ) -> (Action, Reason) {
        let holder = &incumbent.candidate.name;
        let timing = &self.settings.timing;
        let own = contenders
            .iter()
            .find(|contender| &contender.candidate.name == holder);
        let strictly_better = |contender: &&Contender<'a>| {
            let by_keys =
                own.is_none_or(|own| ranking.compare(contender.spec, own.spec) == Ordering::Less);
            by_keys && &contender.candidate.name != holder
        };
        let better: Vec<Contender<'a>> = contenders
            .iter()
            .filter(strictly_better)
            .filter(|contender| {
                !self
                    .election
                    .passes_over(&contender.candidate.name, self.now, timing)
            })
            .copied()
            .collect();
        let record = &watched.snapshot.record;
        let preferred = record.preferred_holder.as_ref();
        if let Some(preferred) = preferred
            && let Some(because) = self.unfit(preferred, holder, &better)
        {
            return self.withdraw(watched, preferred, holder, because);
        }
        let Some(best) = better.first() else {
            return (Action::None, Reason::HolderIsBest(holder.clone()));
        };
        if !incumbent.candidate.marked && self.settings.preference_field == PreferenceField::Dropped
        {
            if let Some(preferred) = preferred {
                return self.withdraw(
                    watched,
                    preferred,
                    holder,
                    "was preferred where the holder cannot see it",
                );
            }
            let (holder, better) = (holder.clone(), best.candidate.name.clone());
            return (Action::None, Reason::HolderCannotYield { holder, better });
        }
        // Only those above the one already preferred may replace it: a preference moves strictly up (L3).
        let standing = preferred.and_then(|name| better.iter().find(|c| &c.candidate.name == name));
        let above: Vec<Contender<'a>> = better
            .iter()
            .filter(|c| {
                standing
                    .is_none_or(|standing| ranking.compare(c.spec, standing.spec) == Ordering::Less)
            })
            .copied()
            .collect();
        let poll = self.poll(&above, None, None, None, false);
        if let Some(elected) = poll.elected {
            let because = own.map_or_else(
                || "can be elected, the holder cannot".to_owned(),
                |own| because(ranking, Some(holder), &elected, own),
            );
            let name = elected.candidate.name.clone();
            let next = record.preferring(Some(name.clone()), Some(strategy));
            self.effects
                .push(Effect::Write(watched.snapshot.replace(next)));
            let holder = holder.clone();
            return (
                Action::Prefer,
                Reason::Preferred {
                    preferred: name,
                    holder,
                    because,
                },
            );
        }
        if let Some(preferred) = preferred {
            self.keep_asking(preferred);
            let (holder, preferred) = (holder.clone(), preferred.clone());
            return (
                self.wait_or_ping(),
                Reason::AwaitYield { holder, preferred },
            );
        }
        if !poll.awaited.is_empty() {
            return (self.wait_or_ping(), Reason::AwaitAnswer(poll.awaited));
        }
        let (holder, silent) = (holder.clone(), poll.silent);
        (
            self.wait_or_ping(),
            Reason::BetterIsSilent { holder, silent },
        )
    }

    /// Why a preferred candidate should not be preferred any more.
    fn unfit(
        &self,
        preferred: &Identity,
        holder: &Identity,
        better: &[Contender<'_>],
    ) -> Option<&'static str> {
        if preferred == holder {
            return Some("is the holder itself");
        }
        let Some(seen) = self.election.candidates.get(preferred) else {
            return Some("is no candidate any more");
        };
        if self
            .election
            .passes_over(preferred, self.now, &self.settings.timing)
        {
            return Some("did not accept its last grant");
        }
        if !better
            .iter()
            .any(|contender| &contender.candidate.name == preferred)
        {
            return Some("is not better than the holder");
        }
        let liveness = seen.liveness(self.now, None, &self.settings.timing);
        (liveness == Liveness::Silent).then_some("does not answer")
    }

    fn withdraw(
        &mut self,
        watched: &Watched,
        preferred: &Identity,
        holder: &Identity,
        because: &'static str,
    ) -> (Action, Reason) {
        let next = watched.snapshot.record.preferring(None, None);
        self.effects
            .push(Effect::Write(watched.snapshot.replace(next)));
        let (preferred, holder) = (preferred.clone(), holder.clone());
        (
            Action::Withdraw,
            Reason::Withdrawn {
                preferred,
                holder,
                because,
            },
        )
    }

    /// Asks a preferred candidate again when its answer is no longer fresh: a preference must not outlive it (L6).
    fn keep_asking(&mut self, preferred: &Identity) {
        let Some(seen) = self.election.candidates.get(preferred) else {
            return;
        };
        match seen.liveness(self.now, None, &self.settings.timing) {
            Liveness::Asked { until } => self.wake(until),
            Liveness::Unasked => self.ask(seen, seen.candidate.question()),
            Liveness::Answered => {
                if let Some(answered) = seen.answered {
                    self.wake(answered.at.after(self.settings.timing.fresh));
                }
            }
            Liveness::Silent => {}
        }
    }

    /// A record that is late, expired or unheld: ask, and grant as soon as it may be (R3, R5, R15).
    fn fill(
        &mut self,
        opening: &Opening<'a>,
        ranking: &dyn Ranking,
        contenders: &[Contender<'a>],
        strategy: Strategy,
    ) -> (Action, Reason) {
        let failed = match &opening.vacancy {
            Vacancy::NotAccepted { holder, .. } => Some(holder),
            _ => None,
        };
        let poll = self.poll(contenders, Some(opening.round), opening.aside, failed, true);
        if self.now < opening.ready_at {
            self.wake(opening.ready_at);
            if let Some(elected) = &poll.elected {
                self.renew_answer(&elected.candidate.name);
            }
            let reason = match &opening.vacancy {
                Vacancy::Expired { holder, .. } | Vacancy::NotAccepted { holder, .. } => {
                    Reason::HolderLate {
                        holder: holder.clone(),
                        next: poll.elected.map(|elected| elected.candidate.name.clone()),
                    }
                }
                Vacancy::Released | Vacancy::Unheld => Reason::AwaitProof {
                    remaining: opening.ready_at.since(self.now),
                },
            };
            return (self.wait_or_ping(), reason);
        }
        let Some(elected) = poll.elected else {
            let reason = if poll.awaited.is_empty() {
                Reason::NobodyAnswers(poll.silent)
            } else {
                Reason::AwaitAnswer(poll.awaited)
            };
            return (self.wait_or_ping(), reason);
        };
        self.grant(
            opening,
            &elected,
            ranking,
            contenders,
            strategy,
            poll.silent,
        )
    }

    /// Wakes when the answer of the next leader goes stale, so that a newer one is in when the lease may be granted.
    fn renew_answer(&mut self, elected: &Identity) {
        let answered = self
            .election
            .candidates
            .get(elected)
            .and_then(|seen| seen.answered);
        if let Some(stale_at) =
            answered.map(|answered| answered.at.after(self.settings.timing.fresh))
            && stale_at > self.now
        {
            self.wake(stale_at);
        }
    }

    fn grant(
        &mut self,
        opening: &Opening<'a>,
        elected: &Contender<'a>,
        ranking: &dyn Ranking,
        contenders: &[Contender<'a>],
        strategy: Strategy,
        silent: Vec<Identity>,
    ) -> (Action, Reason) {
        let name = &elected.candidate.name;
        let snapshot = &opening.watched.snapshot;
        let failed_now =
            matches!(&opening.vacancy, Vacancy::NotAccepted { holder, .. } if holder == name);
        let failures = self
            .election
            .failures(name)
            .saturating_add(u8::from(failed_now));
        let window = self.settings.timing.accept_window_after(failures);
        let mut record = snapshot.record.granted(name.clone(), window, self.wall);
        record.strategy = Some(strategy);
        let term = record.term;
        self.effects.push(Effect::Write(snapshot.replace(record)));
        let runner_up = contenders.iter().find(|contender| {
            &contender.candidate.name != name && !silent.contains(&contender.candidate.name)
        });
        let incumbent = snapshot.record.holder.as_ref();
        let because = match runner_up {
            None if silent.is_empty() => "is the only candidate".to_owned(),
            None => "is the only one that answers".to_owned(),
            Some(other)
                if position(contenders, name) < position(contenders, &other.candidate.name) =>
            {
                because(ranking, incumbent, elected, other)
            }
            Some(_) => "is the best that answered".to_owned(),
        };
        let vacancy = opening.vacancy.clone();
        let to = name.clone();
        (
            Action::Grant,
            Reason::Granted {
                to,
                term,
                vacancy,
                because,
                silent,
            },
        )
    }

    /// A strategy of somebody else: see that its Lease exists and says so, and leave the holder alone.
    fn serve_foreign(&mut self, strategy: Strategy) -> (Action, Reason) {
        match &self.election.presence {
            Presence::Absent { .. } => {
                if let Some(settled) = self
                    .election
                    .posted
                    .map(|posted| posted.after(POST_SETTLES))
                    && self.now < settled
                {
                    self.wake(settled);
                    return (Action::Wait, Reason::AwaitCreated);
                }
                self.effects
                    .push(Effect::Create(LeaseRecord::born(Some(strategy.clone()))));
                return (Action::Create, Reason::ForeignStrategy(strategy));
            }
            Presence::Present(watched) => {
                let record = &watched.snapshot.record;
                let ours = |holder| self.election.candidates.contains_key(holder);
                let unstamped = record.strategy.as_ref() != Some(&strategy);
                if unstamped && record.holder.as_ref().is_none_or(ours) {
                    let next =
                        record.preferring(record.preferred_holder.clone(), Some(strategy.clone()));
                    self.effects
                        .push(Effect::Write(watched.snapshot.replace(next)));
                }
            }
            Presence::Unknown => {}
        }
        (Action::Leave, Reason::ForeignStrategy(strategy))
    }

    /// Candidates that disagree are asked whether they live: a dead one must not block the others.
    fn ask_the_disputants(&mut self, binary: &crate::version::Version) {
        for seen in self.election.candidates.values() {
            let disputes = seen
                .candidate
                .spec
                .as_ref()
                .is_ok_and(|spec| &spec.binary == binary);
            if !disputes {
                continue;
            }
            match seen.liveness(self.now, None, &self.settings.timing) {
                Liveness::Asked { until } => self.wake(until),
                // Once in a while is enough: those that answer go on disagreeing.
                Liveness::Unasked
                    if self.now.since(seen.heard) >= self.settings.timing.raise_after =>
                {
                    self.ask(seen, seen.candidate.question());
                }
                Liveness::Unasked => self.wake(seen.heard.after(self.settings.timing.raise_after)),
                Liveness::Answered | Liveness::Silent => {}
            }
        }
    }

    /// What is due for every candidate whatever the lease: settle answers of slow clocks, ask the silent once in a
    /// while, collect the dead (R15).
    fn keep_house(&mut self) {
        let timing = &self.settings.timing;
        for seen in self.election.candidates.values() {
            if seen.is_unsettled() {
                self.ask(seen, seen.candidate.renew);
                continue;
            }
            let collectable = match seen.liveness(self.now, None, timing) {
                Liveness::Silent => true,
                Liveness::Asked { until } => {
                    self.wake(until);
                    false
                }
                Liveness::Answered => {
                    self.wake(seen.heard.after(timing.ping_interval));
                    false
                }
                Liveness::Unasked => {
                    let due = seen.heard.after(timing.ping_interval);
                    if self.now >= due {
                        self.ask(seen, seen.candidate.question());
                    } else {
                        self.wake(due);
                    }
                    false
                }
            };
            if !collectable {
                continue;
            }
            let due = seen.heard.after(timing.candidate_validity);
            if self.now < due {
                self.wake(due);
                continue;
            }
            self.effects.push(Effect::Collect {
                name: seen.candidate.name.clone(),
                uid: seen.candidate.uid.clone(),
                version: seen.candidate.version,
            });
        }
    }

    fn poll(
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
    fn ask(&mut self, seen: &Seen, ping: Option<Timestamp>) {
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

    fn wait_or_ping(&self) -> Action {
        let pings = |effect: &Effect| matches!(effect, Effect::Ping { .. });
        if self.effects.iter().any(pings) {
            return Action::Ping;
        }
        Action::Wait
    }

    fn nobody_eligible(&self, ranking: Option<&dyn Ranking>) -> Reason {
        let unfit = |seen: &Seen| super::standing::rejection(&seen.candidate, ranking);
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

    fn wake(&mut self, at: Instant) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }
}

/// The outcome of a poll, its questions already among the effects.
struct Polled<'a> {
    elected: Option<Contender<'a>>,
    awaited: Vec<Identity>,
    silent: Vec<Identity>,
}

fn position(contenders: &[Contender<'_>], name: &Identity) -> Option<usize> {
    contenders
        .iter()
        .position(|contender| &contender.candidate.name == name)
}
