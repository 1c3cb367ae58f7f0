//! A lease that somebody leads: preferences, lateness, expiry.

use std::time::Duration;

use elector_protocol::elector::{Action, PreferenceField, Reason};
use elector_protocol::{CandidateSpec, LeaseRecord, Timestamp};

use crate::world::{World, id, lease_write};

#[test]
fn standbys_are_pinged_before_it_hurts_and_the_late_holder_is_not_waited_for() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    world.list("b", "1.2.0");
    let decision = world.step();
    assert_eq!(decision.action(), Action::None);
    assert_eq!(
        decision.wake_at(),
        Some(world.now.after(Duration::from_secs(10)))
    );
    world.pass(10.0);
    let decision = world.step();
    assert_eq!(world.deliver_pings(&decision), ["a", "b"]);
    world.ack("b");
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "a is late with its renewal; b is next"
    );
    assert_eq!(lease_write(&decision), None);
    assert_eq!(
        decision.wake_at(),
        Some(world.now.after(Duration::from_secs(2))),
        "a's window ends first"
    );
    world.pass(5.0);
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "a has not renewed for 15s; b is the only one that answers; better ones do not answer: a"
    );
    assert_eq!(world.apply(&decision).term.0, 2);
}

#[test]
fn an_expired_holder_that_acks_is_granted_a_new_term() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    world.pass(10.0);
    let decision = world.step();
    world.deliver_pings(&decision);
    world.pass(0.1);
    world.ack("a");
    world.pass(5.0);
    let decision = world.step();
    let record = world.apply(&decision);
    assert_eq!(
        (record.holder, record.term.0, record.token),
        (Some(id("a")), 2, None)
    );
}

#[test]
fn a_renewal_restarts_the_stop_watch_and_a_label_does_not() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    world.pass(9.0);
    let record = world.record();
    world.lease(record);
    world.pass(1.0);
    assert!(matches!(world.step().reason, Reason::HolderLate { .. }));
    world.renew();
    assert!(matches!(world.step().reason, Reason::HolderIsBest(_)));
}

#[test]
fn a_better_candidate_is_preferred_and_an_equal_one_is_not() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("a", "1.2.0");
    assert_eq!(world.step().reason, Reason::HolderIsBest(id("b")));
    world.register("c", "1.1.0");
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "b is asked to make room: c has the older emulation version 1.1.0 (not 1.2.0)"
    );
    let before = world.record();
    let after = world.apply(&decision);
    assert_eq!(
        after,
        before.preferring(Some(id("c")), after.strategy.clone())
    );
    assert!(matches!(world.step().reason, Reason::AwaitYield { .. }));
}

#[test]
fn a_preference_is_withdrawn_when_its_reason_vanishes() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("c", "1.1.0");
    let decision = world.step();
    world.apply(&decision);
    let preferred = world.election.clone();

    world.election.handle_candidate_gone(&id("c"), None);
    assert_eq!(world.step().action(), Action::Withdraw, "gone");

    world.election = preferred.clone();
    world.change("c", |c| {
        c.spec = CandidateSpec::parse("1.40.0", "1.2.0", "OldestEmulationVersion");
    });
    assert_eq!(
        world.step().action(),
        Action::Withdraw,
        "not better any more"
    );

    world.election = preferred;
    world.pass(5.0);
    let decision = world.step();
    assert_eq!(
        world.deliver_pings(&decision),
        ["c"],
        "a preference must not outlive its candidate"
    );
    world.pass(2.0);
    let decision = world.step();
    assert_eq!(
        decision.reason.to_string(),
        "b need not make room any more: c does not answer"
    );
    assert_eq!(world.apply(&decision).preferred_holder, None);
    assert!(
        matches!(world.step().reason, Reason::BetterIsSilent { .. }),
        "and it is not preferred again"
    );
}

/// Found by the simulation: one elector remembered a failed grant a little longer than the other, and for as long as it
/// did they took each other's word back, tens of times a second.
#[test]
fn electors_that_remember_a_failed_grant_differently_do_not_withdraw_each_others_preference() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.register("b", "1.2.0");
    world.lease(LeaseRecord::born(None));
    let decision = world.step();
    assert_eq!(world.apply(&decision).holder, Some(id("a")));
    world.pass(4.0);
    world.ack("b");
    world.pass(1.0);
    let decision = world.step();
    assert_eq!(world.apply(&decision).holder, Some(id("b")));
    world.accept();
    world.ack("a");
    assert_eq!(world.step().reason, Reason::HolderIsBest(id("b")));

    let others = world.record().preferring(Some(id("a")), None);
    world.lease(others);
    let decision = world.step();
    assert!(
        matches!(decision.reason, Reason::AwaitYield { .. }) && decision.effects.is_empty(),
        "{decision:?}"
    );
    world.pass(5.0);
    let decision = world.step();
    assert_eq!(
        world.deliver_pings(&decision),
        ["a"],
        "it must not outlive a"
    );
    world.pass(2.0);
    assert_eq!(world.step().action(), Action::Withdraw);
}

/// Found by the simulation: an elector that had slept took what it read then for fresh, and preferred whom another one
/// knew not to answer. That one withdrew it, and so on.
#[test]
fn no_candidate_is_preferred_while_a_ping_of_it_is_open() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("c", "1.1.0");
    world.change("c", |c| c.ping = c.next_ping());
    let decision = world.step();
    assert!(
        matches!(decision.reason, Reason::AwaitAck(_)) && decision.effects.is_empty(),
        "{decision:?}"
    );
    world.pass(2.0);
    assert!(matches!(world.step().reason, Reason::BetterIsSilent { .. }));
    world.ack("c");
    assert_eq!(world.step().action(), Action::Prefer);
}

#[test]
fn no_candidate_that_cannot_be_pinged_again_is_preferred() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("c", "1.1.0");
    world.change("c", |c| c.renew = Some(Timestamp::MAX));
    assert!(matches!(world.step().reason, Reason::BetterIsSilent { .. }));
    world.change("c", |c| c.renew = Timestamp::from_micros(1));
    assert_eq!(world.step().action(), Action::Prefer);
}

#[test]
fn a_holder_that_cannot_be_asked_to_yield_is_left_alone() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.change("b", |candidate| candidate.marked = false);
    let without_token = LeaseRecord {
        token: None,
        token_term: None,
        ..world.record()
    };
    world.lease(without_token);
    world.register("c", "1.1.0");
    world.settings.preference_field = PreferenceField::Dropped;
    let decision = world.step();
    assert!(
        matches!(decision.reason, Reason::HolderCannotYield { .. }) && decision.effects.is_empty()
    );
    world.settings.preference_field = PreferenceField::Kept;
    assert_eq!(world.step().action(), Action::Prefer);
}

#[test]
fn a_holder_that_wrote_a_token_can_be_asked_to_yield_whatever_its_candidate_says() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.change("b", |candidate| candidate.marked = false);
    world.register("c", "1.1.0");
    world.settings.preference_field = PreferenceField::Dropped;
    assert_eq!(world.step().action(), Action::Prefer);
}

#[test]
fn a_live_holder_without_candidate_is_never_touched() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.lease(LeaseRecord {
        holder: Some(id("plain")),
        duration_seconds: Some(15),
        renew_time: Some(world.wall()),
        ..LeaseRecord::default()
    });
    let decision = world.step();
    assert_eq!(
        (decision.action(), decision.effects.len()),
        (Action::Leave, 0)
    );
    world.pass(15.0);
    let decision = world.step();
    world.deliver_pings(&decision);
    world.ack("a");
    assert!(matches!(&world.step().reason, Reason::Granted { to, .. } if to == &id("a")));
}
