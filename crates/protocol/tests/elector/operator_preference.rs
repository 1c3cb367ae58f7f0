//! A candidate that an operator prefers for a time goes before all others (R16).

use std::time::Duration;

use elector_protocol::elector::{Action, HoldBackCause, Reason};
use elector_protocol::{LeaseRecord, StandDown};

use crate::fixture::{DAY, ElectionFixture, id};

/// `a` leads and is the best.
fn led() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    fixture.register("b", "1.2.0");
    fixture.register("c", "1.3.0");
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("a")));
    fixture
}

/// The holder hands over to the candidate that it is asked to make room for, which accepts.
fn hand_over(fixture: &mut ElectionFixture, to: &str) {
    let decision = fixture.step();
    let preferred = fixture.apply(&decision).preferred_holder;
    assert_eq!(preferred, Some(id(to)), "{decision:?}");
    let grant = fixture.grant_to(to);
    fixture.lease(grant);
    fixture.accept();
}

#[test]
fn a_leader_makes_room_for_it_and_the_best_leads_again_when_it_is_over() {
    let mut fixture = led();
    fixture.prefer("c", 60.0);
    assert_eq!(
        fixture.step().reason.to_string(),
        "a is asked to make room: c is preferred by an operator"
    );
    hand_over(&mut fixture, "c");
    let decision = fixture.step();
    assert_eq!(decision.reason, Reason::HolderIsBest(id("c")));
    for _ in 0..59 {
        fixture.keep(1);
        for name in ["a", "b"] {
            fixture.ack(name);
        }
        assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("c")));
    }
    let end = fixture.now.after(Duration::from_secs(1));
    assert_eq!(fixture.step().wake_at(), Some(end));
    fixture.pass(1.0);
    hand_over(&mut fixture, "a");
}

#[test]
fn a_vacancy_goes_to_it() {
    let mut fixture = led();
    fixture.prefer("c", 60.0);
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "the lease is released; c is preferred by an operator"
    );
    assert_eq!(fixture.apply(&decision).holder, Some(id("c")));
}

/// A name of no candidate changes nothing, and neither does one that cannot be elected.
#[test]
fn a_candidate_that_is_unknown_or_not_eligible_is_not_preferred() {
    let mut fixture = led();
    fixture.prefer("x", 60.0);
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("a")));
    fixture.stand_down("b", Some(StandDown::Untimed));
    fixture.prefer("b", 60.0);
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("a")));
    fixture.prefer("c", 0.0);
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("a")));
    for nobody in [f64::from(DAY) + 0.000_001, 2_000_000_000.0] {
        fixture.prefer("c", nobody);
        assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("a")));
    }
    for counts in [f64::from(DAY), 0.000_001] {
        fixture.prefer("c", counts);
        assert_eq!(fixture.step().action(), Action::Prefer);
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
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["c"]);
    fixture.pass(2.0);
    assert!(matches!(
        fixture.step().reason,
        Reason::BetterIsSilent { .. }
    ));
    fixture.ack("c");
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).preferred_holder, Some(id("c")));
    let grant = fixture.grant_to("c");
    fixture.lease(grant);
    fixture.pass(3.4);
    fixture.deliver_pings(&fixture.step());
    fixture.ack("a");
    fixture.pass(1.6);
    let decision = fixture.step();
    assert_eq!(
        fixture.apply(&decision).holder,
        Some(id("a")),
        "{decision:?}"
    );
    fixture.accept();
    fixture.ack("c");
    // (R23) The hand-over failed, whoever asked for it.
    let decision = fixture.step();
    assert_eq!(
        decision.reason,
        Reason::HolderIsBest(id("a")),
        "it is passed over"
    );
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
    let held = |fixture: &ElectionFixture| match fixture.step().reason {
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
    fixture.word.prefer = None;
    fixture.renew();
    fixture.ack("a");
    assert_eq!(held(&fixture), (id("a"), 3, 598));
    for name in ["a", "b", "c"] {
        ask(&mut fixture, name);
        hand_over(&mut fixture, name);
    }
    ask(&mut fixture, "b");
    assert_eq!(held(&fixture), (id("b"), 6, 594));
    fixture.word.prefer = None;
    fixture.keep(593);
    ask(&mut fixture, "b");
    hand_over(&mut fixture, "b");
}

/// A preference moves on to it, and back when the operator thinks again.
#[test]
fn it_goes_before_what_the_strategy_preferred() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("c", "1.3.0");
    fixture.register("a", "1.1.0");
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).preferred_holder, Some(id("a")));
    fixture.register("b", "1.2.0");
    fixture.prefer("b", 60.0);
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).preferred_holder, Some(id("b")));
    fixture.word.prefer = None;
    fixture.lease(fixture.record());
    fixture.pass(4.0);
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).preferred_holder, Some(id("a")));
}

/// A leader that an operator wants to keep is kept from the better ones, which is as long as it lives.
#[test]
fn a_leader_that_is_preferred_stays_and_its_fail_over_works() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.prefer("b", 600.0);
    fixture.register("a", "1.1.0");
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("b")));
    fixture.pass(13.0);
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.ack("a");
    fixture.pass(2.0);
    let decision = fixture.step();
    assert_eq!(
        fixture.apply(&decision).holder,
        Some(id("a")),
        "{decision:?}"
    );
}

/// The freeze wins.
#[test]
fn a_frozen_leader_does_not_make_room_for_it() {
    let mut fixture = led();
    fixture.prefer("c", 60.0);
    fixture.freeze(30.0);
    let Reason::Frozen { better, .. } = fixture.step().reason else {
        panic!("{:?}", fixture.step())
    };
    assert_eq!(better, id("c"));
    let released = LeaseRecord::released(&fixture.record(), fixture.wall());
    fixture.lease(released);
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).holder, Some(id("c")), "a vacancy");
}
