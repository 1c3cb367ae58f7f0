//! Why the elector looks at an election again: each reason, with the time that it is given.

use std::time::Duration;

use elector_protocol::elector::{Decision, NewsSource, WakeAfter, WakeReason};
use elector_protocol::{CandidateSpec, LeaseRecord};

use crate::fixture::{ElectionFixture, id};

/// A record held by a plain client for so many seconds.
fn held(fixture: &ElectionFixture, by: &str, seconds: i32) -> LeaseRecord {
    LeaseRecord {
        holder: Some(id(by)),
        duration_seconds: Some(seconds),
        renew_time: Some(fixture.wall()),
        ..LeaseRecord::default()
    }
}

/// The wake of a decision, in seconds from now.
fn wake(fixture: &ElectionFixture, decision: &Decision) -> (f64, WakeReason) {
    let WakeAfter { after, why } = decision
        .wake
        .expect("the decision wakes")
        .after(fixture.now);
    (after.as_secs_f64(), why)
}

fn next_wake(fixture: &ElectionFixture) -> (f64, WakeReason) {
    wake(fixture, &fixture.step())
}

/// Steps, delivers the pings, and says when the step after it is due.
fn wake_after_pings(fixture: &mut ElectionFixture) -> (f64, WakeReason) {
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    next_wake(fixture)
}

#[test]
fn under_a_holder_it_is_lateness_then_the_ack_window_then_expiry() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    fixture.list("b", "1.2.0");
    assert_eq!(next_wake(&fixture), (10.0, WakeReason::HolderLate));
    fixture.pass(10.0);
    assert_eq!(wake_after_pings(&mut fixture), (2.0, WakeReason::AckWindow));
    fixture.pass(2.0);
    fixture.ack("b");
    assert_eq!(next_wake(&fixture), (3.0, WakeReason::Expiry));
}

#[test]
fn a_grant_is_late_before_its_accept_window_ends() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    fixture.apply(&decision);
    let (late, why) = next_wake(&fixture);
    assert_eq!(why, WakeReason::AcceptLate);
    fixture.now = fixture.now.after(Duration::from_secs_f64(late));
    fixture.register("b", "1.2.0");
    let (left, why) = next_wake(&fixture);
    assert_eq!(why, WakeReason::AcceptWindow);
    assert!((late + left - 5.0).abs() < 1e-6, "{late} {left}");
}

#[test]
fn an_unheld_record_waits_for_the_proof_and_for_a_fresh_ack() {
    let mut fixture = ElectionFixture::fresh();
    fixture.register("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    assert_eq!(next_wake(&fixture), (5.0, WakeReason::AckStale));
    fixture.pass(12.0);
    fixture.ack("a");
    assert_eq!(next_wake(&fixture), (3.0, WakeReason::ProofOfAbsence));
}

/// An ack of the round counts although it is not fresh any more, and is no reason to look again.
#[test]
fn an_ack_that_is_stale_already_wakes_nothing() {
    let mut fixture = ElectionFixture::new();
    fixture.lease(held(&fixture, "plain", 60));
    fixture.list("b", "1.2.0");
    fixture.pass(40.0);
    assert_eq!(wake_after_pings(&mut fixture), (2.0, WakeReason::AckWindow));
    fixture.pass(1.0);
    fixture.ack("b");
    assert_eq!(next_wake(&fixture), (5.0, WakeReason::AckStale));
    fixture.pass(6.0);
    assert_eq!(next_wake(&fixture), (13.0, WakeReason::Expiry));
}

#[test]
fn a_creation_that_the_watch_does_not_bring_is_tried_again() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.election.handle_created(fixture.now);
    assert_eq!(next_wake(&fixture), (2.0, WakeReason::CreationUnseen));
}

#[test]
fn pings_without_an_ack_are_repeated() {
    let mut fixture = ElectionFixture::new();
    fixture.list("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    assert_eq!(wake_after_pings(&mut fixture), (2.0, WakeReason::AckWindow));
    fixture.pass(2.0);
    assert_eq!(next_wake(&fixture), (28.0, WakeReason::RePing));
}

#[test]
fn a_preference_is_looked_at_when_the_ack_of_its_candidate_is_stale() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("c", "1.1.0");
    let decision = fixture.step();
    fixture.apply(&decision);
    assert_eq!(next_wake(&fixture), (5.0, WakeReason::PreferenceStale));
    fixture.pass(5.0);
    assert_eq!(wake_after_pings(&mut fixture), (2.0, WakeReason::AckWindow));
}

#[test]
fn candidates_that_disagree_are_pinged_once_in_a_while() {
    let mut fixture = ElectionFixture::new();
    for (name, strategy) in [("a", "OldestEmulationVersion"), ("b", "example.com/mine")] {
        let mut candidate = fixture.mk_candidate(name, "1.1.0");
        candidate.spec = CandidateSpec::parse("1.40.0", "1.1.0", strategy).into();
        fixture
            .election
            .handle_candidate(fixture.now, candidate, NewsSource::Watch);
    }
    assert_eq!(next_wake(&fixture), (30.0, WakeReason::Disagreement));
    fixture.pass(30.0);
    assert_eq!(wake_after_pings(&mut fixture), (2.0, WakeReason::AckWindow));
}

#[test]
fn a_quiet_candidate_is_pinged_and_a_silent_one_collected() {
    let mut fixture = ElectionFixture::new();
    fixture.register("c", "1.3.0");
    fixture.lease(held(&fixture, "plain", 86_400));
    assert_eq!(next_wake(&fixture), (900.0, WakeReason::QuietCandidate));
    fixture.pass(900.0);
    assert_eq!(wake_after_pings(&mut fixture), (2.0, WakeReason::AckWindow));
    fixture.pass(2.0);
    assert_eq!(next_wake(&fixture), (898.0, WakeReason::Collect));
}

#[test]
fn where_no_candidate_names_a_lease_there_is_nothing_to_wake_for() {
    let mut fixture = ElectionFixture::new();
    fixture.lease(held(&fixture, "plain", 15));
    assert_eq!(fixture.step().wake, None);
}

#[test]
fn a_wake_reads_as_part_of_a_line() {
    let wake = WakeAfter {
        after: Duration::from_millis(3_250),
        why: WakeReason::Expiry,
    };
    assert_eq!(wake.to_string(), "in 3.2s, when the lease expires");
}
