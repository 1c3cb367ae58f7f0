//! Changes that start the stop-watch of a record anew, and those that do not (R4).

use elector_protocol::elector::{NewsSource, Reason};
use elector_protocol::{LeaseRecord, ResourceVersion, StrategyName, Term, Timestamp, Token};

use crate::fixture::{ElectionFixture, id};

type NamedChange = (&'static str, fn(&mut LeaseRecord));

/// `a` has held the lease for 9 s of its 15; `b` is there to take it.
fn held() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.2.0");
    fixture.register("b", "1.1.0");
    fixture.pass(9.0);
    fixture
}

fn changed(fixture: &ElectionFixture, change: fn(&mut LeaseRecord)) -> LeaseRecord {
    let mut record = fixture.record();
    change(&mut record);
    record
}

/// (R4) holder, term, renewTime, duration: each one alone.
#[test]
fn each_part_of_the_tuple_alone_starts_the_stop_watch_anew() {
    let parts: [NamedChange; 4] = [
        ("holder", |record| record.holder = Some(id("c"))),
        ("term", |record| record.term = Term(7)),
        ("renewTime", |record| {
            record.renew_time = Timestamp::from_micros(1);
        }),
        ("duration", |record| record.duration_seconds = Some(14)),
    ];
    for (part, change) in parts {
        let mut fixture = held();
        let record = changed(&fixture, change);
        fixture.lease(record.clone());
        println!("{part}");
        fixture.granted_after(f64::from(record.duration_seconds.unwrap()), "b");
    }
}

/// (R4, R13) The holder is dead: its candidate is deleted, and a stranger renews in its name. Electors cannot tell the
/// two apart, and wait for as long as the record changes.
#[test]
fn a_record_that_a_stranger_renews_is_never_free() {
    let mut fixture = held();
    let version = fixture.next_version();
    fixture
        .election
        .handle_candidate_gone(&id("a"), Some(version));
    for _ in 0..360 {
        fixture.renew();
        fixture.pass(14.0);
        fixture.ack("b");
        let decision = fixture.step();
        assert_eq!(crate::fixture::lease_write(&decision), None, "{decision:?}");
    }
    fixture.renew();
    fixture.granted_after(15.0, "b");
}

/// (R4) Electors with the flag `--reserve`, which went, wrote such a placeholder over a holder that they could not ask.
#[test]
fn a_record_that_was_reserved_expires_like_any_other() {
    let mut fixture = held();
    let term = fixture.record().term.next();
    fixture.lease(LeaseRecord {
        holder: Some(id("elector.dev:reserved-from:a")),
        term,
        token_term: Some(term),
        ..fixture.record()
    });
    let reason = fixture.step().reason;
    assert!(
        matches!(reason, Reason::HolderIsNoCandidate(_)),
        "{reason:?}"
    );
    fixture.granted_after(15.0, "b");
}

/// (R4) The uid is the first part of the tuple: a Lease that was created anew is another record.
#[test]
fn the_same_record_under_another_uid_starts_the_stop_watch_anew() {
    let mut fixture = held();
    let record = fixture.record();
    fixture.lease_of("lease-2", record, NewsSource::Watch);
    fixture.granted_after(15.0, "b");
}

/// (R4) A preference, a strategy or an annotation does not prolong a dead lease, and neither does a gap of the watch.
#[test]
fn nothing_else_in_a_held_record_prolongs_it() {
    let signals: [NamedChange; 6] = [
        ("a label", |_| {}),
        ("preference", |record| {
            record.preferred_holder = Some(id("b"));
        }),
        ("strategy", |record| {
            record.strategy = Some(StrategyName::parse("example.com/x").unwrap());
        }),
        ("token", |record| {
            record.token = Some(Token(ResourceVersion(1)));
        }),
        ("token-term", |record| record.token_term = Some(Term(9))),
        ("acquireTime", |record| {
            record.acquire_time = Timestamp::from_micros(1);
        }),
    ];
    for (signal, change) in signals {
        for news in [NewsSource::Watch, NewsSource::List, NewsSource::OwnWrite] {
            let mut fixture = held();
            let record = changed(&fixture, change);
            fixture.lease_of("lease-1", record, news);
            println!("{signal} by {news:?}");
            fixture.granted_after(6.0, "b");
        }
    }
}

/// (R4, R6) What makes an unheld record unproven is part of what is watched.
#[test]
fn an_unproven_record_is_watched_with_its_token_and_its_acquire_time() {
    let parts: [NamedChange; 2] = [
        ("token", |record| {
            record.token = Some(Token(ResourceVersion(1)));
        }),
        ("acquireTime", |record| {
            record.acquire_time = Timestamp::from_micros(1);
        }),
    ];
    for (part, change) in parts {
        let mut fixture = ElectionFixture::fresh();
        fixture.register("b", "1.2.0");
        fixture.lease_of("lease-1", LeaseRecord::born(None), NewsSource::List);
        fixture.pass(9.0);
        let record = changed(&fixture, change);
        fixture.lease(record);
        println!("{part}");
        fixture.granted_after(15.0, "b");
    }
    let mut fixture = ElectionFixture::fresh();
    fixture.register("b", "1.2.0");
    fixture.lease_of("lease-1", LeaseRecord::born(None), NewsSource::List);
    fixture.pass(9.0);
    let labelled = fixture.record();
    fixture.lease(labelled);
    fixture.granted_after(6.0, "b");
}

/// (R4) A new process starts from zero, also where the record says how old it is.
#[test]
fn the_first_sight_of_a_record_starts_its_stop_watch() {
    let mut fixture = ElectionFixture::new();
    fixture.register("b", "1.2.0");
    let old = LeaseRecord {
        holder: Some(id("a")),
        duration_seconds: Some(15),
        renew_time: Timestamp::from_micros(1),
        ..LeaseRecord::default()
    };
    fixture.lease_of("lease-1", old, NewsSource::List);
    fixture.granted_after(15.0, "b");
}

/// (R4) The same revision told twice is one sighting.
#[test]
fn a_revision_that_is_told_again_prolongs_nothing() {
    let mut fixture = held();
    let again = fixture.election.lease().unwrap().clone();
    for news in [NewsSource::Watch, NewsSource::List, NewsSource::OwnWrite] {
        fixture
            .election
            .handle_lease(fixture.now, again.clone(), news);
    }
    fixture.granted_after(6.0, "b");
}

/// (R4) To the microsecond: not sooner, and no later either.
#[test]
fn a_record_expires_at_its_duration_and_not_a_microsecond_sooner() {
    let mut fixture = held();
    fixture.pass(5.999_999);
    fixture.ack("b");
    assert_eq!(crate::fixture::lease_write(&fixture.step()), None);
    fixture.pass(0.000_001);
    assert!(crate::fixture::lease_write(&fixture.step()).is_some());
}

/// (R4) An event or a reply that is older than what is known says nothing.
#[test]
fn older_revisions_are_ignored_unless_a_list_tells_them() {
    for news in [NewsSource::Watch, NewsSource::OwnWrite] {
        let mut fixture = held();
        let mut old = fixture.election.lease().unwrap().clone();
        old.version = ResourceVersion(1);
        old.record.renew_time = Timestamp::from_micros(1);
        fixture.election.handle_lease(fixture.now, old, news);
        fixture.granted_after(6.0, "b");
    }
}
