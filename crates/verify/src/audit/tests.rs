//! Each part of each form alone decides (R3, R5, R7, R8, R11, R12, R18).

use std::time::Duration;

use elector_protocol::{ResourceVersion, StrategyName, Term, Timestamp, Token};

use super::*;

type FormFlaw = fn(&mut LeaseRecord);

fn id(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

fn at(micros: i64) -> Option<Timestamp> {
    Timestamp::from_micros(micros)
}

/// A term of `me` that was accepted, with every field set.
fn accepted() -> LeaseRecord {
    LeaseRecord {
        holder: Some(id("me")),
        duration_seconds: Some(15),
        acquire_time: at(10),
        renew_time: at(20),
        term: Term(3),
        strategy: Some(StrategyName::oldest_emulation_version()),
        preferred_holder: Some(id("next")),
        token: Some(Token(ResourceVersion(7))),
        token_term: Some(Term(3)),
        life: None,
    }
}

/// Each flaw alone turns the move into none.
fn each_flaw_counts(
    before: &LeaseRecord,
    after: &LeaseRecord,
    actor: Actor<'_>,
    kind: LeaseChangeKind,
    flaws: &[FormFlaw],
) {
    assert_eq!(audit(before, after, actor), Ok(kind));
    for (index, flaw) in flaws.iter().enumerate() {
        let mut flawed = after.clone();
        flaw(&mut flawed);
        let judged = audit(before, &flawed, actor);
        assert!(judged.is_err(), "{kind:?}: flaw {index}: {judged:?}");
    }
}

/// Each field of an acquisition has a test among those of the histories.
#[test]
fn a_grant_has_one_form() {
    let (me, window, now) = (id("me"), Duration::from_secs(5), at(30).unwrap());
    let flaws: [FormFlaw; 9] = [
        |record| record.term = Term(3),
        |record| record.term = Term(5),
        |record| (record.acquire_time, record.renew_time) = (None, None),
        |record| record.acquire_time = at(31),
        |record| (record.acquire_time, record.renew_time) = (at(20), at(20)),
        |record| record.duration_seconds = None,
        |record| record.preferred_holder = Some(id("me")),
        |record| record.token = Some(Token(ResourceVersion(8))),
        |record| record.token_term = Some(Term(4)),
    ];
    let released = LeaseRecord {
        acquire_time: at(20),
        renew_time: at(20),
        ..accepted().released(now)
    };
    let elector = Actor::Elector;
    let grants = [
        (accepted(), elector, LeaseChangeKind::GrantExpired),
        (released, elector, LeaseChangeKind::GrantUnheld),
        (accepted(), Actor::Candidate(&me), LeaseChangeKind::HandOff),
    ];
    for (before, actor, kind) in grants {
        let granted = before.granted(id("next"), window, now);
        each_flaw_counts(&before, &granted, actor, kind, &flaws);
    }
}

/// (R12) To the one that the record preferred, and only of a term that was accepted.
#[test]
fn a_hand_over_goes_to_the_preferred_one_and_from_an_accepted_term() {
    let (me, window, now) = (id("me"), Duration::from_secs(5), at(30).unwrap());
    let changes: [FormFlaw; 3] = [
        |record| record.preferred_holder = Some(id("other")),
        |record| record.preferred_holder = None,
        |record| record.token = None,
    ];
    let granted = accepted().granted(id("next"), window, now);
    for change in changes {
        let mut before = accepted();
        change(&mut before);
        assert!(audit(&before, &granted, Actor::Candidate(&me)).is_err());
    }
}

/// (R7) An elector may change the signals of a live term, and may not empty it.
#[test]
fn an_elector_changes_the_signals_of_a_term_and_nothing_else() {
    let signalled = accepted().preferring(None, StrategyName::parse("a/b").ok());
    let flaws: [FormFlaw; 7] = [
        |record| record.holder = None,
        |record| record.holder = Some(id("other")),
        |record| record.duration_seconds = Some(14),
        |record| record.acquire_time = at(11),
        |record| record.renew_time = at(21),
        |record| record.term = Term(4),
        |record| record.token = None,
    ];
    let kind = LeaseChangeKind::Signal;
    each_flaw_counts(&accepted(), &signalled, Actor::Elector, kind, &flaws);
    let released = accepted().released(at(25).unwrap());
    let invariant = audit(&accepted(), &released, Actor::Elector).map_err(|it| it.invariant);
    assert_eq!(invariant, Err(Invariant::S4));
}

/// (R8, R11, R12, R14) Of its own term only, and a release lasts one second and has no token.
#[test]
fn what_a_holder_writes_of_its_term_has_one_form() {
    let (me, next) = (id("me"), id("next"));
    let renewed = LeaseRecord {
        renew_time: at(30),
        ..accepted()
    };
    let flaws: [FormFlaw; 7] = [
        |record| record.renew_time = at(20),
        |record| record.holder = Some(id("other")),
        |record| record.duration_seconds = Some(14),
        |record| record.acquire_time = at(11),
        |record| record.strategy = None,
        |record| record.preferred_holder = None,
        |record| record.token = None,
    ];
    let actor = Actor::Candidate(&me);
    each_flaw_counts(&accepted(), &renewed, actor, LeaseChangeKind::Renew, &flaws);

    let granted = accepted().granted(next.clone(), Duration::from_secs(5), at(30).unwrap());
    let accept = LeaseRecord {
        duration_seconds: Some(15),
        renew_time: at(40),
        token: Some(Token(ResourceVersion(9))),
        token_term: Some(Term(4)),
        ..granted.clone()
    };
    let flaws: [FormFlaw; 4] = [
        |record| record.token = None,
        |record| record.token_term = Some(Term(3)),
        |record| record.renew_time = at(30),
        |record| record.acquire_time = at(40),
    ];
    let of_next = Actor::Candidate(&next);
    each_flaw_counts(&granted, &accept, of_next, LeaseChangeKind::Accept, &flaws);

    let released = accepted().released(at(30).unwrap());
    let flaws: [FormFlaw; 3] = [
        |record| record.duration_seconds = Some(2),
        |record| record.token = Some(Token(ResourceVersion(7))),
        |record| record.term = Term(4),
    ];
    each_flaw_counts(
        &accepted(),
        &released,
        actor,
        LeaseChangeKind::Release,
        &flaws,
    );
    let of_another = audit(&accepted(), &released, of_next).map_err(|it| it.to_string());
    let expected =
        "S6: a candidate wrote over a record that is not its own (R8, R12); a write of next";
    assert_eq!(of_another, Err(expected.to_owned()));
}
