//! What is due for every candidate whoever leads: a question in 15 min, and its collection in the end (R15).

use std::time::Duration;

use elector_protocol::LeaseRecord;
use elector_protocol::elector::{Action, Decision, Effect};

use crate::world::{World, id, pinged};

fn collected(decision: &Decision) -> bool {
    let collects = |effect: &Effect| matches!(effect, Effect::Collect { .. });
    decision.effects.iter().any(collects)
}

/// A plain client holds the lease for a day; `c` is a candidate all the same.
fn left() -> World {
    let mut world = World::new();
    world.register("c", "1.3.0");
    world.lease(LeaseRecord {
        holder: Some(id("plain")),
        duration_seconds: Some(86_400),
        renew_time: Some(world.wall()),
        ..LeaseRecord::default()
    });
    assert_eq!(world.step().action(), Action::Leave);
    world
}

/// (R15, S11) Also where the lease itself is left to others.
#[test]
fn a_candidate_is_pinged_after_a_quarter_of_an_hour_and_the_elector_wakes_for_it() {
    let mut world = left();
    let due = world.now.after(Duration::from_secs(900));
    assert_eq!(
        world.step().wake_at(),
        Some(due),
        "while its answer is fresh"
    );
    world.pass(899.999);
    let decision = world.step();
    assert_eq!(pinged(&decision), Vec::<String>::new());
    assert_eq!(decision.wake_at(), Some(due), "and when it is not");
    world.pass(0.001);
    let decision = world.step();
    assert_eq!(world.deliver_pings(&decision), ["c"]);
    assert_eq!(
        world.step().wake_at(),
        Some(world.now.after(Duration::from_secs(2)))
    );
}

/// (R15) 30 min without a write *and* a last question unanswered.
#[test]
fn a_candidate_is_collected_after_half_an_hour_and_a_ping_without_an_ack() {
    let mut world = left();
    let due = world.now.after(Duration::from_secs(1800));
    world.pass(900.0);
    let decision = world.step();
    world.deliver_pings(&decision);
    world.pass(2.0);
    let decision = world.step();
    assert!(!collected(&decision));
    assert_eq!(decision.wake_at(), Some(due));
    world.pass(897.999);
    assert!(!collected(&world.step()));
    world.pass(0.001);
    assert!(collected(&world.step()));
}

/// (R15) Without a question there is nothing that it left unanswered.
#[test]
fn a_candidate_that_was_never_pinged_is_not_collected() {
    let mut world = left();
    world.pass(7200.0);
    let decision = world.step();
    assert!(!collected(&decision));
    assert_eq!(world.deliver_pings(&decision), ["c"]);
    assert!(!collected(&world.step()), "it has its time to answer");
    world.ack("c");
    world.pass(10.0);
    assert!(!collected(&world.step()));
}

/// (R15) pingTime is never cleared: one that equals renewTime is a question that was answered.
#[test]
fn a_ping_as_old_as_the_ack_is_not_open() {
    let mut world = left();
    world.change("c", |candidate| candidate.ping = candidate.renew);
    world.pass(1800.0);
    let decision = world.step();
    assert!(!collected(&decision));
    assert_eq!(pinged(&decision), ["c"]);
}
