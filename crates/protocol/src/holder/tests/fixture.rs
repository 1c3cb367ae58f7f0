//! A fixture for tests: one Lease with compare-and-swap, the writes of an elector, and one holder with its work.

use std::sync::Arc;
use std::time::Duration;

use super::super::{
    Acquisition, Decision, Effect, Ending, Holder, HolderConfig, HolderMode, LeaseEvent,
    LeaseOutcome, Loss, ReadFailed, StopReason, WriteKind,
};
use crate::lease::{LeaseRecord, LeaseSnapshot, LeaseWrite};
use crate::lease_watch::NewsSource;
use crate::names::{Identity, ResourceVersion, Term, Token, Uid};
use crate::time::{Instant, Moment, Timestamp};
use crate::timing::CandidateTiming;

/// The Lease as a store keeps it: every version counts up, also over a deletion.
#[derive(Clone, Debug)]
pub(super) struct LeaseRegister {
    pub(super) lease: Option<LeaseSnapshot>,
    pub(super) version: u64,
    pub(super) uid: u64,
}

/// One process, its Lease and its work.
pub(super) struct HolderFixture {
    pub(super) store: LeaseRegister,
    pub(super) holder: Holder,
    pub(super) now: Instant,
    /// The events of the work.
    pub(super) work_events: Vec<WorkEvent>,
    /// Kinds of the writes sent, in order.
    pub(super) sent: Vec<WriteKind>,
    /// Where writes go; the default is straight to the store.
    pub(super) network: Network,
    /// The write that the network keeps.
    pub(super) kept: Option<LeaseWrite>,
    /// The number of next writes that a stranger precedes. The watch brings its write before the reply comes.
    pub(super) races: usize,
    /// The number of reads of the Lease.
    pub(super) reads: usize,
    /// When the last decision asked to be stepped again.
    pub(super) wake_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    /// Writes are applied and replied to at once.
    Up,
    /// Writes are applied, and the reply is lost.
    RepliesLost,
    /// Writes are kept in `kept`, and time out.
    Delayed,
    /// Writes are lost.
    Down,
    /// Nothing is reported at all.
    Silent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WorkEvent {
    Start(Term, Token),
    Stop(StopReason),
    Ended(Ending),
}

pub(super) fn identity(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

pub(super) fn wall_at(now: Instant) -> Timestamp {
    let micros = i64::try_from(now.since_epoch().as_micros()).unwrap();
    Timestamp::from_micros(1_700_000_000_000_000 + micros).unwrap()
}

pub(super) fn config_of(mode: HolderMode) -> Arc<HolderConfig> {
    Arc::new(HolderConfig {
        identity: identity("me"),
        timing: CandidateTiming::default(),
        mode,
        life: None,
    })
}

/// Auto with its defaults, and no strategy of its own.
pub(super) fn auto() -> HolderMode {
    HolderMode::Auto {
        fallback: seconds(5.0),
        acquisition: Acquisition::plain(),
    }
}

pub(super) fn plain() -> HolderMode {
    HolderMode::Plain(Acquisition::plain())
}

/// Every mode.
pub(super) fn modes() -> impl proptest::strategy::Strategy<Value = HolderMode> {
    proptest::sample::select(vec![HolderMode::Elected, auto(), plain()])
}

// === impl LeaseRegister ===

impl LeaseRegister {
    pub(super) fn born() -> Self {
        let mut store = Self {
            lease: None,
            version: 10,
            uid: 0,
        };
        store.create(LeaseRecord::born(None));
        store
    }

    pub(super) fn create(&mut self, record: LeaseRecord) {
        self.version += 1;
        self.uid += 1;
        self.lease = Some(LeaseSnapshot {
            uid: Uid::new(self.uid.to_string()),
            version: ResourceVersion(self.version),
            record,
            overrides: crate::operator_overrides::OperatorOverrides::default(),
        });
    }

    pub(super) fn delete(&mut self) -> ResourceVersion {
        self.version += 1;
        self.lease = None;
        ResourceVersion(self.version)
    }

    /// Compare-and-swap.
    pub(super) fn put(&mut self, write: &LeaseWrite) -> LeaseOutcome {
        let Some(lease) = &mut self.lease else {
            return LeaseOutcome::Gone;
        };
        if (&lease.uid, lease.version) != (&write.uid, write.version) {
            return LeaseOutcome::Conflict;
        }
        self.version += 1;
        lease.version = ResourceVersion(self.version);
        lease.record = write.record.clone();
        LeaseOutcome::Done(lease.clone())
    }

    /// A write of another client, on the revision that is there.
    pub(super) fn edit(&mut self, change: impl FnOnce(&LeaseRecord) -> LeaseRecord) {
        let lease = self.lease.clone().unwrap();
        let write = lease.replace(change(&lease.record));
        assert!(matches!(self.put(&write), LeaseOutcome::Done(_)));
    }
}

// === impl HolderFixture ===

impl HolderFixture {
    pub(super) fn new() -> Self {
        Self::of(HolderMode::Elected)
    }

    /// A process of this mode, which knows nothing yet.
    pub(super) fn of(mode: HolderMode) -> Self {
        Self {
            store: LeaseRegister::born(),
            holder: Holder::new(config_of(mode)),
            now: Instant::from_epoch(seconds(1000.0)),
            work_events: Vec::new(),
            sent: Vec::new(),
            network: Network::Up,
            kept: None,
            races: 0,
            reads: 0,
            wake_at: None,
        }
    }

    /// A process that has just been granted the lease, has accepted it and works.
    pub(super) fn leading() -> Self {
        let mut fixture = Self::new();
        fixture.grant("me");
        fixture.watch();
        assert_eq!(fixture.sent, [WriteKind::Accept]);
        assert!(fixture.holder.believes(fixture.now));
        fixture.sent.clear();
        fixture.work_events.clear();
        fixture
    }

    /// The process comes to lead, in its own way.
    #[track_caller]
    pub(super) fn wins(&mut self) {
        self.release();
        self.watch();
        if !self.believes() {
            self.grant("me");
            self.watch();
        }
        assert!(self.believes());
    }

    /// A process that has just sent its accept over this network.
    pub(super) fn accepting(network: Network) -> Self {
        let mut fixture = Self::new();
        fixture.network = network;
        fixture.grant("me");
        fixture.watch();
        assert_eq!(fixture.sent, [WriteKind::Accept]);
        fixture
    }

    /// A leader whose renewal is under way: the store keeps it in `kept`.
    pub(super) fn renewing() -> Self {
        let mut fixture = Self::leading();
        fixture.network = Network::Silent;
        fixture.pass(4.0);
        assert_eq!(fixture.sent, [WriteKind::Renew]);
        fixture
    }

    pub(super) fn moment(&self) -> Moment {
        Moment::same(self.now)
    }

    pub(super) fn believes(&self) -> bool {
        self.holder.believes(self.now)
    }

    pub(super) fn deadline(&self) -> Instant {
        self.holder.belief().unwrap().deadline
    }

    /// Asserts that the process leads, and that its work was not interrupted.
    #[track_caller]
    pub(super) fn leads_on(&self) {
        assert_eq!(self.work_events, []);
        assert!(self.believes());
    }

    /// Asserts that the process neither writes nor works.
    #[track_caller]
    pub(super) fn is_idle(&self) {
        assert_eq!((&self.sent[..], &self.work_events[..]), (&[][..], &[][..]));
    }

    /// Asserts that the work was stopped by a loss, which ended the belief.
    #[track_caller]
    pub(super) fn lost(&self, why: Loss) {
        let stop = WorkEvent::Stop(StopReason::Lost(why));
        assert_eq!(self.work_events, [stop]);
        assert!(!self.believes());
    }

    /// Asserts the end of the newest term.
    #[track_caller]
    pub(super) fn ended(&self, ending: Ending) {
        assert_eq!(self.work_events.last(), Some(&WorkEvent::Ended(ending)));
    }

    /// Asserts that the lease is acquired after this time, and not before.
    #[track_caller]
    pub(super) fn acquires_after(&mut self, seconds: f64) {
        self.pass(seconds - 0.1);
        assert_eq!(self.sent, [], "too early");
        self.pass(0.1);
        assert_eq!(self.sent, [WriteKind::Acquire]);
        assert!(self.believes());
    }

    pub(super) fn record(&self) -> &LeaseRecord {
        &self.store.lease.as_ref().unwrap().record
    }

    pub(super) fn grant(&mut self, to: &str) {
        let at = wall_at(self.now);
        let window = CandidateTiming::default().accept_window;
        self.store
            .edit(|record| record.granted(identity(to), window, at));
    }

    /// A take-over by the elector that is built into kube-apiserver: it clears acquireTime and the preference, counts
    /// no term and leaves annotations alone.
    pub(super) fn take_over_as_builtin(&mut self, to: &str) {
        let at = wall_at(self.now);
        self.store.edit(|record| LeaseRecord {
            holder: Some(identity(to)),
            duration_seconds: Some(5),
            acquire_time: None,
            renew_time: Some(at),
            preferred_holder: None,
            ..record.clone()
        });
    }

    pub(super) fn prefer(&mut self, whom: Option<&str>) {
        self.store
            .edit(|record| record.preferring(whom.map(identity), None));
    }

    /// A stranger changes the record.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut LeaseRecord)) {
        self.store.edit(|record| {
            let mut record = record.clone();
            change(&mut record);
            record
        });
    }

    /// The record is released in the name of its holder.
    pub(super) fn release(&mut self) {
        let at = wall_at(self.now);
        self.edit(|record| *record = record.released(at));
    }

    /// The record is renewed in the name of its holder.
    pub(super) fn renew(&mut self) {
        let at = wall_at(self.now);
        self.edit(|record| record.renew_time = Some(at));
    }

    /// The write that the network kept reaches the store.
    pub(super) fn apply_kept(&mut self) -> LeaseOutcome {
        let write = self.kept.take().unwrap();
        self.store.put(&write)
    }

    /// The watch brings what the store holds.
    pub(super) fn watch(&mut self) {
        let event = match &self.store.lease {
            Some(lease) => LeaseEvent::Seen(lease.clone(), NewsSource::Watch),
            None => LeaseEvent::Absent(ResourceVersion(self.store.version)),
        };
        self.event(event);
    }

    pub(super) fn event(&mut self, event: LeaseEvent) {
        self.holder.handle_event(self.moment(), event);
        self.run();
    }

    /// An event, the reply to a write and the reply to a read arrive, and nothing is done about them yet.
    pub(super) fn note_event(&mut self, event: LeaseEvent) {
        self.holder.handle_event(self.moment(), event);
    }

    pub(super) fn note_outcome(&mut self, outcome: LeaseOutcome) {
        self.holder.handle_outcome(self.moment(), outcome);
    }

    pub(super) fn note_read(&mut self, reply: Result<Option<LeaseSnapshot>, ReadFailed>) {
        self.holder.handle_read(self.moment(), reply);
    }

    /// The reply to the write under way arrives.
    pub(super) fn outcome(&mut self, outcome: LeaseOutcome) {
        self.note_outcome(outcome);
        self.run();
    }

    /// The process asks the server, and does what follows.
    pub(super) fn read(&mut self) {
        self.holder.request_read();
        self.run();
    }

    /// The event of the revision that the store holds.
    pub(super) fn present(&self) -> LeaseEvent {
        LeaseEvent::Seen(self.store.lease.clone().unwrap(), NewsSource::Watch)
    }

    pub(super) fn shut_down(&mut self) {
        self.holder.shut_down(self.moment());
    }

    /// One step, whose effects are looked at and not carried out.
    pub(super) fn step(&mut self) -> Decision {
        self.holder.step(self.moment(), wall_at(self.now))
    }

    /// The clock goes on by some seconds, in which the process does nothing.
    pub(super) fn stand_still(&mut self, seconds: f64) {
        self.now = self.now.after(Duration::from_secs_f64(seconds));
    }

    /// Sets the request under way aside, if the holder lets go of it.
    pub(super) fn set_aside(&mut self) -> bool {
        let set_aside = self.holder.set_aside_overtaken(self.moment());
        self.run();
        set_aside
    }

    pub(super) fn work_stops(&mut self) {
        self.holder.handle_work_stopped(self.moment());
        self.run();
    }

    /// Steps until nothing is left to do now.
    pub(super) fn run(&mut self) {
        for _ in 0..100 {
            let Decision { effects, wake_at } = self.holder.step(self.moment(), wall_at(self.now));
            self.wake_at = wake_at;
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.perform(effect);
            }
        }
        panic!("the holder does not come to rest: {:?}", self.holder);
    }

    /// Lets time pass, stepping whenever the holder asked to be woken.
    pub(super) fn pass(&mut self, seconds: f64) {
        let end = self.now.after(Duration::from_secs_f64(seconds));
        for _ in 0..1000 {
            self.run();
            match self.wake_at.filter(|wake_at| *wake_at <= end) {
                Some(wake_at) => self.now = self.now.max(wake_at),
                None => {
                    self.now = end;
                    self.run();
                    return;
                }
            }
        }
        panic!("the holder wakes too often: {:?}", self.holder);
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Start { term, token } => self.work_events.push(WorkEvent::Start(term, token)),
            Effect::Stop(why) => self.work_events.push(WorkEvent::Stop(why)),
            Effect::Ended(ending) => self.work_events.push(WorkEvent::Ended(ending)),
            Effect::Read => match self.network {
                Network::Up => {
                    self.reads += 1;
                    let reply = self.store.lease.clone();
                    self.holder.handle_read(self.moment(), Ok(reply));
                }
                Network::Silent => {}
                _ => self.holder.handle_read(self.moment(), Err(ReadFailed)),
            },
            Effect::Create(record) => {
                let outcome = match self.network {
                    Network::Up if self.store.lease.is_some() => LeaseOutcome::Conflict,
                    Network::Up => {
                        self.store.create(record);
                        LeaseOutcome::Done(self.store.lease.clone().unwrap())
                    }
                    Network::Silent => return,
                    _ => LeaseOutcome::Unknown,
                };
                self.holder.handle_outcome(self.moment(), outcome);
            }
            Effect::Write { kind, write } => {
                self.sent.push(kind);
                if self.races > 0 {
                    self.races -= 1;
                    self.store.edit(Clone::clone);
                    let seen = self.store.lease.clone().unwrap();
                    let event = LeaseEvent::Seen(seen, NewsSource::Watch);
                    self.holder.handle_event(self.moment(), event);
                }
                let outcome = match self.network {
                    Network::Up => self.store.put(&write),
                    Network::RepliesLost => {
                        let _ = self.store.put(&write);
                        LeaseOutcome::Unknown
                    }
                    Network::Delayed => {
                        self.kept = Some(write);
                        LeaseOutcome::Unknown
                    }
                    Network::Down => LeaseOutcome::Unknown,
                    Network::Silent => {
                        self.kept = Some(write);
                        return;
                    }
                };
                self.holder.handle_outcome(self.moment(), outcome);
            }
        }
    }
}

/// The one form of a write of this kind: of what was sent it takes the time, the duration and the token.
pub(super) fn form(
    kind: &WriteKind,
    me: &Identity,
    base: &LeaseRecord,
    sent: &LeaseRecord,
) -> LeaseRecord {
    let mut form = LeaseRecord {
        renew_time: sent.renew_time,
        duration_seconds: sent.duration_seconds,
        ..base.clone()
    };
    (form.token, form.life) = match kind {
        WriteKind::Renew => return form,
        WriteKind::Release | WriteKind::HandOff(_) => (None, None),
        _ => (sent.token, sent.life),
    };
    form.term = base.term.next();
    form.acquire_time = sent.renew_time;
    form.preferred_holder = None;
    match kind {
        WriteKind::Acquire | WriteKind::Resume | WriteKind::Rejoin => {
            form.holder = Some(me.clone());
        }
        WriteKind::Release => {
            (form.holder, form.duration_seconds, form.term) = (None, Some(1), base.term);
        }
        // Only an accepted term is handed over, and to the candidate that it prefers.
        WriteKind::HandOff(_) => {
            form.holder = base.preferred_holder.clone().filter(|_| base.has_token());
        }
        WriteKind::Accept | WriteKind::Renew => {
            form.acquire_time = base.acquire_time.or(sent.renew_time);
            form.preferred_holder.clone_from(&base.preferred_holder);
            form.term = base.term;
        }
    }
    form.token_term = form.token.map(|_| form.term);
    form
}
