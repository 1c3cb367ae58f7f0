//! A Lease that is missing, unheld, late or expired: who is granted it, and when (R3–R6, R15).

use crate::elector::decision::{Action, Effect, Reason, Vacancy};
use crate::elector::election::POST_SETTLES;
use crate::elector::observation::Watched;
use crate::elector::step::Step;
use crate::lease::LeaseRecord;
use crate::names::Identity;
use crate::order::{Contender, because};
use crate::strategy::Strategy;
use crate::strategy::name::StrategyName;
use crate::time::Instant;

/// An unheld, late or expired record.
pub(super) struct Opening<'a> {
    pub(super) watched: &'a Watched,
    pub(super) vacancy: Vacancy,
    /// When the round began: late, unheld or expired.
    pub(super) round: Instant,
    /// When the lease may be granted.
    pub(super) ready_at: Instant,
    /// The late, expired or former holder.
    pub(super) aside: Option<&'a Identity>,
}

// === impl Step ===

impl<'a> Step<'a> {
    /// A Lease that does not exist: POST a born record, and ask meanwhile (R2, R6).
    pub(super) fn create(
        &mut self,
        since: Instant,
        contenders: &[Contender<'a>],
        strategy: &StrategyName,
    ) -> (Action, Reason) {
        if !self.post(strategy) {
            return (Action::Wait, Reason::AwaitCreated);
        }
        self.poll(contenders, Some(since), None, None, true);
        (Action::Create, Reason::Missing)
    }

    /// POSTs a born record; false where one was posted a moment ago and the watch has yet to bring it.
    pub(super) fn post(&mut self, strategy: &StrategyName) -> bool {
        if let Some(posted) = self.election.posted
            && self.now < posted.after(POST_SETTLES)
        {
            self.wake(posted.after(POST_SETTLES));
            return false;
        }
        let born = LeaseRecord::born(Some(strategy.clone()));
        self.effects.push(Effect::Create(born));
        true
    }

    /// When an unproven record may be granted (R6): at once where the watch proves long absence and no holder since,
    /// otherwise when this very record has been seen unchanged for `W_max`.
    pub(super) fn proven_free_at(&self, watched: &Watched) -> Instant {
        let timing = &self.settings.timing;
        let grace = timing
            .absent_lease_grace
            .unwrap_or_else(|| self.election.longest_lease(timing));
        match watched.absent_before {
            Some(absent) if absent >= grace => watched.since,
            _ => watched.since.after(grace),
        }
    }

    pub(super) fn opening(
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

    /// A record that is late, expired or unheld: ask, and grant as soon as it may be (R3, R5, R15).
    pub(super) fn fill(
        &mut self,
        opening: &Opening<'a>,
        ranking: &dyn Strategy,
        contenders: &[Contender<'a>],
        strategy: StrategyName,
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
                Vacancy::Reserved { from, .. } => Reason::AwaitReserved {
                    from: from.clone(),
                    next: poll.elected.map(|elected| elected.candidate.name.clone()),
                    remaining: opening.ready_at.since(self.now),
                },
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
        ranking: &dyn Strategy,
        contenders: &[Contender<'a>],
        strategy: StrategyName,
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
}

fn position(contenders: &[Contender<'_>], name: &Identity) -> Option<usize> {
    contenders
        .iter()
        .position(|contender| &contender.candidate.name == name)
}
