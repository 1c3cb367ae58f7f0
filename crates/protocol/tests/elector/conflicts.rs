//! Candidates that wish for different strategies, that cannot be elected, and strategies that another elector decides.

use elector_protocol::elector::{Action, NewsSource, Reason, WakeReason};
use elector_protocol::{CandidateRecord, CandidateSpec, LeaseRecord, Resolution, StrategyName};

use crate::fixture::{ElectionFixture, assert_reason, id, spec};

/// `a` and `b` disagree, at the highest binary version; `low` has a lower one.
fn disputed() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    for name in ["a", "b", "low"] {
        fixture.register(name, 1);
    }
    fixture.wish("b", "1.40.0", "example.com/mine");
    fixture.wish("low", "1.30.0", "example.com/low");
    fixture
}

/// (R15) Candidates that disagree are pinged, each of them and no other, once in a while; also while they still count as
/// alive, since nothing else happens. One that acks goes on disagreeing, and is left alone for as long again.
#[test]
fn candidates_that_disagree_are_pinged_after_half_a_minute_and_the_others_are_not() {
    let mut fixture = disputed();
    fixture.says(
        "candidates of binary version 1.40.0 disagree on the strategy: \
         a wants OldestEmulationVersion, b wants example.com/mine",
    );
    for _ in 0..2 {
        let decision = fixture.step();
        let expected = (Action::Wait, 0);
        assert_eq!((decision.action(), decision.effects.len()), expected);
        assert_eq!(fixture.wake(), (30.0, WakeReason::Disagreement));
        fixture.pass(29.999);
        assert_eq!(fixture.pinged(), [""; 0]);
        assert_eq!(fixture.wake(), (0.001, WakeReason::Disagreement));
        fixture.pass(0.001);
        assert_eq!(fixture.action(), Action::Ping);
        assert_eq!(fixture.ping(), ["a", "b"]);
        let decision = fixture.step();
        let expected = (Action::Wait, 0);
        assert_eq!((decision.action(), decision.effects.len()), expected);
        assert_eq!(fixture.wake(), (2.0, WakeReason::AckWindow));
        fixture.ack("a");
        fixture.ack("b");
    }
    fixture.wish("b", "1.40.0", StrategyName::OLDEST_EMULATION_VERSION);
    assert_eq!(fixture.action(), Action::Create, "they agree");
}

/// (L2) A dead candidate blocks no election: one that is silent has no say, until all are. One may come back.
#[test]
fn a_silent_candidate_has_no_say_in_the_strategy() {
    let mut fixture = disputed();
    fixture.pass(30.0);
    fixture.ping();
    fixture.ack("a");
    fixture.pass(1.999);
    assert_reason!(fixture, Reason::StrategyConflict(_));
    fixture.pass(0.001);
    assert_eq!(fixture.action(), Action::Create, "as `a` wishes");
    let strategy = fixture
        .election
        .strategy(fixture.now, fixture.wall(), &fixture.settings);
    assert_eq!(strategy, Some(StrategyName::oldest_emulation_version()));

    let mut fixture = ElectionFixture::open(&[("a", 1)]);
    fixture.ping();
    fixture.pass(2.0);
    fixture.says("no candidate answers: a");
}

/// The highest binary version decides where each has one wish; one list among them, and the lists decide.
#[test]
fn one_list_among_single_wishes_makes_all_of_them_lists() {
    let single = CandidateSpec::parse("1.2.0", "1.0.0", "x/new").unwrap();
    let list = CandidateSpec::parse_list("1.1.0", "1.0.0", &["x/old", "x/new"]).unwrap();
    let (a, b) = (id("a"), id("b"));
    let expected = Resolution::One(StrategyName::parse("x/old").unwrap());
    assert_eq!(Resolution::of([(&a, &single), (&b, &list)]), expected);
}

/// (R7, S11) The stamp on the lease of another elector's strategy changes the strategy and nothing else; that of a holder
/// that is no candidate is not touched.
#[test]
fn a_foreign_lease_is_stamped_and_its_preference_left_alone() {
    let ours = Some(StrategyName::oldest_emulation_version());
    for (holder, strategy, stamps) in [
        (None, None, true),
        (None, ours.clone(), true),
        (Some("a"), None, true),
        (Some("a"), ours, true),
        (Some("stranger"), None, false),
    ] {
        let mut fixture = ElectionFixture::new();
        fixture.register("a", 1);
        fixture.wish("a", "1.40.0", "example.com/mine");
        let record = LeaseRecord {
            holder: holder.map(id),
            strategy,
            preferred_holder: Some(id("x")),
            duration_seconds: Some(15),
            ..LeaseRecord::default()
        };
        fixture.lease(record.clone());
        let stamped = LeaseRecord {
            strategy: StrategyName::parse("example.com/mine").ok(),
            ..record
        };
        assert_eq!(fixture.decided(), stamps.then_some(stamped));
    }
}

/// (R15) A candidate without an emulation version, or without renewTime, is neither pinged nor eligible: its reason says so.
#[test]
fn a_candidate_without_what_an_election_needs_is_not_elected() {
    for (emulation, why) in [
        (
            "",
            "spec.emulationVersion is missing, and the strategy needs it",
        ),
        ("1.1.0", "spec.renewTime is missing, so it never answered"),
    ] {
        let mut fixture = ElectionFixture::new();
        let created = CandidateRecord {
            renew: Some(fixture.wall()).filter(|_| emulation.is_empty()),
            spec: spec("1.40.0", emulation).into(),
            ..fixture.mk_candidate("a", 1)
        };
        let now = fixture.now;
        fixture
            .election
            .handle_candidate(now, created, NewsSource::Watch);
        fixture.lease(LeaseRecord::born(None));
        fixture.says(&format!("no eligible candidate: a: {why}"));
        assert_eq!(fixture.step().effects, []);
        let ranking = fixture.ranking();
        assert!(!ranking.candidates[0].eligible);
        assert_eq!(ranking.candidates[0].reason, why);
    }

    // A renewal time that a list brings is no ack: it may be as old as the gap. Its removal is none either.
    let mut fixture = ElectionFixture::open(&[("a", 1)]);
    for _ in 0..2 {
        fixture.change("a", |candidate| candidate.renew = None);
        let renew = Some(fixture.wall());
        fixture.change_by(NewsSource::List, "a", |candidate| candidate.renew = renew);
        assert_eq!(fixture.pinged(), ["a"]);
    }
}

/// The ranking of candidates that disagree: none is eligible, and why.
#[test]
fn the_ranking_of_a_conflict_names_no_candidate() {
    let mut fixture = disputed();
    let ranking = fixture.ranking();
    assert_eq!(ranking.strategy, None);
    assert!(ranking.candidates.iter().all(|one| !one.eligible));
    let expected = "the candidates disagree on the strategy";
    assert_eq!(ranking.candidates[0].reason, expected);
    fixture.remove("b");
    fixture.remove("low");
    let expected = "is the only eligible candidate";
    assert_eq!(fixture.ranking().candidates[0].reason, expected);
}
