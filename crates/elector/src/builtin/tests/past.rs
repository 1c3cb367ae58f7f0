//! Locks whose past is not known, or that say too little of themselves; and what a record proves of our own writes.

use super::*;

impl WatchedLock {
    /// The lock is seen with this record.
    fn seen(&mut self, record: LeaseRecord) {
        let snapshot = self.store(record);
        self.shows(snapshot, NewsSource::Watch);
    }

    /// The seconds until we decide, while every write succeeds.
    fn waits(&mut self) -> Option<u64> {
        let ours = self.renew_for(100)?;
        Some(ours.as_secs())
    }
}

fn record(holder: &str, seconds: Option<i32>, renewed: i64) -> LeaseRecord {
    LeaseRecord {
        holder: Identity::new(holder),
        duration_seconds: seconds,
        renew_time: Timestamp::from_micros(renewed),
        term: Term(3),
        ..LeaseRecord::default()
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
        lock.seen(record("elector_a_1", seconds, 1));
        lock.pass(waited * 1_000 - 1);
        assert_eq!(lock.authority(), Authority::Standby, "{seconds:?}");
        lock.pass(1);
        assert_eq!(lock.authority(), Authority::Ours, "{seconds:?}");
    }
}

/// A record that is overwritten is waited out for its whole duration; without one, for the longest in use.
#[test]
fn a_lock_without_a_usable_duration_is_waited_out_for_the_longest_in_use() {
    for (seconds, waited) in [(None, 15), (Some(0), 15), (Some(40), 40), (Some(2), 2)] {
        let mut lock = WatchedLock::replacing("elector_b_2");
        lock.seen(record(APISERVER, seconds, 1));
        assert_eq!(lock.authority(), builtin(), "{seconds:?}");
        assert_eq!(lock.waits(), Some(waited), "{seconds:?}");

        let mut lock = WatchedLock::respecting();
        lock.seen(record(APISERVER, seconds, 1));
        lock.pass(waited * 1_000 - 1);
        assert_eq!(lock.authority(), builtin(), "{seconds:?}");
        lock.pass(1);
        assert_eq!(lock.authority(), Authority::Ours, "{seconds:?}");
    }
}

/// A watch that lags tells of the built-in controller after we have replaced it.
#[test]
fn an_event_from_before_our_write_brings_no_holder_back() {
    let mut lock = WatchedLock::replacing("elector_b_2");
    lock.seen(record(APISERVER, Some(15), 1));
    let before = lock.lock.clone().unwrap();
    assert_eq!(lock.perform(), Some("take"));
    let ours = lock.lock.clone();
    lock.shows(before, NewsSource::Watch);
    assert_eq!(
        lock.authority(),
        Authority::Standby,
        "taken, and waited for"
    );
    assert_eq!(lock.builtin.version(), ours.map(|lock| lock.version));
    assert_eq!(lock.perform(), None, "nothing is to be taken again");
}

/// The stop-watch belongs to the record and its uid (R4): a label prolongs nothing, and a new lock is a new one.
#[test]
fn the_stop_watch_of_a_lock_is_that_of_its_record() {
    let mut lock = WatchedLock::respecting();
    lock.seen(record(APISERVER, Some(15), 1));
    lock.pass(10_000);
    lock.seen(record(APISERVER, Some(15), 1));
    lock.pass(5_000);
    assert_eq!(
        lock.authority(),
        Authority::Ours,
        "only a label was changed"
    );

    let mut lock = WatchedLock::respecting();
    lock.seen(record(APISERVER, Some(15), 1));
    lock.pass(10_000);
    let mut other = lock.store(record(APISERVER, Some(15), 1));
    other.uid = Uid::new("another lock");
    lock.shows(other, NewsSource::Watch);
    lock.pass(14_999);
    assert_eq!(lock.authority(), builtin(), "deleted and made anew");
    lock.pass(1);
    assert_eq!(lock.authority(), Authority::Ours);
}

/// Another elector keeps the built-in controller quiet for as long as its record is fresh, and no longer.
#[test]
fn a_lock_of_another_elector_that_has_expired_quiets_no_controller() {
    let mut lock = WatchedLock::replacing("elector_b_2");
    lock.held_by("elector_a_1");
    lock.pass(3_000);
    for _ in 0..5 {
        lock.pass(3_000);
        lock.held_by("elector_a_1");
    }
    assert_eq!(lock.authority(), Authority::Ours);
    // It dies, and our own writes are refused.
    for _ in 0..30 {
        lock.pass(500);
        if lock.step().0.is_some() {
            let now = Moment::same(lock.now());
            let holder = lock.holder.as_mut().unwrap();
            holder.handle_outcome(now, LeaseOutcome::Refused);
        }
    }
    assert_eq!(lock.authority(), Authority::Standby);
}

/// A record that could be taken over by others sooner is taken over sooner.
#[test]
fn another_elector_is_waited_for_no_longer_than_its_record_lasts() {
    for (seconds, missed) in [
        (Some(2), 2_000),
        (Some(5), 5_000),
        (Some(60), 5_000),
        (None, 5_000),
    ] {
        let mut lock = WatchedLock::replacing("elector_b_2");
        lock.seen(record("elector_a_1", seconds, 1));
        lock.pass(missed - 1);
        assert_eq!(lock.perform(), None, "{seconds:?}");
        let wake = lock.wake_at();
        lock.pass(1);
        assert_eq!(wake, lock.now(), "{seconds:?}");
        assert_eq!(lock.perform(), Some("take"), "{seconds:?}");
    }
}

#[test]
fn beside_an_elector_that_keeps_the_lock_one_that_respects_it_decides_too() {
    let mut lock = WatchedLock::respecting();
    lock.held_by("elector_a_1");
    lock.pass(15_000);
    assert_eq!(lock.authority(), Authority::Ours, "any number may (R17)");
}

/// Ours is what we wrote, told by its renewTime (R8), and not every record that names us.
#[test]
fn a_lock_that_names_us_by_another_hand_is_not_ours() {
    let mut lock = WatchedLock::replacing("elector_b_2");
    lock.listed_empty();
    lock.perform();
    lock.perform();
    assert_eq!(lock.authority(), Authority::Ours);
    lock.seen(record("elector_b_2", Some(15), 7));
    assert_eq!(lock.step().0, None);
    assert_eq!(lock.authority(), Authority::Standby);
}
