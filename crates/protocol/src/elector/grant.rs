//! A Lease that is missing, unheld, late or expired: which candidate is granted it, and when (R3–R6, R15).

use std::collections::BTreeSet;

use crate::elector::contenders::Contenders;
use crate::elector::decision::{Effect, GrantCause, Reason};
use crate::elector::free_lease::FreeLease;
use crate::elector::ping_round::PingPurpose;
use crate::elector::state::POST_SETTLES;
use crate::elector::step::Step;
use crate::elector::wake::WakeReason;
use crate::lease::LeaseRecord;
use crate::lease_watch::ObservedLease;
use crate::names::Identity;
use crate::order::Contender;
use crate::strategy::name::StrategyName;
use crate::time::Instant;

// === impl Step ===

impl<'a> Step<'a> {
    /// A Lease that does not exist: POST a born record, and ping meanwhile (R2, R6).
    pub(super) fn create(&mut self, contenders: &Contenders<'a>) -> Reason {
        if !self.post(&contenders.strategy_name) {
            return Reason::AwaitCreated;
        }
        let purpose = PingPurpose::Election {
            round: self.election.watch.absent_since().unwrap_or(self.now),
            previous_holder: None,
            failed: None,
        };
        self.ping_round(&contenders.ranked, &purpose);
        Reason::Missing
    }

    /// POSTs a born record; false where one was posted a moment ago and the watch has yet to bring it.
    pub(super) fn post(&mut self, strategy: &StrategyName) -> bool {
        if let Some(posted) = self.election.watch.posted()
            && self.now < posted.after(POST_SETTLES)
        {
            self.wake(posted.after(POST_SETTLES), WakeReason::CreationUnseen);
            return false;
        }
        let born = LeaseRecord::born(Some(strategy.clone()));
        self.effects.push(Effect::Create(born));
        true
    }

    /// When an unproven record may be granted (R6): when the absence that the watch proves and the time since then
    /// without a holder add up to `W_max`, otherwise when this very record has been seen unchanged for that long.
    pub(super) fn proven_free_at(&self, watched: &ObservedLease) -> Instant {
        let timing = &self.settings.timing;
        let grace = timing
            .absent_lease_grace
            .unwrap_or_else(|| self.election.longest_lease(timing));
        watched.proven_free_at(grace)
    }

    /// An unheld record that may be granted at `ready_at`.
    pub(super) fn unheld(
        &self,
        watched: &'a ObservedLease,
        cause: GrantCause,
        ready_at: Instant,
    ) -> FreeLease<'a> {
        FreeLease {
            watched,
            cause,
            round: watched.since,
            ready_at,
            previous_holder: self.election.last_holder.as_ref(),
        }
    }

    /// A record that is late, expired or unheld: ping, and grant as soon as it may be (R3, R5, R15).
    pub(super) fn elect(&mut self, free: &FreeLease<'a>, contenders: &Contenders<'a>) -> Reason {
        let purpose = PingPurpose::Election {
            round: free.round,
            previous_holder: free.previous_holder,
            failed: free.failed(),
        };
        let round = self.ping_round(&contenders.ranked, &purpose);
        let next = || {
            let elected = round.elected.as_ref();
            elected.map(|elected| elected.candidate.name.clone())
        };
        if self.now < free.ready_at {
            self.wake(free.ready_at, free.ready_when());
            if let Some(elected) = &round.elected {
                self.wake_when_stale(&elected.candidate.name);
            }
            let remaining = free.ready_at.since(self.now);
            return match &free.cause {
                GrantCause::Expired { holder, .. } | GrantCause::NotAccepted { holder, .. } => {
                    Reason::HolderLate {
                        holder: holder.clone(),
                        next: next(),
                    }
                }
                GrantCause::Released | GrantCause::Unheld => Reason::AwaitProof { remaining },
            };
        }
        match round.elected {
            Some(elected) => self.grant(free, &elected, contenders, round.silent),
            None if round.awaited.is_empty() => Reason::NoAck(round.silent),
            None => Reason::AwaitAck(round.awaited),
        }
    }

    /// Wakes when the ack of the next leader goes stale, so that a newer one is in when the lease may be granted.
    fn wake_when_stale(&mut self, elected: &Identity) {
        let acked = self
            .election
            .candidates
            .get(elected)
            .and_then(|seen| seen.acked);
        if let Some(stale_at) = acked.map(|acked| acked.at.after(self.settings.timing.fresh))
            && stale_at > self.now
        {
            self.wake(stale_at, WakeReason::AckStale);
        }
    }

    fn grant(
        &mut self,
        free: &FreeLease<'a>,
        elected: &Contender<'a>,
        contenders: &Contenders<'a>,
        silent: Vec<Identity>,
    ) -> Reason {
        let name = &elected.candidate.name;
        let snapshot = &free.watched.snapshot;
        let failed_now = free.failed() == Some(name);
        let failures = self
            .election
            .failures(name)
            .saturating_add(u8::from(failed_now));
        let window = self.settings.timing.accept_window_after(failures);
        let mut record = snapshot.record.granted(name.clone(), window, self.wall);
        record.strategy = Some(contenders.strategy_name.clone());
        let term = record.term;
        self.effects.push(Effect::Write(snapshot.replace(record)));
        let passed: BTreeSet<&Identity> = silent.iter().chain([name]).collect();
        let mut others = contenders.ranked.iter().enumerate();
        let runner_up = others.find(|(_, contender)| !passed.contains(&contender.candidate.name));
        let place = contenders.find(name).map(|(place, _)| place);
        let because = match runner_up {
            None if silent.is_empty() => "is the only candidate".to_owned(),
            None => "is the only one that answers".to_owned(),
            Some((below, other)) if place < Some(below) => contenders.order.because(elected, other),
            Some(_) => "is the best that answered".to_owned(),
        };
        Reason::Granted {
            to: name.clone(),
            term,
            cause: free.cause.clone(),
            because,
            silent,
        }
    }
}
