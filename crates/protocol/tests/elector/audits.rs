//! The audit of moves: each part of each form alone decides (R3, R5, R7, R11, R12), and the records that are written.

use std::time::Duration;

use elector_protocol::elector::{Actor, Move, Violation, audit};
use elector_protocol::{
    LeaseRecord, Occupancy, ResourceVersion, StrategyName, Term, Timestamp, Token,
};

use crate::fixture::id;

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
    }
}

fn granted() -> LeaseRecord {
    accepted().granted(id("next"), Duration::from_secs(5), at(30))
}

/// Each flaw alone turns a move that is allowed into one that is not.
fn each_flaw_counts(before: &LeaseRecord, after: &LeaseRecord, actor: &Actor<'_>, flaws: &[Flaw]) {
    audit(before, after, actor).unwrap();
    for (index, flaw) in flaws.iter().enumerate() {
        let mut flawed = after.clone();
        flaw(&mut flawed);
        assert!(audit(before, &flawed, actor).is_err(), "flaw {index}");
    }
}

const GRANT_FLAWS: [Flaw; 8] = [
    |record| record.term = Term(3),
    |record| record.term = Term(5),
    |record| (record.acquire_time, record.renew_time) = (None, None),
    |record| record.acquire_time = Some(at(31)),
    |record| (record.acquire_time, record.renew_time) = (Some(at(20)), Some(at(20))),
    |record| record.duration_seconds = None,
    |record| record.preferred_holder = Some(id("me")),
    |record| record.token = Some(Token(ResourceVersion(8))),
];

/// (R5) Of an elector and of a holder that hands over.
#[test]
fn a_grant_has_one_form() {
    let (me, successor) = (id("me"), id("next"));
    let token_term: Flaw = |record| record.token_term = Some(Term(4));
    for actor in [Actor::Elector, Actor::Candidate(&me)] {
        each_flaw_counts(&accepted(), &granted(), &actor, &GRANT_FLAWS);
        each_flaw_counts(&accepted(), &granted(), &actor, &[token_term]);
    }
    assert_eq!(
        audit(&accepted(), &granted(), &Actor::Elector),
        Ok(Move::GrantExpired)
    );
    assert_eq!(
        audit(&accepted(), &granted(), &Actor::Candidate(&me)),
        Ok(Move::HandOff)
    );
    let same_term = LeaseRecord {
        term: Term(3),
        ..granted()
    };
    assert_eq!(
        audit(&accepted(), &same_term, &Actor::Elector),
        Err(Violation::TouchedTerm)
    );
    let unheld = accepted().released(at(25));
    let granted = unheld.granted(successor, Duration::from_secs(5), at(30));
    assert_eq!(
        audit(&unheld, &granted, &Actor::Elector),
        Ok(Move::GrantUnheld)
    );
}

/// (R12) To the one that the record preferred, and only of a term that was accepted.
#[test]
fn a_hand_over_goes_to_the_preferred_one_and_from_an_accepted_term() {
    let me = id("me");
    let other = accepted().granted(id("other"), Duration::from_secs(5), at(30));
    assert!(audit(&accepted(), &other, &Actor::Candidate(&me)).is_err());
    let unaccepted = LeaseRecord {
        token: None,
        token_term: None,
        ..accepted()
    };
    assert!(audit(&unaccepted, &granted(), &Actor::Candidate(&me)).is_err());
    let unasked = LeaseRecord {
        preferred_holder: None,
        ..accepted()
    };
    assert!(audit(&unasked, &granted(), &Actor::Candidate(&me)).is_err());
}

/// (R7) An elector may change the signals of a live term, and may not empty it.
#[test]
fn an_elector_changes_the_signals_of_a_term_and_nothing_else() {
    let signalled = accepted().preferring(None, StrategyName::parse("a/b").ok());
    assert_eq!(
        audit(&accepted(), &signalled, &Actor::Elector),
        Ok(Move::Signal)
    );
    let flaws: [Flaw; 7] = [
        |record| record.holder = None,
        |record| record.holder = Some(id("other")),
        |record| record.duration_seconds = Some(14),
        |record| record.acquire_time = Some(at(11)),
        |record| record.renew_time = Some(at(21)),
        |record| record.term = Term(4),
        |record| record.token = None,
    ];
    each_flaw_counts(&accepted(), &signalled, &Actor::Elector, &flaws);
    let released = accepted().released(at(25));
    assert_eq!(
        audit(&accepted(), &released, &Actor::Elector),
        Err(Violation::TouchedTerm)
    );
}

/// (R11) A renewal changes renewTime and nothing else.
#[test]
fn a_renewal_has_one_form() {
    let me = id("me");
    let renewed = LeaseRecord {
        renew_time: Some(at(30)),
        ..accepted()
    };
    let flaws: [Flaw; 7] = [
        |record| record.renew_time = Some(at(20)),
        |record| record.holder = Some(id("other")),
        |record| record.duration_seconds = Some(14),
        |record| record.acquire_time = Some(at(11)),
        |record| record.strategy = None,
        |record| record.preferred_holder = None,
        |record| record.token = None,
    ];
    each_flaw_counts(&accepted(), &renewed, &Actor::Candidate(&me), &flaws);
    let theirs = LeaseRecord {
        holder: Some(id("other")),
        ..accepted()
    };
    assert_eq!(
        audit(&theirs, &renewed, &Actor::Candidate(&me)),
        Err(Violation::NotItsOwn)
    );
    let given = LeaseRecord {
        holder: Some(id("other")),
        ..renewed
    };
    assert_eq!(
        audit(&accepted(), &given, &Actor::Candidate(&me)),
        Err(Violation::NotItsOwn)
    );
}

/// (R8, R14) An accept writes its token, changes renewTime and keeps acquireTime.
#[test]
fn an_accept_has_one_form() {
    let next = id("next");
    let accepted = LeaseRecord {
        duration_seconds: Some(15),
        renew_time: Some(at(40)),
        token: Some(Token(ResourceVersion(9))),
        token_term: Some(Term(4)),
        ..granted()
    };
    let flaws: [Flaw; 4] = [
        |record| record.token = None,
        |record| record.token_term = Some(Term(3)),
        |record| record.renew_time = Some(at(30)),
        |record| record.acquire_time = Some(at(40)),
    ];
    each_flaw_counts(&granted(), &accepted, &Actor::Candidate(&next), &flaws);
}

/// (R12) A release is unheld for one second, without token, in the same term; only the holder may write it.
#[test]
fn a_release_has_one_form() {
    let (me, other) = (id("me"), id("other"));
    let released = accepted().released(at(30));
    let flaws: [Flaw; 3] = [
        |record| record.duration_seconds = Some(2),
        |record| record.token = Some(Token(ResourceVersion(7))),
        |record| record.term = Term(4),
    ];
    each_flaw_counts(&accepted(), &released, &Actor::Candidate(&me), &flaws);
    assert!(audit(&accepted(), &released, &Actor::Candidate(&other)).is_err());
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
    };
    assert_eq!(granted(), grant);
    let release = LeaseRecord {
        holder: None,
        duration_seconds: Some(1),
        term: Term(3),
        ..grant
    };
    assert_eq!(accepted().released(at(30)), release);
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
