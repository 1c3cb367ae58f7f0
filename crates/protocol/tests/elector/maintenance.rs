//! Work due for every candidate, whichever one leads: a ping in 15 min, and its collection in the end (R15).

use std::time::Duration;

use elector_protocol::LeaseRecord;
use elector_protocol::elector::{Action, Decision, Effect};

use crate::fixture::{ElectionFixture, id, pinged};

fn collected(decision: &Decision) -> bool {
    let collects = |effect: &Effect| matches!(effect, Effect::Collect { .. });
    decision.effects.iter().any(collects)
}

/// A plain client holds the lease for a day; `c` is a candidate all the same.
fn left() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.register("c", "1.3.0");
    fixture.lease(LeaseRecord {
        holder: Some(id("plain")),
        duration_seconds: Some(86_400),
        renew_time: Some(fixture.wall()),
        ..LeaseRecord::default()
    });
    assert_eq!(fixture.step().action(), Action::Leave);
    fixture
}

/// (R15, S11) Also where the lease itself is left to others.
#[test]
fn a_candidate_is_pinged_after_a_quarter_of_an_hour_and_the_elector_wakes_for_it() {
    let mut fixture = left();
    let due = fixture.now.after(Duration::from_secs(900));
    assert_eq!(
        fixture.step().wake_at(),
        Some(due),
        "while its ack is fresh"
    );
    fixture.pass(899.999);
    let decision = fixture.step();
    assert_eq!(pinged(&decision), Vec::<String>::new());
    assert_eq!(decision.wake_at(), Some(due), "and when it is not");
    fixture.pass(0.001);
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["c"]);
    assert_eq!(
        fixture.step().wake_at(),
        Some(fixture.now.after(Duration::from_secs(2)))
    );
}

/// (R15) 30 min without a write *and* a last ping without an ack.
#[test]
fn a_candidate_is_collected_after_half_an_hour_and_a_ping_without_an_ack() {
    let mut fixture = left();
    let due = fixture.now.after(Duration::from_secs(1800));
    fixture.pass(900.0);
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.pass(2.0);
    let decision = fixture.step();
    assert!(!collected(&decision));
    assert_eq!(decision.wake_at(), Some(due));
    fixture.pass(897.999);
    assert!(!collected(&fixture.step()));
    fixture.pass(0.001);
    assert!(collected(&fixture.step()));
}

/// (R15) Without a ping there is no ack that it owes.
#[test]
fn a_candidate_that_was_never_pinged_is_not_collected() {
    let mut fixture = left();
    fixture.pass(7200.0);
    let decision = fixture.step();
    assert!(!collected(&decision));
    assert_eq!(fixture.deliver_pings(&decision), ["c"]);
    assert!(!collected(&fixture.step()), "it has its time to ack");
    fixture.ack("c");
    fixture.pass(10.0);
    assert!(!collected(&fixture.step()));
}

/// (R15) pingTime is never cleared: one that equals renewTime was acked.
#[test]
fn a_ping_as_old_as_the_ack_is_not_open() {
    let mut fixture = left();
    fixture.change("c", |candidate| candidate.ping = candidate.renew);
    fixture.pass(1800.0);
    let decision = fixture.step();
    assert!(!collected(&decision));
    assert_eq!(pinged(&decision), ["c"]);
}
