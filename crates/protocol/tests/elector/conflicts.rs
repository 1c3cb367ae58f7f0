//! Candidates that wish for different strategies, and strategies that another elector decides.

use std::time::Duration;

use elector_protocol::elector::{Action, NewsSource, Reason};
use elector_protocol::{CandidateRecord, CandidateSpec, LeaseRecord, Resolution, StrategyName};

use crate::fixture::{ElectionFixture, id, lease_write, pinged};

fn wish(fixture: &mut ElectionFixture, name: &str, binary: &str, strategy: &str) {
    let spec = CandidateSpec::parse(binary, "1.1.0", strategy);
    fixture.change(name, |candidate| candidate.spec = spec.into());
}

/// `a` and `b` disagree, at the highest binary version; `low` has a lower one.
fn disputed() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    for name in ["a", "b", "low"] {
        fixture.register(name, "1.1.0");
    }
    wish(&mut fixture, "b", "1.40.0", "example.com/mine");
    wish(&mut fixture, "low", "1.30.0", "example.com/low");
    fixture
}

/// (R15) Candidates that disagree are pinged, each of them and no other, once in a while.
#[test]
fn candidates_that_disagree_are_pinged_after_half_a_minute_and_the_others_are_not() {
    let mut fixture = disputed();
    let decision = fixture.step();
    assert_eq!(
        (decision.action(), decision.effects.len()),
        (Action::Wait, 0)
    );
    assert_eq!(
        decision.wake_at(),
        Some(fixture.now.after(Duration::from_secs(30))),
        "also while they still count as alive: nothing else happens"
    );
    fixture.pass(29.999);
    let decision = fixture.step();
    assert_eq!(pinged(&decision), Vec::<String>::new());
    assert_eq!(
        decision.wake_at(),
        Some(fixture.now.after(Duration::from_millis(1)))
    );
    fixture.pass(0.001);
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::Ping);
    assert_eq!(fixture.deliver_pings(&decision), ["a", "b"]);
    let decision = fixture.step();
    assert_eq!(
        (decision.action(), decision.effects.len()),
        (Action::Wait, 0)
    );
    assert_eq!(
        decision.wake_at(),
        Some(fixture.now.after(Duration::from_secs(2))),
        "when the acks are late"
    );
}

/// (R15) One that acks goes on disagreeing, and is left alone for as long again.
#[test]
fn a_candidate_that_disagrees_and_acks_is_not_pinged_again_at_once() {
    let mut fixture = disputed();
    fixture.pass(30.0);
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.ack("a");
    fixture.ack("b");
    fixture.pass(29.0);
    let decision = fixture.step();
    assert!(matches!(decision.reason, Reason::StrategyConflict(_)));
    assert_eq!(pinged(&decision), Vec::<String>::new());
    fixture.pass(1.0);
    assert_eq!(pinged(&fixture.step()), ["a", "b"]);
}

/// (L2) A dead candidate blocks no election: one that is silent has no say, until all are.
#[test]
fn a_silent_candidate_has_no_say_in_the_strategy() {
    let mut fixture = disputed();
    fixture.pass(30.0);
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.ack("a");
    fixture.pass(1.999);
    assert!(matches!(fixture.step().reason, Reason::StrategyConflict(_)));
    fixture.pass(0.001);
    assert_eq!(fixture.step().action(), Action::Create, "as `a` wishes");
    assert_eq!(
        fixture
            .election
            .strategy(fixture.now, fixture.wall(), &fixture.settings),
        Some(StrategyName::oldest_emulation_version())
    );
}

/// (L2) Where all are silent, the wishes of all count: one may come back.
#[test]
fn the_wishes_of_the_silent_count_where_all_are_silent() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    fixture.pass(6.0);
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.pass(2.0);
    assert!(matches!(fixture.step().reason, Reason::NoAck(_)));
}

/// The highest binary version decides where each has one wish; one list among them, and the lists decide.
#[test]
fn one_list_among_single_wishes_makes_all_of_them_lists() {
    let single = CandidateSpec::parse("1.2.0", "1.0.0", "x/new").unwrap();
    let list = CandidateSpec::parse_list("1.1.0", "1.0.0", &["x/old", "x/new"]).unwrap();
    let (a, b) = (id("a"), id("b"));
    assert_eq!(
        Resolution::of([(&a, &single), (&b, &list)]),
        Resolution::One(StrategyName::parse("x/old").unwrap())
    );
}

fn foreign() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    wish(&mut fixture, "a", "1.40.0", "example.com/mine");
    fixture
}

/// (R7) The stamp on the lease of another elector's strategy changes the strategy and nothing else.
#[test]
fn a_foreign_lease_is_stamped_and_its_preference_left_alone() {
    for holder in [None, Some(id("a"))] {
        for stamp in [None, Some(StrategyName::oldest_emulation_version())] {
            let mut fixture = foreign();
            let record = LeaseRecord {
                holder: holder.clone(),
                strategy: stamp,
                preferred_holder: Some(id("x")),
                duration_seconds: Some(15),
                ..LeaseRecord::default()
            };
            fixture.lease(record.clone());
            let decision = fixture.step();
            let stamped = LeaseRecord {
                strategy: Some(StrategyName::parse("example.com/mine").unwrap()),
                ..record
            };
            assert_eq!(
                lease_write(&decision).map(|write| &write.record),
                Some(&stamped)
            );
        }
    }
}

/// (S11) The lease of a holder that is no candidate is not touched, under any strategy.
#[test]
fn a_foreign_lease_that_a_stranger_holds_is_not_stamped() {
    let mut fixture = foreign();
    fixture.lease(LeaseRecord {
        holder: Some(id("stranger")),
        duration_seconds: Some(15),
        ..LeaseRecord::default()
    });
    assert_eq!(lease_write(&fixture.step()), None);
}

/// (R15) A candidate without renewTime is neither pinged nor eligible; it is told so.
#[test]
fn a_candidate_without_a_renewal_time_is_not_elected() {
    let mut fixture = ElectionFixture::new();
    let created = CandidateRecord {
        renew: None,
        ..fixture.mk_candidate("a", "1.1.0")
    };
    fixture
        .election
        .handle_candidate(fixture.now, created, NewsSource::Watch);
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "no eligible candidate: a: spec.renewTime is missing, so it never answered"
    );
    assert_eq!(pinged(&decision), Vec::<String>::new());
    let report = fixture
        .election
        .ranking(fixture.now, fixture.wall(), &fixture.settings);
    assert!(!report.candidates[0].eligible);
    assert_eq!(
        report.candidates[0].reason,
        "spec.renewTime is missing, so it never answered"
    );

    // A renewal time that a list brings is no ack: it may be as old as the gap. Its removal is none either.
    for _ in 0..2 {
        let renew = Some(fixture.wall());
        fixture.change_by(NewsSource::List, "a", |candidate| candidate.renew = renew);
        assert_eq!(pinged(&fixture.step()), ["a"]);
        fixture.change("a", |candidate| candidate.renew = None);
    }
}

/// The ranking of candidates that disagree: none is eligible, and why.
#[test]
fn the_ranking_of_a_conflict_names_no_candidate() {
    let fixture = disputed();
    let report = fixture
        .election
        .ranking(fixture.now, fixture.wall(), &fixture.settings);
    assert_eq!(report.strategy, None);
    assert!(report.candidates.iter().all(|one| !one.eligible));
    assert_eq!(
        report.candidates[0].reason,
        "the candidates disagree on the strategy"
    );
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    let report = fixture
        .election
        .ranking(fixture.now, fixture.wall(), &fixture.settings);
    assert_eq!(
        report.candidates[0].reason,
        "is the only eligible candidate"
    );
}
