//! A lease that was released or granted in vain, or that is not ours to touch.

use elector_protocol::elector::{Action, Effect, NewsSource, Reason, WakeReason};
use elector_protocol::{LeaseRecord, ResourceVersion};

use crate::fixture::{ElectionFixture, assert_reason, held, id};

#[test]
fn a_released_lease_is_granted_at_once_but_not_to_the_one_that_let_go() {
    let mut fixture = ElectionFixture::led(&[("a", 1), ("b", 2)]);
    fixture.release();
    assert!(
        fixture
            .reason()
            .to_string()
            .starts_with("the lease is released; b ")
    );
    fixture.grants("b");
}

/// (R5) A grant is late, and then expires; its electee is neither granted nor preferred for a minute.
#[test]
fn an_electee_that_never_accepts_is_passed_over() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", 1);
    fixture.register("b", 2);
    fixture.lease(LeaseRecord::born(None));
    fixture.grants("a");
    fixture.says("a has not accepted its grant yet");
    let (late, why) = fixture.wake();
    let expected = (WakeReason::AcceptLate, true);
    assert_eq!((why, late > 3.3 && late < 3.4), expected);
    fixture.pass(4.0);
    for name in ["a", "b"] {
        fixture.ack(name);
    }
    assert_eq!(fixture.wake(), (1.0, WakeReason::AcceptWindow));
    fixture.pass(1.0);
    fixture.says("a has not accepted its grant within 5s; b is the best that answered");
    fixture.grants("b");
    fixture.accept();
    fixture.ack("a");
    fixture.best("b");
    fixture.keep(59);
    fixture.ack("a");
    fixture.best("b");
    fixture.pass(1.0);
    assert_eq!(fixture.action(), Action::Prefer);
}

#[test]
fn a_sole_candidate_that_does_not_accept_gets_longer_windows() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", 1);
    fixture.lease(LeaseRecord::born(None));
    for window in [5, 10, 20, 40, 60, 60] {
        fixture.pass(0.1);
        fixture.ack("a");
        assert_eq!(fixture.write().duration_seconds, Some(window));
        fixture.pass(f64::from(window));
    }
    // Those of another candidate do not grow with it.
    fixture.register("b", 2);
    let granted = fixture.write();
    let expected = (Some(id("b")), Some(5));
    assert_eq!((granted.holder, granted.duration_seconds), expected);
    // An accept ends it.
    fixture.grant("a");
    fixture.accept();
    fixture.remove("b");
    fixture.release();
    fixture.pass(0.1);
    fixture.ack("a");
    assert_eq!(fixture.write().duration_seconds, Some(5));
}

#[test]
fn a_foreign_strategy_gets_an_unheld_lease_and_nothing_more() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", 1);
    fixture.wish("a", "1.40.0", "example.com/mine");
    let decision = fixture.step();
    assert!(matches!(&decision.effects[..], [Effect::Create(record)]
        if record.strategy.as_ref().is_some_and(|s| s.as_str() == "example.com/mine")));
    fixture.lease(LeaseRecord::born(None));
    assert!(fixture.write().strategy.is_some(), "stamped");
    let decision = fixture.step();
    let expected = (Action::Leave, 0);
    assert_eq!((decision.action(), decision.effects.len()), expected);
}

#[test]
fn a_lease_that_no_candidate_names_is_never_written() {
    let mut fixture = ElectionFixture::new();
    fixture.lease(held("x", Some(1)));
    fixture.pass(3600.0);
    fixture.says("no candidate names this lease");
    let decision = fixture.step();
    let expected = (Action::Leave, &[][..]);
    assert_eq!((decision.action(), &decision.effects[..]), expected);
    assert_eq!(decision.wake, None);
}

/// (S11) A holder that is no candidate is left alone while it renews.
#[test]
fn a_live_holder_without_candidate_is_never_touched() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", 1);
    fixture.lease(held("plain", Some(15)));
    assert_reason!(fixture, Reason::HolderIsNoCandidate(_));
    assert_eq!(fixture.action(), Action::Leave);
    assert_eq!(fixture.step().effects, []);
    fixture.granted_after(15.0, "a");
}

#[test]
fn a_list_below_a_version_already_seen_starts_the_election_anew() {
    let mut fixture = ElectionFixture::led(&[("a", 1)]);
    let version = |fixture: &ElectionFixture| fixture.election.lease().unwrap().version;
    fixture.show_again(Some(1), NewsSource::Watch);
    let holds = version(&fixture) > ResourceVersion(1);
    assert!(holds, "an old event is ignored");
    fixture.show_again(Some(1), NewsSource::List);
    assert_eq!(version(&fixture), ResourceVersion(1));
    assert_eq!(fixture.election.candidates().count(), 0);
}
