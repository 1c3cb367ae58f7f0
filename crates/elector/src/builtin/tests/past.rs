//! Locks whose past is not known, or that say too little of themselves; and what a record proves of our own writes.

use super::*;

impl World {
    /// The lock is seen with this record.
    fn seen(&mut self, record: LeaseRecord) {
        let snapshot = self.store(record);
        self.builtin
            .handle_lock(self.now(), snapshot, NewsSource::Watch);
    }

    fn record(&self) -> LeaseRecord {
        self.lock.clone().unwrap().record
    }

    /// How long it takes until we decide, while every write succeeds.
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
        let mut world = World::respecting();
        world.seen(record("elector_a_1", seconds, 1));
        world.pass(waited * 1_000 - 1);
        assert_eq!(world.charge(), Charge::Pending, "{seconds:?}");
        world.pass(1);
        assert_eq!(world.charge(), Charge::Ours, "{seconds:?}");
    }
}

/// What is overwritten is waited out for the whole duration that it had; without one, for the longest in use.
#[test]
fn a_lock_without_a_usable_duration_is_waited_out_for_the_longest_in_use() {
    for (seconds, waited) in [(None, 15), (Some(0), 15), (Some(40), 40), (Some(2), 2)] {
        let mut world = World::replacing("elector_b_2");
        world.seen(record(APISERVER, seconds, 1));
        assert_eq!(world.charge(), builtin(), "{seconds:?}");
        assert_eq!(world.waits(), Some(waited), "{seconds:?}");

        let mut world = World::respecting();
        world.seen(record(APISERVER, seconds, 1));
        world.pass(waited * 1_000 - 1);
        assert_eq!(world.charge(), builtin(), "{seconds:?}");
        world.pass(1);
        assert_eq!(world.charge(), Charge::Ours, "{seconds:?}");
    }
}

/// A watch that lags tells of the built-in controller after we have replaced it.
#[test]
fn an_event_from_before_our_write_brings_nobody_back() {
    let mut world = World::replacing("elector_b_2");
    world.seen(record(APISERVER, Some(15), 1));
    let before = world.lock.clone().unwrap();
    assert_eq!(world.perform(), Some("take"));
    let ours = world.lock.clone();
    world
        .builtin
        .handle_lock(world.now(), before, NewsSource::Watch);
    assert_eq!(world.charge(), Charge::Pending, "taken, and waited for");
    assert_eq!(world.builtin.version(), ours.map(|lock| lock.version));
    assert_eq!(world.perform(), None, "nothing is to be taken again");
}

/// The stop-watch belongs to the record and its uid (R4): a label prolongs nothing, and a new lock is a new one.
#[test]
fn the_stop_watch_of_a_lock_is_that_of_its_record() {
    let mut world = World::respecting();
    world.seen(record(APISERVER, Some(15), 1));
    world.pass(10_000);
    world.seen(record(APISERVER, Some(15), 1));
    world.pass(5_000);
    assert_eq!(world.charge(), Charge::Ours, "only a label was changed");

    let mut world = World::respecting();
    world.seen(record(APISERVER, Some(15), 1));
    world.pass(10_000);
    let mut other = world.store(record(APISERVER, Some(15), 1));
    other.uid = Uid::new("another lock");
    world
        .builtin
        .handle_lock(world.now(), other, NewsSource::Watch);
    world.pass(14_999);
    assert_eq!(world.charge(), builtin(), "deleted and made anew");
    world.pass(1);
    assert_eq!(world.charge(), Charge::Ours);
}

/// Another elector keeps the built-in controller quiet for as long as its record is fresh, and no longer.
#[test]
fn a_lock_of_another_elector_that_has_expired_quiets_nobody() {
    let mut world = World::replacing("elector_b_2");
    world.held_by("elector_a_1");
    world.pass(3_000);
    for _ in 0..5 {
        world.pass(3_000);
        world.held_by("elector_a_1");
    }
    assert_eq!(world.charge(), Charge::Ours);
    // It dies, and our own writes are refused.
    for _ in 0..30 {
        world.pass(500);
        if world.builtin.poll(world.now(), world.wall()).is_some() {
            world.builtin.handle_outcome(world.now(), false);
        }
    }
    assert_eq!(world.charge(), Charge::Pending);
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
        let mut world = World::replacing("elector_b_2");
        world.seen(record("elector_a_1", seconds, 1));
        world.pass(missed - 1);
        assert_eq!(world.perform(), None, "{seconds:?}");
        let wake = world.builtin.wake_at(world.now());
        world.pass(1);
        assert_eq!(wake, Some(world.now()), "{seconds:?}");
        assert_eq!(world.perform(), Some("take"), "{seconds:?}");
    }
}

#[test]
fn beside_an_elector_that_keeps_the_lock_one_that_respects_it_decides_too() {
    let mut world = World::respecting();
    world.held_by("elector_a_1");
    world.pass(15_000);
    assert_eq!(world.charge(), Charge::Ours, "any number may (R17)");
}

/// A renewal is a sign of life of the same term (R11).
#[test]
fn a_renewal_of_the_lock_changes_its_renew_time_and_nothing_else() {
    let mut world = World::replacing("elector_b_2");
    world.seen(record(APISERVER, Some(15), 1));
    world.perform();
    let taken = world.record();
    assert_eq!(taken.term, Term(4));
    for _ in 0..3 {
        world.pass(3_334);
        let before = world.record();
        assert_eq!(world.perform(), Some("renew"));
        let renewed = world.record();
        assert_ne!(renewed.renew_time, before.renew_time);
        assert_eq!(
            LeaseRecord {
                renew_time: taken.renew_time,
                ..renewed
            },
            taken
        );
    }
}

/// While a renewal is under way nothing else wakes us, and the lock ends all the same.
#[test]
fn the_deadline_of_the_lock_wakes_us_while_a_renewal_is_under_way() {
    let mut world = World::replacing("elector_b_2");
    world.listed_empty();
    world.perform();
    world.perform();
    let deadline = world.now().after(Duration::from_secs(10));
    world.pass(4_000);
    assert!(world.builtin.poll(world.now(), world.wall()).is_some());
    let mut wakes = Vec::new();
    while let Some(wake) = world.builtin.wake_at(world.now())
        && wake <= deadline
    {
        wakes.push(wake);
        world.now = wake.since_epoch();
    }
    assert!(wakes.contains(&deadline), "{wakes:?}");
    assert_eq!(world.charge(), Charge::Pending);
}

/// Ours is what we wrote, told by its renewTime (R8), and not whatever names us.
#[test]
fn a_lock_that_names_us_by_another_hand_is_not_ours() {
    let mut world = World::replacing("elector_b_2");
    world.listed_empty();
    world.perform();
    assert!(world.builtin.poll(world.now(), world.wall()).is_some());
    world.builtin.handle_outcome(world.now(), false);
    world.seen(record("elector_b_2", Some(15), 7));
    assert_eq!(world.charge(), Charge::Pending);
    assert_eq!(
        world.builtin.release(world.now(), world.wall()),
        None,
        "nor to be let go"
    );
    world.pass(250);
    assert_eq!(world.perform(), Some("renew"));
    assert_eq!(world.charge(), Charge::Ours);
}

/// After its deadline the lock may be anybody's: it is not ours to let go (R12).
#[test]
fn a_lock_that_was_not_renewed_is_not_let_go() {
    let mut world = World::replacing("elector_b_2");
    world.listed_empty();
    world.perform();
    world.perform();
    world.pass(9_999);
    assert!(world.builtin.release(world.now(), world.wall()).is_some());
    world.pass(1);
    assert_eq!(world.builtin.release(world.now(), world.wall()), None);
}
