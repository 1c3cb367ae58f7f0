//! A state means the same where all its numbers are moved: what a checker relies on that tells states apart.

use std::time::Duration;

use elector_protocol::elector::Action;
use elector_protocol::{Instant, LeaseRecord, Renumber, Renumbering, ResourceVersion, StandDown};

use crate::fixture::ElectionFixture;
use crate::hold_back::{hand_over, led};

/// Moves each reading of the clock by an hour, and each revision by a thousand.
struct Later;

const HOUR: Duration = Duration::from_secs(3600);

impl Renumbering for Later {
    fn instant(&mut self, instant: &mut Instant) {
        *instant = instant.after(HOUR);
    }

    fn version(&mut self, version: &mut ResourceVersion) {
        version.0 += 1000;
    }
}

/// Elections in which each time that is remembered decides something.
fn elections() -> Vec<(Action, ElectionFixture)> {
    let mut fresh = ElectionFixture::fresh();
    fresh.lease(LeaseRecord::born(None));
    fresh.register("a", 1);
    let mut late = led();
    late.pass(13.0);
    let mut pinged = ElectionFixture::open(&[("a", 1), ("b", 2)]);
    pinged.ping();
    pinged.pass(1.0);
    let mut passed_over = ElectionFixture::open(&[("a", 1), ("b", 2)]);
    passed_over.grant("a");
    passed_over.release();
    passed_over.pass(1.0);
    let mut held_back = led();
    hand_over(&mut held_back, "a");
    held_back.pass(5.0);
    held_back.ack("b");
    held_back.grants("b");
    held_back.accept();
    held_back.keep(20);
    held_back.ack("a");
    let mut stands_down = led();
    stands_down.stand_down("a", Some(StandDown::Untimed));
    stands_down.keep(10);
    let mut doubted = led();
    doubted.preferred_by_another(Some("a"));
    doubted.stand_down("a", Some(StandDown::Untimed));
    doubted.keep(1);
    vec![
        (Action::Wait, fresh),
        (Action::Ping, late),
        (Action::Wait, pinged),
        (Action::Ping, passed_over),
        (Action::None, held_back),
        (Action::None, stands_down),
        (Action::Withdraw, doubted),
    ]
}

#[test]
fn an_election_whose_numbers_are_all_moved_decides_as_before() {
    for (index, (action, fixture)) in elections().into_iter().enumerate() {
        let before = fixture.step();
        assert_eq!(before.action(), action, "{index}: {}", before.reason);
        let mut moved = fixture.election.clone();
        moved.renumber(&mut Later);
        let now = fixture.now.after(HOUR);
        let after = moved.step(now, fixture.wall(), &fixture.settings);
        let mut effects = before.effects.clone();
        effects.renumber(&mut Later);
        let wake_at = before.wake_at().map(|at| at.after(HOUR));
        assert_eq!(
            (after.effects, after.reason, after.wake.map(|wake| wake.at)),
            (effects, before.reason, wake_at),
            "{index}"
        );
    }
}
