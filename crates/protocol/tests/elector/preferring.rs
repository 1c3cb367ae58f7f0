//! Preferences: to which candidates they go, what they change of a live lease, and how long they stand (R7, R16).

use std::time::Duration;

use elector_protocol::elector::{Action, PreferenceField, Reason, WakeReason};
use elector_protocol::{LeaseRecord, StrategyName, Timestamp};

use crate::fixture::{ElectionChange, ElectionFixture, assert_reason, id};

/// `b` leads, and `c` is preferred to it.
fn preferred() -> ElectionFixture {
    let mut fixture = ElectionFixture::led(&[("b", 2), ("c", 1)]);
    fixture.prefers("c");
    fixture
}

/// (R7) A preference also says by which strategy it was decided; a withdrawal clears the preference and nothing else.
#[test]
fn a_preference_and_its_withdrawal_change_the_signals_and_nothing_else() {
    let mut fixture = ElectionFixture::led(&[("b", 2)]);
    fixture.edit(|record| record.strategy = None);
    let stamped = LeaseRecord {
        preferred_holder: Some(id("c")),
        strategy: Some(StrategyName::oldest_emulation_version()),
        ..fixture.record()
    };
    fixture.register("c", 1);
    assert_eq!(fixture.write(), stamped);
    fixture.pass(1.0);
    fixture.remove("c");
    assert_eq!(fixture.action(), Action::Withdraw);
    let withdrawn = LeaseRecord {
        preferred_holder: None,
        ..stamped
    };
    assert_eq!(fixture.write(), withdrawn);
}

/// (R16) Strictly better by the strategy's keys: any eligible candidate is, where the holder is not eligible itself.
#[test]
fn a_better_candidate_is_preferred_and_an_equal_one_is_not() {
    let mut fixture = ElectionFixture::led(&[("b", 2), ("a", 2), ("d", 3)]);
    fixture.best("b");
    fixture.register("c", 1);
    fixture.says("b is asked to make room: c has the older emulation version 1.1.0 (not 1.2.0)");
    fixture.remove("c");
    fixture.change_version("b", "1.40.0", "");
    fixture.says("b is asked to make room: a can be elected, the holder cannot");
}

/// (R16, L3) A preference moves strictly up, and never sideways.
#[test]
fn a_preference_moves_to_a_better_one_and_not_to_an_equal_one() {
    let mut fixture = preferred();
    fixture.register("a", 1);
    assert_reason!(fixture, Reason::AwaitYield { .. });
    fixture.register("d", 0);
    fixture.prefers("d");
}

#[test]
fn a_preference_is_withdrawn_when_its_reason_vanishes() {
    let changes: [(&str, ElectionChange); 3] = [
        ("c is no candidate any more", |it| it.remove("c")),
        ("c is not better than the holder", |it| {
            it.change_version("c", "1.40.0", "1.2.0");
        }),
        ("b is the holder itself", |it| {
            it.preferred_by_another(Some("b"));
        }),
    ];
    for (why, change) in changes {
        let mut fixture = preferred();
        change(&mut fixture);
        fixture.says(&format!("b is no longer asked to make room: {why}"));
        assert_eq!(fixture.write().preferred_holder, None);
    }
}

/// (R16, L6) It is withdrawn when the candidate falls silent, and the elector is awake when that shows.
#[test]
fn a_preference_is_looked_after_until_its_candidate_is_silent() {
    let mut fixture = preferred();
    assert_eq!(fixture.wake(), (5.0, WakeReason::PreferenceStale));
    fixture.pass(5.0);
    assert_eq!(fixture.ping(), ["c"]);
    assert_eq!(fixture.pinged(), [""; 0]);
    assert_eq!(fixture.wake(), (2.0, WakeReason::AckWindow));
    fixture.pass(2.0);
    fixture.says("b is no longer asked to make room: c does not answer");
    assert_eq!(fixture.write().preferred_holder, None);
    assert_reason!(fixture, Reason::BetterIsSilent { .. });
}

/// (R15, L5) A holder that does not make room costs ever fewer pings of the candidate that it should make room for.
#[test]
fn a_preferred_candidate_is_pinged_ever_more_seldom_up_to_a_minute() {
    let mut fixture = preferred();
    let start = fixture.now;
    let mut pings = Vec::new();
    while fixture.now < start.after(Duration::from_secs(300)) {
        fixture.keep(1);
        let due = fixture.step().wake_at().unwrap();
        if fixture.ping() == ["c"] {
            pings.push(fixture.now.since(start).as_secs());
            fixture.ack("c");
        } else {
            assert!(due > fixture.now, "it sleeps until the ping");
        }
    }
    assert_eq!(pings, [5, 10, 20, 40, 80, 140, 200, 260]);

    // The last of them stays without an ack.
    fixture.keep(20);
    assert_eq!(fixture.ping(), ["c"]);
    fixture.keep(2);
    assert_eq!(fixture.action(), Action::Withdraw);
}

/// (R15, R16) What another elector prefers is withdrawn when both the ack window and the time of the preference are over,
/// and the elector wakes for both.
#[test]
fn a_preference_of_another_elector_waits_for_an_ack_and_for_its_own_time() {
    let mut fixture = ElectionFixture::led(&[("b", 2), ("c", 1)]);
    fixture.keep(10);
    assert_eq!(fixture.ping(), ["c"]);
    fixture.keep(1);
    fixture.preferred_by_another(Some("c"));
    assert_eq!(fixture.wake(), (1.0, WakeReason::AckWindow));
    fixture.keep(1);
    assert_eq!(fixture.wake().0, 1.0);
    fixture.keep(1);
    assert_eq!(fixture.action(), Action::Withdraw);
}

/// (R15, L6) Where the lease has changed hands, the ack of long ago is old at once.
#[test]
fn a_preferred_candidate_is_pinged_at_once_when_the_lease_changes_hands() {
    let mut fixture = preferred();
    fixture.register("d", 3);
    for seconds in [5, 5, 10, 20] {
        fixture.keep(seconds);
        assert_eq!(fixture.ping(), ["c"]);
        fixture.ack("c");
    }
    fixture.keep(10);
    assert_eq!(fixture.pinged(), [""; 0]);
    fixture.grant("d");
    fixture.accept();
    fixture.preferred_by_another(Some("c"));
    assert_eq!(fixture.pinged(), ["c"]);
}

/// (R7) A holder is asked by the annotation where it is marked or wrote a token, and by the field where the server keeps
/// that. One that can see neither is not asked, and not left with a preference.
#[test]
fn a_holder_that_cannot_see_a_preference_is_left_alone() {
    use PreferenceField::{Dropped, Kept, Unknown};
    for (marked, token, field, asked) in [
        (true, false, Dropped, true),
        (false, true, Dropped, true),
        (false, false, Dropped, false),
        (false, false, Kept, true),
        (false, false, Unknown, true),
    ] {
        let mut fixture = ElectionFixture::led(&[("b", 2), ("c", 1)]);
        fixture.change("b", |candidate| candidate.marked = marked);
        if !token {
            fixture.edit(|record| (record.token, record.token_term) = (None, None));
        }
        fixture.settings.preference_field = field;
        let (action, then) = match asked {
            true => (Action::Prefer, Action::Wait),
            false => (Action::None, Action::Withdraw),
        };
        assert_eq!(fixture.action(), action, "{}", fixture.reason());
        if !asked {
            fixture.says(
                "c is better, but b cannot be asked to yield: the server drops spec.preferredHolder and b does not read \
                 the annotation",
            );
        }
        fixture.preferred_by_another(Some("c"));
        assert_eq!(fixture.action(), then, "{}", fixture.reason());
    }
}

/// Found by the simulation: one elector remembered a failed grant a little longer than the other, and for as long as it
/// did they took each other's word back, tens of times a second.
#[test]
fn electors_that_remember_a_failed_grant_differently_do_not_withdraw_each_others_preference() {
    let mut fixture = ElectionFixture::led(&[("b", 2), ("a", 1)]);
    fixture.grant("a");
    fixture.grant("b");
    fixture.accept();
    fixture.best("b");
    fixture.preferred_by_another(Some("a"));
    assert_reason!(fixture, Reason::AwaitYield { .. });
    assert_eq!(fixture.step().effects, []);
    fixture.pass(5.0);
    assert_eq!(fixture.ping(), ["a"], "it must not outlive a");
    fixture.pass(2.0);
    assert_eq!(fixture.action(), Action::Withdraw);
}

/// Found by the simulation: an elector that had slept took what it read then for fresh, and preferred a candidate that
/// another one knew to be silent. That one withdrew it, and so on. One that cannot be pinged at all is not preferred
/// either.
#[test]
fn no_candidate_is_preferred_while_a_ping_of_it_is_open_or_cannot_be_written() {
    let mut fixture = ElectionFixture::led(&[("b", 2), ("c", 1)]);
    fixture.change("c", |candidate| candidate.ping = candidate.next_ping());
    fixture.says("waiting for the ack of c");
    assert_eq!(fixture.step().effects, []);
    fixture.pass(2.0);
    fixture.says("b leads; better candidates do not answer: c");
    fixture.ack("c");
    assert_eq!(fixture.action(), Action::Prefer);
    fixture.change("c", |candidate| {
        (candidate.renew, candidate.ping) = (Some(Timestamp::MAX), None);
    });
    fixture.says("b leads; better candidates do not answer: c");
    fixture.change("c", |candidate| candidate.renew = Some(Timestamp::MIN));
    assert_eq!(fixture.action(), Action::Prefer);
}
