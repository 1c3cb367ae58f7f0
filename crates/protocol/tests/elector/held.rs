//! A lease under a holder: preferences, lateness, expiry.

use std::time::Duration;

use elector_protocol::elector::{Action, PreferenceField, Reason};
use elector_protocol::{CandidateSpec, LeaseRecord, Timestamp};

use crate::fixture::{ElectionFixture, id, lease_write};

#[test]
fn standbys_are_pinged_before_it_hurts_and_the_late_holder_is_not_waited_for() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    fixture.list("b", "1.2.0");
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::None);
    assert_eq!(
        decision.wake_at(),
        Some(fixture.now.after(Duration::from_secs(10)))
    );
    fixture.pass(10.0);
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["a", "b"]);
    fixture.ack("b");
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "a is late with its renewal; b is next"
    );
    assert_eq!(lease_write(&decision), None);
    assert_eq!(
        decision.wake_at(),
        Some(fixture.now.after(Duration::from_secs(2))),
        "a's window ends first"
    );
    fixture.pass(5.0);
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "a has not renewed for 15s; b is the only one that answers; better ones do not answer: a"
    );
    assert_eq!(fixture.apply(&decision).term.0, 2);
}

#[test]
fn an_expired_holder_that_acks_is_granted_a_new_term() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    fixture.pass(10.0);
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.pass(0.1);
    fixture.ack("a");
    fixture.pass(5.0);
    let decision = fixture.step();
    let record = fixture.apply(&decision);
    assert_eq!(
        (record.holder, record.term.0, record.token),
        (Some(id("a")), 2, None)
    );
}

#[test]
fn a_renewal_restarts_the_stop_watch_and_a_label_does_not() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    fixture.pass(9.0);
    let record = fixture.record();
    fixture.lease(record);
    fixture.pass(1.0);
    assert!(matches!(fixture.step().reason, Reason::HolderLate { .. }));
    fixture.renew();
    assert!(matches!(fixture.step().reason, Reason::HolderIsBest(_)));
}

#[test]
fn a_better_candidate_is_preferred_and_an_equal_one_is_not() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("a", "1.2.0");
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("b")));
    fixture.register("c", "1.1.0");
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "b is asked to make room: c has the older emulation version 1.1.0 (not 1.2.0)"
    );
    let before = fixture.record();
    let after = fixture.apply(&decision);
    assert_eq!(
        after,
        before.preferring(Some(id("c")), after.strategy.clone())
    );
    assert!(matches!(fixture.step().reason, Reason::AwaitYield { .. }));
}

#[test]
fn a_preference_is_withdrawn_when_its_reason_vanishes() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("c", "1.1.0");
    let decision = fixture.step();
    fixture.apply(&decision);
    let preferred = fixture.election.clone();

    fixture.election.handle_candidate_gone(&id("c"), None);
    assert_eq!(fixture.step().action(), Action::Withdraw, "gone");

    fixture.election = preferred.clone();
    fixture.change("c", |c| {
        c.spec = CandidateSpec::parse("1.40.0", "1.2.0", "OldestEmulationVersion").into();
    });
    assert_eq!(
        fixture.step().action(),
        Action::Withdraw,
        "not better any more"
    );

    fixture.election = preferred;
    fixture.pass(5.0);
    let decision = fixture.step();
    assert_eq!(
        fixture.deliver_pings(&decision),
        ["c"],
        "a preference must not outlive its candidate"
    );
    fixture.pass(2.0);
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "b is no longer asked to make room: c does not answer"
    );
    assert_eq!(fixture.apply(&decision).preferred_holder, None);
    assert!(
        matches!(fixture.step().reason, Reason::BetterIsSilent { .. }),
        "and it is not preferred again"
    );
}

/// Found by the simulation: one elector remembered a failed grant a little longer than the other, and for as long as it
/// did they took each other's word back, tens of times a second.
#[test]
fn electors_that_remember_a_failed_grant_differently_do_not_withdraw_each_others_preference() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.register("b", "1.2.0");
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).holder, Some(id("a")));
    fixture.pass(4.0);
    fixture.ack("b");
    fixture.pass(1.0);
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).holder, Some(id("b")));
    fixture.accept();
    fixture.ack("a");
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("b")));

    let others = fixture.record().preferring(Some(id("a")), None);
    fixture.lease(others);
    let decision = fixture.step();
    assert!(
        matches!(decision.reason, Reason::AwaitYield { .. }) && decision.effects.is_empty(),
        "{decision:?}"
    );
    fixture.pass(5.0);
    let decision = fixture.step();
    assert_eq!(
        fixture.deliver_pings(&decision),
        ["a"],
        "it must not outlive a"
    );
    fixture.pass(2.0);
    assert_eq!(fixture.step().action(), Action::Withdraw);
}

/// Found by the simulation: an elector that had slept took what it read then for fresh, and preferred a candidate that
/// another one knew to be silent. That one withdrew it, and so on.
#[test]
fn no_candidate_is_preferred_while_a_ping_of_it_is_open() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("c", "1.1.0");
    fixture.change("c", |c| c.ping = c.next_ping());
    let decision = fixture.step();
    assert!(
        matches!(decision.reason, Reason::AwaitAck(_)) && decision.effects.is_empty(),
        "{decision:?}"
    );
    fixture.pass(2.0);
    assert!(matches!(
        fixture.step().reason,
        Reason::BetterIsSilent { .. }
    ));
    fixture.ack("c");
    assert_eq!(fixture.step().action(), Action::Prefer);
}

#[test]
fn no_candidate_that_cannot_be_pinged_again_is_preferred() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("c", "1.1.0");
    fixture.change("c", |c| c.renew = Some(Timestamp::MAX));
    assert!(matches!(
        fixture.step().reason,
        Reason::BetterIsSilent { .. }
    ));
    fixture.change("c", |c| c.renew = Timestamp::from_micros(1));
    assert_eq!(fixture.step().action(), Action::Prefer);
}

#[test]
fn a_holder_that_cannot_be_asked_to_yield_is_left_alone() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.change("b", |candidate| candidate.marked = false);
    let without_token = LeaseRecord {
        token: None,
        token_term: None,
        ..fixture.record()
    };
    fixture.lease(without_token);
    fixture.register("c", "1.1.0");
    fixture.settings.preference_field = PreferenceField::Dropped;
    let decision = fixture.step();
    assert!(
        matches!(decision.reason, Reason::HolderCannotYield { .. }) && decision.effects.is_empty()
    );
    fixture.settings.preference_field = PreferenceField::Kept;
    assert_eq!(fixture.step().action(), Action::Prefer);
}

#[test]
fn a_holder_that_wrote_a_token_can_be_asked_to_yield_whatever_its_candidate_says() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.change("b", |candidate| candidate.marked = false);
    fixture.register("c", "1.1.0");
    fixture.settings.preference_field = PreferenceField::Dropped;
    assert_eq!(fixture.step().action(), Action::Prefer);
}

#[test]
fn a_live_holder_without_candidate_is_never_touched() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.lease(LeaseRecord {
        holder: Some(id("plain")),
        duration_seconds: Some(15),
        renew_time: Some(fixture.wall()),
        ..LeaseRecord::default()
    });
    let decision = fixture.step();
    assert_eq!(
        (decision.action(), decision.effects.len()),
        (Action::Leave, 0)
    );
    fixture.pass(15.0);
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.ack("a");
    assert!(matches!(&fixture.step().reason, Reason::Granted { to, .. } if to == &id("a")));
}
