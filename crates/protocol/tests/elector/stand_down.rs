//! Candidates that an operator tells to stand down, until a time (R16).

use std::time::Duration;

use elector_protocol::elector::{
    Action, Explanation, IgnoredOverride, Objects, Reason, WakeReason,
};
use elector_protocol::{OutOfTime, Rejection, StandDown};

use crate::fixture::{DAY, ElectionFixture, assert_reason, id};

/// `a` leads, and `b` is the next; an operator orders `a` to stand down for some seconds, or without a time.
fn stands_down(seconds: Option<f64>) -> ElectionFixture {
    let mut fixture = ElectionFixture::led(&[("a", 0), ("b", 1)]);
    let said = match seconds {
        None => StandDown::Untimed,
        Some(seconds) => StandDown::Until(fixture.wall_after(seconds)),
    };
    fixture.stand_down("a", Some(said));
    fixture
}

/// Seconds pass at once, after which both candidates are alive and the leader has renewed.
fn skip(fixture: &mut ElectionFixture, seconds: f64) {
    fixture.pass(seconds);
    for name in ["a", "b"] {
        fixture.ack(name);
    }
    fixture.renew();
}

/// The explanation of what the objects say alone.
pub(crate) fn explained(fixture: &ElectionFixture) -> Explanation {
    let lease = fixture.election.lease().cloned();
    let objects = Objects {
        lease: lease.map(|lease| (lease, fixture.wall())),
        candidates: fixture.election.candidates().cloned().collect(),
        ..Objects::default()
    };
    Explanation::of(&objects, fixture.wall(), &fixture.settings)
}

/// Until the time that is said; without one for a day from when it was first seen, whatever the candidate writes.
#[test]
fn a_leader_makes_room_until_the_time_is_over() {
    for (said, seconds) in [(Some(60.0), 60.0), (None, f64::from(DAY))] {
        let mut fixture = stands_down(said);
        fixture.says("a is asked to make room: b can be elected, the holder cannot");
        let ranked = fixture.ranking().candidates;
        let ranked = ranked.iter().find(|each| each.name == id("a")).unwrap();
        assert_eq!(
            ranked.reason,
            format!("the annotation elector.dev/stand-down excludes it for another {seconds:.1}s")
        );
        skip(&mut fixture, seconds - 1.0);
        assert_eq!(fixture.action(), Action::Prefer);
        skip(&mut fixture, 1.0);
        fixture.best("a");
        // A day anew where it is said anew.
        fixture.stand_down("a", None);
        fixture.stand_down("a", Some(StandDown::Untimed));
        assert_eq!(fixture.action(), Action::Prefer);
    }
}

/// Nothing else would have the elector look again.
#[test]
fn the_elector_looks_again_when_the_time_is_over() {
    let mut fixture = stands_down(Some(1.5));
    fixture.remove("b");
    let reason = Reason::NoEligible {
        name: id("a"),
        rejection: Rejection::StandsDown(Duration::from_millis(1500)),
        others: 0,
    };
    assert_eq!(fixture.reason(), reason);
    assert_eq!(fixture.wake(), (1.5, WakeReason::StandDown));
}

/// The objects do not tell when it was written.
#[test]
fn a_word_without_a_time_is_explained_as_one_that_counts() {
    let mut fixture = stands_down(None);
    fixture.pass(f64::from(DAY));
    let explained = explained(&fixture).candidates;
    let explained = explained.iter().find(|each| each.name == id("a"));
    assert!(!explained.unwrap().eligible, "{explained:?}");
}

#[test]
fn a_time_more_than_a_day_ahead_does_not_count_and_is_told() {
    let mut fixture = stands_down(Some(f64::from(DAY) + 1.0));
    fixture.best("a");
    let ignored = IgnoredOverride::StandDown {
        candidate: id("a"),
        until: fixture.wall_after(f64::from(DAY) + 1.0),
        why: OutOfTime::TooFarAhead,
    };
    assert_eq!(explained(&fixture).ignored, [ignored]);
    skip(&mut fixture, 1.0);
    assert_eq!(fixture.action(), Action::Prefer);
}

/// Its wish does not count: an operator gets a lease back from a candidate of a foreign strategy.
#[test]
fn the_wish_of_what_stands_down_does_not_count() {
    let mut fixture = ElectionFixture::led(&[("a", 0), ("b", 1)]);
    fixture.wish("b", "999.0.0", "x.example/y");
    assert_reason!(fixture, Reason::ForeignStrategy(_));
    fixture.stand_down("b", Some(StandDown::Untimed));
    fixture.best("a");
}
