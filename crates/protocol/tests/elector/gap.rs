//! Changes hidden by a gap of the watch (R4, R6): an elector that lists again knows what is there, not what was there.

use std::time::Duration;

use elector_protocol::elector::{Action, NewsSource, Reason};
use elector_protocol::{LeaseRecord, LeaseSnapshot, ResourceVersion, Uid};

use crate::fixture::{ElectionFixture, id};

/// A list shows the Lease in a revision of its own.
fn list(fixture: &mut ElectionFixture, version: u64, record: LeaseRecord) {
    let snapshot = LeaseSnapshot {
        uid: Uid::new("lease-1"),
        version: ResourceVersion(version),
        record,
        word: elector_protocol::OperatorWord::default(),
    };
    fixture.version = fixture.version.max(version);
    fixture
        .election
        .handle_lease(fixture.now, snapshot, NewsSource::List);
}

/// Regression test: the elector granted at once, and the holder of the hidden term still believed.
#[test]
fn a_born_record_that_is_found_again_after_a_gap_starts_its_stop_watch_anew() {
    let mut fixture = ElectionFixture::fresh();
    fixture.register("a", "1.1.0");
    list(&mut fixture, 200, LeaseRecord::born(None));
    fixture.pass(20.0);
    fixture.ack("a");
    // Between the two lists another elector granted the lease, its holder accepted, and a stranger wrote the born
    // record back.
    list(&mut fixture, 300, LeaseRecord::born(None));
    let decision = fixture.step();
    assert!(
        matches!(decision.reason, Reason::AwaitProof { remaining } if remaining == Duration::from_secs(15)),
        "{decision:?}"
    );
    fixture.pass(15.0);
    fixture.ack("a");
    assert_eq!(fixture.step().action(), Action::Grant);
}

#[test]
fn an_emptied_record_that_is_found_again_after_a_gap_starts_its_stop_watch_anew() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    let emptied = LeaseRecord {
        holder: None,
        ..fixture.record()
    };
    fixture.lease(emptied.clone());
    fixture.pass(20.0);
    fixture.ack("a");
    list(&mut fixture, 300, emptied);
    assert!(
        matches!(fixture.step().reason, Reason::AwaitProof { .. }),
        "{:?}",
        fixture.step()
    );
}

#[test]
fn a_list_of_the_revision_that_is_known_hides_nothing() {
    let mut fixture = ElectionFixture::fresh();
    fixture.register("a", "1.1.0");
    list(&mut fixture, 200, LeaseRecord::born(None));
    fixture.pass(20.0);
    fixture.ack("a");
    list(&mut fixture, 200, LeaseRecord::born(None));
    assert_eq!(fixture.step().action(), Action::Grant);
}

#[test]
fn an_event_that_leaves_an_unheld_record_as_it_was_does_not_restart_its_stop_watch() {
    let mut fixture = ElectionFixture::fresh();
    fixture.register("a", "1.1.0");
    list(&mut fixture, 200, LeaseRecord::born(None));
    fixture.pass(20.0);
    fixture.ack("a");
    // A label, say: an uninterrupted watch proves that no term came between.
    fixture.lease(LeaseRecord::born(None));
    assert_eq!(fixture.step().action(), Action::Grant);
}

#[test]
fn a_held_record_that_is_found_again_after_a_gap_keeps_its_stop_watch() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    fixture.register("b", "1.2.0");
    let record = fixture.record();
    fixture.pass(15.0);
    fixture.ack("b");
    // A dead lease is not prolonged by a preference, whether an event or a list brings it.
    let preferring = LeaseRecord {
        preferred_holder: Some(id("b")),
        ..record
    };
    list(&mut fixture, 300, preferring);
    assert_eq!(fixture.step().action(), Action::Grant);
}
