//! The meaning of a newer Lease revision: its holder, which write of ours it proves, and whether the term is over.

use super::acquisition::AcquisitionWatch;
use super::decision::{Ending, Loss, WriteKind};
use super::machine::Holder;
use super::term::{Holding, InFlight, TermPhase, WorkState, WriteAttempt};
use crate::lease::{LeaseRecord, LeaseSnapshot, wire_seconds};
use crate::lease_watch::NewsSource;
use crate::names::Token;
use crate::time::{Instant, Moment};

// === impl Holder ===

impl Holder {
    /// Ends a belief whose deadline has passed. Every input and every step begins with this, so that a late success
    /// cannot revive a term, however late the caller is.
    pub(super) fn end_expired_belief(&mut self, now: Instant) {
        if let TermPhase::Holding(holding) = &self.phase
            && self.deadline(holding) <= now
        {
            self.lose(Loss::DeadlinePassed);
        }
    }

    /// Takes in a revision that is newer than any seen before.
    pub(super) fn adopt(&mut self, now: Moment, snapshot: LeaseSnapshot, source: NewsSource) {
        if let Some(acquisition) = &mut self.acquisition {
            acquisition.observe(now.monotonic, &snapshot, source);
        }
        self.wrote_known = self.shows_own_write(&snapshot);
        self.former_terms
            .retain(|term| term.may_be_shown_from(&snapshot));
        match &self.phase {
            TermPhase::Holding(holding) => match self.check_own_term(holding, &snapshot) {
                Ok(proven) => self.prove(proven),
                Err(ending) => self.end(ending),
            },
            TermPhase::Waiting { .. } => {
                if self.is_other_record(&snapshot) {
                    self.tracked.backoff.reset();
                }
                if let Some(holding) = self.begun(now.holder, &snapshot) {
                    self.phase = TermPhase::Holding(holding);
                }
            }
            TermPhase::Lost { .. } => {}
        }
        self.tracked.newest = Some(snapshot.version);
        self.known = Some(snapshot);
        self.settle_attempts();
    }

    /// Takes in that the Lease is missing.
    pub(super) fn adopt_absence(&mut self, now: Moment, source: NewsSource) {
        if let Some(acquisition) = &mut self.acquisition {
            acquisition.observe_absence(now.monotonic, source);
        }
        self.lose(Loss::Deleted);
        self.known = None;
        self.wrote_known = false;
        self.former_terms.clear();
        self.settle_attempts();
    }

    /// Takes in a revision that proves that the store went back in time (R4): nothing known before counts.
    pub(super) fn restart_from(&mut self, now: Moment, snapshot: LeaseSnapshot) {
        if let Some(acquisition) = &mut self.acquisition {
            *acquisition = AcquisitionWatch::new();
            acquisition.observe(now.monotonic, &snapshot, NewsSource::List);
        }
        self.lose(Loss::StoreRestored);
        self.tracked.newest = Some(snapshot.version);
        self.known = Some(snapshot);
        self.wrote_known = false;
        self.former_terms.clear();
        self.settle_attempts();
    }

    /// True if a revision that is not news speaks against the own term.
    pub(super) fn contradicts(&self, snapshot: &LeaseSnapshot) -> bool {
        let (TermPhase::Holding(_), Some(known)) = (&self.phase, &self.known) else {
            return false;
        };
        known.uid != snapshot.uid
            || known.record.holder != snapshot.record.holder
            || known.record.term != snapshot.record.term
    }

    /// True if a revision says anything that the one known does not.
    fn is_other_record(&self, snapshot: &LeaseSnapshot) -> bool {
        self.known.as_ref().is_none_or(|known| {
            known.uid != snapshot.uid || !known.record.same_record(&snapshot.record)
        })
    }

    /// The known revision where it is a grant to this process without an accept (R8).
    pub(super) fn grant(&self) -> Option<&LeaseSnapshot> {
        let known = self.known.as_ref().filter(|_| self.config.mode.accepts());
        known.filter(|known| self.is_mine(&known.record) && !known.record.has_token())
    }

    /// Attempts on the known revision are settled by a newer one: recognised, or never to be applied.
    fn settle_attempts(&mut self) {
        self.unresolved.clear();
        self.answered &= self.next_own_term().is_some();
        self.tracked.overtake();
    }

    /// The send time of the write of ours that a newer revision shows, where that still is the own term.
    fn check_own_term(
        &self,
        holding: &Holding,
        snapshot: &LeaseSnapshot,
    ) -> Result<Option<Instant>, Ending> {
        let Some(known) = &self.known else {
            return Err(Ending::Lost(Loss::Deleted));
        };
        let record = &snapshot.record;
        if known.uid != snapshot.uid {
            return Err(Ending::Lost(Loss::Deleted));
        }
        if !self.is_mine(record) {
            return Err(self.given_up(holding, &known.record, record));
        }
        if record.term != known.record.term {
            return Err(Ending::Lost(Loss::NewTerm));
        }
        if let Some(attempt) = self.attempt_of(record) {
            return Ok(attempt.sent_at);
        }
        if record.renew_time != known.record.renew_time {
            return Err(Ending::Lost(Loss::NameShared));
        }
        Ok(None)
    }

    /// The end of the term, given that the Lease does not name this process any more.
    fn given_up(&self, holding: &Holding, known: &LeaseRecord, new: &LeaseRecord) -> Ending {
        let stopped = matches!(holding.work, WorkState::Stopped { .. });
        match &new.holder {
            None if stopped && new.term == known.term => Ending::Released,
            Some(to)
                if stopped
                    && known.preferred_holder.as_ref() == Some(to)
                    && new.term == known.term.next() =>
            {
                Ending::HandedOver { to: to.clone() }
            }
            by => Ending::Lost(Loss::Taken { by: by.clone() }),
        }
    }

    /// The term that begins with a revision which shows an accept or an acquisition of ours, unless its belief would be
    /// over already.
    fn begun(&self, now: Instant, snapshot: &LeaseSnapshot) -> Option<Holding> {
        let record = &snapshot.record;
        let attempt = self.attempt_of(record)?;
        let token = Token(attempt.base);
        if !self.is_mine(record) || !record.has_token() || record.token != Some(token) {
            return None;
        }
        let holding = Holding {
            token,
            proven: attempt.sent_at?,
            work: WorkState::Due,
        };
        (now < self.deadline(&holding)).then_some(holding)
    }

    /// True if a newer revision shows that nobody but this process has written the record: it is the one known, or a later
    /// write of its own (R20). Holder and term alone do not say so: a name may be shared, and terms recur after a deletion.
    fn shows_own_write(&self, snapshot: &LeaseSnapshot) -> bool {
        let record = &snapshot.record;
        self.known.as_ref().is_some_and(|known| {
            let goes_on = self.wrote_known && known.record.same_record(record);
            known.uid == snapshot.uid
                && self.is_mine(record)
                && record.has_token()
                && record.duration_seconds == Some(wire_seconds(self.config.timing.lease_duration))
                && (goes_on || self.attempts_of(record).next().is_some())
        })
    }

    /// The write by which this process may begin a term on the known record although that has not expired: nobody works,
    /// since it wrote the record itself and has stopped (R20), or an earlier life of its instance did, which is dead (R21).
    pub(super) fn next_own_term(&self) -> Option<WriteKind> {
        let known = self.known.as_ref()?;
        let is_former = || self.former_terms.iter().any(|it| it.is_shown_by(known));
        match self.wrote_known {
            true => Some(WriteKind::Resume),
            false => is_former().then_some(WriteKind::Rejoin),
        }
    }

    /// The attempt of ours that a record shows and that counts now. A renewal of a term that has ended begins none.
    fn attempt_of(&self, record: &LeaseRecord) -> Option<&WriteAttempt> {
        let waiting = matches!(self.phase, TermPhase::Waiting { .. });
        self.attempts_of(record)
            .find(|attempt| attempt.begins == waiting)
    }

    /// The attempts of ours that a record may show, known by its exact renewTime (R8).
    fn attempts_of(&self, record: &LeaseRecord) -> impl Iterator<Item = &WriteAttempt> {
        let in_flight = match &self.in_flight {
            Some(InFlight::Write { attempt, .. }) => Some(attempt),
            Some(InFlight::Create) | None => None,
        };
        let renew_time = record.renew_time;
        in_flight
            .into_iter()
            .chain(&self.unresolved)
            .filter(move |attempt| Some(attempt.renew_time) == renew_time)
    }

    fn is_mine(&self, record: &LeaseRecord) -> bool {
        record.holder.as_ref() == Some(&self.config.identity)
    }

    fn prove(&mut self, sent_at: Option<Instant>) {
        let (TermPhase::Holding(holding), Some(sent_at)) = (&mut self.phase, sent_at) else {
            return;
        };
        holding.proven = holding.proven.max(sent_at);
        self.tracked.backoff.reset();
    }

    fn lose(&mut self, why: Loss) {
        self.end(Ending::Lost(why));
    }

    /// Ends the belief, and the term too where its work does not run.
    fn end(&mut self, ending: Ending) {
        let TermPhase::Holding(holding) = &self.phase else {
            return;
        };
        self.phase = match (holding.work, ending) {
            (WorkState::Running | WorkState::Draining, Ending::Lost(why)) => TermPhase::Lost {
                why,
                reported: false,
            },
            (WorkState::Stopped { started: true }, ending) => TermPhase::Waiting {
                ended: Some(ending),
            },
            // Never started; and no other end than a loss is possible while the work runs.
            _ => TermPhase::Waiting { ended: None },
        };
        let in_flight = match &mut self.in_flight {
            Some(InFlight::Write { attempt, .. }) => Some(attempt),
            Some(InFlight::Create) | None => None,
        };
        for attempt in in_flight.into_iter().chain(&mut self.unresolved) {
            attempt.sent_at = None;
        }
    }
}
