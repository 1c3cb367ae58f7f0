//! A candidate of the world: the production tenure and registration, its letters and its work.

use std::sync::Arc;

use elector_protocol::candidate::{
    CandidateEvent, CandidateSnapshot, Effect, LeaseEvent, Outcome, Registration,
    RegistrationEffect, RegistrationOutcome, StopReason, Tenure, TenureConfig, WriteKind,
};
use elector_protocol::{
    Candidate, Instant, LeaseRecord, LeaseSnapshot, LeaseWrite, Renumber, Renumbering,
    ResourceVersion, Uid,
};

use super::numbers::{BUCKET, FRESH, NOW, timestamp};
use super::run::{RENEW_DEADLINE, Run};
use super::shortcut::Shortcut;
use super::store::{Landed, Store, names};
use super::witness::Witnesses;

/// One candidate's process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer {
    index: usize,
    pub(super) tenure: Tenure,
    registration: Registration,
    /// The write under way.
    pub(super) letter: Option<Letter>,
    /// Writes that were given up, by this life or an earlier one, and may land yet.
    pub(super) orphans: Vec<LeaseWrite>,
    /// Whether a read is under way.
    pub(super) reading: bool,
    pub(super) work: Work,
    /// When belief began to count; kept for shortcuts alone, which believe for H from here.
    pub(super) counted_from: Option<Instant>,
}

/// A write and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Letter {
    /// Sent. It may land.
    Sent(WriteKind, LeaseWrite),
    /// It landed; the reply is under way.
    Landed(WriteKind, LeaseSnapshot),
    /// Its base is gone; the refusal is under way.
    Dead(WriteKind),
}

/// What the work is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Work {
    Idle,
    Running,
    Stopping,
}

// === impl Peer ===

impl Peer {
    /// A process that has just started.
    pub(super) fn new(index: usize, config: Arc<TenureConfig>) -> Self {
        Self {
            index,
            tenure: Tenure::new(config),
            registration: Registration::new("lease"),
            letter: None,
            orphans: Vec::new(),
            reading: false,
            work: Work::Idle,
            counted_from: None,
        }
    }

    /// The process dies and starts again under the same name. Its object stays, and what a new life writes into it is
    /// an answer, which may come at any time. A write that was sent may land yet.
    pub(super) fn crash(&mut self, config: Arc<TenureConfig>, run: &Run) {
        let registration = self.registration.clone();
        let mut orphans = std::mem::take(&mut self.orphans);
        if let Some(Letter::Sent(_, write)) = self.letter.take()
            && orphans.len() < run.orphans
        {
            orphans.push(write);
        }
        *self = Self {
            registration,
            orphans,
            ..Self::new(self.index, config)
        };
    }

    /// Whether a crash would lose anything.
    pub(super) fn can_crash(&self) -> bool {
        self.work != Work::Idle || self.letter.is_some() || self.reading
    }

    /// Whether this process believes that it leads.
    pub(super) fn believes(&self) -> bool {
        self.tenure.believes(NOW)
            || self
                .counted_from
                .is_some_and(|from| NOW < from.after(RENEW_DEADLINE))
    }

    /// Whether its newest news of the Lease is old.
    pub(super) fn can_look(&self, store: &Store) -> bool {
        self.tenure.known() != store.lease.as_ref()
    }

    /// Its watch delivers the Lease as it is now.
    pub(super) fn look(&mut self, store: &Store, run: &Run) -> Witnesses {
        let event = match &store.lease {
            Some(lease) => LeaseEvent::Seen(lease.clone()),
            None => LeaseEvent::Deleted(store.revision),
        };
        self.tenure.handle_event(NOW, event);
        self.settle(run, Some(Shortcut::LeadByRead))
    }

    /// The read under way is answered.
    pub(super) fn read(&mut self, store: &Store, run: &Run) -> Witnesses {
        self.reading = false;
        self.tenure.handle_read(NOW, Ok(store.lease.clone()));
        self.settle(run, Some(Shortcut::LeadByRead))
    }

    /// The reply to the write under way comes.
    pub(super) fn reply(&mut self, store: &Store, run: &Run) -> Witnesses {
        let (outcome, begins) = match self.letter.take() {
            Some(Letter::Landed(kind, snapshot)) => (
                Outcome::Done(snapshot),
                matches!(kind, WriteKind::Accept | WriteKind::Renew),
            ),
            Some(Letter::Dead(_)) if store.lease.is_none() => (Outcome::Gone, false),
            _ => (Outcome::Conflict, false),
        };
        self.tenure.handle_outcome(NOW, outcome);
        self.settle(run, begins.then_some(Shortcut::CountFromReply))
    }

    /// The write under way is given up. It may land yet, if it has not.
    pub(super) fn give_up(&mut self, run: &Run) -> Witnesses {
        if let Some(Letter::Sent(_, write)) = self.letter.take() {
            self.orphans.push(write);
        }
        self.tenure.handle_outcome(NOW, Outcome::Unknown);
        self.settle(run, None)
    }

    /// Whether the write under way can be given up within the bounds of the run.
    pub(super) fn can_give_up(&self, run: &Run) -> bool {
        match &self.letter {
            Some(Letter::Sent(..)) => self.orphans.len() < run.orphans,
            Some(Letter::Landed(..)) => run.lost_replies,
            // It is as good as never sent: its refusal may come as late as any news.
            Some(Letter::Dead(_)) | None => false,
        }
    }

    /// Takes in what can neither begin nor end a belief, nor call for a write: whether that happens early or late is
    /// all the same, so it happens at once. The same goes for news of its own object; acting on them is another move.
    pub(super) fn catch_up(&mut self, store: &Store, run: &Run) {
        self.bury(store);
        self.registration.handle_event(self.seen(store));
        self.registration.answer(self.tenure.can_accept());
        if run.shortcut == Some(Shortcut::ReleaseByOldRecord) {
            // It lives on old news.
            return;
        }
        let names_me = |record: &LeaseRecord| names(record, self.index);
        let named = store
            .lease
            .as_ref()
            .is_some_and(|lease| names_me(&lease.record));
        let granted = self
            .tenure
            .known()
            .is_some_and(|known| named && names_me(&known.record) && !known.record.has_token());
        while !self.believes() {
            self.bury(store);
            match &self.letter {
                _ if granted => return,
                _ if self.work != Work::Idle => {
                    self.settle(run, None);
                    self.end_work(run);
                }
                Some(Letter::Sent(..)) => return,
                Some(Letter::Landed(WriteKind::Accept, _)) if named || self.would_start() => return,
                Some(Letter::Dead(WriteKind::Accept)) if named => return,
                Some(Letter::Landed(..) | Letter::Dead(_)) => {
                    self.reply(store, run);
                }
                None if named => return,
                None if self.reading => {
                    self.read(store, run);
                }
                None if self.can_look(store) => {
                    self.look(store, run);
                }
                None => return,
            }
        }
    }

    /// Writes whose base is gone are dead, whether they were sent before or after that (R2).
    fn bury(&mut self, store: &Store) {
        if let Some(Letter::Sent(kind, write)) = &self.letter
            && !store.accepts(write)
        {
            self.letter = Some(Letter::Dead(kind.clone()));
        }
        self.orphans.retain(|write| store.accepts(write));
    }

    /// Whether the reply under way would begin a term.
    fn would_start(&self) -> bool {
        let Some(Letter::Landed(_, snapshot)) = &self.letter else {
            return false;
        };
        let mut tenure = self.tenure.clone();
        tenure.handle_outcome(NOW, Outcome::Done(snapshot.clone()));
        tenure.step(NOW, timestamp(FRESH));
        tenure.believes(NOW)
    }

    /// The work has ended.
    pub(super) fn end_work(&mut self, run: &Run) -> Witnesses {
        self.work = Work::Idle;
        self.counted_from = None;
        self.tenure.handle_work_stopped(NOW);
        self.settle(run, None)
    }

    /// Runs the step, carries out what it says, and returns the witnesses. `occasion` is the shortcut that would count
    /// belief from now.
    pub(super) fn settle(&mut self, run: &Run, occasion: Option<Shortcut>) -> Witnesses {
        let mut witnesses = Witnesses::NONE;
        let lame = run.lame.is_some_and(|index| self.index == index);
        for effect in self.tenure.step(NOW, timestamp(FRESH)).effects {
            match effect {
                Effect::Read => self.reading = true,
                Effect::Write { .. } if lame => self.tenure.handle_outcome(NOW, Outcome::Refused),
                Effect::Write { kind, write } => self.letter = Some(Letter::Sent(kind, write)),
                Effect::Start { .. } => {
                    self.work = Work::Running;
                    witnesses |= Witnesses::LEADS;
                }
                Effect::Stop(why) => {
                    self.work = Work::Stopping;
                    if matches!(why, StopReason::HandOver { .. }) {
                        witnesses |= Witnesses::YIELDS;
                    }
                }
                Effect::Ended(_) => {}
            }
        }
        let mine = self
            .tenure
            .known()
            .is_some_and(|known| names(&known.record, self.index));
        if !mine {
            self.counted_from = None;
        } else if occasion.is_some() && occasion == run.shortcut {
            self.counted_from = Some(NOW);
        }
        witnesses
    }

    /// Whether there is something to write into its own object.
    pub(super) fn is_asked(&self, store: &Store) -> bool {
        let object = store.objects[self.index].as_ref();
        object.is_none_or(Candidate::is_asked) || !self.registration.is_registered()
    }

    /// Whether a step would do something.
    pub(super) fn is_due(&self) -> bool {
        let mut tenure = self.tenure.clone();
        !tenure.step(NOW, timestamp(FRESH)).effects.is_empty()
    }

    /// Looks at its own object, and registers or answers where that is due.
    pub(super) fn answer(&mut self, store: &mut Store, run: &Run) {
        let index = self.index;
        let may_lead = self.believes() || self.letter.is_some() || self.reading;
        if run.shortcut == Some(Shortcut::GrantOnUnanimity) && may_lead {
            return;
        }
        self.registration.handle_event(self.seen(store));
        let bucket = i64::try_from(index).unwrap_or(0) * BUCKET;
        let wall = timestamp(bucket + FRESH);
        // A life begins with at most a refusal, a read and a write.
        for _ in 0..4 {
            match self.registration.step(NOW, wall).effect {
                None => return,
                Some(RegistrationEffect::Read) => self
                    .registration
                    .handle_read(NOW, Ok(object_of(store, index))),
                Some(RegistrationEffect::Create { renew }) => {
                    let outcome = if store.objects[index].is_some() {
                        RegistrationOutcome::Conflict
                    } else {
                        store.answered |= 1 << index;
                        store.objects[index] = Some(Candidate {
                            uid: Uid::new(format!("again{index}")),
                            version: ResourceVersion(
                                wall.as_micros().unsigned_abs() + BUCKET.unsigned_abs(),
                            ),
                            renew: Some(renew),
                            ..run.candidate(index)
                        });
                        RegistrationOutcome::Done(object_of(store, index))
                    };
                    self.registration.handle_outcome(NOW, outcome);
                }
                Some(RegistrationEffect::Replace {
                    uid,
                    version,
                    ping,
                    renew,
                }) => {
                    let outcome = match store.put_object(index, &uid, version, ping, Some(renew)) {
                        Landed::Applied => RegistrationOutcome::Done(object_of(store, index)),
                        Landed::Conflict => RegistrationOutcome::Conflict,
                    };
                    self.registration.handle_outcome(NOW, outcome);
                }
                // Nobody shuts down here.
                Some(RegistrationEffect::Delete { .. }) => return,
            }
        }
    }

    /// What the watch of its own object tells.
    fn seen(&self, store: &Store) -> CandidateEvent {
        match object_of(store, self.index) {
            Some(seen) => CandidateEvent::Seen(seen),
            None => CandidateEvent::Absent,
        }
    }
}

impl Renumber for Peer {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.tenure.renumber(by);
        self.registration.renumber(by);
        self.letter.renumber(by);
        self.orphans.renumber(by);
        self.counted_from.renumber(by);
    }
}

// === impl Letter ===

impl Renumber for Letter {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Sent(_, write) => write.renumber(by),
            Self::Landed(_, snapshot) => snapshot.renumber(by),
            Self::Dead(_) => {}
        }
    }
}

fn object_of(store: &Store, index: usize) -> Option<CandidateSnapshot> {
    let object = store.objects.get(index)?.as_ref()?;
    Some(CandidateSnapshot {
        uid: object.uid.clone(),
        version: object.version,
        lease: "lease".into(),
        ping: object.ping,
        renew: object.renew,
    })
}
