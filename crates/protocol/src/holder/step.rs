//! The next effects: the start or stop of the work, and the one request that is due.

use std::time::Duration;

use super::acquisition::{Acquire, AcquisitionWatch, LATE, is_ours};
use super::decision::{Decision, Effect, StopReason, WriteKind};
use super::machine::{Holder, ShutdownStage};
use super::term::{Holding, InFlight, TermPhase, WorkState, WriteAttempt};
use super::wait::{Wait, WaitReason};
use crate::lease::{LeaseRecord, LeaseSnapshot, wire_seconds};
use crate::names::{Identity, Token};
use crate::time::{Instant, Moment, Timestamp};

/// A request that is due.
enum WantedRequest {
    Read,
    Create,
    Write(WriteKind),
}

// === impl Holder ===

impl Holder {
    /// The effects due now, and when to step again.
    pub fn step(&mut self, now: Moment, wall: Timestamp) -> Decision {
        self.end_expired_belief(now.holder);
        self.drop_old_attempts(now.holder);
        let mut effects = Vec::new();
        effects.extend(self.direct_work());
        let request = self.request(now, wall, &mut effects);
        let belief_ends = match &self.phase {
            TermPhase::Holding(holding) => Some(self.deadline(holding)),
            TermPhase::Waiting { .. } | TermPhase::Lost { .. } => None,
        };
        Decision {
            effects,
            wake_at: [request, belief_ends].into_iter().flatten().min(),
        }
    }

    /// The time since this process could acquire the lease, by its own stop-watch: `None` where the lease is not
    /// free, or where this process acquires none ([R18](crate::rules#r18)).
    pub fn free_for(&self, now: Moment) -> Option<Duration> {
        self.acquiring()?.free_for(now.monotonic, &self.config)
    }

    /// The wait of this process before it leads. `None` where it leads, has a request due, shuts down, or has heard
    /// nothing of the Lease yet.
    pub fn waiting(&self, now: Moment) -> Option<Wait> {
        let waits = matches!(self.phase, TermPhase::Waiting { .. }) && !self.is_shutting_down();
        let has_write = self.grant().is_some() || self.wanted_after_lapse().is_some();
        if !waits || self.tracked.newest.is_none() || has_write {
            return None;
        }
        let (reason, due) = match self.acquiring() {
            None if self.stands_down => (WaitReason::StandDown, None),
            acquiring => acquiring
                .and_then(|acquisition| acquisition.waiting(&self.config))
                .unwrap_or((WaitReason::Elector, None)),
        };
        let holder = self.known().and_then(|known| known.record.holder.as_ref());
        let reason = match (reason, holder) {
            (WaitReason::StandDown, _) => WaitReason::StandDown,
            (_, Some(holder)) if *holder == self.config.identity => WaitReason::FormerLife,
            (_, Some(holder)) => WaitReason::Held(holder.clone()),
            (reason, None) => reason,
        };
        let is_due = due.is_some_and(|due| due <= now.monotonic);
        (!is_due).then(|| Wait {
            reason,
            until: due.map(|due| now.when_monotonic(due)),
        })
    }

    /// Forgets attempts that could no longer carry a belief if they were proven.
    fn drop_old_attempts(&mut self, now: Instant) {
        let carries = self.config.timing.renew_deadline;
        let is_old = |sent_at: Instant| sent_at.after(carries) <= now;
        self.unresolved
            .retain(|attempt| !attempt.sent_at.is_some_and(is_old));
    }

    /// Starts or stops the work, or tells how the term ended.
    fn direct_work(&mut self) -> Option<Effect> {
        let stop = self.reason_to_stop();
        match (&mut self.phase, stop) {
            (TermPhase::Waiting { ended }, _) => ended.take().map(Effect::Ended),
            (TermPhase::Lost { why, reported }, _) => {
                let first = !std::mem::replace(reported, true);
                first.then(|| Effect::Stop(StopReason::Lost(why.clone())))
            }
            (TermPhase::Holding(Holding { work, token, .. }), stop) => match (*work, stop) {
                (WorkState::Due, None) => {
                    *work = WorkState::Running;
                    let term = self.known.as_ref()?.record.term;
                    Some(Effect::Start {
                        term,
                        token: *token,
                    })
                }
                (WorkState::Due, Some(_)) => {
                    *work = WorkState::Stopped { started: false };
                    None
                }
                (WorkState::Running, Some(why)) => {
                    *work = WorkState::Draining;
                    Some(Effect::Stop(why))
                }
                (WorkState::Running | WorkState::Draining | WorkState::Stopped { .. }, _) => None,
            },
        }
    }

    fn reason_to_stop(&self) -> Option<StopReason> {
        if self.is_shutting_down() {
            return Some(StopReason::ShutDown);
        }
        let to = self.successor()?.clone();
        Some(StopReason::HandOver { to })
    }

    /// The candidate that the known record prefers to this process.
    fn successor(&self) -> Option<&Identity> {
        let preferred = self.known.as_ref()?.record.preferred_holder.as_ref();
        preferred.filter(|preferred| **preferred != self.config.identity)
    }

    /// Sends the request that is due, or says when one will be.
    fn request(
        &mut self,
        now: Moment,
        wall: Timestamp,
        effects: &mut Vec<Effect>,
    ) -> Option<Instant> {
        if self.in_flight.is_some() || self.tracked.is_reading() {
            return None;
        }
        let retries = self.tracked.backoff.has_just_ended(now.holder, LATE);
        let pause = self.tracked.backoff.pause(now.holder);
        if self.tracked.wants_read() {
            if pause.is_none() {
                self.tracked.begin_read();
                effects.push(Effect::Read);
            }
            return pause;
        }
        let (wanted, due) = self.wanted(now, retries)?;
        let due = pause.map_or(due, |pause| pause.max(due));
        if now.holder < due {
            return Some(due);
        }
        effects.extend(match wanted {
            WantedRequest::Read => {
                self.tracked.begin_read();
                Some(Effect::Read)
            }
            WantedRequest::Create => self.create(now),
            WantedRequest::Write(kind) => self.write(kind, now, wall),
        });
        None
    }

    /// The request that is due next, and when. `retries`: a pause after a failure has just ended.
    fn wanted(&self, now: Moment, retries: bool) -> Option<(WantedRequest, Instant)> {
        match &self.phase {
            TermPhase::Waiting { .. } if self.is_shutting_down() => None,
            TermPhase::Waiting { .. } if self.grant().is_some() => {
                Some((WantedRequest::Write(WriteKind::Accept), now.holder))
            }
            TermPhase::Waiting { .. } if self.wanted_after_lapse().is_some() => {
                let kind = self.wanted_after_lapse()?;
                let wanted = match self.answered {
                    true => WantedRequest::Write(kind),
                    false => WantedRequest::Read,
                };
                Some((wanted, now.holder))
            }
            TermPhase::Waiting { .. } => {
                let (wanted, due) =
                    match self
                        .acquiring()?
                        .next(now.monotonic, retries, &self.config)?
                    {
                        Acquire::Create(due) => (WantedRequest::Create, due),
                        Acquire::Read(due) => (WantedRequest::Read, due),
                        Acquire::Take(due) => (WantedRequest::Write(WriteKind::Acquire), due),
                    };
                Some((wanted, now.when_monotonic(due)))
            }
            TermPhase::Lost { .. } => None,
            TermPhase::Holding(holding) => {
                let (kind, due) = self.wanted_of_term(holding, now)?;
                Some((WantedRequest::Write(kind), due))
            }
        }
    }

    /// The write of a process whose term has lapsed, and whose work has ended, onto the record that it wrote itself, or that
    /// a dead life of its instance wrote. If it is applied, nobody came between (R20, R21). A server that answers no read in time would apply it all the same, and the
    /// process would keep the lease without ever leading.
    fn wanted_after_lapse(&self) -> Option<WriteKind> {
        let kind = self.next_own_term()?;
        let ours = self
            .known
            .as_ref()?
            .record
            .strategy
            .as_ref()
            .is_none_or(is_ours);
        match ours {
            false => None,
            true if kind == WriteKind::Resume && self.successor().is_some() => {
                Some(WriteKind::Release)
            }
            true => (!self.stands_down).then_some(kind),
        }
    }

    fn wanted_of_term(&self, holding: &Holding, now: Moment) -> Option<(WriteKind, Instant)> {
        match holding.work {
            WorkState::Due | WorkState::Running | WorkState::Draining
                if self.tracked.backoff.is_failing() =>
            {
                Some((WriteKind::Renew, now.holder))
            }
            WorkState::Due | WorkState::Running | WorkState::Draining => {
                let due = holding.proven.after(self.config.timing.renew_interval);
                Some((WriteKind::Renew, due))
            }
            WorkState::Stopped { .. } => match self.successor() {
                Some(to) => Some((WriteKind::HandOff(to.clone()), now.holder)),
                None if self.shutdown == ShutdownStage::Candidate => None,
                None => {
                    let open = self
                        .acquisition
                        .as_ref()
                        .and_then(AcquisitionWatch::releasable_at);
                    let due = open.map_or(now.holder, |open| now.when_monotonic(open));
                    Some((WriteKind::Release, due))
                }
            },
        }
    }

    /// Creates the Lease, unheld (R2).
    fn create(&mut self, now: Moment) -> Option<Effect> {
        let (acquisition, _) = self.config.mode.acquisition()?;
        self.acquisition.as_mut()?.note_post(now.monotonic);
        let born = LeaseRecord::born(acquisition.strategy.clone());
        self.in_flight = Some(InFlight::Create);
        Some(Effect::Create(born))
    }

    /// Sends a write on the known revision (R2).
    fn write(&mut self, kind: WriteKind, now: Moment, wall: Timestamp) -> Option<Effect> {
        let known = self.known.as_ref()?;
        if let (WriteKind::Acquire, Some(acquisition)) = (&kind, &mut self.acquisition) {
            acquisition.note_take(now.monotonic, &self.config);
        }
        let at = self.distinct(known, wall);
        let record = match (&kind, &self.phase) {
            (WriteKind::Accept, _) => self.renewed(&known.record, Token(known.version), at),
            (WriteKind::Acquire | WriteKind::Resume | WriteKind::Rejoin, _) => LeaseRecord {
                life: self.config.life,
                ..known.record.acquired(
                    self.config.identity.clone(),
                    self.config.timing.lease_duration,
                    Token(known.version),
                    at,
                )
            },
            (WriteKind::Renew, TermPhase::Holding(holding)) => {
                self.renewed(&known.record, holding.token, at)
            }
            (WriteKind::HandOff(to), _) => {
                let window = self.config.timing.accept_window;
                known.record.granted(to.clone(), window, at)
            }
            (WriteKind::Release, _) => known.record.released(at),
            (WriteKind::Renew, _) => return None,
        };
        let write = known.replace(record);
        self.answered = false;
        self.in_flight = Some(InFlight::Write {
            kind: kind.clone(),
            attempt: WriteAttempt {
                begins: kind.begins_term(),
                base: known.version,
                renew_time: at,
                sent_at: Some(now.holder),
            },
        });
        Some(Effect::Write { kind, write })
    }

    /// The record of this holder's term: everything that is not the holder's own is carried over, and acquireTime is
    /// set where the grant was one of the built-in elector, which has none.
    fn renewed(&self, record: &LeaseRecord, token: Token, at: Timestamp) -> LeaseRecord {
        LeaseRecord {
            duration_seconds: Some(wire_seconds(self.config.timing.lease_duration)),
            acquire_time: record.acquire_time.or(Some(at)),
            renew_time: Some(at),
            token: Some(token),
            token_term: Some(record.term),
            life: self.config.life,
            ..record.clone()
        }
    }

    /// A renewTime that differs from the known one (R11) and from every open attempt, so that a record tells which
    /// attempt wrote it.
    fn distinct(&self, known: &LeaseSnapshot, wall: Timestamp) -> Timestamp {
        let taken = |at: Timestamp| {
            known.record.renew_time == Some(at)
                || self
                    .unresolved
                    .iter()
                    .any(|attempt| attempt.renew_time == at)
        };
        let mut at = wall;
        while taken(at) {
            // At the end of year 9999 the search goes on from the year 1: any time that differs will do.
            at = at.next().unwrap_or(Timestamp::MIN);
        }
        at
    }
}
