//! Why the elector looks at an election again: each reason, with the time that it is given.

use std::time::Duration;

use elector_protocol::elector::{Decision, NewsSource, PreferenceField, WakeAfter, WakeReason};
use elector_protocol::{CandidateSpec, LeaseRecord};

use crate::world::{World, id};

/// A record held by a plain client for so many seconds.
fn held(world: &World, by: &str, seconds: i32) -> LeaseRecord {
    LeaseRecord {
        holder: Some(id(by)),
        duration_seconds: Some(seconds),
        renew_time: Some(world.wall()),
        ..LeaseRecord::default()
    }
}

/// The wake of a decision, in seconds from now.
fn wake(world: &World, decision: &Decision) -> (f64, WakeReason) {
    let WakeAfter { after, why } = decision.wake.expect("the decision wakes").after(world.now);
    (after.as_secs_f64(), why)
}

fn next_wake(world: &World) -> (f64, WakeReason) {
    wake(world, &world.step())
}

/// Steps, delivers the pings, and says when the step after it is due.
fn wake_after_pings(world: &mut World) -> (f64, WakeReason) {
    let decision = world.step();
    world.deliver_pings(&decision);
    next_wake(world)
}

#[test]
fn under_a_holder_it_is_lateness_then_the_ack_window_then_expiry() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    world.list("b", "1.2.0");
    assert_eq!(next_wake(&world), (10.0, WakeReason::HolderLate));
    world.pass(10.0);
    assert_eq!(wake_after_pings(&mut world), (2.0, WakeReason::AckWindow));
    world.pass(2.0);
    world.ack("b");
    assert_eq!(next_wake(&world), (3.0, WakeReason::Expiry));
}

#[test]
fn a_grant_is_late_before_its_accept_window_ends() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    let decision = world.step();
    world.apply(&decision);
    let (late, why) = next_wake(&world);
    assert_eq!(why, WakeReason::AcceptLate);
    world.now = world.now.after(Duration::from_secs_f64(late));
    world.register("b", "1.2.0");
    let (left, why) = next_wake(&world);
    assert_eq!(why, WakeReason::AcceptWindow);
    assert!((late + left - 5.0).abs() < 1e-6, "{late} {left}");
}

#[test]
fn a_reservation_is_late_before_it_ends() {
    let mut world = World::new();
    world.settings.preference_field = PreferenceField::Dropped;
    world.settings.reserve = true;
    world.register("b", "1.2.0");
    world.change("b", |candidate| candidate.marked = false);
    world.lease(held(&world, "b", 15));
    world.register("c", "1.1.0");
    let decision = world.step();
    world.apply(&decision);
    assert_eq!(next_wake(&world), (10.0, WakeReason::ReservationLate));
    world.pass(13.0);
    world.ack("c");
    assert_eq!(next_wake(&world), (2.0, WakeReason::Reservation));
}

#[test]
fn an_unheld_record_waits_for_the_proof_and_for_a_fresh_ack() {
    let mut world = World::fresh();
    world.register("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    assert_eq!(next_wake(&world), (5.0, WakeReason::AckStale));
    world.pass(12.0);
    world.ack("a");
    assert_eq!(next_wake(&world), (3.0, WakeReason::ProofOfAbsence));
}

#[test]
fn a_creation_that_the_watch_does_not_bring_is_tried_again() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.election.handle_created(world.now);
    assert_eq!(next_wake(&world), (2.0, WakeReason::CreationUnseen));
}

#[test]
fn pings_without_an_ack_are_repeated() {
    let mut world = World::new();
    world.list("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    assert_eq!(wake_after_pings(&mut world), (2.0, WakeReason::AckWindow));
    world.pass(2.0);
    assert_eq!(next_wake(&world), (28.0, WakeReason::RePing));
}

#[test]
fn a_preference_is_looked_at_when_the_ack_of_its_candidate_is_stale() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("c", "1.1.0");
    let decision = world.step();
    world.apply(&decision);
    assert_eq!(next_wake(&world), (5.0, WakeReason::PreferenceStale));
    world.pass(5.0);
    assert_eq!(wake_after_pings(&mut world), (2.0, WakeReason::AckWindow));
}

#[test]
fn candidates_that_disagree_are_pinged_once_in_a_while() {
    let mut world = World::new();
    for (name, strategy) in [("a", "OldestEmulationVersion"), ("b", "example.com/mine")] {
        let mut candidate = world.mk_candidate(name, "1.1.0");
        candidate.spec = CandidateSpec::parse("1.40.0", "1.1.0", strategy);
        world
            .election
            .handle_candidate(world.now, candidate, NewsSource::Watch);
    }
    assert_eq!(next_wake(&world), (30.0, WakeReason::Disagreement));
    world.pass(30.0);
    assert_eq!(wake_after_pings(&mut world), (2.0, WakeReason::AckWindow));
}

#[test]
fn a_quiet_candidate_is_pinged_and_a_silent_one_collected() {
    let mut world = World::new();
    world.register("c", "1.3.0");
    world.lease(held(&world, "plain", 86_400));
    assert_eq!(next_wake(&world), (900.0, WakeReason::QuietCandidate));
    world.pass(900.0);
    assert_eq!(wake_after_pings(&mut world), (2.0, WakeReason::AckWindow));
    world.pass(2.0);
    assert_eq!(next_wake(&world), (898.0, WakeReason::Collect));
}

#[test]
fn where_no_candidate_names_a_lease_there_is_nothing_to_wake_for() {
    let mut world = World::new();
    world.lease(held(&world, "plain", 15));
    assert_eq!(world.step().wake, None);
}

#[test]
fn a_wake_reads_as_part_of_a_line() {
    let wake = WakeAfter {
        after: Duration::from_millis(3_250),
        why: WakeReason::Expiry,
    };
    assert_eq!(wake.to_string(), "in 3.2s, when the lease expires");
}
