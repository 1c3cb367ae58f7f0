//! The strategies: which candidate leads, and which leader makes room.

use elector_protocol::{CandidateSpec, StandDown, StrategyName, Timestamp};

use crate::fixture::ElectionFixture;

/// A candidate of this version that wishes for the strategy.
fn register(fixture: &mut ElectionFixture, name: &str, version: &str, strategy: &str) {
    fixture.register(name, 0);
    fixture.change(name, |candidate| {
        candidate.spec = CandidateSpec::parse(version, version, strategy).into();
    });
    // A change of the spec is no ack.
    fixture.ack(name);
}

/// The first of these leads, which was alone.
fn led(strategy: &str, candidates: &[(&str, &str)]) -> ElectionFixture {
    ElectionFixture::led_as(candidates, |fixture, name, version| {
        register(fixture, name, version, strategy);
    })
}

#[test]
fn the_newest_version_takes_over_from_older_ones() {
    let both = [("b", "1.9.0"), ("a", "1.8.0")];
    let mut fixture = led(StrategyName::NEWEST_VERSION, &both);
    fixture.best("b");
    register(&mut fixture, "c", "1.10.0", StrategyName::NEWEST_VERSION);
    fixture.says("b is asked to make room: c has the newer binary version 1.10.0 (not 1.9.0)");
    let strategy = fixture.write().strategy.unwrap();
    assert_eq!(strategy.as_str(), "elector.dev/newest-version");
}

/// (KEP-4355) An operator raises a candidate, and takes that back.
#[test]
fn the_highest_priority_leads_and_the_oldest_version_where_there_is_none() {
    let mut fixture = led(StrategyName::PRIORITY, &[("b", "1.2.0"), ("a", "1.3.0")]);
    fixture.best("b");
    fixture.change_spec("a", |spec| spec.priority = 1);
    fixture.says("b is asked to make room: a has the higher priority 1 (not none)");
    fixture.write();
    fixture.change_spec("a", |spec| spec.priority = 0);
    fixture.says("b is no longer asked to make room: a is not better than the holder");
}

#[test]
fn a_sticky_leader_stays_whatever_comes() {
    let all = [("b", "1.9.0"), ("a", "1.0.0"), ("c", "2.0.0")];
    let mut fixture = led(StrategyName::STICKY, &all);
    fixture.best("b");
    // As long as it can be elected.
    fixture.stand_down("b", Some(StandDown::Untimed));
    fixture.says("b is asked to make room: a can be elected, the holder cannot");
}

/// An operator's word goes before every strategy.
#[test]
fn a_sticky_leader_makes_room_for_what_an_operator_prefers_and_not_back() {
    let mut fixture = led(StrategyName::STICKY, &[("b", "1.0.0"), ("a", "1.0.0")]);
    fixture.prefer("a", 5.0);
    fixture.prefers("a");
    fixture.grant("a");
    fixture.accept();
    fixture.keep(6);
    fixture.ack("b");
    fixture.best("a");
}

#[test]
fn a_sticky_lease_that_is_free_goes_to_the_candidate_that_has_been_there_for_longest() {
    let all = [("c", "1.0.0"), ("b", "1.0.0"), ("a", "1.0.0")];
    let mut fixture = led(StrategyName::STICKY, &all);
    for (name, seconds) in [("c", 1), ("a", 3), ("b", 2)] {
        fixture.change(name, |candidate| {
            candidate.created = Timestamp::from_micros(seconds * 1_000_000).unwrap();
        });
    }
    fixture.release();
    fixture.remove("c");
    fixture.says("the lease is released; b is the older candidate among equals");
    fixture.grants("b");
}

#[test]
fn of_equals_the_older_one_leads_and_then_that_of_the_lower_name() {
    let mut fixture = ElectionFixture::led(&[("c", 1), ("b", 1), ("a", 1)]);
    fixture.release();
    fixture.remove("c");
    fixture.says("the lease is released; a has the lower name among equals");
    fixture.change("a", |candidate| {
        candidate.created = Timestamp::from_micros(2_000_000).unwrap();
    });
    fixture.says("the lease is released; b is the older candidate among equals");
}
