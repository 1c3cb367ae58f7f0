//! Candidates that an operator tells to stand down, until a time (R16).

use std::time::Duration;

use elector_protocol::elector::{Action, Explanation, IgnoredWord, Objects, Reason, WakeReason};
use elector_protocol::{CandidateSpec, OutOfTime, Rejection, StandDown};

use crate::fixture::{DAY, ElectionFixture, id};

/// `a` leads, and `b` is the next.
fn led() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.0.0");
    fixture.register("b", "1.1.0");
    fixture
}

fn until(fixture: &ElectionFixture, seconds: f64) -> Option<StandDown> {
    Some(StandDown::Until(fixture.wall_after(seconds)))
}

/// Lets so many seconds pass at once, after which both candidates are alive and the leader has renewed.
fn skip(fixture: &mut ElectionFixture, seconds: f64) {
    fixture.pass(seconds);
    for name in ["a", "b"] {
        fixture.ack(name);
    }
    fixture.renew();
}

#[test]
fn a_leader_makes_room_until_the_time_that_is_said() {
    let mut fixture = led();
    let said = until(&fixture, 60.0);
    fixture.stand_down("a", said);
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "a is asked to make room: b can be elected, the holder cannot"
    );
    let ranking = fixture
        .election
        .ranking(fixture.now, fixture.wall(), &fixture.settings);
    let told = ranking.candidates.iter().find(|each| each.name == id("a"));
    assert_eq!(
        told.map(|told| told.reason.as_str()),
        Some("the annotation elector.dev/stand-down excludes it for another 60.0s")
    );
    skip(&mut fixture, 59.0);
    assert_eq!(fixture.step().action(), Action::Prefer);
    skip(&mut fixture, 1.0);
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("a")));
}

/// Nothing else would have the elector look again.
#[test]
fn the_elector_looks_again_when_the_time_is_over() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.0.0");
    let said = until(&fixture, 1.5);
    fixture.stand_down("a", said);
    let decision = fixture.step();
    assert_eq!(
        decision.reason,
        Reason::NoEligible {
            name: id("a"),
            rejection: Rejection::StandsDown(Duration::from_millis(1500)),
            others: 0,
        }
    );
    let wake = decision.wake.unwrap();
    assert_eq!(
        (wake.at, wake.why),
        (
            fixture.now.after(Duration::from_millis(1500)),
            WakeReason::StandDown
        )
    );
}

/// A day from when it was first seen, whatever the candidate writes; and a day anew where it is said anew.
#[test]
fn a_word_without_a_time_lasts_for_a_day() {
    let mut fixture = led();
    fixture.stand_down("a", Some(StandDown::Untimed));
    assert_eq!(fixture.step().action(), Action::Prefer);
    skip(&mut fixture, f64::from(DAY) - 1.0);
    assert_eq!(fixture.step().action(), Action::Prefer);
    skip(&mut fixture, 1.0);
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("a")));

    fixture.stand_down("a", None);
    fixture.stand_down("a", Some(StandDown::Untimed));
    assert_eq!(fixture.step().action(), Action::Prefer);
}

/// The objects do not tell when it was written.
#[test]
fn a_word_without_a_time_is_explained_as_one_that_counts() {
    let mut fixture = led();
    fixture.stand_down("a", Some(StandDown::Untimed));
    let objects = Objects {
        candidates: fixture.election.candidates().cloned().collect(),
        ..Objects::default()
    };
    fixture.pass(f64::from(DAY));
    let told = Explanation::of(&objects, fixture.wall(), &fixture.settings);
    let told = told.candidates.iter().find(|each| each.name == id("a"));
    assert!(!told.unwrap().eligible, "{told:?}");
}

#[test]
fn a_time_more_than_a_day_ahead_does_not_count_and_is_told() {
    let mut fixture = led();
    let said = until(&fixture, f64::from(DAY) + 1.0);
    fixture.stand_down("a", said);
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("a")));
    let objects = Objects {
        candidates: fixture.election.candidates().cloned().collect(),
        ..Objects::default()
    };
    let told = Explanation::of(&objects, fixture.wall(), &fixture.settings);
    assert_eq!(
        told.ignored,
        [IgnoredWord::StandDown {
            candidate: id("a"),
            until: fixture.wall_after(f64::from(DAY) + 1.0),
            why: OutOfTime::TooFarAhead,
        }]
    );
    skip(&mut fixture, 1.0);
    assert_eq!(fixture.step().action(), Action::Prefer);
}

/// Its wish does not count: an operator gets a lease back from a candidate of a foreign strategy.
#[test]
fn the_wish_of_what_stands_down_does_not_count() {
    let mut fixture = led();
    fixture.change("b", |candidate| {
        candidate.spec = CandidateSpec::parse("999.0.0", "", "x.example/y").into();
    });
    assert!(matches!(fixture.step().reason, Reason::ForeignStrategy(_)));
    let said = until(&fixture, 60.0);
    fixture.stand_down("b", said);
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("a")));
}
