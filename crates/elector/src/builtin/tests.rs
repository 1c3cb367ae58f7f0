//! The authority while the built-in controller comes, stays, crashes, is overwritten.

use std::sync::Arc;

use elector_protocol::holder::{
    Acquisition, Effect, Holder, HolderConfig, HolderMode, LeaseEvent, LeaseOutcome,
    TakeoverPolicy, WriteKind,
};
use elector_protocol::{CandidateTiming, Moment, Term, Timestamp, Uid};

use super::*;

mod gap;
mod past;

const LONGEST: Duration = Duration::from_secs(15);

/// A lock in a store, and an elector that watches it and perhaps holds it.
struct WatchedLock {
    builtin: BuiltinLock,
    holder: Option<Holder>,
    lock: Option<LeaseSnapshot>,
    version: u64,
    now: Duration,
}

impl WatchedLock {
    fn respecting() -> Self {
        Self::with(BuiltinLock::respected(LONGEST), None)
    }

    fn replacing(me: &str) -> Self {
        let identity = Identity::new(me).unwrap();
        let config = HolderConfig {
            identity: identity.clone(),
            timing: CandidateTiming::default(),
            mode: HolderMode::Plain(Acquisition {
                absent_lease_grace: Some(Duration::ZERO),
                takeover: TakeoverPolicy::AllButElectors,
                ..Acquisition::plain()
            }),
        };
        let holder = Holder::new(Arc::new(config));
        Self::with(BuiltinLock::replaced(identity, LONGEST), Some(holder))
    }

    fn with(builtin: BuiltinLock, holder: Option<Holder>) -> Self {
        Self {
            builtin,
            holder,
            lock: None,
            version: 10,
            now: Duration::from_secs(100),
        }
    }

    fn now(&self) -> Instant {
        Instant::from_epoch(self.now)
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_micros(i64::try_from(self.now.as_micros()).unwrap()).unwrap()
    }

    fn pass(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    fn authority(&self) -> Authority {
        let believes = |holder: &Holder| holder.believes(self.now());
        let holds = self.holder.as_ref().is_some_and(believes);
        self.builtin.authority(self.now(), holds)
    }

    fn store(&mut self, record: LeaseRecord) -> LeaseSnapshot {
        self.version += 1;
        let snapshot = LeaseSnapshot {
            uid: Uid::new("lock"),
            version: ResourceVersion(self.version),
            record,
            word: elector_protocol::OperatorWord::default(),
        };
        self.lock = Some(snapshot.clone());
        snapshot
    }

    /// The watch or a list shows a revision.
    fn shows(&mut self, snapshot: LeaseSnapshot, source: NewsSource) {
        self.builtin
            .handle_lock(self.now(), snapshot.clone(), source);
        let now = Moment::same(self.now());
        if let Some(holder) = &mut self.holder {
            holder.handle_event(now, LeaseEvent::Seen(snapshot, source));
        }
    }

    /// Another process writes the lock, and the watch shows it.
    fn held_by(&mut self, holder: &str) {
        let record = LeaseRecord {
            holder: Identity::new(holder),
            duration_seconds: Some(15),
            renew_time: Some(self.wall()),
            term: Term(3),
            ..LeaseRecord::default()
        };
        let snapshot = self.store(record);
        self.shows(snapshot, NewsSource::Watch);
    }

    /// The first list, without a lock.
    fn listed_empty(&mut self) {
        self.builtin.handle_gone(self.now(), None);
        let now = Moment::same(self.now());
        if let Some(holder) = &mut self.holder {
            holder.handle_event(now, LeaseEvent::Absent(ResourceVersion(self.version)));
        }
    }

    /// The request that is due, and when to look again.
    fn step(&mut self) -> (Option<Effect>, Option<Instant>) {
        let (now, wall) = (Moment::same(self.now()), self.wall());
        let Some(holder) = &mut self.holder else {
            return (None, None);
        };
        loop {
            let decision = holder.step(now, wall);
            let mut request = None;
            let mut stopped = false;
            for effect in decision.effects {
                match effect {
                    Effect::Stop(_) => {
                        holder.handle_work_stopped(now);
                        stopped = true;
                    }
                    Effect::Start { .. } | Effect::Ended(_) => {}
                    effect => request = Some(effect),
                }
            }
            if !stopped {
                return (request, decision.wake_at);
            }
        }
    }

    /// Performs the write that is due, and says what it was.
    fn perform(&mut self) -> Option<&'static str> {
        let (record, what) = match self.step().0? {
            Effect::Create(record) => (record, "create"),
            Effect::Write { kind, write } => {
                let judged = self.lock.as_ref().unwrap();
                assert_eq!((&write.uid, write.version), (&judged.uid, judged.version));
                let renewal = kind == WriteKind::Renew;
                (write.record, if renewal { "renew" } else { "take" })
            }
            Effect::Read => {
                let (now, reply) = (Moment::same(self.now()), self.lock.clone());
                if let Some(holder) = &mut self.holder {
                    holder.handle_read(now, Ok(reply));
                }
                return self.perform();
            }
            other => panic!("{other:?}"),
        };
        let snapshot = self.store(record);
        let (at, now) = (self.now(), Moment::same(self.now()));
        self.builtin
            .handle_lock(at, snapshot.clone(), NewsSource::OwnWrite);
        if let Some(holder) = &mut self.holder {
            holder.handle_outcome(now, LeaseOutcome::Done(snapshot.clone()));
        }
        self.shows(snapshot, NewsSource::Watch);
        if what != "create" {
            // A term that was taken begins.
            assert_eq!(self.step().0, None);
        }
        Some(what)
    }

    /// When there is something to do next.
    fn wake_at(&mut self) -> Instant {
        let (request, wake) = self.step();
        assert_eq!(request, None, "it is due now");
        let wakes = [wake, self.builtin.wake_at(self.now())];
        wakes.into_iter().flatten().min().unwrap()
    }

    /// Keeps the lock renewed for so long, and says when the authority was first ours.
    fn renew_for(&mut self, seconds: u64) -> Option<Duration> {
        let (start, end) = (self.now, self.now + Duration::from_secs(seconds));
        let mut ours = None;
        while self.now < end {
            self.perform();
            if self.authority() == Authority::Ours {
                ours.get_or_insert(self.now - start);
            }
            let wake = self.wake_at().since_epoch();
            assert!(wake > self.now);
            self.now = wake.min(end);
        }
        ours
    }
}

const APISERVER: &str = "node-1_4f0c7f1e-0000-0000-0000-000000000000";

fn builtin() -> Authority {
    Authority::Builtin(Identity::new(APISERVER).unwrap())
}

#[test]
fn no_elector_decides_before_the_lock_was_listed() {
    assert_eq!(WatchedLock::respecting().authority(), Authority::Unknown);
    let mut lock = WatchedLock::replacing("elector_a_1");
    assert_eq!(lock.authority(), Authority::Unknown);
    assert_eq!(lock.perform(), None);
}

#[test]
fn without_the_gate_there_is_no_lock_and_nothing_to_wait_for() {
    let mut lock = WatchedLock::respecting();
    lock.listed_empty();
    assert_eq!(lock.authority(), Authority::Ours);
    assert_eq!(lock.perform(), None);
}

#[test]
fn a_fresh_lock_is_respected_until_it_expires_by_our_own_stop_watch() {
    let mut lock = WatchedLock::respecting();
    lock.held_by(APISERVER);
    assert_eq!(lock.authority(), builtin());
    lock.pass(14_000);
    assert_eq!(lock.authority(), builtin());
    lock.held_by(APISERVER);
    lock.pass(14_999);
    assert_eq!(lock.authority(), builtin());
    assert_eq!(
        lock.builtin.wake_at(lock.now()).unwrap().since(lock.now()),
        Duration::from_millis(1)
    );
    lock.pass(1);
    assert_eq!(lock.authority(), Authority::Ours);
    // It comes back.
    lock.held_by(APISERVER);
    assert_eq!(lock.authority(), builtin());
}

#[test]
fn a_released_or_deleted_lock_is_waited_for_as_if_it_had_expired() {
    for deleted in [false, true] {
        let mut lock = WatchedLock::respecting();
        lock.held_by(APISERVER);
        lock.pass(2000);
        if deleted {
            lock.builtin
                .handle_gone(lock.now(), Some(ResourceVersion(99)));
        } else {
            let released = lock.lock.clone().unwrap().record.released(lock.wall());
            let snapshot = lock.store(released);
            lock.shows(snapshot, NewsSource::Watch);
        }
        assert_eq!(lock.authority(), Authority::Standby);
        lock.pass(12_999);
        assert_eq!(lock.authority(), Authority::Standby);
        lock.pass(1);
        assert_eq!(lock.authority(), Authority::Ours);
    }
}

#[test]
fn a_late_deletion_event_does_not_hide_a_newer_lock() {
    let mut lock = WatchedLock::respecting();
    lock.held_by(APISERVER);
    lock.builtin
        .handle_gone(lock.now(), Some(ResourceVersion(1)));
    assert_eq!(lock.authority(), builtin());
}

#[test]
fn a_live_lock_is_overwritten_and_held_for_its_whole_duration_before_anything_is_decided() {
    let mut lock = WatchedLock::replacing("elector_a_1");
    lock.held_by(APISERVER);
    lock.pass(1000);
    assert_eq!(lock.perform(), Some("take"));
    let record = lock.lock.clone().unwrap().record;
    assert_eq!((record.duration_seconds, record.term), (Some(15), Term(4)));
    assert_eq!(lock.authority(), Authority::Standby);
    assert_eq!(lock.renew_for(40), Some(Duration::from_secs(15)));
    assert_eq!(lock.authority(), Authority::Ours);
}

#[test]
fn without_the_gate_the_lock_is_created_unheld_then_taken() {
    let mut lock = WatchedLock::replacing("elector_a_1");
    lock.listed_empty();
    assert_eq!(lock.authority(), Authority::Standby);
    assert_eq!(lock.perform(), Some("create"));
    assert_eq!(lock.lock.as_ref().unwrap().record.holder, None);
    assert_eq!(lock.perform(), Some("take"));
    assert_eq!(lock.authority(), Authority::Ours);
    assert_eq!(lock.perform(), None);
    lock.pass(3334);
    assert_eq!(lock.perform(), Some("renew"));
}

/// The authority ends with the belief, although the record still names us.
#[test]
fn a_lock_that_cannot_be_renewed_gives_no_authority_after_its_deadline() {
    let mut lock = WatchedLock::replacing("elector_a_1");
    lock.listed_empty();
    lock.perform();
    lock.perform();
    lock.pass(9_999);
    assert_eq!(lock.authority(), Authority::Ours);
    lock.pass(1);
    assert_eq!(lock.authority(), Authority::Standby);
}

#[test]
fn losing_the_lock_stops_decisions_at_once_and_it_is_taken_again() {
    let mut lock = WatchedLock::replacing("elector_a_1");
    lock.listed_empty();
    lock.perform();
    lock.perform();
    assert_eq!(lock.authority(), Authority::Ours);
    lock.held_by(APISERVER);
    assert_eq!(lock.authority(), builtin());
    assert_eq!(lock.perform(), Some("take"));
    assert_eq!(lock.renew_for(30), Some(Duration::from_secs(15)));
}

#[test]
fn electors_do_not_fight_for_the_lock_and_the_second_takes_over_when_the_first_dies() {
    let mut lock = WatchedLock::replacing("elector_b_2");
    lock.held_by("elector_a_1");
    assert_eq!(lock.perform(), None);
    assert_eq!(
        lock.authority(),
        Authority::Standby,
        "whom the other replaced, and when, is not known"
    );
    // One in three renewals is late.
    for pause in [3334, 3334, 4999, 3334] {
        lock.pass(pause);
        assert_eq!(lock.perform(), None);
        lock.held_by("elector_a_1");
    }
    assert_eq!(lock.authority(), Authority::Ours, "both may decide (R17)");
    lock.pass(4999);
    assert_eq!(lock.perform(), None);
    let due = lock.now + Duration::from_millis(1);
    assert_eq!(lock.wake_at(), Instant::from_epoch(due));
    lock.pass(1);
    assert_eq!(lock.perform(), Some("take"));
    assert_eq!(
        lock.authority(),
        Authority::Ours,
        "the built-in one has been quiet all along"
    );
}

/// The built-in controller takes the lock when it has seen it unchanged for 15 s. It saw the last renewal when it was
/// written, an elector that starts afterwards only later.
#[test]
fn an_elector_that_starts_after_a_crash_takes_the_lock_before_the_builtin_controller_can() {
    let mut lock = WatchedLock::replacing("elector_b_2");
    let renewed = lock.now;
    lock.pass(9_900);
    lock.held_by("elector_a_1");
    assert_eq!(lock.perform(), None, "it may be alive");
    let seen = lock.now;
    while lock.perform().is_none() {
        lock.now = lock.wake_at().since_epoch();
    }
    let taken = lock.now - renewed;
    assert!(taken < Duration::from_secs(15), "taken after {taken:?}");
    // The holder before that one is as unknown as ever.
    let waited = lock.now - seen;
    let ours = lock.renew_for(30).map(|after| waited + after);
    assert_eq!(ours, Some(Duration::from_secs(15)));
}

#[test]
fn api_servers_are_told_from_electors_by_name() {
    let stranger = |text: &str| is_builtin(&Identity::new(text).unwrap());
    assert!(stranger(APISERVER));
    assert!(
        stranger("elector_4f0c7f1e-0000-0000-0000-000000000000"),
        "a host named elector"
    );
    assert!(stranger("elector"));
    assert!(!is_builtin(&Identity::of_elector("pod-1", 7)));
}
