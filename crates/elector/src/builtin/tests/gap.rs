//! What a gap of the watch may hide of the lock: a term of the built-in controller between two terms of electors.

use super::*;

impl World {
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
        self.builtin
            .handle_lock(self.now(), snapshot, NewsSource::List);
    }

    /// The lock of an elector has been held for so long that the built-in controller is quiet.
    fn quiet() -> Self {
        let mut world = Self::respecting();
        world.held_by("elector_a_1");
        world.pass(15_000);
        world.held_by("elector_a_1");
        assert_eq!(world.charge(), Charge::Ours);
        world
    }
}

#[test]
fn a_new_term_after_a_gap_may_have_followed_one_of_the_builtin_controller() {
    for (holder, term) in [("elector_a_1", 4), ("elector_b_2", 4)] {
        let mut world = World::quiet();
        world.pass(3_000);
        world.lists(holder, term);
        assert_eq!(world.charge(), Charge::Pending, "{holder}");
        world.pass(14_999);
        assert_eq!(world.charge(), Charge::Pending, "{holder}");
    }
}

#[test]
fn a_lock_that_appears_in_a_gap_may_have_been_the_builtin_controllers() {
    let mut world = World::respecting();
    world.listed_empty();
    assert_eq!(world.charge(), Charge::Ours);
    world.lists("elector_a_1", 1);
    assert_eq!(world.charge(), Charge::Pending);
}

#[test]
fn the_same_term_after_a_gap_was_there_throughout() {
    let mut world = World::quiet();
    world.pass(3_000);
    world.lists("elector_a_1", 3);
    assert_eq!(world.charge(), Charge::Ours);
}

/// Compare-and-swap proves that nothing came between what we knew and what we wrote.
#[test]
fn a_write_of_our_own_that_a_list_shows_hides_nothing() {
    let mut world = World::replacing("elector_b_2");
    world.held_by("elector_a_1");
    world.pass(15_000);
    world.held_by("elector_a_1");
    world.pass(5_000);
    let Some(Act::Write(write)) = world.builtin.poll(world.now(), world.wall()) else {
        panic!("the lock is taken over");
    };
    // The reply is lost.
    world.builtin.handle_outcome(world.now(), false);
    let snapshot = world.store(write.record);
    world
        .builtin
        .handle_lock(world.now(), snapshot, NewsSource::List);
    assert_eq!(world.charge(), Charge::Ours);
}
