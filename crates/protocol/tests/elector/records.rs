//! The records that are written, field by field, and what a record says of itself (R5, R6, R8, R12).

use std::sync::Arc;
use std::time::Duration;

use elector_protocol::{
    LeaseRecord, LifeId, Occupancy, ResourceVersion, StrategyName, Term, Timestamp, Token,
};

use crate::fixture::{ElectionFixture, id, spec};

type Flaw = fn(&mut LeaseRecord);

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).unwrap()
}

/// A term of `me` that was accepted, with every field set.
fn accepted() -> LeaseRecord {
    LeaseRecord {
        holder: Some(id("me")),
        duration_seconds: Some(15),
        acquire_time: Some(at(10)),
        renew_time: Some(at(20)),
        term: Term(3),
        strategy: Some(StrategyName::oldest_emulation_version()),
        preferred_holder: Some(id("next")),
        token: Some(Token(ResourceVersion(7))),
        token_term: Some(Term(3)),
        life: LifeId::parse("00000000000000a1-00000000000000b2"),
    }
}

fn granted() -> LeaseRecord {
    accepted().granted(id("next"), Duration::from_secs(5), at(30))
}

/// (R5, R12) Grant and release change what they have to and keep the strategy; their renewTime always differs.
#[test]
fn a_grant_and_a_release_write_every_field() {
    let grant = LeaseRecord {
        holder: Some(id("next")),
        duration_seconds: Some(5),
        acquire_time: Some(at(30)),
        renew_time: Some(at(30)),
        term: Term(4),
        strategy: accepted().strategy,
        preferred_holder: None,
        token: None,
        token_term: None,
        life: None,
    };
    assert_eq!(granted(), grant);
    let release = LeaseRecord {
        holder: None,
        duration_seconds: Some(1),
        term: Term(3),
        ..grant
    };
    assert_eq!(accepted().released(at(30)), release);
    // The wire has whole seconds, and a longer lease errs to the safe side.
    for (window, seconds) in [(4_001, 5), (5_000, 5)] {
        let window = Duration::from_millis(window);
        let granted = accepted().granted(id("next"), window, at(30));
        assert_eq!(granted.duration_seconds, Some(seconds));
    }
    let again = at(20);
    for record in [
        accepted().granted(id("next"), Duration::from_secs(5), again),
        accepted().released(again),
    ] {
        assert_eq!(record.renew_time, again.next());
        assert_eq!(record.acquire_time, again.next());
    }
    assert_eq!(accepted().preferring(None, None).strategy, grant_strategy());
}

fn grant_strategy() -> Option<StrategyName> {
    Some(StrategyName::oldest_emulation_version())
}

/// (R6) Released is holder "", a duration of at most 1 s and no token; every other unheld record is unproven.
#[test]
fn a_record_is_released_with_at_most_a_second_and_without_a_token() {
    let unheld = |duration_seconds, token: Option<u64>| LeaseRecord {
        duration_seconds,
        token: token.map(|version| Token(ResourceVersion(version))),
        ..LeaseRecord::default()
    };
    for seconds in [Some(1), Some(0), Some(-1)] {
        assert_eq!(unheld(seconds, None).occupancy(), Occupancy::Released);
        assert_eq!(unheld(seconds, Some(1)).occupancy(), Occupancy::Unproven);
    }
    for seconds in [None, Some(2), Some(15)] {
        assert_eq!(unheld(seconds, None).occupancy(), Occupancy::Unproven);
    }
}

/// (R5, R8, R14) What is a grant that waits for its accept, and what is a token of this very term.
#[test]
fn a_grant_and_an_accepted_term_are_told_apart_by_their_fields() {
    assert!(granted().is_unaccepted_grant() && !granted().has_token());
    assert!(accepted().has_token() && !accepted().is_unaccepted_grant());
    let no_grants: [Flaw; 4] = [
        |record| record.holder = None,
        |record| (record.acquire_time, record.renew_time) = (None, None),
        |record| record.renew_time = Some(at(31)),
        |record| {
            (record.token, record.token_term) = (Some(Token(ResourceVersion(1))), Some(Term(4)));
        },
    ];
    for (index, flaw) in no_grants.into_iter().enumerate() {
        let mut record = granted();
        flaw(&mut record);
        assert!(!record.is_unaccepted_grant(), "flaw {index}");
    }
    let no_tokens: [Flaw; 4] = [
        |record| record.token = None,
        |record| record.token_term = Some(Term(2)),
        |record| record.token_term = None,
        |record| record.acquire_time = None,
    ];
    for (index, flaw) in no_tokens.into_iter().enumerate() {
        let mut record = accepted();
        flaw(&mut record);
        assert!(!record.has_token(), "flaw {index}");
    }
}

/// Versions that differ in build metadata are equal, and yet each is shown as it was written.
#[test]
fn candidates_share_a_spec_that_is_the_same_to_the_letter() {
    let record = ElectionFixture::open(&[("a", 1)]).candidate("a");
    for (binary, shared) in [("1.40.0", true), ("1.40.0+build", false)] {
        let mut other = record.clone();
        other.spec = spec(binary, "1.1.0").into();
        other.share_spec(&record.spec);
        assert_eq!(Arc::ptr_eq(&other.spec, &record.spec), shared);
    }
}
