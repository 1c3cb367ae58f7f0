//! Who decides, while the built-in controller comes, stays, crashes, is overwritten.

use elector_protocol::{Term, Uid};

use super::*;

mod gap;
mod past;

const LONGEST: Duration = Duration::from_secs(15);

/// A lock in a store, and an elector that watches it.
struct World {
    builtin: Builtin,
    lock: Option<LeaseSnapshot>,
    version: u64,
    now: Duration,
}

impl World {
    fn respecting() -> Self {
        Self::with(Builtin::respected(LONGEST))
    }

    fn replacing(me: &str) -> Self {
        let me = Identity::new(me).unwrap();
        Self::with(Builtin::replaced(me, CandidateTiming::default(), LONGEST))
    }

    fn with(builtin: Builtin) -> Self {
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

    fn charge(&self) -> Charge {
        self.builtin.charge(self.now())
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

    /// Somebody else writes the lock, and the watch shows it.
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
        let act = self.builtin.poll(self.now(), self.wall())?;
        let (record, what) = match act {
            Act::Create(record) => (record, "create"),
            Act::Write(write) => {
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

    /// Keeps the lock renewed for so long, and says when the charge was first ours.
    fn renew_for(&mut self, seconds: u64) -> Option<Duration> {
        let (start, end) = (self.now, self.now + Duration::from_secs(seconds));
        let mut ours = None;
        while self.now < end {
            self.perform();
            if self.charge() == Charge::Ours {
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

fn builtin() -> Charge {
    Charge::Builtin(Identity::new(APISERVER).unwrap())
}

#[test]
fn nobody_decides_before_the_lock_was_listed() {
    assert_eq!(World::respecting().charge(), Charge::Unknown);
    let mut world = World::replacing("elector_a_1");
    assert_eq!(world.charge(), Charge::Unknown);
    assert_eq!(world.perform(), None);
}

#[test]
fn without_the_gate_there_is_no_lock_and_nobody_to_wait_for() {
    let mut world = World::respecting();
    world.listed_empty();
    assert_eq!(world.charge(), Charge::Ours);
    assert_eq!(world.perform(), None);
}

#[test]
fn a_fresh_lock_is_respected_until_it_expires_by_our_own_stop_watch() {
    let mut world = World::respecting();
    world.held_by(APISERVER);
    assert_eq!(world.charge(), builtin());
    world.pass(14_000);
    assert_eq!(world.charge(), builtin());
    world.held_by(APISERVER);
    world.pass(14_999);
    assert_eq!(world.charge(), builtin());
    assert_eq!(
        world
            .builtin
            .wake_at(world.now())
            .unwrap()
            .since(world.now()),
        Duration::from_millis(1)
    );
    world.pass(1);
    assert_eq!(world.charge(), Charge::Ours);
    // It comes back.
    world.held_by(APISERVER);
    assert_eq!(world.charge(), builtin());
}

#[test]
fn a_released_or_deleted_lock_is_waited_for_as_if_it_had_expired() {
    for deleted in [false, true] {
        let mut world = World::respecting();
        world.held_by(APISERVER);
        world.pass(2000);
        if deleted {
            world.builtin.handle_gone(Some(ResourceVersion(99)));
        } else {
            let released = world.lock.clone().unwrap().record.released(world.wall());
            let snapshot = world.store(released);
            world
                .builtin
                .handle_lock(world.now(), snapshot, NewsSource::Watch);
        }
        assert_eq!(world.charge(), Charge::Pending);
        world.pass(12_999);
        assert_eq!(world.charge(), Charge::Pending);
        world.pass(1);
        assert_eq!(world.charge(), Charge::Ours);
    }
}

#[test]
fn a_late_deletion_event_does_not_hide_a_newer_lock() {
    let mut world = World::respecting();
    world.held_by(APISERVER);
    world.builtin.handle_gone(Some(ResourceVersion(1)));
    assert_eq!(world.charge(), builtin());
}

#[test]
fn a_live_lock_is_overwritten_and_held_for_its_whole_duration_before_anything_is_decided() {
    let mut world = World::replacing("elector_a_1");
    world.held_by(APISERVER);
    world.pass(1000);
    assert_eq!(world.perform(), Some("take"));
    let record = world.lock.clone().unwrap().record;
    assert_eq!((record.duration_seconds, record.term), (Some(15), Term(4)));
    assert_eq!(world.charge(), Charge::Pending);
    assert_eq!(world.renew_for(40), Some(Duration::from_secs(15)));
    assert_eq!(world.charge(), Charge::Ours);
}

#[test]
fn without_the_gate_the_lock_is_created_unheld_then_taken() {
    let mut world = World::replacing("elector_a_1");
    world.listed_empty();
    assert_eq!(world.charge(), Charge::Pending);
    assert_eq!(world.perform(), Some("create"));
    assert_eq!(world.lock.as_ref().unwrap().record.holder, None);
    assert_eq!(world.perform(), Some("take"));
    assert_eq!(world.charge(), Charge::Ours);
    assert_eq!(world.perform(), None);
    world.pass(3334);
    assert_eq!(world.perform(), Some("renew"));
}

#[test]
fn a_lock_that_cannot_be_renewed_is_not_ours_after_its_deadline() {
    let mut world = World::replacing("elector_a_1");
    world.listed_empty();
    world.perform();
    world.perform();
    world.pass(4000);
    assert!(world.builtin.poll(world.now(), world.wall()).is_some());
    assert_eq!(
        world.builtin.poll(world.now(), world.wall()),
        None,
        "one write at a time"
    );
    world.pass(1000);
    world.builtin.handle_outcome(world.now(), false);
    assert_eq!(
        world.builtin.poll(world.now(), world.wall()),
        None,
        "a pause after a failure"
    );
    world.pass(250);
    assert!(world.builtin.poll(world.now(), world.wall()).is_some());
    world.builtin.handle_outcome(world.now(), false);
    world.pass(4749);
    assert_eq!(world.charge(), Charge::Ours);
    world.pass(1);
    assert_eq!(world.charge(), Charge::Pending);
    assert_eq!(world.builtin.release(world.now(), world.wall()), None);
}

#[test]
fn a_write_whose_reply_was_lost_counts_from_its_send_once_it_is_seen() {
    let mut world = World::replacing("elector_a_1");
    world.listed_empty();
    world.perform();
    let Some(Act::Write(write)) = world.builtin.poll(world.now(), world.wall()) else {
        panic!("the lock is to be taken");
    };
    let snapshot = world.store(write.record);
    world.pass(2000);
    world.builtin.handle_outcome(world.now(), false);
    assert_eq!(world.charge(), Charge::Pending);
    world
        .builtin
        .handle_lock(world.now(), snapshot, NewsSource::Watch);
    assert_eq!(world.charge(), Charge::Ours);
    world.pass(8000);
    assert_eq!(world.charge(), Charge::Pending);
}

#[test]
fn an_earlier_write_that_landed_after_all_still_counts() {
    let mut world = World::replacing("elector_a_1");
    world.listed_empty();
    world.perform();
    let Some(Act::Write(first)) = world.builtin.poll(world.now(), world.wall()) else {
        panic!("the lock is to be taken");
    };
    world.pass(2000);
    world.builtin.handle_outcome(world.now(), false);
    world.pass(250);
    assert!(world.builtin.poll(world.now(), world.wall()).is_some());
    // The second one conflicts with the first, which the watch shows now.
    world.builtin.handle_outcome(world.now(), false);
    let snapshot = world.store(first.record);
    world
        .builtin
        .handle_lock(world.now(), snapshot, NewsSource::Watch);
    assert_eq!(world.charge(), Charge::Ours);
    world.pass(7749);
    assert_eq!(world.charge(), Charge::Ours);
    world.pass(1);
    assert_eq!(world.charge(), Charge::Pending);
}

#[test]
fn losing_the_lock_stops_decisions_at_once_and_it_is_taken_again() {
    let mut world = World::replacing("elector_a_1");
    world.listed_empty();
    world.perform();
    world.perform();
    assert_eq!(world.charge(), Charge::Ours);
    world.held_by(APISERVER);
    assert_eq!(world.charge(), builtin());
    assert_eq!(world.perform(), Some("take"));
    assert_eq!(world.renew_for(30), Some(Duration::from_secs(15)));
}

#[test]
fn electors_do_not_fight_for_the_lock_and_the_second_takes_over_when_the_first_dies() {
    let mut world = World::replacing("elector_b_2");
    world.held_by("elector_a_1");
    assert_eq!(world.perform(), None);
    assert_eq!(
        world.charge(),
        Charge::Pending,
        "whom the other replaced, and when, is not known"
    );
    // One in three renewals is late.
    for pause in [3334, 3334, 4999, 3334] {
        world.pass(pause);
        assert_eq!(world.perform(), None);
        world.held_by("elector_a_1");
    }
    assert_eq!(world.charge(), Charge::Ours, "both may decide (R17)");
    world.pass(4999);
    assert_eq!(world.perform(), None);
    let due = world.now + Duration::from_millis(1);
    let wake = world.builtin.wake_at(world.now());
    assert_eq!(wake, Some(Instant::from_epoch(due)));
    world.pass(1);
    assert_eq!(world.perform(), Some("take"));
    assert_eq!(
        world.charge(),
        Charge::Ours,
        "the built-in one has been quiet all along"
    );
}

/// The built-in controller takes the lock when it has seen it unchanged for 15 s. It saw the last renewal when it was
/// written, an elector that starts afterwards only later.
#[test]
fn an_elector_that_starts_after_a_crash_takes_the_lock_before_the_builtin_controller_can() {
    let mut world = World::replacing("elector_b_2");
    let renewed = world.now;
    world.pass(9_900);
    world.held_by("elector_a_1");
    assert_eq!(world.perform(), None, "it may be alive");
    let seen = world.now;
    while world.perform().is_none() {
        world.now = world.builtin.wake_at(world.now()).unwrap().since_epoch();
    }
    let taken = world.now - renewed;
    assert!(taken < Duration::from_secs(15), "taken after {taken:?}");
    // What the one before replaced is as unknown as ever.
    let waited = world.now - seen;
    let ours = world.renew_for(30).map(|after| waited + after);
    assert_eq!(ours, Some(Duration::from_secs(15)));
}

#[test]
fn the_lock_is_let_go_only_while_it_is_ours() {
    let mut world = World::replacing("elector_a_1");
    world.listed_empty();
    assert_eq!(world.builtin.release(world.now(), world.wall()), None);
    world.perform();
    world.perform();
    let write = world.builtin.release(world.now(), world.wall()).unwrap();
    assert_eq!(
        (write.record.holder, write.record.duration_seconds),
        (None, Some(1))
    );
    world.held_by("elector_b_2");
    assert_eq!(world.builtin.release(world.now(), world.wall()), None);
}

#[test]
fn api_servers_are_told_from_electors_by_name() {
    let stranger = |text: &str| is_stranger(&Identity::new(text).unwrap());
    assert!(stranger(APISERVER));
    assert!(
        stranger("elector_4f0c7f1e-0000-0000-0000-000000000000"),
        "a host named elector"
    );
    assert!(stranger("elector"));
    assert!(!is_stranger(&lock_identity("pod-1", 7)));
}
