//! A candidate that an operator prefers for a time goes before all others (R16).

use elector_protocol::StandDown;
use elector_protocol::elector::{Action, HoldBackCause, Reason, WakeReason};

use crate::fixture::{DAY, ElectionFixture, assert_reason, id};
use crate::stand_down::explained;

/// `a` leads and is the best.
fn led() -> ElectionFixture {
    let fixture = ElectionFixture::led(&[("a", 1), ("b", 2), ("c", 3)]);
    fixture.best("a");
    fixture
}

/// The holder hands over to the candidate that it is asked to make room for, which accepts.
fn hand_over(fixture: &mut ElectionFixture, to: &str) {
    fixture.prefers(to);
    fixture.grant(to);
    fixture.accept();
}

#[test]
fn a_leader_makes_room_for_it_and_the_best_leads_again_when_it_is_over() {
    let mut fixture = led();
    fixture.prefer("c", 60.0);
    fixture.says("a is asked to make room: c is preferred by an operator");
    hand_over(&mut fixture, "c");
    for _ in 0..59 {
        fixture.best("c");
        fixture.keep(1);
        for name in ["a", "b"] {
            fixture.ack(name);
        }
    }
    fixture.best("c");
    assert_eq!(fixture.wake(), (1.0, WakeReason::OperatorPreference));
    fixture.pass(1.0);
    hand_over(&mut fixture, "a");
}

/// The freeze keeps a live leader from making room, and no vacancy from going to it.
#[test]
fn a_vacancy_goes_to_it_also_where_the_lease_is_frozen() {
    let mut fixture = led();
    fixture.prefer("c", 60.0);
    fixture.freeze(30.0);
    let Reason::Frozen { better, .. } = fixture.reason() else {
        panic!("{}", fixture.reason())
    };
    assert_eq!(better, id("c"));
    fixture.release();
    fixture.says("the lease is released; c is preferred by an operator");
    fixture.grants("c");
}

/// A name of no candidate changes nothing, one that cannot be elected either, and neither does a time that is over or
/// more than a day ahead.
#[test]
fn a_preference_that_does_not_count_is_ignored() {
    let mut fixture = led();
    fixture.stand_down("b", Some(StandDown::Untimed));
    let day = f64::from(DAY);
    for (name, seconds, action) in [
        ("x", 60.0, Action::None),
        ("b", 60.0, Action::None),
        ("c", 0.0, Action::None),
        ("c", day + 0.000_001, Action::None),
        ("c", 2_000_000_000.0, Action::None),
        ("c", day, Action::Prefer),
        ("c", 0.000_001, Action::Prefer),
    ] {
        fixture.prefer(name, seconds);
        assert_eq!(fixture.action(), action, "{name} {seconds}");
        let counts = explained(&fixture).ignored.is_empty();
        assert_eq!(counts, action == Action::Prefer, "{name} {seconds}");
    }
}

/// It has to ack like any other (R15), and is passed over like any other when it does not accept (R5).
#[test]
fn it_is_not_taken_at_its_word() {
    let mut fixture = led();
    fixture.prefer("c", 600.0);
    for _ in 0..10 {
        fixture.keep(1);
        fixture.ack("b");
    }
    assert_eq!(fixture.ping(), ["c"]);
    fixture.pass(2.0);
    assert_reason!(fixture, Reason::BetterIsSilent { .. });
    fixture.ack("c");
    fixture.prefers("c");
    fixture.grant("c");
    fixture.pass(3.4);
    fixture.ping();
    fixture.ack("a");
    fixture.pass(1.6);
    fixture.grants("a");
    fixture.accept();
    fixture.ack("c");
    // (R23) The hand-over failed, whoever asked for it.
    fixture.best("a");
}

/// (R23) What an operator asks for is counted out at twice the budget, whatever words come and go.
#[test]
fn the_budget_of_pre_emptions_is_twice_as_large_for_it() {
    let mut fixture = led();
    let ask = |fixture: &mut ElectionFixture, name: &str| {
        fixture.prefer(name, 600.0);
        fixture.pass(1.0);
        fixture.ack(name);
    };
    let held = |fixture: &ElectionFixture| match fixture.reason() {
        Reason::HeldBack {
            better,
            because: HoldBackCause::Preemptions { count, .. },
            remaining,
            ..
        } => (better, count, remaining.as_secs()),
        reason => panic!("{reason:?}"),
    };
    for name in ["c", "b", "c"] {
        ask(&mut fixture, name);
        hand_over(&mut fixture, name);
    }
    fixture.overrides.prefer = None;
    fixture.renew();
    fixture.ack("a");
    assert_eq!(held(&fixture), (id("a"), 3, 598));
    for name in ["a", "b", "c"] {
        ask(&mut fixture, name);
        hand_over(&mut fixture, name);
    }
    ask(&mut fixture, "b");
    assert_eq!(held(&fixture), (id("b"), 6, 594));
    fixture.overrides.prefer = None;
    fixture.keep(593);
    ask(&mut fixture, "b");
    hand_over(&mut fixture, "b");
}

/// A preference moves on to it, and back when the operator thinks again.
#[test]
fn it_goes_before_what_the_strategy_preferred() {
    let mut fixture = ElectionFixture::led(&[("c", 3), ("a", 1)]);
    fixture.prefers("a");
    fixture.register("b", 2);
    fixture.prefer("b", 60.0);
    fixture.prefers("b");
    fixture.overrides.prefer = None;
    fixture.lease(fixture.record());
    fixture.pass(4.0);
    fixture.prefers("a");
}

/// A leader that an operator wants to keep is kept from the better ones, which is as long as it lives.
#[test]
fn a_leader_that_is_preferred_stays_and_its_fail_over_works() {
    let mut fixture = ElectionFixture::led(&[("b", 2)]);
    fixture.prefer("b", 600.0);
    fixture.register("a", 1);
    fixture.best("b");
    fixture.pass(13.0);
    fixture.ping();
    fixture.ack("a");
    fixture.pass(2.0);
    fixture.grants("a");
}
