//! Properties of a holder on arbitrary histories, judged by an oracle that shares no code with it: what the store
//! applied, when each write was sent, and whether the work runs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{
    Just, ProptestConfig, Strategy as Arbitrary, TestCaseError, any, prop_assert, prop_assert_eq,
    prop_assert_ne, prop_oneof, proptest,
};

use super::super::{
    Effect, Holder, HolderMode, LeaseEvent, LeaseOutcome, ReadFailed, StopReason, WriteKind,
};
use super::fixture::{LeaseRegister, config_of, form, identity, modes, wall_at};
use super::shown_history::ShownHistory;
use crate::lease::{LeaseRecord, LeaseSnapshot, LeaseWrite};
use crate::lease_watch::NewsSource;
use crate::names::{ResourceVersion, Term, Token, Uid};
use crate::renumber::{Renumber, Renumbering};
use crate::time::{Instant, Moment, Timestamp};
use crate::timing::CandidateTiming;

/// One thing that can happen to a process and its Lease.
#[derive(Clone, Debug)]
enum HolderEvent {
    Pass(u64),
    Step,
    Grant(&'static str),
    Prefer(Option<&'static str>),
    /// A stranger changes the duration.
    Shorten(i32),
    /// A stranger empties the record, as client-go does with a successor's (MC-M6).
    Blank,
    Delete,
    Create,
    /// The watch brings the revision of this number of writes ago.
    Event(usize),
    Absent,
    /// A ping of the own candidate is seen.
    Ping,
    /// A read brings what the store held when it was sent, or holds now.
    Read {
        late: bool,
    },
    ReadFails,
    /// One of the writes that were sent reaches the store, perhaps long after it was given up.
    Apply(usize),
    Reply,
    Timeout,
    /// One of the writes that were given up is answered after all (R22).
    Late(usize),
    /// The request under way is set aside, where news have overtaken it.
    SetAside,
    Refuse,
    WorkStops,
    ShutDown,
    Withdrawn,
}

fn events() -> impl Arbitrary<Value = HolderEvent> {
    use HolderEvent::{
        Absent, Apply, Blank, Create, Delete, Event, Grant, Late, Pass, Ping, Prefer, Read,
        ReadFails, Refuse, Reply, SetAside, Shorten, ShutDown, Step, Timeout, Withdrawn, WorkStops,
    };
    prop_oneof![
        6 => prop_oneof![0..300u64, 0..4_000u64, 0..20_000u64].prop_map(Pass),
        8 => Just(Step),
        4 => Just(Grant("me")),
        1 => Just(Grant("other")),
        1 => prop_oneof![Just(None), Just(Some("me")), Just(Some("other"))].prop_map(Prefer),
        3 => (1..40).prop_map(Shorten),
        1 => Just(Blank),
        1 => Just(Delete),
        1 => Just(Create),
        8 => Just(Event(0)),
        2 => (0..6usize).prop_map(Event),
        1 => Just(Absent),
        1 => Just(Ping),
        4 => any::<bool>().prop_map(|late| Read { late }),
        1 => Just(ReadFails),
        8 => (0..3usize).prop_map(Apply),
        8 => Just(Reply),
        2 => Just(Timeout),
        4 => (0..3usize).prop_map(Late),
        6 => Just(SetAside),
        1 => Just(Refuse),
        2 => Just(WorkStops),
        1 => Just(ShutDown),
        1 => Just(Withdrawn),
    ]
}

/// A write on its way.
struct SentWrite {
    kind: WriteKind,
    write: LeaseWrite,
    sent_at: Instant,
    outcome: Option<LeaseOutcome>,
}

/// The process, the store, and what the oracle knows.
struct HolderCheck {
    holder: Holder,
    store: LeaseRegister,
    history: Vec<LeaseSnapshot>,
    now: Instant,
    sent: Vec<SentWrite>,
    /// True while the last write sent is awaited.
    awaited: bool,
    /// The store's Lease when the read under way was sent.
    read: Option<Option<LeaseSnapshot>>,
    working: bool,
    closing: bool,
    mode: HolderMode,
    /// True while a POST is under way.
    creating: bool,
    shown: ShownHistory,
    /// Terms of this process, by the accept or the acquisition that the store applied.
    accepted: BTreeMap<(Uid, Term), Token>,
    /// Until when the writes that the store applied carry the belief of a term.
    carried: BTreeMap<(Uid, Term), Instant>,
    durations: BTreeMap<(Uid, Term), BTreeSet<Option<i32>>>,
}

impl HolderCheck {
    fn new(mode: HolderMode) -> Self {
        let store = LeaseRegister::born();
        let history = store.lease.iter().cloned().collect();
        Self {
            holder: Holder::new(config_of(mode.clone())),
            mode,
            creating: false,
            shown: ShownHistory::default(),
            store,
            history,
            now: Instant::from_epoch(Duration::from_secs(1000)),
            sent: Vec::new(),
            awaited: false,
            read: None,
            working: false,
            closing: false,
            accepted: BTreeMap::new(),
            carried: BTreeMap::new(),
            durations: BTreeMap::new(),
        }
    }

    fn apply_event(&mut self, event: &HolderEvent) -> Result<(), TestCaseError> {
        let window = CandidateTiming::default().accept_window;
        let (now, wall) = (Moment::same(self.now), wall_at(self.now));
        match event {
            HolderEvent::Pass(millis) => self.now = self.now.after(Duration::from_millis(*millis)),
            HolderEvent::Step => self.step()?,
            HolderEvent::Grant(to) => self.edit(|lease| lease.granted(identity(to), window, wall)),
            HolderEvent::Prefer(whom) => {
                self.edit(|lease| lease.preferring(whom.map(identity), None));
            }
            HolderEvent::Shorten(seconds) => self.edit(|lease| LeaseRecord {
                duration_seconds: Some(*seconds),
                ..lease.clone()
            }),
            HolderEvent::Blank => self.edit(|lease| LeaseRecord {
                holder: None,
                duration_seconds: Some(1),
                ..lease.clone()
            }),
            HolderEvent::Delete => {
                if self.store.lease.is_some() {
                    let version = self.store.delete();
                    if wall.as_micros() % 2 == 0 {
                        self.deliver(LeaseEvent::Deleted(version));
                    }
                }
            }
            HolderEvent::Create => {
                if self.store.lease.is_none() {
                    self.store.create(LeaseRecord::born(None));
                    self.remember();
                }
            }
            HolderEvent::Event(age) => {
                let index = self.history.len().saturating_sub(1 + age);
                let seen = self.history[index].clone();
                // Every change of the store is one version: whether the watch has skipped any tells the source.
                let newest = self.holder.tracked.newest.map(|newest| newest.0 + 1);
                let source = match newest == Some(seen.version.0) {
                    true => NewsSource::Watch,
                    false => NewsSource::List,
                };
                self.deliver(LeaseEvent::Seen(seen, source));
            }
            HolderEvent::Absent => {
                if self.store.lease.is_none() {
                    self.deliver(LeaseEvent::Absent(ResourceVersion(self.store.version)));
                }
            }
            HolderEvent::Ping => self.holder.handle_ping(now),
            HolderEvent::Read { late } => {
                if let Some(early) = self.read.take() {
                    let reply = match late {
                        true => self.store.lease.clone(),
                        false => early,
                    };
                    self.holder.handle_read(now, Ok(reply));
                    // A read that finds nothing leaves the proof of absence to the watch.
                    self.note_shown(match self.holder.known() {
                        Some(_) => NewsSource::List,
                        None => NewsSource::Watch,
                    });
                }
            }
            HolderEvent::ReadFails => {
                if self.read.take().is_some() {
                    self.holder.handle_read(now, Err(ReadFailed));
                }
            }
            HolderEvent::Apply(age) => self.apply(*age),
            HolderEvent::Reply if self.creating => {
                self.creating = false;
                let outcome = if self.store.lease.is_some() {
                    LeaseOutcome::Conflict
                } else {
                    self.store.create(LeaseRecord::born(None));
                    self.remember();
                    LeaseOutcome::Done(self.store.lease.clone().unwrap())
                };
                self.holder.handle_outcome(now, outcome);
            }
            HolderEvent::Timeout if self.creating => {
                self.creating = false;
                self.holder.handle_outcome(now, LeaseOutcome::Unknown);
            }
            HolderEvent::Reply => {
                self.apply(0);
                let outcome = self.sent.last().and_then(|sent| sent.outcome.clone());
                if let Some(outcome) = outcome.filter(|_| self.awaited) {
                    self.awaited = false;
                    self.holder.handle_outcome(now, outcome);
                    self.note_shown(NewsSource::OwnWrite);
                }
            }
            HolderEvent::Timeout => {
                if std::mem::take(&mut self.awaited) {
                    self.holder.handle_outcome(now, LeaseOutcome::Unknown);
                }
            }
            HolderEvent::Late(age) => {
                let given_up = self.sent.len() - usize::from(self.awaited);
                let late = given_up.checked_sub(1 + age).map(|index| &self.sent[index]);
                if let Some((base, LeaseOutcome::Done(done))) =
                    late.and_then(|sent| Some((sent.write.version, sent.outcome.clone()?)))
                {
                    let before = self.holder.tracked.newest;
                    self.holder.handle_late(now, base, done);
                    if self.holder.tracked.newest != before {
                        self.note_shown(NewsSource::Watch);
                    }
                }
            }
            HolderEvent::SetAside => {
                if self.holder.set_aside_overtaken(now) {
                    let write = std::mem::take(&mut self.awaited);
                    prop_assert!(write != self.read.take().is_some());
                    let open = self.sent.last().filter(|it| write && it.outcome.is_none());
                    let lands = |sent: &SentWrite| {
                        let outcome = self.store.clone().put(&sent.write);
                        matches!(outcome, LeaseOutcome::Done(_))
                    };
                    prop_assert!(!open.is_some_and(lands), "it may be applied yet");
                }
            }
            HolderEvent::Refuse => {
                let open = self.sent.last().is_some_and(|sent| sent.outcome.is_none());
                if self.awaited && open {
                    self.awaited = false;
                    let _ = self.sent.pop();
                    self.holder.handle_outcome(now, LeaseOutcome::Refused);
                }
            }
            HolderEvent::WorkStops => {
                self.working = false;
                self.holder.handle_work_stopped(now);
            }
            HolderEvent::ShutDown => {
                self.closing = true;
                self.holder.shut_down(now);
            }
            HolderEvent::Withdrawn => self.holder.handle_withdrawn(),
        }
        self.judge()
    }

    fn deliver(&mut self, event: LeaseEvent) {
        let source = match &event {
            LeaseEvent::Seen(_, source) => *source,
            LeaseEvent::Deleted(_) if self.holder.known().is_some() => NewsSource::Watch,
            LeaseEvent::Deleted(_) | LeaseEvent::Absent(_) | LeaseEvent::Unreadable => {
                NewsSource::List
            }
        };
        let before = self.holder.tracked.newest;
        self.holder.handle_event(Moment::same(self.now), event);
        // A revision older than the newest known shows nothing.
        if self.holder.tracked.newest != before {
            self.note_shown(source);
        }
    }

    fn note_shown(&mut self, source: NewsSource) {
        let known = self.holder.known().cloned();
        self.shown.note(self.now, known, source);
    }

    fn remember(&mut self) {
        self.history.extend(self.store.lease.clone());
    }

    fn edit(&mut self, change: impl FnOnce(&LeaseRecord) -> LeaseRecord) {
        if self.store.lease.is_some() {
            self.store.edit(change);
            self.remember();
        }
    }

    fn apply(&mut self, age: usize) {
        let Some(index) = self.sent.len().checked_sub(1 + age) else {
            return;
        };
        if self.sent[index].outcome.is_some() {
            return;
        }
        let sent = &self.sent[index];
        let outcome = self.store.put(&sent.write);
        if let LeaseOutcome::Done(done) = &outcome {
            let term = (done.uid.clone(), done.record.term);
            let begins = sent.kind.begins_term();
            if begins {
                let token = Token(sent.write.version);
                let _ = self.accepted.insert(term.clone(), token);
            }
            if begins || sent.kind == WriteKind::Renew {
                let until = sent
                    .sent_at
                    .after(CandidateTiming::default().renew_deadline);
                let carried = self.carried.entry(term).or_insert(until);
                *carried = (*carried).max(until);
            }
            self.history.push(done.clone());
        }
        self.sent[index].outcome = Some(outcome);
    }

    fn step(&mut self) -> Result<(), TestCaseError> {
        self.renumbering_commutes()?;
        let decision = self.holder.step(Moment::same(self.now), wall_at(self.now));
        for effect in decision.effects {
            match effect {
                Effect::Read => {
                    prop_assert!(self.read.is_none() && !self.awaited, "two requests at once");
                    self.read = Some(self.store.lease.clone());
                }
                Effect::Create(record) => {
                    prop_assert!(self.read.is_none() && !self.awaited, "two requests at once");
                    prop_assert_ne!(&self.mode, &HolderMode::Elected);
                    prop_assert!(self.holder.known().is_none() && !self.closing);
                    prop_assert_eq!(record, LeaseRecord::born(None));
                    self.creating = true;
                }
                Effect::Write { kind, write } => self.send(kind, write)?,
                Effect::Start { term, token } => {
                    prop_assert!(!self.working, "work of two terms at once");
                    prop_assert!(!self.closing, "work starts during a shutdown");
                    self.working = true;
                    let belief = self.holder.belief();
                    let belief = belief.map(|belief| (belief.term, belief.token));
                    prop_assert_eq!(belief, Some((term, token)));
                }
                Effect::Stop(StopReason::Lost(_)) => {
                    prop_assert!(!self.holder.believes(self.now));
                }
                Effect::Stop(_) => prop_assert!(self.working),
                Effect::Ended(_) => prop_assert!(!self.working),
            }
        }
        if let Some(belief) = self.holder.belief() {
            prop_assert!(
                decision.wake_at.is_some_and(|at| at <= belief.deadline),
                "nobody would end the belief"
            );
        }
        Ok(())
    }

    /// S6, S10: every write is on a grant to this process, or on a term that it accepted.
    fn send(&mut self, kind: WriteKind, write: LeaseWrite) -> Result<(), TestCaseError> {
        prop_assert!(self.read.is_none() && !self.awaited, "two requests at once");
        let mut history = self.history.iter();
        let base = history.find(|lease| lease.version == write.version);
        let Some(base) = base.filter(|base| base.uid == write.uid) else {
            return Err(TestCaseError::fail("a write on a revision that never was"));
        };
        let me = identity("me");
        if kind == WriteKind::Acquire {
            if let Err(why) = self.shown.may_acquire(self.now, base, &self.mode) {
                return Err(TestCaseError::fail(why));
            }
            prop_assert!(!self.working && !self.closing, "an acquisition beside work");
            prop_assert_eq!(write.record.token, Some(Token(base.version)));
        } else {
            prop_assert_eq!(
                &base.record.holder,
                &Some(me.clone()),
                "{} on a stranger's record",
                kind
            );
        }
        let term = (base.uid.clone(), write.record.term);
        match kind {
            WriteKind::Acquire | WriteKind::HandOff(_) => {}
            WriteKind::Resume => {
                prop_assert!(!self.working && !self.closing, "resumed beside work");
                let record = |done: &LeaseSnapshot| done.record.same_record(&base.record);
                let own = |sent: &SentWrite| matches!(&sent.outcome, Some(LeaseOutcome::Done(done)) if done.uid == base.uid && record(done));
                prop_assert!(self.sent.iter().any(own), "a record of others resumed");
                prop_assert_eq!(write.record.token, Some(Token(base.version)));
            }
            WriteKind::Accept => {
                prop_assert!(!matches!(self.mode, HolderMode::Plain(_)), "a plain accept");
                prop_assert!(!base.record.has_token(), "accept of another life's term");
                prop_assert_eq!(write.record.token, Some(Token(base.version)));
            }
            _ => prop_assert_eq!(
                self.accepted.get(&term),
                base.record.token.as_ref(),
                "{} on a term of another life",
                kind
            ),
        }
        match kind {
            WriteKind::Release | WriteKind::HandOff(_) => {
                prop_assert!(!self.working, "{} while the work runs", kind);
                prop_assert!(!self.holder.believes(self.now), "{} under belief", kind);
            }
            _ => {
                let durations = self.durations.entry(term).or_default();
                let _ = durations.insert(write.record.duration_seconds);
                prop_assert_eq!(durations.len(), 1, "the duration of a term changed");
            }
        }
        prop_assert_ne!(write.record.renew_time, base.record.renew_time);
        prop_assert!(write.record.duration().is_some());
        prop_assert_eq!(
            &write.record,
            &form(&kind, &me, &base.record, &write.record)
        );
        self.awaited = true;
        self.sent.push(SentWrite {
            kind,
            write,
            sent_at: self.now,
            outcome: None,
        });
        Ok(())
    }

    /// S2: belief lies between the accept that the store applied and the renew deadline after the send of the newest
    /// write that it applied, and only work that runs is believed in.
    fn judge(&self) -> Result<(), TestCaseError> {
        let newest = self.holder.tracked.newest;
        let mut open = self.holder.unresolved.iter();
        prop_assert!(
            open.all(|attempt| Some(attempt.base) == newest),
            "a settled attempt is kept"
        );
        if !self.holder.believes(self.now) {
            return Ok(());
        }
        let (Some(belief), Some(known)) = (self.holder.belief(), self.holder.known()) else {
            return Err(TestCaseError::fail("a belief without a term"));
        };
        let term = (known.uid.clone(), belief.term);
        prop_assert_eq!(self.accepted.get(&term), Some(&belief.token));
        prop_assert!(self.working);
        let carried = self.carried.get(&term).copied();
        prop_assert!(
            carried.is_some_and(|until| belief.deadline <= until),
            "belief until {:?}, carried until {:?}",
            belief.deadline,
            carried
        );
        Ok(())
    }

    /// From wherever the history led, a fault-free grant is accepted and the work starts.
    fn recovers(mut self) -> Result<(), TestCaseError> {
        for event in [
            HolderEvent::Timeout,
            HolderEvent::ReadFails,
            HolderEvent::WorkStops,
        ] {
            self.apply_event(&event)?;
        }
        self.holder.request_read();
        self.now = self.now.after(Duration::from_secs(20));
        self.settle()?;
        self.apply_event(&HolderEvent::WorkStops)?;
        self.settle()?;
        if self.store.lease.is_none() {
            self.store.create(LeaseRecord::born(None));
            self.remember();
        }
        if !matches!(self.mode, HolderMode::Plain(_)) {
            self.apply_event(&HolderEvent::Grant("me"))?;
        } else if !self.holder.believes(self.now) {
            let wall = wall_at(self.now);
            self.edit(|lease| lease.released(wall));
        }
        self.apply_event(&HolderEvent::Event(0))?;
        self.settle()?;
        prop_assert_eq!(
            self.holder.believes(self.now),
            !self.closing,
            "{:?}",
            self.holder
        );
        Ok(())
    }

    fn settle(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..20 {
            self.apply_event(&HolderEvent::Step)?;
            self.apply_event(&HolderEvent::Read { late: true })?;
            self.apply_event(&HolderEvent::Reply)?;
            self.apply_event(&HolderEvent::Withdrawn)?;
        }
        Ok(())
    }

    /// A step depends on differences and order alone, and `Renumber` reaches every number.
    fn renumbering_commutes(&self) -> Result<(), TestCaseError> {
        let mut plain = self.holder.clone();
        let mut decision = plain.step(Moment::same(self.now), wall_at(self.now));
        plain.renumber(&mut ShiftNumbers);
        decision.renumber(&mut ShiftNumbers);
        let mut shifted = self.holder.clone();
        shifted.renumber(&mut ShiftNumbers);
        let (mut now, mut wall) = (self.now, wall_at(self.now));
        ShiftNumbers.instant(&mut now);
        ShiftNumbers.lease_time(&mut wall);
        prop_assert_eq!(decision, shifted.step(Moment::same(now), wall));
        prop_assert_eq!(plain, shifted);
        Ok(())
    }
}

struct ShiftNumbers;

impl Renumbering for ShiftNumbers {
    fn instant(&mut self, instant: &mut Instant) {
        *instant = instant.after(Duration::from_secs(77));
    }
    fn lease_time(&mut self, time: &mut Timestamp) {
        *time = Timestamp::from_micros(time.as_micros() + 1_234).unwrap();
    }
    fn version(&mut self, version: &mut ResourceVersion) {
        version.0 += 1000;
    }
    fn term(&mut self, term: &mut Term) {
        term.0 += 3;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn belief_and_writes_keep_to_the_rules(mode in modes(), history in vec(events(), 1..120)) {
        let mut check = HolderCheck::new(mode);
        for event in &history {
            check.apply_event(event)?;
        }
        check.recovers()?;
    }
}
