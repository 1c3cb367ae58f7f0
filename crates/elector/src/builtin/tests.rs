//! The authority while the built-in controller comes, stays, crashes, is overwritten. The hold of the lock is decided by
//! `protocol::holder`, and stands here as a word of its own.

use elector_protocol::{Term, Timestamp, Uid};

use super::*;

const LONGEST: Duration = Duration::from_secs(15);
const APISERVER: &str = "node-1_4f0c7f1e-0000-0000-0000-000000000000";
const ME: &str = "elector_b_2";
const OTHER: &str = "elector_a_1";

/// A lock in a store, and an elector that watches it and perhaps holds it.
struct WatchedLock {
    builtin: BuiltinLock,
    holds: bool,
    lock: Option<LeaseSnapshot>,
    version: u64,
    now: Instant,
}

impl WatchedLock {
    fn respecting() -> Self {
        Self::of(BuiltinLock::respected(LONGEST))
    }

    fn replacing() -> Self {
        Self::of(BuiltinLock::replaced(id(ME), LONGEST))
    }

    fn of(builtin: BuiltinLock) -> Self {
        Self {
            builtin,
            holds: false,
            lock: None,
            version: 10,
            now: Instant::from_epoch(Duration::from_secs(100)),
        }
    }

    /// One that respects the lock of another elector, after the built-in controller has certainly stopped.
    fn quiet() -> Self {
        let mut lock = Self::respecting();
        lock.held_by(OTHER);
        lock.pass(15_000);
        lock.held_by(OTHER);
        assert_eq!(lock.authority(), Authority::Ours);
        lock
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now.after(Duration::from_millis(millis));
    }

    fn authority(&self) -> Authority {
        self.builtin.authority(self.now, self.holds)
    }

    fn show(&mut self, record: LeaseRecord, source: NewsSource) {
        self.version += 1;
        let snapshot = LeaseSnapshot {
            uid: Uid::new("lock"),
            version: ResourceVersion(self.version),
            record,
            overrides: elector_protocol::OperatorOverrides::default(),
        };
        self.lock = Some(snapshot.clone());
        self.builtin.handle_lock(self.now, snapshot, source);
    }

    fn held_by(&mut self, holder: &str) {
        self.show(record(holder, Some(15), self.now, 3), NewsSource::Watch);
    }

    fn gone(&mut self, version: Option<u64>) {
        self.builtin
            .handle_gone(self.now, version.map(ResourceVersion));
    }

    /// This elector overwrites the newest revision, and believes that it holds the lock.
    fn take(&mut self, source: NewsSource) {
        let judged = self.lock.as_ref().unwrap().version;
        let taken = LeaseRecord {
            token: Some(Token(judged)),
            ..record(ME, Some(15), self.now, 4)
        };
        self.show(taken, source);
        self.holds = true;
    }

    /// The seconds until this elector decides, if nothing more is seen.
    fn decides_after(&mut self) -> Option<u64> {
        let start = self.now;
        while self.authority() != Authority::Ours {
            self.now = self.builtin.wake_at(self.now)?;
        }
        Some(self.now.since(start).as_secs())
    }
}

fn id(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

fn record(holder: &str, seconds: Option<i32>, renewed: Instant, term: i32) -> LeaseRecord {
    let micros = i64::try_from(renewed.since_epoch().as_micros()).unwrap();
    LeaseRecord {
        holder: Identity::new(holder),
        duration_seconds: seconds,
        renew_time: Timestamp::from_micros(micros),
        term: Term(term),
        ..LeaseRecord::default()
    }
}

fn builtin() -> Authority {
    Authority::Builtin(id(APISERVER))
}

#[test]
fn no_elector_decides_before_the_lock_was_listed() {
    for (mut lock, listed) in [
        (WatchedLock::respecting(), Authority::Ours),
        (WatchedLock::replacing(), Authority::Standby),
    ] {
        assert_eq!(lock.authority(), Authority::Unknown);
        // Without the gate there is no lock.
        lock.gone(None);
        assert_eq!(lock.authority(), listed);
    }
}

#[test]
fn a_lock_that_is_missing_is_made_and_taken_without_a_wait() {
    let mut lock = WatchedLock::replacing();
    lock.gone(None);
    lock.show(LeaseRecord::born(None), NewsSource::OwnWrite);
    assert_eq!(lock.authority(), Authority::Standby);
    lock.take(NewsSource::OwnWrite);
    assert_eq!(lock.authority(), Authority::Ours);
    // The record names us still, and the belief is over.
    lock.holds = false;
    assert_eq!(lock.authority(), Authority::Standby);
}

#[test]
fn a_fresh_lock_is_respected_until_it_expires_by_our_own_stop_watch() {
    let mut lock = WatchedLock::respecting();
    lock.held_by(APISERVER);
    lock.pass(14_000);
    lock.held_by(APISERVER);
    lock.pass(14_999);
    assert_eq!(lock.authority(), builtin());
    let wake = lock.now.after(Duration::from_millis(1));
    assert_eq!(lock.builtin.wake_at(lock.now), Some(wake));
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
        lock.gone(Some(1));
        assert_eq!(lock.authority(), builtin(), "a deletion of long ago");
        if deleted {
            lock.gone(Some(99));
        } else {
            lock.show(record("", Some(1), lock.now, 3), NewsSource::Watch);
        }
        lock.pass(12_999);
        assert_eq!(lock.authority(), Authority::Standby);
        lock.pass(1);
        assert_eq!(lock.authority(), Authority::Ours);
    }
}

/// A record that is overwritten is waited out for its whole duration; without one, for the longest in use.
#[test]
fn the_built_in_controller_is_waited_out_whether_it_is_replaced_or_respected() {
    for (seconds, waited) in [
        (Some(15), 15),
        (None, 15),
        (Some(0), 15),
        (Some(40), 40),
        (Some(2), 2),
    ] {
        for mut lock in [WatchedLock::respecting(), WatchedLock::replacing()] {
            lock.show(record(APISERVER, seconds, lock.now, 3), NewsSource::Watch);
            assert_eq!(lock.authority(), builtin(), "{seconds:?}");
            if matches!(lock.builtin.mode, LockMode::Replace(_)) {
                lock.pass(1000);
                lock.take(NewsSource::OwnWrite);
                assert_eq!(lock.authority(), Authority::Standby);
            }
            assert_eq!(lock.decides_after(), Some(waited), "{seconds:?}");
            lock.held_by(APISERVER);
            assert_eq!(lock.authority(), builtin(), "lost");
        }
    }
}

/// The holder that another elector replaced is not known, nor when: it may have been a moment ago. The replaced one
/// stops within the duration of its own record, and no record is longer than the longest in use.
#[test]
fn a_lock_that_another_elector_has_at_first_sight_is_waited_for_as_long_as_any_may_be_in_use() {
    for (seconds, waited) in [
        (Some(2), 15),
        (Some(15), 15),
        (Some(60), 60),
        (None, 15),
        (Some(0), 15),
    ] {
        let mut lock = WatchedLock::respecting();
        lock.show(record(OTHER, seconds, lock.now, 3), NewsSource::Watch);
        assert_eq!(lock.decides_after(), Some(waited), "{seconds:?}");
    }
}

/// Another elector keeps the built-in controller quiet for as long as its record is fresh, and no longer.
#[test]
fn beside_an_elector_that_keeps_the_lock_others_decide_too() {
    assert_eq!(WatchedLock::quiet().authority(), Authority::Ours);
    let mut lock = WatchedLock::replacing();
    lock.held_by(OTHER);
    for _ in 0..5 {
        lock.pass(3_000);
        lock.held_by(OTHER);
    }
    assert_eq!(lock.authority(), Authority::Ours, "any number may (R17)");
    lock.pass(5_000);
    lock.take(NewsSource::OwnWrite);
    assert_eq!(lock.authority(), Authority::Ours, "it has been quiet");
    lock.held_by(OTHER);
    lock.holds = false;
    lock.pass(15_000);
    assert_eq!(lock.authority(), Authority::Standby);
}

/// A watch that lags brings the built-in controller's record after we have replaced it.
#[test]
fn an_event_from_before_our_write_brings_no_holder_back() {
    let mut lock = WatchedLock::replacing();
    lock.held_by(APISERVER);
    let before = lock.lock.clone().unwrap();
    lock.take(NewsSource::OwnWrite);
    lock.builtin
        .handle_lock(lock.now, before, NewsSource::Watch);
    assert_eq!(lock.authority(), Authority::Standby);
    assert_eq!(lock.builtin.version(), Some(ResourceVersion(lock.version)));
}

/// The stop-watch belongs to the record and its uid (R4): a label prolongs nothing, and a new lock is a new one.
#[test]
fn the_stop_watch_of_a_lock_is_that_of_its_record() {
    for (uid, waited) in [("lock", 5), ("another lock", 15)] {
        let mut lock = WatchedLock::respecting();
        lock.held_by(APISERVER);
        lock.pass(10_000);
        let mut again = lock.lock.clone().unwrap();
        (again.uid, again.version) = (Uid::new(uid), ResourceVersion(99));
        lock.builtin.handle_lock(lock.now, again, NewsSource::Watch);
        assert_eq!(lock.decides_after(), Some(waited), "{uid}");
    }
}

/// A gap of the watch may hide a term of the built-in controller between two of electors.
#[test]
fn a_lock_after_a_gap_may_have_followed_the_built_in_controllers() {
    for (holder, term, hidden) in [(OTHER, 3, false), (OTHER, 4, true), (ME, 4, true)] {
        let mut lock = WatchedLock::quiet();
        lock.pass(3_000);
        let listed = record(holder, Some(15), lock.now, term);
        lock.show(listed, NewsSource::List);
        let waited = if hidden { 15 } else { 0 };
        assert_eq!(lock.decides_after(), Some(waited), "{holder} {term}");
    }
    let mut lock = WatchedLock::respecting();
    lock.gone(None);
    assert_eq!(lock.authority(), Authority::Ours);
    lock.show(record(OTHER, Some(15), lock.now, 1), NewsSource::List);
    assert_eq!(lock.authority(), Authority::Standby, "it appeared in a gap");
}

/// Compare-and-swap proves that nothing came between what we knew and what we wrote.
#[test]
fn a_write_of_our_own_that_a_list_shows_hides_nothing() {
    let mut lock = WatchedLock::replacing();
    lock.held_by(OTHER);
    lock.pass(15_000);
    lock.held_by(OTHER);
    lock.pass(5_000);
    // The reply is lost.
    lock.take(NewsSource::List);
    assert_eq!(lock.authority(), Authority::Ours);
    // One over a revision that was not known may have replaced the controller.
    let listed = record(ME, Some(15), lock.now, 5);
    lock.show(listed, NewsSource::List);
    assert_eq!(lock.authority(), Authority::Standby);
}

#[test]
fn api_servers_are_distinguished_from_electors_by_name() {
    for name in [
        APISERVER,
        "elector_4f0c7f1e-0000-0000-0000-000000000000",
        "elector",
    ] {
        assert!(is_builtin(&id(name)), "{name}");
    }
    assert!(!is_builtin(&Identity::of_elector("pod-1", 7)));
}
