//! Terms of the lock that a gap of the watch may hide: one of the built-in controller between two of electors.

use super::*;

impl WatchedLock {
    /// A list shows the lock, held by an elector in this term.
    fn lists(&mut self, holder: &str, term: i32) {
        let record = LeaseRecord {
            holder: Identity::new(holder),
            duration_seconds: Some(15),
            renew_time: Some(self.wall()),
            term: Term(term),
            ..LeaseRecord::default()
        };
        let snapshot = self.store(record);
        self.shows(snapshot, NewsSource::List);
    }

    /// The lock of an elector has been held for so long that the built-in controller is quiet.
    fn quiet() -> Self {
        let mut lock = Self::respecting();
        lock.held_by("elector_a_1");
        lock.pass(15_000);
        lock.held_by("elector_a_1");
        assert_eq!(lock.authority(), Authority::Ours);
        lock
    }
}

#[test]
fn a_new_term_after_a_gap_may_have_followed_one_of_the_builtin_controller() {
    for (holder, term) in [("elector_a_1", 4), ("elector_b_2", 4)] {
        let mut lock = WatchedLock::quiet();
        lock.pass(3_000);
        lock.lists(holder, term);
        assert_eq!(lock.authority(), Authority::Standby, "{holder}");
        lock.pass(14_999);
        assert_eq!(lock.authority(), Authority::Standby, "{holder}");
    }
}

#[test]
fn a_lock_that_appears_in_a_gap_may_have_been_the_builtin_controllers() {
    let mut lock = WatchedLock::respecting();
    lock.listed_empty();
    assert_eq!(lock.authority(), Authority::Ours);
    lock.lists("elector_a_1", 1);
    assert_eq!(lock.authority(), Authority::Standby);
}

#[test]
fn the_same_term_after_a_gap_was_there_throughout() {
    let mut lock = WatchedLock::quiet();
    lock.pass(3_000);
    lock.lists("elector_a_1", 3);
    assert_eq!(lock.authority(), Authority::Ours);
}

/// Compare-and-swap proves that nothing came between what we knew and what we wrote.
#[test]
fn a_write_of_our_own_that_a_list_shows_hides_nothing() {
    let mut lock = WatchedLock::replacing("elector_b_2");
    lock.held_by("elector_a_1");
    lock.pass(15_000);
    lock.held_by("elector_a_1");
    lock.pass(5_000);
    let (Some(Effect::Write { write, .. }), _) = lock.step() else {
        panic!("the lock is taken over");
    };
    // The reply is lost.
    let now = Moment::same(lock.now());
    if let Some(holder) = &mut lock.holder {
        holder.handle_outcome(now, LeaseOutcome::Unknown);
    }
    let snapshot = lock.store(write.record);
    lock.shows(snapshot, NewsSource::List);
    assert_eq!(lock.step().0, None);
    assert_eq!(lock.authority(), Authority::Ours);
}
