//! Which candidates the elector pings, when, and for how long it waits for them (R15).

use elector_protocol::elector::{Action, Effect, Reason, WakeReason};
use elector_protocol::{LeaseRecord, Timestamp};

use crate::fixture::{ElectionFixture, assert_reason, held, id, pinged};

const SEVEN: [(&str, u64); 7] = [
    ("a", 1),
    ("b", 2),
    ("c", 3),
    ("d", 4),
    ("e", 5),
    ("f", 6),
    ("g", 7),
];

/// (R15) The best first, then the next two, then all; one that still has time is one of the next two.
#[test]
fn the_best_is_pinged_first_then_two_then_all() {
    for (unmarked, rounds) in [
        ("g", ["a", "b c", "d e f g", ""]),
        ("b", ["a", "b c", "d", "e f g"]),
    ] {
        let mut fixture = ElectionFixture::open(&SEVEN);
        fixture.change(unmarked, |candidate| candidate.marked = false);
        for expected in rounds {
            assert_eq!(fixture.ping().join(" "), expected, "{unmarked}");
            assert_eq!(fixture.pinged(), [""; 0]);
            fixture.pass(2.0);
        }
        fixture.pass(3.0);
        fixture.says("no candidate answers: a, b, c, d, e, f, g");
    }
}

/// (R15) The best one that acks is granted the lease, when the better ones had their time.
#[test]
fn no_candidate_is_granted_before_its_ack_and_the_time_of_the_better_ones() {
    let mut fixture = ElectionFixture::open(&SEVEN);
    fixture.ping();
    fixture.says("waiting for the ack of a");
    fixture.pass(2.0);
    fixture.ping();
    fixture.ack("c");
    fixture.says("waiting for the ack of b");
    fixture.pass(2.0);
    let decision = fixture.step();
    assert_eq!(pinged(&decision), [""; 0]);
    let Reason::Granted { to, silent, .. } = decision.reason else {
        panic!("{}", decision.reason)
    };
    assert_eq!((to, silent), (id("c"), vec![id("a"), id("b")]));

    let mut fixture = ElectionFixture::open(&SEVEN);
    fixture.ping();
    fixture.ack("a");
    fixture.grants("a");
}

#[test]
fn a_grant_says_whether_others_did_not_answer() {
    for (candidates, expected) in [
        (&[("b", 2)][..], "is the only candidate"),
        (&[("a", 1), ("b", 2)], "is the only one that answers"),
    ] {
        let mut fixture = ElectionFixture::open(candidates);
        if fixture.ping() == ["a"] {
            fixture.pass(2.0);
            fixture.ping();
        }
        fixture.ack("b");
        let because = match fixture.reason() {
            Reason::Granted { because, .. } => because,
            other => panic!("{other}"),
        };
        assert_eq!(because, expected);
    }
}

/// (R15) Also in the step that creates the Lease, so that the ack is there with it; and once in a step.
#[test]
fn a_ping_is_the_candidates_own_time_and_one_microsecond() {
    let mut fixture = ElectionFixture::new();
    fixture.list("a", 1);
    fixture.pass(901.0);
    for action in [Action::Create, Action::Ping] {
        let decision = fixture.step();
        assert_eq!(decision.action(), action);
        assert_eq!(pinged(&decision), ["a"]);
        let next = fixture.candidate("a").renew.unwrap().next();
        let is_next =
            |effect: &Effect| matches!(effect, Effect::Ping { ping, .. } if Some(*ping) == next);
        assert!(decision.effects.iter().any(is_next), "{decision:?}");
        fixture.lease(LeaseRecord::born(None));
    }
}

/// (R15) When all are silent for 30 s, those passed over (R5) included, by a microsecond more each time.
#[test]
fn silent_candidates_are_pinged_again_when_all_are_silent() {
    for passed_over in [false, true] {
        let mut fixture = ElectionFixture::open(&[("a", 1)]);
        if passed_over {
            fixture.grant("a");
            fixture.release();
            fixture.pass(6.0);
        }
        assert_eq!(fixture.ping(), ["a"]);
        assert_eq!(fixture.wake(), (2.0, WakeReason::AckWindow));
        let first = fixture.candidate("a").ping.unwrap();
        fixture.pass(2.0);
        assert_eq!(fixture.wake(), (28.0, WakeReason::RePing));
        fixture.pass(27.999);
        assert_eq!(fixture.pinged(), [""; 0]);
        fixture.pass(0.001);
        assert_eq!(fixture.ping(), ["a"]);
        assert_eq!(fixture.candidate("a").ping, first.next());
    }
}

/// (R15) While one candidate still has time to ack, no ping is repeated.
#[test]
fn no_ping_is_repeated_while_an_ack_is_awaited() {
    let mut fixture = ElectionFixture::open(&[("a", 1)]);
    fixture.ping();
    fixture.pass(30.0);
    fixture.list("b", 2);
    assert_eq!(fixture.ping(), ["b"]);
    assert_eq!(fixture.pinged(), [""; 0]);
    fixture.pass(2.0);
    assert_eq!(fixture.pinged(), ["a"], "`b` was pinged 2 s ago");
}

/// (R15) A preference is no such need: a better candidate that is silent is not pinged again under a holder that
/// renews.
#[test]
fn no_ping_is_repeated_for_the_sake_of_a_preference() {
    let mut fixture = ElectionFixture::led(&[("b", 2)]);
    fixture.list("a", 1);
    assert_eq!(fixture.ping(), ["a"]);
    for _ in 0..60 {
        fixture.keep(1);
        assert_eq!(fixture.pinged(), [""; 0]);
    }
}

/// (R15) An account that fills a namespace with candidates that never answer must not cause writes at a steady pace.
#[test]
fn candidates_that_never_answer_are_pinged_ever_less_often_until_they_are_collected() {
    let mut fixture = ElectionFixture::open(&[("a", 1)]);
    let mut pings = Vec::new();
    let collects = |effect: &Effect| matches!(effect, Effect::Collect { .. });
    let collected = (0..3600).find(|second| {
        let collected = fixture.step().effects.iter().any(collects);
        if fixture.ping() == ["a"] {
            pings.push(*second);
        }
        fixture.pass(1.0);
        collected
    });
    assert_eq!(pings, [0, 30, 60, 120, 240, 480, 960]);
    assert_eq!(collected, Some(1800));
}

/// (R15) The former holder is pinged anew, since what it said before it let go is old, and waited for if need be. The
/// reason is the same before and after the watch brings the ping.
#[test]
fn a_former_holder_is_waited_for_when_there_is_no_other() {
    for other in [None, Some(Timestamp::MAX)] {
        let mut fixture = ElectionFixture::led(&[("a", 1)]);
        if other.is_some() {
            fixture.list("b", 2);
            fixture.change("b", |candidate| candidate.renew = other);
        }
        fixture.pass(6.0);
        fixture.release();
        fixture.says("waiting for the ack of a");
        assert_eq!(fixture.ping(), ["a"]);
        fixture.says("waiting for the ack of a");
        assert_eq!(fixture.action(), Action::Wait);
        assert_eq!(fixture.wake(), (2.0, WakeReason::AckWindow));
        fixture.pass(0.5);
        fixture.ack("a");
        fixture.grants("a");
    }
}

/// (R15) A ping that an ack did not reach is lowered to it, once.
#[test]
fn an_ack_of_a_slow_clock_counts_and_is_settled_at_once() {
    let mut fixture = ElectionFixture::open(&[("a", 1)]);
    fixture.ping();
    let slow = Timestamp::from_micros(7);
    fixture.change("a", |candidate| candidate.renew = slow);
    assert_eq!(fixture.action(), Action::Grant);
    assert_eq!(fixture.ping(), ["a"]);
    assert_eq!(fixture.candidate("a").ping, slow);
    assert_eq!(fixture.pinged(), [""; 0], "settled once");
}

#[test]
fn a_candidate_at_the_end_of_time_is_passed_by_until_it_writes() {
    let mut fixture = ElectionFixture::open(&[("a", 1)]);
    fixture.change("a", |candidate| candidate.renew = Some(Timestamp::MAX));
    fixture.pass(10.0);
    fixture.list("b", 2);
    assert_eq!(fixture.ping(), ["b"]);
    fixture.ack("b");
    fixture.grants("b");
}

/// (R15) An ack of the round counts although it is not fresh any more, and is no reason to look again.
#[test]
fn an_ack_that_is_stale_already_wakes_no_elector() {
    let mut fixture = ElectionFixture::new();
    fixture.lease(held("plain", Some(60)));
    fixture.list("b", 2);
    fixture.pass(40.0);
    fixture.ping();
    assert_eq!(fixture.wake(), (2.0, WakeReason::AckWindow));
    fixture.pass(1.0);
    fixture.ack("b");
    assert_eq!(fixture.wake(), (5.0, WakeReason::AckStale));
    fixture.pass(5.0);
    assert_eq!(fixture.wake(), (14.0, WakeReason::Expiry));
    assert_reason!(fixture, Reason::HolderLate { .. });
}
