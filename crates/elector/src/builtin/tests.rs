//! The authority while the built-in controller comes, stays, crashes, is overwritten.

use elector_protocol::{Term, Uid};

use super::*;

mod gap;
mod past;

const LONGEST: Duration = Duration::from_secs(15);

/// A lock in a store, and an elector that watches it.
struct WatchedLock {
    builtin: BuiltinLock,
    lock: Option<LeaseSnapshot>,
    version: u64,
    now: Duration,
}

impl WatchedLock {
    fn respecting() -> Self {
        Self::with(BuiltinLock::respected(LONGEST))
    }

    fn replacing(me: &str) -> Self {
        let me = Identity::new(me).unwrap();
        Self::with(BuiltinLock::replaced(
            me,
            CandidateTiming::default(),
            LONGEST,
        ))
    }

    fn with(builtin: BuiltinLock) -> Self {
        Self {
            builtin,
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
        self.builtin.authority(self.now())
    }

    fn store(&mut self, record: LeaseRecord) -> LeaseSnapshot {
        self.version += 1;
        let snapshot = LeaseSnapshot {
            uid: Uid::new("lock"),
            version: ResourceVersion(self.version),
            record,
        };
        self.lock = Some(snapshot.clone());
        snapshot
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
        self.builtin
            .handle_lock(self.now(), snapshot, NewsSource::Watch);
    }

    /// The first list, without a lock.
    fn listed_empty(&mut self) {
        self.builtin.handle_gone(None);
    }

    /// Performs the write that is due, and says what it was.
    fn perform(&mut self) -> Option<&'static str> {
        let act = self.builtin.due_write(self.now(), self.wall())?;
        let (record, what) = match act {
            LockWrite::Create(record) => (record, "create"),
            LockWrite::Replace(write) => {
                let judged = self.lock.as_ref().unwrap();
                assert_eq!((&write.uid, write.version), (&judged.uid, judged.version));
                let taken = judged.record.holder != write.record.holder;
                (write.record, if taken { "take" } else { "renew" })
            }
        };
        let snapshot = self.store(record);
        self.builtin
            .handle_lock(self.now(), snapshot, NewsSource::OwnWrite);
        self.builtin.handle_outcome(self.now(), true);
        Some(what)
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
            let wake = self.builtin.wake_at(self.now()).unwrap().since_epoch();
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
            lock.builtin.handle_gone(Some(ResourceVersion(99)));
        } else {
            let released = lock.lock.clone().unwrap().record.released(lock.wall());
            let snapshot = lock.store(released);
            lock.builtin
                .handle_lock(lock.now(), snapshot, NewsSource::Watch);
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
    lock.builtin.handle_gone(Some(ResourceVersion(1)));
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

#[test]
fn a_lock_that_cannot_be_renewed_is_not_ours_after_its_deadline() {
    let mut lock = WatchedLock::replacing("elector_a_1");
    lock.listed_empty();
    lock.perform();
    lock.perform();
    lock.pass(4000);
    assert!(lock.builtin.due_write(lock.now(), lock.wall()).is_some());
    assert_eq!(
        lock.builtin.due_write(lock.now(), lock.wall()),
        None,
        "one write at a time"
    );
    lock.pass(1000);
    lock.builtin.handle_outcome(lock.now(), false);
    assert_eq!(
        lock.builtin.due_write(lock.now(), lock.wall()),
        None,
        "a pause after a failure"
    );
    lock.pass(250);
    assert!(lock.builtin.due_write(lock.now(), lock.wall()).is_some());
    lock.builtin.handle_outcome(lock.now(), false);
    lock.pass(4749);
    assert_eq!(lock.authority(), Authority::Ours);
    lock.pass(1);
    assert_eq!(lock.authority(), Authority::Standby);
    assert_eq!(lock.builtin.release(lock.now(), lock.wall()), None);
}

#[test]
fn a_write_whose_reply_was_lost_counts_from_its_send_once_it_is_seen() {
    let mut lock = WatchedLock::replacing("elector_a_1");
    lock.listed_empty();
    lock.perform();
    let Some(LockWrite::Replace(write)) = lock.builtin.due_write(lock.now(), lock.wall()) else {
        panic!("the lock is to be taken");
    };
    let snapshot = lock.store(write.record);
    lock.pass(2000);
    lock.builtin.handle_outcome(lock.now(), false);
    assert_eq!(lock.authority(), Authority::Standby);
    lock.builtin
        .handle_lock(lock.now(), snapshot, NewsSource::Watch);
    assert_eq!(lock.authority(), Authority::Ours);
    lock.pass(8000);
    assert_eq!(lock.authority(), Authority::Standby);
}

#[test]
fn an_earlier_write_that_landed_after_all_still_counts() {
    let mut lock = WatchedLock::replacing("elector_a_1");
    lock.listed_empty();
    lock.perform();
    let Some(LockWrite::Replace(first)) = lock.builtin.due_write(lock.now(), lock.wall()) else {
        panic!("the lock is to be taken");
    };
    lock.pass(2000);
    lock.builtin.handle_outcome(lock.now(), false);
    lock.pass(250);
    assert!(lock.builtin.due_write(lock.now(), lock.wall()).is_some());
    // The second one conflicts with the first, which the watch shows now.
    lock.builtin.handle_outcome(lock.now(), false);
    let snapshot = lock.store(first.record);
    lock.builtin
        .handle_lock(lock.now(), snapshot, NewsSource::Watch);
    assert_eq!(lock.authority(), Authority::Ours);
    lock.pass(7749);
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
    let wake = lock.builtin.wake_at(lock.now());
    assert_eq!(wake, Some(Instant::from_epoch(due)));
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
        lock.now = lock.builtin.wake_at(lock.now()).unwrap().since_epoch();
    }
    let taken = lock.now - renewed;
    assert!(taken < Duration::from_secs(15), "taken after {taken:?}");
    // What the one before replaced is as unknown as ever.
    let waited = lock.now - seen;
    let ours = lock.renew_for(30).map(|after| waited + after);
    assert_eq!(ours, Some(Duration::from_secs(15)));
}

#[test]
fn the_lock_is_let_go_only_while_it_is_ours() {
    let mut lock = WatchedLock::replacing("elector_a_1");
    lock.listed_empty();
    assert_eq!(lock.builtin.release(lock.now(), lock.wall()), None);
    lock.perform();
    lock.perform();
    let write = lock.builtin.release(lock.now(), lock.wall()).unwrap();
    assert_eq!(
        (write.record.holder, write.record.duration_seconds),
        (None, Some(1))
    );
    lock.held_by("elector_b_2");
    assert_eq!(lock.builtin.release(lock.now(), lock.wall()), None);
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
    assert!(!is_builtin(&lock_identity("pod-1", 7)));
}
