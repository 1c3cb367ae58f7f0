//! A process and its Lease: from the grant or the acquisition to the release, and how long it may believe (R8–R12,
//! R14, R18).

use std::sync::Arc;
use std::time::Duration;

use super::acquisition::AcquisitionWatch;
use super::config::HolderConfig;
use super::decision::{Ending, WriteKind};
use super::former_term::FormerTerm;
use super::input::{LeaseEvent, LeaseOutcome, ReadFailed};
use super::term::{Holding, InFlight, TermPhase, WorkState, WriteAttempt};
use crate::lease::LeaseSnapshot;
use crate::lease_watch::NewsSource;
use crate::names::{ResourceVersion, Term, Token};
use crate::renumber::renumber;
use crate::time::{Instant, Moment, Timestamp};
use crate::timing::CandidateTiming;
use crate::tracked::TrackedObject;

/// One process's dealings with one Lease.
///
/// It accepts what it is granted or acquires what is free, believes for as long as its own proven writes allow, renews, makes room when another
/// candidate is preferred, and gives the lease up only when its work has stopped.
///
/// Choices that the rules leave open:
/// * A grant is not accepted while work of a former term still runs, nor while shutting down.
/// * A grant that already carries a preference for another candidate is accepted and handed on, without starting the
///   work.
/// * A write on the own term that is not one of ours, known by its renewTime, ends the term: the name is shared ([R8]).
///
/// [R8]: crate::rules#r8
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    pub(super) config: Arc<HolderConfig>,
    pub(super) tracked: TrackedObject,
    /// The newest revision known, `None` where the Lease is missing. While holding it is one of the own term.
    pub(super) known: Option<LeaseSnapshot>,
    /// True if this process wrote the record that is known, as its exact renewTime says.
    pub(super) wrote_known: bool,
    /// Terms of earlier lives of this instance that the Lease may show yet (R21).
    pub(super) former_terms: Vec<FormerTerm>,
    /// True if a read has been answered since the work ended, and since the last attempt to lead on after a lapse or a death
    /// (R20, R21); it showed that very record.
    pub(super) answered: bool,
    pub(super) phase: TermPhase,
    pub(super) in_flight: Option<InFlight>,
    /// Attempts on the known revision whose outcome is unknown. They may have been applied, or be applied yet.
    pub(super) unresolved: Vec<WriteAttempt>,
    pub(super) shutdown: ShutdownStage,
    /// True if an operator wants this process not to lead (R16).
    pub(super) stands_down: bool,
    /// The knowledge of the Lease for an acquisition, where this process makes any.
    pub(super) acquisition: Option<AcquisitionWatch>,
}

/// The belief of this process that it leads: its term, its token and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Belief {
    /// The term.
    pub term: Term,
    /// Its fencing token ([R14](crate::rules#r14)).
    pub token: Token,
    /// The first instant of the holder's clock at which the belief is over.
    pub deadline: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ShutdownStage {
    No,
    /// Shutting down; the candidate object may still be there, so a release could come back as a grant.
    Candidate,
    /// Shutting down, and no longer a candidate.
    Withdrawn,
}

// === impl Holder ===

impl Holder {
    /// A process that knows nothing of its Lease yet.
    pub fn new(config: Arc<HolderConfig>) -> Self {
        Self {
            acquisition: config.mode.acquisition().map(|_| AcquisitionWatch::new()),
            config,
            tracked: TrackedObject::unknown(),
            known: None,
            wrote_known: false,
            former_terms: Vec::new(),
            answered: false,
            phase: TermPhase::Waiting { ended: None },
            in_flight: None,
            unresolved: Vec::new(),
            shutdown: ShutdownStage::No,
            stands_down: false,
        }
    }

    /// The same process, given the terms of earlier lives of its instance. The instance lock proves that nothing of them works
    /// any more ([R21](crate::rules#r21)).
    #[must_use]
    pub fn with_former_terms(mut self, terms: Vec<FormerTerm>) -> Self {
        self.former_terms = terms;
        self
    }

    /// True while this process may believe that it leads, computed from numbers on every call ([R9](crate::rules#r9)).
    pub fn believes(&self, now: Instant) -> bool {
        self.belief().is_some_and(|belief| now < belief.deadline)
    }

    /// The current belief. Its deadline may have passed already.
    pub fn belief(&self) -> Option<Belief> {
        let TermPhase::Holding(holding) = &self.phase else {
            return None;
        };
        match holding.work {
            WorkState::Running | WorkState::Draining => Some(Belief {
                term: self.known.as_ref()?.record.term,
                token: holding.token,
                deadline: self.deadline(holding),
            }),
            WorkState::Due | WorkState::Stopped { .. } => None,
        }
    }

    /// The newest revision known, `None` where the Lease is missing or was never seen.
    pub fn known(&self) -> Option<&LeaseSnapshot> {
        self.known.as_ref()
    }

    /// True if a grant would be accepted. A candidate that would not should not ack pings either.
    pub fn can_accept(&self) -> bool {
        !self.is_shutting_down() && !matches!(self.phase, TermPhase::Lost { .. })
    }

    /// True if a shutdown has been asked for and nothing is left to do: no term, and no write of ours that may have
    /// begun one or may yet. A read, or the creation of an unheld Lease, is not waited for.
    pub fn is_finished(&self) -> bool {
        self.is_shutting_down()
            && self.phase == TermPhase::Waiting { ended: None }
            && !matches!(self.in_flight, Some(InFlight::Write { .. }))
            && (!self.may_have_begun() || self.tracked.is_settled())
    }

    /// News from a watch of the Lease. Revisions older than the newest one known are ignored; where one contradicts
    /// the own term, the next step reads the Lease.
    pub fn handle_event(&mut self, now: Moment, event: LeaseEvent) {
        self.end_expired_belief(now.holder);
        match event {
            LeaseEvent::Seen(snapshot, source) if self.tracked.is_news(snapshot.version) => {
                self.adopt(now, snapshot, source);
            }
            LeaseEvent::Seen(snapshot, source) => {
                // The list was overtaken, or the store was restored (R4).
                let older = self.tracked.newest > Some(snapshot.version);
                if (older && source == NewsSource::List) || self.contradicts(&snapshot) {
                    self.request_read();
                }
            }
            LeaseEvent::Deleted(version) if self.tracked.is_news(version) => {
                self.tracked.newest = Some(version);
                // The deletion of an object that was never seen tells of a gap.
                let seen = self.known.is_some();
                let source = if seen {
                    NewsSource::Watch
                } else {
                    NewsSource::List
                };
                self.adopt_absence(now, source);
            }
            LeaseEvent::Deleted(_) => {}
            LeaseEvent::Unreadable => {
                if let Some(acquisition) = &mut self.acquisition {
                    acquisition.observe_unreadable();
                }
                self.request_read();
            }
            LeaseEvent::Absent(version) if self.tracked.is_news(version) => {
                self.tracked.newest = Some(version);
                self.adopt_absence(now, NewsSource::List);
            }
            LeaseEvent::Absent(_) => {
                if self.known.is_some() {
                    self.request_read();
                }
            }
        }
    }

    /// A newer ping of the own candidate was seen: an elector acts. A candidate that would acquire a lease which is free
    /// waits for that elector anew, once ([R18](crate::rules#r18)).
    pub fn handle_ping(&mut self, now: Moment) {
        if let Some(acquisition) = self.acquisition.as_mut().filter(|_| !self.stands_down) {
            acquisition.note_ping(now.monotonic, &self.config);
        }
    }

    /// The own candidate says, or does so no more, that an operator wants this process not to lead: it acquires and resumes
    /// nothing then ([R16](crate::rules#r16), [R18](crate::rules#r18)). It accepts what it is granted, and leads on.
    pub const fn handle_stand_down(&mut self, stands_down: bool) {
        self.stands_down = stands_down;
    }

    /// The reply to [`super::Effect::Read`]; `Ok(None)` says that there is no such Lease.
    pub fn handle_read(&mut self, now: Moment, reply: Result<Option<LeaseSnapshot>, ReadFailed>) {
        self.end_expired_belief(now.holder);
        let newest_there_is = self.tracked.end_read();
        self.answered = false;
        match reply {
            Ok(Some(snapshot)) if self.tracked.is_news(snapshot.version) => {
                // The watch has not brought it yet: what came before it is not known.
                self.adopt(now, snapshot, NewsSource::List);
            }
            Ok(Some(snapshot)) if newest_there_is => {
                if Some(snapshot.version) != self.tracked.newest || self.known.is_none() {
                    self.restart_from(now, snapshot);
                } else if self.tracked.backoff.has_lost_race() {
                    // No write came between, so the refusal has another cause.
                    self.fail(now.holder);
                }
            }
            Ok(Some(_)) => {}
            Ok(None) if newest_there_is => self.adopt_absence(now, NewsSource::Watch),
            // Something newer was seen while the read was under way: which of the two came first is open.
            Ok(None) => self.request_read(),
            Err(ReadFailed) => {
                if let Some(acquisition) = &mut self.acquisition {
                    acquisition.note_unanswered(now.monotonic, &self.config);
                }
                self.fail(now.holder);
                self.request_read();
                return;
            }
        }
        if newest_there_is && let Some(acquisition) = &mut self.acquisition {
            acquisition.note_read(now.monotonic, &self.config);
        }
        let waiting = matches!(self.phase, TermPhase::Waiting { .. });
        self.answered = waiting && self.next_own_term().is_some();
    }

    /// The read that was just answered took so long. Where it took more than half of H, no term could be renewed in time, so
    /// none is led on by it while another candidate may come to lead ([R20](crate::rules#r20)).
    pub fn note_read_time(&mut self, now: Moment, took: Duration) {
        let fits = took < self.config.timing.renew_deadline / 2;
        self.answered &= fits || self.free_for(now).is_some();
    }

    /// The end of the write under way.
    pub fn handle_outcome(&mut self, now: Moment, outcome: LeaseOutcome) {
        self.end_expired_belief(now.holder);
        match self.in_flight.clone() {
            Some(InFlight::Write { kind, attempt }) => {
                self.handle_write_outcome(now, &kind, attempt, outcome);
            }
            Some(InFlight::Create) => self.handle_create_outcome(now, &outcome),
            None => {}
        }
        self.resolve_before_shutdown();
    }

    /// The object itself is taken from the watch: it alone proves what came before (R6).
    fn handle_create_outcome(&mut self, now: Moment, outcome: &LeaseOutcome) {
        self.in_flight = None;
        match outcome {
            LeaseOutcome::Done(_) | LeaseOutcome::Conflict => {
                self.tracked.backoff.reset();
                if let Some(acquisition) = &mut self.acquisition {
                    acquisition.note_posted(now.monotonic);
                }
            }
            LeaseOutcome::Gone | LeaseOutcome::Refused | LeaseOutcome::Unknown => {
                self.fail(now.holder);
            }
        }
    }

    fn handle_write_outcome(
        &mut self,
        now: Moment,
        kind: &WriteKind,
        attempt: WriteAttempt,
        outcome: LeaseOutcome,
    ) {
        // A write that news has overtaken is settled: it was recognised, or will never be applied.
        let open = self.tracked.newest == Some(attempt.base) && self.known.is_some();
        match outcome {
            LeaseOutcome::Done(snapshot) if snapshot.version <= attempt.base => {
                self.in_flight = None;
                self.restart_from(now, snapshot);
            }
            LeaseOutcome::Done(snapshot) => {
                if self.tracked.is_news(snapshot.version) {
                    self.adopt(now, snapshot, NewsSource::OwnWrite);
                }
                self.in_flight = None;
                self.tracked.backoff.reset();
            }
            LeaseOutcome::Gone => {
                self.in_flight = None;
                if open {
                    self.adopt_absence(now, NewsSource::List);
                } else if self.known.is_some() {
                    self.request_read();
                }
            }
            LeaseOutcome::Conflict => {
                self.in_flight = None;
                self.tracked.backoff.lose_race(now.holder);
                if open {
                    self.keep_open(kind, attempt);
                }
                let unheld = self
                    .known()
                    .is_some_and(|known| known.record.holder.is_none());
                if let (WriteKind::Acquire, Some(acquisition)) = (kind, &mut self.acquisition) {
                    acquisition.note_lost_race(now.monotonic, open && unheld);
                }
                // R2: the watch brings the revision of an unheld record, so that its stop-watch goes on.
                if open && !unheld {
                    self.request_read();
                }
            }
            LeaseOutcome::Refused => {
                self.in_flight = None;
                self.fail(now.holder);
            }
            LeaseOutcome::Unknown => {
                self.in_flight = None;
                self.fail(now.holder);
                if let (WriteKind::Acquire, true, Some(acquisition)) =
                    (kind, open, &mut self.acquisition)
                {
                    acquisition.note_unanswered(now.monotonic, &self.config);
                }
                if open {
                    self.keep_open(kind, attempt);
                }
            }
        }
    }

    /// A write that had no answer within its time, on that version, turns out to have been applied. What is newer than
    /// that version has settled it; otherwise it is the next revision, as a watch brings it ([R22](crate::rules#r22)).
    pub fn handle_late(&mut self, now: Moment, base: ResourceVersion, snapshot: LeaseSnapshot) {
        let settled = self
            .known
            .as_ref()
            .is_none_or(|known| known.version != base);
        if !settled {
            self.handle_event(now, LeaseEvent::Seen(snapshot, NewsSource::Watch));
        }
    }

    /// Lets go of the request under way where the revision known shows that its response would say nothing new: a read
    /// that is older, or a write that has lost its race ([R2](crate::rules#r2)). Says whether it did; the response is not
    /// to be brought back then.
    pub fn set_aside_overtaken(&mut self, now: Moment) -> bool {
        match &self.in_flight {
            Some(InFlight::Write { attempt, .. }) if self.has_lost(attempt) => {
                self.handle_outcome(now, LeaseOutcome::Conflict);
                true
            }
            Some(InFlight::Write { .. } | InFlight::Create) => false,
            None => self.tracked.set_aside_overtaken_read(),
        }
    }

    /// Another write came before this one: the newer revision does not show it.
    fn has_lost(&self, attempt: &WriteAttempt) -> bool {
        self.known.as_ref().is_some_and(|known| {
            attempt.base < known.version && known.record.renew_time != Some(attempt.renew_time)
        })
    }

    /// The process acquires other leases before this one: it leaves this one alone for that much longer once it is free,
    /// besides what the rules demand ([R18](crate::rules#r18)). It accepts what it is granted all the same.
    pub const fn handle_delay(&mut self, delay: Duration) {
        if let Some(acquisition) = &mut self.acquisition {
            acquisition.note_delay(delay);
        }
    }

    /// Nothing of the work runs any more, whether it was asked to stop or ended by itself.
    pub fn handle_work_stopped(&mut self, now: Moment) {
        self.end_expired_belief(now.holder);
        match &mut self.phase {
            TermPhase::Holding(Holding { work, .. })
                if matches!(work, WorkState::Running | WorkState::Draining) =>
            {
                *work = WorkState::Stopped { started: true };
            }
            TermPhase::Lost { why, .. } => {
                self.phase = TermPhase::Waiting {
                    ended: Some(Ending::Lost(why.clone())),
                };
            }
            TermPhase::Holding(_) | TermPhase::Waiting { .. } => {}
        }
    }

    /// Begins to shut down: accept nothing, stop the work, then hand over or release.
    ///
    /// The release of a process that accepts grants waits for [`Self::handle_withdrawn`], so that it does not come back
    /// as one.
    pub fn shut_down(&mut self, now: Moment) {
        self.end_expired_belief(now.holder);
        if self.shutdown == ShutdownStage::No {
            self.shutdown = if self.config.mode.accepts() {
                ShutdownStage::Candidate
            } else {
                ShutdownStage::Withdrawn
            };
        }
        self.resolve_before_shutdown();
    }

    /// This process is no longer a candidate: its object is gone, or cannot be deleted.
    pub fn handle_withdrawn(&mut self) {
        if self.shutdown == ShutdownStage::Candidate {
            self.shutdown = ShutdownStage::Withdrawn;
        }
    }

    /// Asks for a read of the Lease: for callers that have heard nothing for longer than they should.
    pub fn request_read(&mut self) {
        self.tracked.want_read();
    }

    /// Forgets the attempts of unknown outcome whose `renewTime` no revision can show any more. Nothing that follows
    /// depends on them, but only a caller who sees the store and every request can say so: the model check, which has
    /// fewer states thereby.
    pub fn forget_attempts(&mut self, may_show: impl Fn(Timestamp) -> bool) {
        self.unresolved
            .retain(|attempt| may_show(attempt.renew_time));
    }

    /// The knowledge for an acquisition, where this process makes any and no operator wants it not to lead.
    pub(super) fn acquiring(&self) -> Option<&AcquisitionWatch> {
        self.acquisition.as_ref().filter(|_| !self.stands_down)
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutdown != ShutdownStage::No
    }

    pub(super) fn deadline(&self, holding: &Holding) -> Instant {
        holding.proven.after(self.config.timing.renew_deadline)
    }

    /// Remembers an attempt whose success would begin or prolong a belief, or show that nobody came between (R20).
    fn keep_open(&mut self, kind: &WriteKind, attempt: WriteAttempt) {
        if attempt.begins || *kind == WriteKind::Renew {
            self.unresolved.push(attempt);
        }
    }

    /// Looks whether an accept of unknown outcome was applied: if so, the lease is to be given back.
    fn resolve_before_shutdown(&mut self) {
        let waiting = matches!(self.phase, TermPhase::Waiting { .. });
        if self.is_shutting_down() && waiting && self.may_have_begun() {
            self.request_read();
        }
    }

    /// True if an attempt of unknown outcome would have begun a term.
    fn may_have_begun(&self) -> bool {
        self.unresolved.iter().any(|attempt| attempt.begins)
    }

    fn fail(&mut self, now: Instant) {
        self.tracked.fail(now, self.pauses());
    }

    /// The shortest and the longest pause after a failed attempt.
    fn pauses(&self) -> (Duration, Duration) {
        (CandidateTiming::RETRY_MIN, self.config.timing.retry_period)
    }
}

renumber!(Holder {
    tracked,
    known,
    former_terms,
    phase,
    in_flight,
    unresolved,
    acquisition
});
