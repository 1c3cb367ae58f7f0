//! Changes that start the stop-watch of a record anew, and those that do not (R4).

use elector_protocol::elector::{NewsSource, Reason};
use elector_protocol::{LeaseRecord, ResourceVersion, StrategyName, Term, Timestamp, Token};

use crate::fixture::{ElectionFixture, assert_reason, held, id};

type RecordChange = fn(&mut LeaseRecord);

/// `a` has held the lease for 9 s of its 15; `b` is there to take it.
fn led_for_9s() -> ElectionFixture {
    let mut fixture = ElectionFixture::led(&[("a", 2), ("b", 1)]);
    fixture.pass(9.0);
    fixture
}

fn changed(fixture: &ElectionFixture, change: RecordChange) -> LeaseRecord {
    let mut record = fixture.record();
    change(&mut record);
    record
}

/// (R4) holder, term, renewTime, duration: each one alone; and the uid, since a Lease created anew is another record.
#[test]
fn each_part_of_the_tuple_alone_starts_the_stop_watch_anew() {
    let parts: [(&str, RecordChange); 5] = [
        ("lease-1", |record| record.holder = Some(id("c"))),
        ("lease-1", |record| record.term = Term(7)),
        ("lease-1", |record| record.renew_time = Some(Timestamp::MIN)),
        ("lease-1", |record| record.duration_seconds = Some(14)),
        ("lease-2", |_| {}),
    ];
    for (index, (uid, change)) in parts.into_iter().enumerate() {
        let mut fixture = led_for_9s();
        let record = changed(&fixture, change);
        fixture.lease_of(uid, record.clone(), NewsSource::Watch);
        println!("part {index}");
        fixture.granted_after(f64::from(record.duration_seconds.unwrap()), "b");
    }
}

const TOKEN: RecordChange = |record| record.token = Some(Token(ResourceVersion(1)));
const ACQUIRE_TIME: RecordChange = |record| record.acquire_time = Some(Timestamp::MIN);

/// (R4) A preference, a strategy or an annotation does not prolong a dead lease, and neither does a gap of the watch.
#[test]
fn nothing_else_in_a_held_record_prolongs_it() {
    let signals: [RecordChange; 6] = [
        |_| {},
        |record| record.preferred_holder = Some(id("b")),
        |record| record.strategy = StrategyName::parse("example.com/x").ok(),
        |record| record.token_term = Some(Term(9)),
        TOKEN,
        ACQUIRE_TIME,
    ];
    for (index, change) in signals.into_iter().enumerate() {
        for news in [NewsSource::Watch, NewsSource::List, NewsSource::OwnWrite] {
            let mut fixture = led_for_9s();
            let record = changed(&fixture, change);
            fixture.lease_of("lease-1", record, news);
            println!("signal {index} by {news:?}");
            fixture.granted_after(6.0, "b");
        }
    }
}

/// (R4) The same revision reported twice is one sighting; an older one says nothing, unless a list tells it.
#[test]
fn a_revision_that_is_told_again_or_is_older_prolongs_no_lease() {
    for (version, news) in [
        (None, NewsSource::Watch),
        (None, NewsSource::List),
        (None, NewsSource::OwnWrite),
        (Some(1), NewsSource::Watch),
        (Some(1), NewsSource::OwnWrite),
    ] {
        let mut fixture = led_for_9s();
        let mut known = fixture.election.lease().unwrap().clone();
        if let Some(version) = version {
            known.version = ResourceVersion(version);
            known.record.renew_time = Some(Timestamp::MIN);
        }
        fixture.election.handle_lease(fixture.now, known, news);
        fixture.granted_after(6.0, "b");
    }
}

/// (R4, R6) Of an unheld record its token and acquireTime are watched too, and a gap may hide a term: the elector granted
/// at once after one, and the holder of the hidden term still believed.
#[test]
fn an_unheld_record_is_watched_with_what_makes_it_unproven_and_without_a_gap() {
    let cases: [(f64, RecordChange, NewsSource); 4] = [
        (15.0, TOKEN, NewsSource::Watch),
        (15.0, ACQUIRE_TIME, NewsSource::Watch),
        (15.0, |_| {}, NewsSource::List),
        (6.0, |_| {}, NewsSource::Watch),
    ];
    for (seconds, change, news) in cases {
        for emptied in [false, true] {
            let mut fixture = ElectionFixture::fresh();
            fixture.register("b", 2);
            let record = match emptied {
                true => held("a", Some(15)),
                false => LeaseRecord::born(None),
            };
            fixture.lease_of("lease-1", record, NewsSource::List);
            fixture.edit(|record| record.holder = None);
            fixture.pass(9.0);
            fixture.show_again(None, NewsSource::List);
            let record = changed(&fixture, change);
            fixture.lease_of("lease-1", record, news);
            println!("{news:?}, emptied: {emptied}");
            fixture.granted_after(seconds, "b");
        }
    }
}

/// (R4, R13) The holder is dead: its candidate is deleted, and a stranger renews in its name. Electors cannot tell the
/// two apart, and wait for as long as the record changes.
#[test]
fn a_record_that_a_stranger_renews_is_never_free() {
    let mut fixture = led_for_9s();
    fixture.remove("a");
    for _ in 0..360 {
        fixture.renew();
        fixture.pass(14.0);
        fixture.ack("b");
        assert_eq!(fixture.decided(), None);
    }
    fixture.renew();
    fixture.granted_after(15.0, "b");
}

/// (R4) Electors with the flag `--reserve`, which went, wrote such a placeholder over a holder that they could not ask.
#[test]
fn a_record_that_was_reserved_expires_like_any_other() {
    let mut fixture = led_for_9s();
    fixture.edit(|record| {
        record.holder = Some(id("elector.dev:reserved-from:a"));
        record.term = record.term.next();
        record.token_term = Some(record.term);
    });
    assert_reason!(fixture, Reason::HolderIsNoCandidate(_));
    fixture.granted_after(15.0, "b");
}

/// (R4) A new process starts from zero, also where the record says how old it is.
#[test]
fn the_first_sight_of_a_record_starts_its_stop_watch() {
    let mut fixture = ElectionFixture::new();
    fixture.register("b", 2);
    let old = LeaseRecord {
        renew_time: Some(Timestamp::MIN),
        ..held("a", Some(15))
    };
    fixture.lease_of("lease-1", old, NewsSource::List);
    fixture.granted_after(15.0, "b");
}

/// (R4) To the microsecond: not sooner, and no later either.
#[test]
fn a_record_expires_at_its_duration_and_not_a_microsecond_sooner() {
    let mut fixture = led_for_9s();
    fixture.pass(5.999_999);
    fixture.ack("b");
    assert_eq!(fixture.decided(), None);
    fixture.pass(0.000_001);
    fixture.grants("b");
}
