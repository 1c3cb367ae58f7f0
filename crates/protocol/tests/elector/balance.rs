//! A part of a group is assigned to a candidate: where that stands in the order, and what it may move (R16, R23).

use std::sync::Arc;
use std::time::Duration;

use elector_protocol::elector::{Action, HoldBackCause, Reason};
use elector_protocol::{Membership, OperatorOverrides, StandDown, StrategyName};

use crate::fixture::{ElectionFixture, assert_reason, id};
use crate::hold_back::held_back;

/// The candidates of one lease, each of a member of the same group; the first leads.
fn led(candidates: &[(&str, u64)]) -> ElectionFixture {
    ElectionFixture::led_as(candidates, |fixture, name, minor| {
        fixture.register(name, *minor);
        fixture.change_spec(name, |spec| {
            spec.membership = Some(Arc::new(Membership {
                group: "web".into(),
                member: id(name),
            }));
        });
    })
}

fn assign(fixture: &mut ElectionFixture, name: &str) {
    fixture.election.handle_assigned(Some(id(name)));
}

/// The part moves to this candidate, which accepts.
fn move_to(fixture: &mut ElectionFixture, name: &str) {
    assign(fixture, name);
    fixture.ack(name);
    fixture.prefers(name);
    fixture.grant(name);
    fixture.accept();
}

/// (R16) After the strategy, before the incumbent.
#[test]
fn a_leader_makes_room_for_the_member_that_its_part_is_assigned_to() {
    let mut fixture = led(&[("b", 2), ("a", 2)]);
    fixture.best("b");
    assign(&mut fixture, "b");
    fixture.best("b");
    assign(&mut fixture, "a");
    fixture.says("b is asked to make room: a is assigned this part of its group");
    fixture.register("c", 1);
    fixture.says("b is asked to make room: c has the older emulation version 1.1.0 (not 1.2.0)");
    fixture.remove("c");
    // A silent one is asked for its ack first (R15), and an operator's word goes before.
    fixture.keep(10);
    assert_eq!(fixture.pinged(), ["a"]);
    fixture.prefer("b", 100.0);
    fixture.best("b");
}

/// (R16) Under `elector.dev/sticky` a leader stays, and a vacant part goes to the member that it is assigned to.
#[test]
fn a_sticky_leader_stays_and_its_vacant_part_goes_where_it_is_assigned() {
    let mut fixture = led(&[("b", 2), ("a", 2), ("c", 2)]);
    for name in ["a", "b", "c"] {
        fixture.change_spec(name, |spec| {
            spec.strategy = StrategyName::parse("elector.dev/sticky").unwrap();
        });
        fixture.ack(name);
    }
    assign(&mut fixture, "c");
    fixture.best("b");
    fixture.release();
    fixture.ack("c");
    fixture.grants("c");
}

/// (R23) A part moves for balance once in ten minutes, and such a move is none of the three that better candidates have.
#[test]
fn moves_for_balance_have_a_budget_of_their_own() {
    let mut fixture = led(&[("b", 9), ("a", 9)]);
    move_to(&mut fixture, "a");
    fixture.keep(100);
    assign(&mut fixture, "b");
    fixture.ack("b");
    let within = Duration::from_secs(600);
    let expected = Some((HoldBackCause::Balanced { within }, 500));
    assert_eq!(held_back(&fixture), expected);
    fixture.says(
        "b is better, but a is not asked to make room for another 500.0s: the part was moved for balance within 600s",
    );
    // Three better candidates have leaders make room all the same.
    for (name, minor) in [("c0", 8), ("c1", 7), ("c2", 6)] {
        fixture.register(name, minor);
        fixture.ack(name);
        fixture.prefers(name);
        fixture.grant(name);
        fixture.accept();
        fixture.keep(10);
    }
    fixture.register("c3", 5);
    let budget = HoldBackCause::Preemptions { count: 3, within };
    let expected = Some(budget);
    assert_eq!(held_back(&fixture).map(|(because, _)| because), expected);
}

/// (R23) What a holder makes room for is judged by the candidates, whichever elector asked it; one that is better, or
/// follows a holder that is not eligible, does not come for balance.
#[test]
fn a_move_between_equals_of_one_group_is_one_for_balance() {
    let moved = |fixture: &mut ElectionFixture, to: &str| {
        fixture.edit(|record| {
            record.strategy = Some(StrategyName::oldest_emulation_version());
        });
        let strategy = fixture.record().strategy;
        let asked = fixture.record().preferring(Some(id(to)), strategy);
        fixture.lease(asked);
        fixture.grant(to);
        fixture.accept();
        fixture.overrides = OperatorOverrides::default();
        fixture.renew();
        // One that is better is held back by a budget of one, unless the move does not count against it.
        fixture.settings.timing.preemptions = 1;
        fixture.register("d", 0);
        fixture.action() == Action::Prefer
    };
    assert!(moved(&mut led(&[("b", 2), ("a", 2)]), "a"));
    assert!(!moved(&mut led(&[("b", 2), ("a", 1)]), "a"), "a is better");
    let mut of_another = led(&[("b", 2), ("a", 2)]);
    of_another.change_spec("a", |spec| spec.membership = None);
    assert!(!moved(&mut of_another, "a"), "a is no member");
    let mut preferred = led(&[("b", 2), ("a", 2)]);
    preferred.prefer("a", 100.0);
    assert!(!moved(&mut preferred, "a"), "an operator prefers a");
    let mut stands_down = led(&[("b", 2), ("a", 2)]);
    stands_down.stand_down("b", Some(StandDown::Untimed));
    assert!(!moved(&mut stands_down, "a"), "b is to stand down");
}

/// (R16) Another assignment is news: the first preference of a term is withdrawn at once, and later ones stand as long as
/// any other that this elector sees no reason for.
#[test]
fn another_assignment_withdraws_the_first_preference_at_once() {
    let mut fixture = led(&[("b", 2), ("a", 2)]);
    assign(&mut fixture, "a");
    fixture.prefers("a");
    assign(&mut fixture, "b");
    fixture.says("b is no longer asked to make room: a is not better than the holder");
    assert_eq!(fixture.action(), Action::Withdraw);
    fixture.write();
    assign(&mut fixture, "a");
    fixture.ack("a");
    fixture.prefers("a");
    assign(&mut fixture, "b");
    assert_reason!(fixture, Reason::AwaitYield { .. });
    fixture.pass(4.0);
    assert_eq!(fixture.action(), Action::Withdraw);
}
