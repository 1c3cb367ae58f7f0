//! A process that may acquire the lease: the production holder, its watch, its messages and its work.

use std::sync::Arc;

use elector_protocol::elector::NewsSource;
use elector_protocol::holder::{
    Effect, Holder, HolderConfig, LeaseEvent, LeaseOutcome, StopReason, WriteKind,
};
use elector_protocol::{
    Identity, Instant, LeaseRecord, LeaseSnapshot, LeaseWrite, Renumber, Renumbering,
    ResourceVersion,
};

use super::super::mutant::Mutant;
use super::super::numbers::{FRESH, MOMENT, NOW, timestamp};
use super::super::run::Run;
use super::super::start::identity;
use super::super::store::{LeaseStore, NAMES, Side, names};
use super::super::witness::Witnesses;
use super::process_variation::ProcessVariation;
use super::setup::ModelLock;

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct AcquiringProcess {
    /// Which of the names it bears in this life.
    pub(super) name: usize,
    pub(super) holder: Holder,
    /// True if its watch of the Lease is whole. If not, it lists.
    whole: bool,
    /// News that its watch has yet to deliver, the oldest first.
    backlog: Vec<LeaseNews>,
    /// The request under way that changes the Lease.
    pub(super) message: Option<AcquiringMessage>,
    /// Requests that were given up, by this life or an earlier one, and may land yet.
    pub(super) orphans: Vec<LeaseRequest>,
    /// True while a read is under way.
    pub(super) reading: bool,
    pub(super) work: ProcessWork,
    /// When the work was started, where that matters.
    started: Option<Instant>,
    /// Kept for mutants alone.
    variation: ProcessVariation,
}

/// A change of the Lease that a watch delivers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LeaseNews {
    Seen(LeaseSnapshot),
    Deleted(ResourceVersion),
}

/// A request that changes the Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LeaseRequest {
    /// By a life of this name.
    Put(usize, WriteKind, LeaseWrite),
    Post(LeaseRecord),
}

/// A request and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum AcquiringMessage {
    /// Sent. It may land.
    Sent(LeaseRequest),
    /// It landed; the reply is under way. A POST has no kind.
    Landed(Option<WriteKind>, LeaseSnapshot),
    /// It can never land; the refusal is under way.
    Dead,
}

/// The state of a term's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ProcessWork {
    Idle,
    Running,
    Stopping,
}

// === impl AcquiringProcess ===

impl AcquiringProcess {
    /// A process that has just started.
    pub(super) fn new(name: usize, config: Arc<HolderConfig>) -> Self {
        Self {
            name,
            holder: Holder::new(config),
            whole: false,
            backlog: Vec::new(),
            message: None,
            orphans: Vec::new(),
            reading: false,
            work: ProcessWork::Idle,
            started: None,
            variation: ProcessVariation::default(),
        }
    }

    /// The process dies and starts again under this name. What it had sent may land yet.
    pub(super) fn crash(&mut self, name: usize, config: Arc<HolderConfig>, run: &Run) {
        let mut orphans = std::mem::take(&mut self.orphans);
        if let Some(AcquiringMessage::Sent(request)) = self.message.take()
            && orphans.len() < run.orphans
        {
            orphans.push(request);
        }
        *self = Self {
            orphans,
            ..Self::new(name, config)
        };
    }

    /// True if a crash would lose anything but time.
    pub(super) fn can_crash(&self) -> bool {
        self.work != ProcessWork::Idle || self.message.is_some() || self.reading
    }

    /// True if this process believes that it leads.
    pub(in super::super) fn believes(&self, run: &Run) -> bool {
        self.holder.believes(NOW) || self.variation.believes(run)
    }

    /// True if it believes that it holds the lock, and has waited for as long as the one that it may have displaced
    /// goes on.
    pub(super) fn has_authority(&self, lock: ModelLock, run: &Run) -> bool {
        self.believes(run) && self.started.is_some_and(|at| at.after(lock.quiet) <= NOW)
    }

    /// True if there is anything to see.
    pub(super) fn can_see(&self) -> bool {
        !self.whole || !self.backlog.is_empty()
    }

    /// Its watch has a change to deliver; one that lags too far behind ends.
    pub(super) fn deliver(&mut self, store: &LeaseStore, run: &Run) {
        if !self.whole {
            return;
        }
        self.backlog.push(match &store.lease {
            Some(lease) => LeaseNews::Seen(lease.clone()),
            None => LeaseNews::Deleted(store.revision),
        });
        if self.backlog.len() > run.backlog {
            self.whole = false;
            self.backlog.clear();
        }
    }

    /// Takes the next event from its watch, or lists.
    pub(super) fn see(&mut self, store: &LeaseStore, run: &Run) -> Witnesses {
        if !self.whole {
            self.whole = true;
            match store.lease.clone() {
                Some(found) => self.take(found, NewsSource::List, store, run),
                None => self
                    .holder
                    .handle_event(MOMENT, LeaseEvent::Absent(store.revision)),
            }
        } else if !self.backlog.is_empty() {
            match self.backlog.remove(0) {
                LeaseNews::Seen(seen) => self.take(seen, NewsSource::Watch, store, run),
                LeaseNews::Deleted(version) => self
                    .holder
                    .handle_event(MOMENT, LeaseEvent::Deleted(version)),
            }
        }
        self.settle(run)
    }

    fn take(
        &mut self,
        mut seen: LeaseSnapshot,
        mut source: NewsSource,
        store: &LeaseStore,
        run: &Run,
    ) {
        let first = source == NewsSource::List && self.holder.known().is_none();
        let at = run.mutant.map_or(MOMENT, |mutant| {
            mutant.alter_sight(&mut seen, &mut source, first, store)
        });
        let mine = names(&seen.record, self.name);
        self.variation.take_news(mine, run);
        self.holder.handle_event(at, LeaseEvent::Seen(seen, source));
    }

    /// The read under way is answered.
    pub(super) fn read(&mut self, store: &LeaseStore, run: &Run) -> Witnesses {
        self.reading = false;
        self.holder.handle_read(MOMENT, Ok(store.lease.clone()));
        self.settle(run)
    }

    /// The reply to the request under way comes.
    pub(super) fn reply(&mut self, store: &LeaseStore, run: &Run) -> Witnesses {
        let outcome = match self.message.take() {
            Some(AcquiringMessage::Landed(kind, snapshot)) => {
                self.variation.take_reply(kind.as_ref(), run);
                LeaseOutcome::Done(snapshot)
            }
            Some(AcquiringMessage::Dead) if store.lease.is_none() => LeaseOutcome::Gone,
            _ => LeaseOutcome::Conflict,
        };
        self.holder.handle_outcome(MOMENT, outcome);
        self.settle(run)
    }

    /// The request under way is given up. It may land yet, if it has not.
    pub(super) fn give_up(&mut self, run: &Run) -> Witnesses {
        if let Some(AcquiringMessage::Sent(request)) = self.message.take() {
            self.orphans.push(request);
        }
        self.holder.handle_outcome(MOMENT, LeaseOutcome::Unknown);
        self.settle(run)
    }

    /// True if the request under way can be given up within the bounds of the run.
    pub(super) fn can_give_up(&self, run: &Run) -> bool {
        match &self.message {
            Some(AcquiringMessage::Sent(_)) => self.orphans.len() < run.orphans,
            Some(AcquiringMessage::Landed(..)) => run.lost_replies,
            // It is as good as never sent: its refusal may come as late as any news.
            Some(AcquiringMessage::Dead) | None => false,
        }
    }

    /// The request under way is set aside. A write that may land all the same would be one that was given up.
    pub(super) fn set_aside(&mut self, run: &Run) -> Witnesses {
        if let Some(AcquiringMessage::Sent(request)) = self.message.take() {
            self.orphans.push(request);
        }
        self.reading = false;
        self.holder.set_aside_overtaken(MOMENT);
        self.settle(run)
    }

    /// True if news have overtaken the request under way. A refusal that is under way is as good as there.
    pub(super) fn can_set_aside(&self) -> bool {
        let refused = matches!(self.message, Some(AcquiringMessage::Dead));
        !refused && self.holder.clone().set_aside_overtaken(MOMENT)
    }

    /// A ping of this candidate is seen.
    pub(super) fn ping(&mut self, run: &Run) -> Witnesses {
        self.holder.handle_ping(MOMENT);
        self.settle(run)
    }

    /// The process after a ping, if that would make a difference.
    pub(super) fn can_be_pinged(&self) -> bool {
        let mut holder = self.holder.clone();
        holder.handle_ping(MOMENT);
        holder != self.holder
    }

    /// The work has ended.
    pub(super) fn end_work(&mut self, run: &Run) -> Witnesses {
        (self.work, self.started) = (ProcessWork::Idle, None);
        self.holder.handle_work_stopped(MOMENT);
        let known = self.holder.known();
        let mine = Some(Identity::of_elector(NAMES[self.name], 0));
        if run.mutant == Some(Mutant::ReleaseEarly)
            && self.message.is_none()
            && let Some(known) = known.filter(|known| known.record.holder == mine)
        {
            let write = known.replace(known.record.released(timestamp(FRESH)));
            let release = LeaseRequest::Put(self.name, WriteKind::Release, write);
            self.message = Some(AcquiringMessage::Sent(release));
            return Witnesses::empty();
        }
        self.settle(run)
    }

    /// Takes in what can neither begin nor end a belief, and what a stop-watch counts from only at its earliest: whether
    /// that happens early or late is all the same, or harmless, so it happens at once.
    pub(super) fn catch_up(&mut self, store: &LeaseStore, run: &Run) {
        self.drop_dead_requests(store);
        while self.has_old_news() {
            self.see(store, run);
        }
        while !self.believes(run) {
            self.drop_dead_requests(store);
            match &self.message {
                _ if self.work != ProcessWork::Idle => {
                    self.settle(run);
                    self.end_work(run);
                }
                // Its reply may begin a term.
                Some(AcquiringMessage::Landed(Some(WriteKind::Accept | WriteKind::Acquire), _)) => {
                    break;
                }
                Some(AcquiringMessage::Landed(..) | AcquiringMessage::Dead) => {
                    self.reply(store, run);
                }
                _ if self.reading => {
                    self.read(store, run);
                }
                Some(AcquiringMessage::Sent(_)) | None => break,
            }
        }
        self.variation.settle(run);
    }

    /// Requests that can never land are dead, whether they were sent before or after that (R2).
    fn drop_dead_requests(&mut self, store: &LeaseStore) {
        let dead = |request: &LeaseRequest| !request.may_land(store);
        if let Some(AcquiringMessage::Sent(request)) = &self.message
            && dead(request)
        {
            self.message = Some(AcquiringMessage::Dead);
        }
        self.orphans.retain(|request| !dead(request));
    }

    /// True if its watch is about to deliver what it knows already.
    fn has_old_news(&self) -> bool {
        match (self.holder.known(), self.backlog.first()) {
            (Some(known), Some(LeaseNews::Seen(news))) => news.version <= known.version,
            _ => false,
        }
    }

    /// True if a step would do something.
    pub(super) fn is_due(&self) -> bool {
        let mut holder = self.holder.clone();
        !holder.step(MOMENT, timestamp(FRESH)).effects.is_empty()
    }

    /// Runs the step, carries out what it says, and returns the witnesses.
    pub(super) fn settle(&mut self, run: &Run) -> Witnesses {
        let mut witnesses = Witnesses::empty();
        for effect in self.holder.step(MOMENT, timestamp(FRESH)).effects {
            match effect {
                Effect::Read => self.reading = true,
                Effect::Write { kind, write } => {
                    witnesses |= Witnesses::TWO_MESSAGES.when(!self.orphans.is_empty());
                    self.message = Some(AcquiringMessage::Sent(LeaseRequest::Put(
                        self.name, kind, write,
                    )));
                }
                Effect::Create(born) => {
                    let record = self.variation.post(born, identity(NAMES[self.name]), run);
                    self.message = Some(AcquiringMessage::Sent(LeaseRequest::Post(record)));
                }
                Effect::Start { .. } => {
                    self.work = ProcessWork::Running;
                    let lock = run.acquisition.and_then(|setup| setup.lock);
                    self.started = lock.map(|_| NOW);
                    witnesses |= Witnesses::LEADS;
                }
                Effect::Stop(why) => {
                    self.work = ProcessWork::Stopping;
                    let hands_over = matches!(why, StopReason::HandOver { .. });
                    witnesses |= Witnesses::YIELDS.when(hands_over);
                }
                Effect::Ended(_) => {}
            }
        }
        witnesses
    }

    /// Its name, for people to read.
    pub(super) fn describe(&self) -> String {
        NAMES[self.name].to_owned()
    }
}

impl Renumber for AcquiringProcess {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.holder.renumber(by);
        self.backlog.renumber(by);
        self.message.renumber(by);
        self.orphans.renumber(by);
        self.started.renumber(by);
        self.variation.renumber(by);
    }
}

// === impl LeaseNews, LeaseRequest, AcquiringMessage ===

impl Renumber for LeaseNews {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Seen(snapshot) => snapshot.renumber(by),
            Self::Deleted(version) => version.renumber(by),
        }
    }
}

impl LeaseRequest {
    /// True if it may be applied, now or later. A PUT on a revision that was replaced never is (R2); a POST waits for
    /// the name to be absent.
    fn may_land(&self, store: &LeaseStore) -> bool {
        match self {
            Self::Put(_, _, write) => store.may_accept(write, Side::Candidate),
            Self::Post(_) => store.lease.is_none() || store.interference.deletions > 0,
        }
    }

    /// The kind of write. A POST has none.
    pub(super) fn kind(&self) -> Option<&WriteKind> {
        match self {
            Self::Put(_, kind, _) => Some(kind),
            Self::Post(_) => None,
        }
    }
}

impl Renumber for LeaseRequest {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Put(_, _, write) => write.renumber(by),
            Self::Post(record) => record.renumber(by),
        }
    }
}

impl Renumber for AcquiringMessage {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Sent(request) => request.renumber(by),
            Self::Landed(_, snapshot) => snapshot.renumber(by),
            Self::Dead => {}
        }
    }
}
