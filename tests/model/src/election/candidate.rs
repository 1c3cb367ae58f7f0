//! The process of a candidate: the production holder and registration, its messages and its work.

use std::sync::Arc;

use elector_protocol::elector::NewsSource;
use elector_protocol::holder::{
    Effect, Holder, HolderConfig, LeaseEvent, LeaseOutcome, StopReason, WriteKind,
};
use elector_protocol::registration::Registration;
use elector_protocol::{LeaseRecord, LeaseSnapshot, LeaseWrite, Renumber, Renumbering};

use super::super::mutant::Mutant;
use super::super::numbers::{FRESH, MOMENT, NOW, timestamp};
use super::super::run::Run;
use super::super::store::{LeaseStore, Side, names};
use super::super::witness::Witnesses;
use super::candidate_variation::CandidateVariation;

/// One candidate's process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct CandidateProcess {
    index: usize,
    /// Which of the names it bears.
    pub(in super::super) name: usize,
    pub(in super::super) holder: Holder,
    pub(in super::super) registration: Registration,
    /// The write under way.
    pub(in super::super) message: Option<CandidateMessage>,
    /// Writes that were given up, by this life or an earlier one, and may land yet.
    pub(in super::super) orphans: Vec<LeaseWrite>,
    /// True while a read is under way.
    pub(in super::super) reading: bool,
    pub(in super::super) work: ModelWork,
    /// Kept for mutants alone.
    pub(in super::super) variation: CandidateVariation,
}

/// A write and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum CandidateMessage {
    /// Sent. It may land.
    Sent(WriteKind, LeaseWrite),
    /// It landed; the reply is under way.
    Landed(WriteKind, LeaseSnapshot),
    /// Its base is gone; the refusal is under way.
    Dead(WriteKind),
}

/// The state of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum ModelWork {
    Idle,
    Running,
    Stopping,
}

// === impl CandidateProcess ===

impl CandidateProcess {
    /// A process that has just started.
    pub(in super::super) fn new(index: usize, name: usize, config: Arc<HolderConfig>) -> Self {
        Self {
            index,
            name,
            holder: Holder::new(config),
            registration: Registration::new("lease"),
            message: None,
            orphans: Vec::new(),
            reading: false,
            work: ModelWork::Idle,
            variation: CandidateVariation::default(),
        }
    }

    /// The process dies and starts again under the same name. Its object stays, and what a new life writes into it is
    /// an ack, which may come at any time. A write that was sent may land yet.
    pub(in super::super) fn crash(&mut self, config: Arc<HolderConfig>, run: &Run) {
        let registration = self.registration.clone();
        let mut orphans = std::mem::take(&mut self.orphans);
        if let Some(CandidateMessage::Sent(_, write)) = self.message.take()
            && orphans.len() < run.orphans
        {
            orphans.push(write);
        }
        *self = Self {
            registration,
            orphans,
            ..Self::new(self.index, self.name, config)
        };
    }

    /// True if a crash would lose anything.
    pub(in super::super) fn can_crash(&self) -> bool {
        self.work != ModelWork::Idle || self.message.is_some() || self.reading
    }

    /// True if this process believes that it leads.
    pub(in super::super) fn believes(&self, run: &Run) -> bool {
        (self.holder.believes(NOW) && self.variation.allows(&self.holder, run))
            || self.variation.believes(run)
    }

    /// True if its newest news of the Lease is old.
    pub(in super::super) fn can_look(&self, store: &LeaseStore) -> bool {
        self.holder.known() != store.lease.as_ref()
    }

    /// Its watch delivers the Lease as it is now.
    pub(in super::super) fn look(&mut self, store: &LeaseStore, run: &Run) -> Witnesses {
        let event = match &store.lease {
            Some(lease) => {
                let seen = self.variation.alter_news(lease.clone(), run);
                LeaseEvent::Seen(seen, NewsSource::Watch)
            }
            None => LeaseEvent::Deleted(store.revision),
        };
        self.holder.handle_event(MOMENT, event);
        if run.mutant == Some(Mutant::LeadByRead) {
            self.reading = true;
        }
        self.settle(run, Some(Mutant::LeadByEvent))
    }

    /// The read under way is answered.
    pub(in super::super) fn read(&mut self, store: &LeaseStore, run: &Run) -> Witnesses {
        self.reading = false;
        let found = store.lease.clone();
        let found = found.map(|lease| self.variation.alter_news(lease, run));
        self.holder.handle_read(MOMENT, Ok(found));
        self.settle(run, Some(Mutant::LeadByRead))
    }

    /// The reply to the write under way comes.
    pub(in super::super) fn reply(&mut self, store: &LeaseStore, run: &Run) -> Witnesses {
        let (outcome, begins) = match self.message.take() {
            Some(CandidateMessage::Landed(kind, snapshot)) => (
                LeaseOutcome::Done(snapshot),
                matches!(kind, WriteKind::Accept | WriteKind::Renew),
            ),
            Some(CandidateMessage::Dead(_)) if store.lease.is_none() => (LeaseOutcome::Gone, false),
            _ => (LeaseOutcome::Conflict, false),
        };
        self.holder.handle_outcome(MOMENT, outcome);
        self.settle(run, begins.then_some(Mutant::CountFromReply))
    }

    /// The write under way is given up. It may land yet, if it has not.
    pub(in super::super) fn give_up(&mut self, run: &Run) -> Witnesses {
        match self.message.take() {
            Some(CandidateMessage::Sent(_, write)) => self.orphans.push(write),
            Some(CandidateMessage::Landed(WriteKind::Renew, landed)) => {
                self.variation.give_up(&landed.record);
            }
            _ => {}
        }
        self.holder.handle_outcome(MOMENT, LeaseOutcome::Unknown);
        self.settle(run, None)
    }

    /// True if the write under way can be given up within the bounds of the run.
    pub(in super::super) fn can_give_up(&self, run: &Run) -> bool {
        match &self.message {
            Some(CandidateMessage::Sent(..)) => self.orphans.len() < run.orphans,
            Some(CandidateMessage::Landed(..)) => run.lost_replies,
            // It is as good as never sent: its refusal may come as late as any news.
            Some(CandidateMessage::Dead(_)) | None => false,
        }
    }

    /// The request under way is set aside. A write that may land all the same would be one that was given up.
    pub(in super::super) fn set_aside(&mut self, run: &Run) -> Witnesses {
        if let Some(CandidateMessage::Sent(_, write)) = self.message.take() {
            self.orphans.push(write);
        }
        self.reading = false;
        self.holder.set_aside_overtaken(MOMENT);
        self.settle(run, None)
    }

    /// True if news have overtaken the request under way. A refusal that is under way is as good as there.
    pub(in super::super) fn can_set_aside(&self) -> bool {
        let refused = matches!(self.message, Some(CandidateMessage::Dead(_)));
        !refused && self.holder.clone().set_aside_overtaken(MOMENT)
    }

    /// Takes in what can neither begin nor end a belief, nor call for a write: whether that happens early or late is
    /// all the same, so it happens at once. The same goes for news of its own object; acting on them is another
    /// transition.
    pub(in super::super) fn catch_up(&mut self, store: &LeaseStore, run: &Run) {
        self.drop_dead_writes(store);
        self.registration.handle_event(self.seen(store));
        self.registration.ack_pings(self.holder.can_accept());
        if run.mutant == Some(Mutant::ReleaseByOldRecord) {
            // It lives on old news.
            return;
        }
        let names_this = |record: &LeaseRecord| names(record, self.name);
        let named = store
            .lease
            .as_ref()
            .is_some_and(|lease| names_this(&lease.record));
        let granted = self
            .holder
            .known()
            .is_some_and(|known| named && names_this(&known.record) && !known.record.has_token());
        while !self.believes(run) {
            self.drop_dead_writes(store);
            match &self.message {
                _ if granted => return,
                _ if self.work != ModelWork::Idle => {
                    self.settle(run, None);
                    self.end_work(run);
                }
                Some(CandidateMessage::Sent(..)) => return,
                Some(CandidateMessage::Landed(WriteKind::Accept, _))
                    if named || self.would_start() =>
                {
                    return;
                }
                Some(CandidateMessage::Dead(WriteKind::Accept)) if named => return,
                Some(CandidateMessage::Landed(..) | CandidateMessage::Dead(_)) => {
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
    fn drop_dead_writes(&mut self, store: &LeaseStore) {
        if let Some(CandidateMessage::Sent(kind, write)) = &self.message
            && !store.may_accept(write, Side::Candidate)
        {
            self.message = Some(CandidateMessage::Dead(kind.clone()));
        }
        self.orphans
            .retain(|write| store.may_accept(write, Side::Candidate));
    }

    /// True if the reply under way would begin a term.
    fn would_start(&self) -> bool {
        let Some(CandidateMessage::Landed(_, snapshot)) = &self.message else {
            return false;
        };
        let mut holder = self.holder.clone();
        holder.handle_outcome(MOMENT, LeaseOutcome::Done(snapshot.clone()));
        holder.step(MOMENT, timestamp(FRESH));
        holder.believes(NOW)
    }

    /// The work has ended.
    pub(in super::super) fn end_work(&mut self, run: &Run) -> Witnesses {
        self.variation.clings =
            run.mutant == Some(Mutant::ReleaseFirst) && self.work == ModelWork::Running;
        self.work = if self.variation.clings {
            // In truth it goes on for a while.
            ModelWork::Stopping
        } else {
            ModelWork::Idle
        };
        // No reply counts for a holder that has stopped.
        (self.variation.counted_from, self.variation.late_reply) = (None, None);
        self.holder.handle_work_stopped(MOMENT);
        self.settle(run, None)
    }

    /// Runs the step, carries out what it says, and returns the witnesses. `occasion` is the mutant that would count
    /// belief from now.
    pub(in super::super) fn settle(&mut self, run: &Run, occasion: Option<Mutant>) -> Witnesses {
        let mut witnesses = Witnesses::empty();
        let refused_candidate = run
            .refused_candidate
            .is_some_and(|index| self.index == index);
        let clings = run.mutant == Some(Mutant::BelieveUntilEvent);
        let mut released_first = false;
        for effect in self.holder.step(MOMENT, timestamp(FRESH)).effects {
            match effect {
                Effect::Read => self.reading = true,
                Effect::Write { .. } if refused_candidate => {
                    self.holder.handle_outcome(MOMENT, LeaseOutcome::Refused);
                }
                Effect::Write { kind, mut write } => {
                    self.variation.send(&kind, &mut write, run);
                    if matches!(kind, WriteKind::Release | WriteKind::HandOff(_)) {
                        // A holder that gives the lease away while its work goes on leads until that stops (R12).
                        self.variation.clings = self.work != ModelWork::Idle;
                    }
                    self.message = Some(CandidateMessage::Sent(kind, write));
                    witnesses |= Witnesses::TWO_MESSAGES.when(!self.orphans.is_empty());
                }
                Effect::Start { .. } => {
                    self.work = ModelWork::Running;
                    self.variation.clings = clings;
                    witnesses |= Witnesses::LEADS | Witnesses::THIRD.when(self.index == 2);
                }
                Effect::Stop(why) => {
                    let hands_over = matches!(why, StopReason::HandOver { .. });
                    released_first = run.mutant == Some(Mutant::ReleaseFirst) && hands_over;
                    if !released_first {
                        self.work = ModelWork::Stopping;
                        self.variation.clings = false;
                    }
                    witnesses |= Witnesses::YIELDS.when(hands_over);
                }
                // An elected candidate creates nothing.
                Effect::Create(_) | Effect::Ended(_) => {}
            }
        }
        if released_first {
            witnesses |= self.end_work(run);
        }
        let mine = self
            .holder
            .known()
            .is_some_and(|known| names(&known.record, self.name));
        if !mine {
            self.variation.counted_from = None;
        } else if occasion.is_some() && occasion == run.mutant {
            self.variation.counted_from = Some(NOW);
        }
        witnesses
    }

    /// True if a step would do something.
    pub(in super::super) fn is_due(&self) -> bool {
        let mut holder = self.holder.clone();
        !holder.step(MOMENT, timestamp(FRESH)).effects.is_empty()
    }
}

impl Renumber for CandidateProcess {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.holder.renumber(by);
        self.registration.renumber(by);
        self.message.renumber(by);
        self.orphans.renumber(by);
        self.variation.renumber(by);
    }
}

// === impl CandidateMessage ===

impl Renumber for CandidateMessage {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Sent(_, write) => write.renumber(by),
            Self::Landed(_, snapshot) => snapshot.renumber(by),
            Self::Dead(_) => {}
        }
    }
}
