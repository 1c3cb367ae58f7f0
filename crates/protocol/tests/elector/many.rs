//! A step is linear in the candidates of its lease: one that were quadratic would take more than the bound by far.
//!
//! The steps below took 0.1 to 0.3 s each when this was written, and three minutes and more while a ping was looked for
//! among all effects, a name among all that are silent, and a strategy among all that are disputed.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "what is measured here is the time that the code takes, and no decision depends on it"
)]

use std::time::{Duration, Instant};

use elector_protocol::elector::{Decision, Effect, NewsSource, Reason};
use elector_protocol::{CandidateSpec, LeaseRecord, Timestamp};

use crate::fixture::{ElectionFixture, lease_write, pinged};

const CANDIDATES: usize = 100_000;
const BOUND: Duration = Duration::from_secs(5);

/// This number of candidates, which were there before the elector, of names that differ at the end.
fn crowd() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    for index in 0..CANDIDATES {
        fixture.list(&format!("candidate-{index:06}"), 3);
    }
    fixture
}

/// Steps, and fails where that takes longer than any linear step could.
fn step(fixture: &ElectionFixture) -> Decision {
    let begun = Instant::now();
    let decision = fixture.step();
    let took = begun.elapsed();
    println!("{} effects in {took:?}", decision.effects.len());
    let holds = took < BOUND;
    assert!(holds, "a step over {CANDIDATES} candidates took {took:?}");
    decision
}

#[test]
fn pings_of_all_candidates() {
    let mut fixture = crowd();
    fixture.lease(LeaseRecord {
        renew_time: Some(fixture.wall()),
        ..LeaseRecord::default()
    });
    fixture.pass(901.0);
    assert_eq!(pinged(&step(&fixture)).len(), CANDIDATES);
}

#[test]
fn a_grant_past_all_that_are_silent() {
    let mut fixture = crowd();
    fixture.lease(LeaseRecord::born(None));
    fixture.pass(901.0);
    for effect in fixture.step().effects {
        let Effect::Ping { name, ping, .. } = effect else {
            continue;
        };
        let mut pinged = fixture.mk_candidate(name.as_str(), 3);
        pinged.renew = Timestamp::from_micros(ping.as_micros() - 1);
        pinged.ping = Some(ping);
        let now = fixture.now;
        fixture
            .election
            .handle_candidate(now, pinged, NewsSource::Watch);
    }
    fixture.pass(10.0);
    fixture.register("late", 4);
    let decision = step(&fixture);
    let write = lease_write(&decision).expect("the only one that answers is granted the lease");
    assert_eq!(write.record.holder.as_ref().unwrap().as_str(), "late");
    let Reason::Granted { silent, .. } = decision.reason else {
        panic!("{}", decision.reason);
    };
    assert_eq!(silent.len(), CANDIDATES);
}

#[test]
fn a_conflict_of_as_many_strategies() {
    let mut fixture = ElectionFixture::new();
    for index in 0..CANDIDATES {
        let mut candidate = fixture.mk_candidate(&format!("candidate-{index:06}"), 3);
        let strategy = format!("example.com/s{index:06}");
        candidate.spec = CandidateSpec::parse_list("", "", &[&strategy]).into();
        fixture
            .election
            .handle_candidate(fixture.now, candidate, NewsSource::List);
    }
    fixture.lease(LeaseRecord::born(None));
    fixture.pass(901.0);
    let decision = step(&fixture);
    assert_eq!(pinged(&decision).len(), CANDIDATES);
    assert!(matches!(decision.reason, Reason::StrategyConflict(_)));
}
