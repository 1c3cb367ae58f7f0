//! What a gap of the watch may hide (R4, R6): an elector that lists again knows what is there, not what was there.

use std::time::Duration;

use elector_protocol::elector::{Action, NewsSource, Reason};
use elector_protocol::{LeaseRecord, LeaseSnapshot, ResourceVersion, Uid};

use crate::world::{World, id};

/// A list shows the Lease in a revision of its own.
fn list(world: &mut World, version: u64, record: LeaseRecord) {
    let snapshot = LeaseSnapshot {
        uid: Uid::new("lease-1"),
        version: ResourceVersion(version),
        record,
    };
    world.version = world.version.max(version);
    world
        .election
        .handle_lease(world.now, snapshot, NewsSource::List);
}

/// Regression test: the elector granted at once, and the holder of the hidden term still believed.
#[test]
fn a_born_record_that_is_found_again_after_a_gap_starts_its_stop_watch_anew() {
    let mut world = World::fresh();
    world.register("a", "1.1.0");
    list(&mut world, 200, LeaseRecord::born(None));
    world.pass(20.0);
    world.ack("a");
    // Between the two lists another elector granted the lease, its holder accepted, and a stranger wrote the born
    // record back.
    list(&mut world, 300, LeaseRecord::born(None));
    let decision = world.step();
    assert!(
        matches!(decision.reason, Reason::AwaitProof { remaining } if remaining == Duration::from_secs(15)),
        "{decision:?}"
    );
    world.pass(15.0);
    world.ack("a");
    assert_eq!(world.step().action(), Action::Grant);
}

#[test]
fn an_emptied_record_that_is_found_again_after_a_gap_starts_its_stop_watch_anew() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    let emptied = LeaseRecord {
        holder: None,
        ..world.record()
    };
    world.lease(emptied.clone());
    world.pass(20.0);
    world.ack("a");
    list(&mut world, 300, emptied);
    assert!(
        matches!(world.step().reason, Reason::AwaitProof { .. }),
        "{:?}",
        world.step()
    );
}

#[test]
fn a_list_of_the_revision_that_is_known_hides_nothing() {
    let mut world = World::fresh();
    world.register("a", "1.1.0");
    list(&mut world, 200, LeaseRecord::born(None));
    world.pass(20.0);
    world.ack("a");
    list(&mut world, 200, LeaseRecord::born(None));
    assert_eq!(world.step().action(), Action::Grant);
}

#[test]
fn an_event_that_leaves_an_unheld_record_as_it_was_does_not_restart_its_stop_watch() {
    let mut world = World::fresh();
    world.register("a", "1.1.0");
    list(&mut world, 200, LeaseRecord::born(None));
    world.pass(20.0);
    world.ack("a");
    // A label, say: an uninterrupted watch proves that no term came between.
    world.lease(LeaseRecord::born(None));
    assert_eq!(world.step().action(), Action::Grant);
}

#[test]
fn a_held_record_that_is_found_again_after_a_gap_keeps_its_stop_watch() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    world.register("b", "1.2.0");
    let record = world.record();
    world.pass(15.0);
    world.ack("b");
    // A dead lease is not prolonged by a preference, whether an event or a list brings it.
    let preferring = LeaseRecord {
        preferred_holder: Some(id("b")),
        ..record
    };
    list(&mut world, 300, preferring);
    assert_eq!(world.step().action(), Action::Grant);
}
