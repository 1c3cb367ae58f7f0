//! A process that may come to lead: the production holder and registration, its watch, its messages and its work.
//!
//! A process that acquires hangs its stop-watch on its news, so they come as a watch reports them: in order, late, and by
//! a list where it fell too far behind. To an elected one the newest record is all that matters.

use std::sync::Arc;

use elector_protocol::elector::NewsSource;
use elector_protocol::holder::{
    Effect, Holder, HolderConfig, LeaseEvent, LeaseOutcome, StopReason, WriteKind,
};
use elector_protocol::registration::Registration;
use elector_protocol::{Identity, Instant, LeaseSnapshot, Renumber, Renumbering};

use super::instance::{ModelInstance, term_of};
use super::lease_message::{LeaseMessage, LeaseNews, LeaseRequest};
use super::mutant::Mutant;
use super::numbers::{FRESH, NOW, timestamp};
use super::process_variation::ProcessVariation;
use super::run::{ModelLock, Run};
use super::store::{LeaseStore, NAMES, names};
use super::witness::Witnesses;

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ModelProcess {
    /// Which of the names it bears in this life.
    pub(super) name: usize,
    pub(super) holder: Holder,
    /// Of use to an elected candidate alone.
    pub(super) registration: Registration,
    /// True if its watch of the Lease is whole. If not, it lists.
    whole: bool,
    /// News that its watch has yet to deliver, the oldest first.
    backlog: Vec<LeaseNews>,
    /// The request under way that changes the Lease.
    pub(super) message: Option<LeaseMessage>,
    /// Requests that were given up, by this life or an earlier one, and may land yet.
    pub(super) orphans: Vec<LeaseRequest>,
    /// True while a read is under way.
    pub(super) reading: bool,
    pub(super) work: ProcessWork,
    /// Its instance, which outlives it, where it keeps a lock.
    pub(super) instance: Option<ModelInstance>,
    /// When the work was started, where that matters.
    started: Option<Instant>,
    /// Kept for mutants alone.
    pub(super) variation: ProcessVariation,
}

/// The state of a term's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ProcessWork {
    Idle,
    Running,
    Stopping,
}

// === impl ModelProcess ===

impl ModelProcess {
    /// A process that has just started, in the present life of its instance, if it has one.
    pub(super) fn of_instance(
        name: usize,
        config: Arc<HolderConfig>,
        instance: Option<ModelInstance>,
    ) -> Self {
        let holder = match &instance {
            Some(instance) => instance.holder(&config, instance.noted.clone()),
            None => Holder::new(config),
        };
        Self {
            name,
            holder,
            instance,
            registration: Registration::new("lease"),
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

    /// The process dies and starts again under this name. Its object stays, and what a new life writes into it is an
    /// ack, which may come at any time. A request that was sent may land yet.
    pub(super) fn crash(&mut self, name: usize, config: Arc<HolderConfig>, run: &Run) {
        let registration = self.registration.clone();
        let mut orphans = std::mem::take(&mut self.orphans);
        if let Some(LeaseMessage::Sent(request)) = self.message.take()
            && orphans.len() < run.orphans
        {
            orphans.push(request);
        }
        let mut instance = self.instance.take();
        if let Some(instance) = &mut instance {
            instance.restart(run);
        }
        *self = Self {
            registration,
            orphans,
            ..Self::of_instance(name, config, instance)
        };
    }

    /// True if a crash would lose anything but time.
    pub(super) fn can_crash(&self) -> bool {
        self.work != ProcessWork::Idle || self.message.is_some() || self.reading
    }

    /// True if this process believes that it leads.
    pub(super) fn believes(&self, run: &Run) -> bool {
        (self.holder.believes(run.now().holder) && self.variation.allows(&self.holder, run))
            || self.variation.believes(run)
    }

    /// True if it believes that it holds the lock, and has waited for as long as the one that it may have displaced
    /// goes on.
    pub(super) fn has_authority(&self, lock: ModelLock, run: &Run) -> bool {
        self.believes(run) && self.started.is_some_and(|at| at.after(lock.quiet) <= NOW)
    }

    /// True if there is anything to see.
    pub(super) fn can_see(&self, store: &LeaseStore, run: &Run) -> bool {
        if run.acquires() {
            !self.whole || !self.backlog.is_empty()
        } else {
            self.holder.known() != store.lease.as_ref()
        }
    }

    /// Its watch has a change to deliver; one that lags too far behind ends.
    pub(super) fn deliver(&mut self, store: &LeaseStore, run: &Run) {
        if !self.whole || (self.variation.hidden && !run.shows(store)) {
            return;
        }
        self.variation.hidden = hides(store, run);
        self.backlog.push(LeaseNews::of(store, run));
        if self.backlog.len() > run.backlog {
            self.whole = false;
            self.backlog.clear();
        }
    }

    /// Takes the next event from its watch, or lists.
    pub(super) fn see(&mut self, store: &LeaseStore, run: &Run) -> Witnesses {
        let lists = run.acquires() && !self.whole;
        self.whole = run.acquires();
        let news = match self.backlog.is_empty() {
            true => LeaseNews::of(store, run),
            false => self.backlog.remove(0),
        };
        if lists {
            self.variation.hidden = hides(store, run);
        }
        match news {
            LeaseNews::Seen(mut seen) => {
                let mut source = if lists {
                    NewsSource::List
                } else {
                    NewsSource::Watch
                };
                let first = lists && self.holder.known().is_none();
                if run.mutant == Some(Mutant::ResumeByTerm) {
                    self.variation.mistake(&mut seen, self.holder.known());
                }
                if run.mutant == Some(Mutant::RejoinByName) && self.holder.known().is_none() {
                    let own = term_of(&seen).filter(|_| names(&seen.record, self.name));
                    let terms = own.into_iter().collect();
                    self.holder = self.holder.clone().with_former_terms(terms);
                }
                let at = run.mutant.map_or(run.now(), |mutant| {
                    mutant.alter_sight(&mut seen, &mut source, first, store, run)
                });
                if run.acquires() {
                    let mine = names(&seen.record, self.name);
                    let occasion = Some(Mutant::LeadByEvent);
                    self.variation.count_belief(mine, occasion, run);
                }
                let before = self.holder.belief();
                self.holder.handle_event(at, LeaseEvent::Seen(seen, source));
                self.variation.prolong(before, &self.holder, run);
            }
            LeaseNews::Deleted(at) if lists => {
                self.holder.handle_event(run.now(), LeaseEvent::Absent(at));
            }
            LeaseNews::Deleted(at) => self.holder.handle_event(run.now(), LeaseEvent::Deleted(at)),
        }
        if run.mutant == Some(Mutant::LeadByRead) {
            self.reading = true;
        }
        self.settle(run, Some(Mutant::LeadByEvent))
    }

    /// The read under way is answered.
    pub(super) fn read(&mut self, store: &LeaseStore, run: &Run) -> Witnesses {
        self.reading = false;
        let mut found = store.lease.clone();
        if run.mutant == Some(Mutant::TrustTheName)
            && let Some(found) = &mut found
        {
            (found.record.token, found.record.token_term) = (None, None);
        }
        self.holder.handle_read(run.now(), Ok(found));
        self.settle(run, Some(Mutant::LeadByRead))
    }

    /// The reply to the request under way comes.
    pub(super) fn reply(&mut self, store: &LeaseStore, run: &Run) -> Witnesses {
        let mut occasion = None;
        let outcome = match self.message.take() {
            Some(LeaseMessage::Landed(kind, snapshot)) => {
                occasion = ProcessVariation::occasion(kind.as_ref(), run);
                LeaseOutcome::Done(snapshot)
            }
            Some(LeaseMessage::Dead(_)) if store.lease.is_none() => LeaseOutcome::Gone,
            _ => LeaseOutcome::Conflict,
        };
        if run.acquires() {
            self.variation.count_belief(true, occasion, run);
        }
        self.holder.handle_outcome(run.now(), outcome);
        self.settle(run, occasion)
    }

    /// The request under way is given up. It may land yet, if it has not.
    pub(super) fn give_up(&mut self, run: &Run) -> Witnesses {
        match self.message.take() {
            Some(LeaseMessage::Sent(request)) => self.orphans.push(request),
            Some(LeaseMessage::Landed(Some(WriteKind::Renew), landed)) => {
                self.variation.give_up(&landed.record);
            }
            _ => {}
        }
        self.holder.handle_outcome(run.now(), LeaseOutcome::Unknown);
        self.settle(run, None)
    }

    /// True if the request under way can be given up within the bounds of the run.
    pub(super) fn can_give_up(&self, run: &Run) -> bool {
        match &self.message {
            Some(LeaseMessage::Sent(_)) => self.orphans.len() < run.orphans,
            Some(LeaseMessage::Landed(..)) => run.lost_replies,
            // It is as good as never sent: its refusal may come as late as any news.
            Some(LeaseMessage::Dead(_)) | None => false,
        }
    }

    /// The request under way is set aside. A write that may land all the same would be one that was given up.
    pub(super) fn set_aside(&mut self, run: &Run) -> Witnesses {
        if let Some(LeaseMessage::Sent(request)) = self.message.take() {
            self.orphans.push(request);
        }
        self.reading = false;
        self.holder.set_aside_overtaken(run.now());
        self.settle(run, None)
    }

    /// True if news have overtaken the request under way. A refusal that is under way is as good as there.
    pub(super) fn can_set_aside(&self, run: &Run) -> bool {
        let refused = matches!(self.message, Some(LeaseMessage::Dead(_)));
        !refused && self.holder.clone().set_aside_overtaken(run.now())
    }

    /// A ping of this candidate is seen.
    pub(super) fn ping(&mut self, run: &Run) -> Witnesses {
        self.holder.handle_ping(run.now());
        self.settle(run, None)
    }

    /// True if a ping would make a difference.
    pub(super) fn can_be_pinged(&self, run: &Run) -> bool {
        let mut holder = self.holder.clone();
        holder.handle_ping(run.now());
        holder != self.holder
    }

    /// The work has ended.
    pub(super) fn end_work(&mut self, run: &Run) -> Witnesses {
        let clings = run.mutant == Some(Mutant::ReleaseFirst) && self.work == ProcessWork::Running;
        self.work = if clings {
            // In truth it goes on for a while.
            ProcessWork::Stopping
        } else {
            ProcessWork::Idle
        };
        self.started = None;
        self.variation.end_work(clings, run);
        self.holder.handle_work_stopped(run.now());
        let known = self.holder.known();
        let mine = Some(Identity::of_elector(NAMES[self.name], 0));
        if run.mutant == Some(Mutant::ReleaseEarly)
            && self.message.is_none()
            && let Some(known) = known.filter(|known| known.record.holder == mine)
        {
            self.message = Some(LeaseMessage::Sent(self.release_of(known)));
            return Witnesses::empty();
        }
        self.settle(run, None)
    }

    /// Ends the work by the old record, which alone says whether the Lease is one's own, and releases what is there.
    pub(super) fn release_by_old_record(
        &mut self,
        store: &LeaseStore,
        config: Arc<HolderConfig>,
        run: &Run,
    ) -> Witnesses {
        let old = self.holder.known().map(|known| &known.record);
        let own = old.is_some_and(|old| names(old, self.name) && old.has_token());
        let Some(lease) = store.lease.as_ref().filter(|_| own) else {
            return self.end_work(run);
        };
        let release = self.release_of(lease);
        self.crash(self.name, config, run);
        self.orphans = vec![release];
        Witnesses::empty()
    }

    fn release_of(&self, lease: &LeaseSnapshot) -> LeaseRequest {
        let write = lease.replace(lease.record.released(timestamp(FRESH)));
        LeaseRequest::Put(self.name, WriteKind::Release, write)
    }

    /// Takes in what can neither begin nor end a belief, nor call for a write, and what a stop-watch counts from only at
    /// its earliest: whether that happens early or late is all the same, or harmless, so it happens at once. The same
    /// goes for news of its own object; acting on them is another transition.
    pub(super) fn catch_up(&mut self, store: &LeaseStore, run: &Run) {
        self.drop_dead_requests(store, run);
        let (mut named, mut granted) = (false, false);
        if run.acquires() {
            while run.hurries && self.has_old_news() {
                self.see(store, run);
            }
        } else {
            if run.hurries {
                self.registration.handle_event(self.seen(store));
            }
            self.registration.ack_pings(self.holder.can_accept());
            if run.mutant == Some(Mutant::ReleaseByOldRecord) {
                // It lives on old news.
                return;
            }
            let names_this = |lease: &&LeaseSnapshot| names(&lease.record, self.name);
            let known = self.holder.known().filter(names_this);
            named = store.lease.as_ref().filter(names_this).is_some();
            granted = named && known.is_some_and(|known| !known.record.has_token());
        }
        while run.hurries && !granted && !self.believes(run) {
            self.drop_dead_requests(store, run);
            match &self.message {
                _ if self.work != ProcessWork::Idle => {
                    self.settle(run, None);
                    // Elsewhere a term resumes as soon as it has lapsed, and late only where the write lands late.
                    if run.slow_stops && self.would_resume(run) {
                        break;
                    }
                    self.end_work(run);
                }
                // Its reply may begin a term.
                Some(LeaseMessage::Landed(Some(WriteKind::Acquire), _)) => break,
                Some(LeaseMessage::Landed(Some(WriteKind::Resume | WriteKind::Rejoin), _))
                    if self.would_start(run) =>
                {
                    break;
                }
                Some(LeaseMessage::Landed(Some(WriteKind::Accept), _))
                    if named || run.acquires() || self.would_start(run) =>
                {
                    break;
                }
                Some(LeaseMessage::Dead(Some(WriteKind::Accept))) if named => break,
                Some(LeaseMessage::Landed(..) | LeaseMessage::Dead(_)) => {
                    self.reply(store, run);
                }
                Some(LeaseMessage::Sent(_)) if !run.acquires() => break,
                None if named => break,
                _ if self.reading => {
                    self.read(store, run);
                }
                None if !run.acquires() && self.can_see(store, run) => {
                    self.see(store, run);
                }
                Some(LeaseMessage::Sent(_)) | None => break,
            }
        }
        if run.acquires() {
            self.variation.settle(run);
        }
    }

    /// Requests that can never land are dead, whether they were sent before or after that (R2).
    fn drop_dead_requests(&mut self, store: &LeaseStore, run: &Run) {
        if let Some(LeaseMessage::Sent(request)) = &self.message
            && run.hurries
            && !request.may_land(store)
        {
            self.message = Some(LeaseMessage::Dead(request.kind().cloned()));
        }
        self.orphans.retain(|request| request.may_land(store));
        if !run.forgets {
            return;
        }
        let sent = match &self.message {
            Some(LeaseMessage::Sent(request)) => Some(request),
            Some(LeaseMessage::Landed(..) | LeaseMessage::Dead(_)) | None => None,
        };
        let requests = sent.into_iter().chain(&self.orphans);
        let writes: Vec<_> = requests.filter_map(LeaseRequest::write).collect();
        let records = writes.iter().map(|write| &write.record);
        let shown: Vec<_> = records
            .chain(self.backlog.iter().filter_map(LeaseNews::record))
            .chain(store.lease.as_ref().map(|lease| &lease.record))
            .filter_map(|record| record.renew_time)
            .collect();
        self.holder.forget_attempts(|time| shown.contains(&time));
        if let Some(instance) = &mut self.instance {
            instance.forget(store.lease.as_ref(), &writes);
        }
    }

    /// True if its watch is about to deliver what it knows already.
    fn has_old_news(&self) -> bool {
        match (self.holder.known(), self.backlog.first()) {
            (Some(known), Some(LeaseNews::Seen(news))) => news.version <= known.version,
            _ => false,
        }
    }

    /// True if it would ask for a term at once after the end of its work.
    fn would_resume(&self, run: &Run) -> bool {
        let mut holder = self.holder.clone();
        holder.handle_work_stopped(run.now());
        let effects = holder.step(run.now(), timestamp(FRESH)).effects;
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Read | Effect::Write { .. }))
    }

    /// True if the reply under way would begin a term.
    fn would_start(&self, run: &Run) -> bool {
        let Some(LeaseMessage::Landed(_, snapshot)) = &self.message else {
            return false;
        };
        let mut holder = self.holder.clone();
        holder.handle_outcome(run.now(), LeaseOutcome::Done(snapshot.clone()));
        holder.step(run.now(), timestamp(FRESH));
        holder.believes(run.now().holder)
    }

    /// True if a step would do something.
    pub(super) fn is_due(&self, run: &Run) -> bool {
        let mut holder = self.holder.clone();
        !holder.step(run.now(), timestamp(FRESH)).effects.is_empty()
    }

    /// Runs the step, carries out what it says, and returns the witnesses. `occasion` is the mutant that would count
    /// belief from now, by the record that an elected process knows then; one that acquires counts by its news.
    pub(super) fn settle(&mut self, run: &Run, occasion: Option<Mutant>) -> Witnesses {
        let mut witnesses = Witnesses::empty();
        let is_refused = run.refused_candidate == Some(self.name);
        let mut released_first = false;
        for effect in self.holder.step(run.now(), timestamp(FRESH)).effects {
            match effect {
                Effect::Read => self.reading = true,
                Effect::Write { .. } if is_refused => {
                    self.holder.handle_outcome(run.now(), LeaseOutcome::Refused);
                }
                Effect::Write { kind, mut write } => {
                    self.variation.send(&kind, &mut write, run);
                    if let Some(instance) = self.instance.as_mut().filter(|_| kind.begins_term()) {
                        instance.note(&write);
                    }
                    if matches!(kind, WriteKind::Release | WriteKind::HandOff(_)) {
                        // A holder that gives the lease away while its work goes on leads until that stops (R12).
                        self.variation.clings = self.work != ProcessWork::Idle;
                    }
                    let request = LeaseRequest::Put(self.name, kind, write);
                    self.message = Some(LeaseMessage::Sent(request));
                    witnesses |= Witnesses::TWO_MESSAGES.when(!self.orphans.is_empty());
                }
                Effect::Create(born) => {
                    let record = self.variation.post(born, NAMES[self.name], run);
                    self.message = Some(LeaseMessage::Sent(LeaseRequest::Post(record)));
                }
                Effect::Start { .. } => {
                    self.work = ProcessWork::Running;
                    self.started = run.lock.map(|_| NOW);
                    self.variation.clings = run.mutant == Some(Mutant::BelieveUntilEvent);
                    witnesses |= Witnesses::LEADS | Witnesses::THIRD.when(self.name == 2);
                }
                Effect::Stop(why) => {
                    let hands_over = matches!(why, StopReason::HandOver { .. });
                    released_first = run.mutant == Some(Mutant::ReleaseFirst) && hands_over;
                    if !released_first {
                        self.work = ProcessWork::Stopping;
                        self.variation.clings = false;
                    }
                    witnesses |= Witnesses::YIELDS.when(hands_over);
                }
                Effect::Ended(_) => {}
            }
        }
        if released_first {
            witnesses |= self.end_work(run);
        }
        if !run.acquires() {
            let known = self.holder.known();
            let mine = known.is_some_and(|known| names(&known.record, self.name));
            self.variation.count_belief(mine, occasion, run);
        }
        witnesses
    }
}

impl Renumber for ModelProcess {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        self.holder.renumber(by);
        self.registration.renumber(by);
        self.instance.renumber(by);
        self.backlog.renumber(by);
        self.message.renumber(by);
        self.orphans.renumber(by);
        self.started.renumber(by);
        self.variation.renumber(by);
    }
}

/// True if the Lease is there and the watch of a process does not show it.
fn hides(store: &LeaseStore, run: &Run) -> bool {
    store.lease.is_some() && !run.shows(store)
}
