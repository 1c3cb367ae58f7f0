//! A candidate and its Lease: from the grant to the release, and how long it may believe (R8–R12, R14).

use std::sync::Arc;

use super::decision::{Ending, Loss, WriteKind};
use crate::backoff::RetryBackoff;
use crate::lease::LeaseSnapshot;
use crate::names::{Identity, ResourceVersion, Term, Token};
use crate::renumber::{Renumber, Renumbering, renumber};
use crate::time::{Instant, Timestamp};
use crate::timing::CandidateTiming;

/// What a holder is told once and for all. The duration of a term cannot change under it ([R11](crate::rules#r11)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HolderConfig {
    /// The identity of this process ([R1](crate::rules#r1)).
    pub identity: Identity,
    /// How long it waits for what.
    pub timing: CandidateTiming,
}

/// One process's dealings with one Lease.
///
/// It accepts what it is granted, believes for as long as its own proven writes allow, renews, makes room when another
/// candidate is preferred, and gives the lease up only when its work has stopped.
///
/// Choices that the rules leave open:
/// * A grant is not accepted while work of a former term still runs, nor while shutting down.
/// * A grant that already carries a preference for another candidate is accepted and handed on, without starting the
///   work.
/// * A write on the own term that is not one of ours, told by its renewTime, ends the term: the name is shared ([R8]).
///
/// [R8]: crate::rules#r8
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    pub(super) config: Arc<HolderConfig>,
    /// The newest version of the Lease that was seen, also of one deleted since.
    pub(super) newest: Option<ResourceVersion>,
    /// The newest revision known, `None` where the Lease is missing. While holding it is one of the own term.
    pub(super) known: Option<LeaseSnapshot>,
    pub(super) phase: TermPhase,
    pub(super) in_flight: Option<InFlight>,
    /// Attempts on the known revision whose outcome is unknown. They may have been applied, or be applied yet.
    pub(super) unresolved: Vec<WriteAttempt>,
    pub(super) reading: ReadState,
    pub(super) backoff: RetryBackoff,
    pub(super) closing: Closing,
}

/// How long this process may believe that it leads, and under which token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Belief {
    /// The term.
    pub term: Term,
    /// Its fencing token ([R14](crate::rules#r14)).
    pub token: Token,
    /// The first instant of the holder's clock at which the belief is over.
    pub deadline: Instant,
}

/// What a watch of the Lease tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    /// A revision, from an event or a list.
    Seen(LeaseSnapshot),
    /// The Lease was deleted, at this version.
    Deleted(ResourceVersion),
    /// A list did not contain the Lease. It carries no version to judge its age by, so it calls for a read.
    Absent,
}

/// How a write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseOutcome {
    /// It was applied, and this revision is the reply.
    Done(LeaseSnapshot),
    /// The server refused it because the Lease has another version or uid.
    Conflict,
    /// The server has no such Lease.
    Gone,
    /// The server refused it for another reason; it is certain that it was not applied.
    Refused,
    /// It may have been applied, or may be yet: a timeout, a lost connection, an error of the server.
    Unknown,
}

/// A read that brought no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadFailed;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum TermPhase {
    /// Not holding, and nothing runs. `ended` is the end of the last term, until it has been told.
    Waiting { ended: Option<Ending> },
    /// The known record is a term that this process accepted.
    Holding(Holding),
    /// The belief is gone and the work still runs. The Lease is not ours to touch.
    Lost { why: Loss, told: bool },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holding {
    pub(super) token: Token,
    /// When the newest write that is proven to have been applied was sent.
    pub(super) proven: Instant,
    pub(super) work: WorkState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WorkState {
    /// Not started yet.
    Due,
    Running,
    /// Told to stop, and still allowed to finish.
    Draining,
    /// Stopped for good; the lease is to be given up.
    Stopped {
        /// Whether it was ever started: a term that was not has no end to tell.
        started: bool,
    },
}

/// A write that could prove itself by its renewTime.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WriteAttempt {
    /// The version that it replaces.
    pub(super) base: ResourceVersion,
    pub(super) renew_time: Timestamp,
    pub(super) sent_at: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct InFlight {
    pub(super) kind: WriteKind,
    pub(super) attempt: WriteAttempt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ReadState {
    No,
    Wanted,
    /// Under way, and nothing newer was seen since it was sent: its reply is the newest there is.
    Sent,
    /// Under way, and something newer was seen since: its reply may be older than that.
    Overtaken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Closing {
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
            config,
            newest: None,
            known: None,
            phase: TermPhase::Waiting { ended: None },
            in_flight: None,
            unresolved: Vec::new(),
            reading: ReadState::No,
            backoff: RetryBackoff::default(),
            closing: Closing::No,
        }
    }

    /// Whether this process may believe that it leads, computed from numbers on every call ([R9](crate::rules#r9)).
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

    /// Whether a grant would be accepted. A candidate that would not should not ack pings either.
    pub fn can_accept(&self) -> bool {
        !self.is_closing() && !matches!(self.phase, TermPhase::Lost { .. })
    }

    /// Whether a shutdown has been asked for and nothing is left to do.
    pub fn is_finished(&self) -> bool {
        self.is_closing()
            && self.phase == TermPhase::Waiting { ended: None }
            && self.in_flight.is_none()
            && self.reading == ReadState::No
    }

    /// What a watch of the Lease tells. Revisions older than the newest one known are ignored; where one contradicts
    /// the own term, the next step reads the Lease.
    pub fn handle_event(&mut self, now: Instant, event: LeaseEvent) {
        self.end_expired_belief(now);
        match event {
            LeaseEvent::Seen(snapshot) if self.is_news(snapshot.version) => {
                self.adopt(now, snapshot);
            }
            LeaseEvent::Seen(snapshot) => {
                if self.contradicts(&snapshot) {
                    self.request_read();
                }
            }
            LeaseEvent::Deleted(version) if self.is_news(version) => {
                self.newest = Some(version);
                self.adopt_absence();
            }
            LeaseEvent::Deleted(_) => {}
            LeaseEvent::Absent => {
                if self.known.is_some() {
                    self.request_read();
                }
            }
        }
    }

    /// The reply to [`super::Effect::Read`]; `Ok(None)` says that there is no such Lease.
    pub fn handle_read(&mut self, now: Instant, reply: Result<Option<LeaseSnapshot>, ReadFailed>) {
        self.end_expired_belief(now);
        let newest_there_is = self.reading == ReadState::Sent;
        self.reading = ReadState::No;
        match reply {
            Ok(Some(snapshot)) if self.is_news(snapshot.version) => self.adopt(now, snapshot),
            Ok(Some(snapshot)) if newest_there_is => {
                if Some(snapshot.version) != self.newest || self.known.is_none() {
                    self.restart_from(snapshot);
                }
            }
            Ok(Some(_)) => {}
            Ok(None) if newest_there_is => self.adopt_absence(),
            // Something newer was seen while the read was under way: which of the two came first is open.
            Ok(None) => self.request_read(),
            Err(ReadFailed) => {
                self.fail(now);
                self.request_read();
            }
        }
    }

    /// How the write under way ended.
    pub fn handle_outcome(&mut self, now: Instant, outcome: LeaseOutcome) {
        self.end_expired_belief(now);
        let Some(InFlight { kind, attempt }) = self.in_flight.clone() else {
            return;
        };
        // A write that news has overtaken is settled: it was recognised, or will never be applied.
        let open = self.newest == Some(attempt.base) && self.known.is_some();
        match outcome {
            LeaseOutcome::Done(snapshot) if snapshot.version <= attempt.base => {
                self.in_flight = None;
                self.restart_from(snapshot);
            }
            LeaseOutcome::Done(snapshot) => {
                if self.is_news(snapshot.version) {
                    self.adopt(now, snapshot);
                }
                self.in_flight = None;
                self.backoff.reset();
            }
            LeaseOutcome::Gone => {
                self.in_flight = None;
                if open {
                    self.adopt_absence();
                } else if self.known.is_some() {
                    self.request_read();
                }
            }
            LeaseOutcome::Conflict => {
                self.in_flight = None;
                self.conflicted(now);
                if open {
                    self.keep_open(&kind, attempt);
                    self.request_read();
                }
            }
            LeaseOutcome::Refused => {
                self.in_flight = None;
                self.fail(now);
            }
            LeaseOutcome::Unknown => {
                self.in_flight = None;
                self.fail(now);
                if open {
                    self.keep_open(&kind, attempt);
                }
            }
        }
        self.resolve_before_closing();
    }

    /// Nothing of the work runs any more, whether it was told to stop or ended by itself.
    pub fn handle_work_stopped(&mut self, now: Instant) {
        self.end_expired_belief(now);
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
    /// The release waits for [`Self::handle_withdrawn`], so that it does not come back as a grant.
    pub fn shut_down(&mut self, now: Instant) {
        self.end_expired_belief(now);
        if self.closing == Closing::No {
            self.closing = Closing::Candidate;
        }
        self.resolve_before_closing();
    }

    /// This process is no longer a candidate: its object is gone, or cannot be deleted.
    pub fn handle_withdrawn(&mut self) {
        if self.closing == Closing::Candidate {
            self.closing = Closing::Withdrawn;
        }
    }

    /// Asks for a read of the Lease: for callers that have heard nothing for longer than they should.
    pub fn request_read(&mut self) {
        if self.reading == ReadState::No {
            self.reading = ReadState::Wanted;
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing != Closing::No
    }

    pub(super) fn deadline(&self, holding: &Holding) -> Instant {
        holding.proven.after(self.config.timing.renew_deadline)
    }

    fn is_news(&self, version: ResourceVersion) -> bool {
        self.newest.is_none_or(|newest| newest < version)
    }

    /// Remembers an attempt whose success would begin or prolong the belief.
    fn keep_open(&mut self, kind: &WriteKind, attempt: WriteAttempt) {
        let counts = match &self.phase {
            TermPhase::Waiting { .. } => *kind == WriteKind::Accept,
            TermPhase::Holding(_) => *kind == WriteKind::Renew,
            TermPhase::Lost { .. } => false,
        };
        if counts {
            self.unresolved.push(attempt);
        }
    }

    /// Looks whether an accept of unknown outcome was applied: if so, the lease is to be given back.
    fn resolve_before_closing(&mut self) {
        let waiting = matches!(self.phase, TermPhase::Waiting { .. });
        if self.is_closing() && waiting && !self.unresolved.is_empty() {
            self.request_read();
        }
    }

    fn fail(&mut self, now: Instant) {
        let longest = self.config.timing.retry_period;
        self.backoff.fail(now, CandidateTiming::RETRY_MIN, longest);
    }

    fn conflicted(&mut self, now: Instant) {
        let longest = self.config.timing.retry_period;
        self.backoff
            .conflict(now, CandidateTiming::RETRY_MIN, longest);
    }
}

renumber!(Holder {
    newest,
    known,
    phase,
    in_flight,
    unresolved,
    backoff
});

// === impl TermPhase, Holding ===

impl Renumber for TermPhase {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Holding(holding) => holding.renumber(by),
            Self::Waiting { .. } | Self::Lost { .. } => {}
        }
    }
}

renumber!(Holding { token, proven });

// === impl InFlight, WriteAttempt ===

renumber!(InFlight { attempt });

renumber!(WriteAttempt { base, renew_time => lease_time, sent_at });
