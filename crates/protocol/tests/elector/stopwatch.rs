//! What starts the stop-watch of a record anew, and what does not (R4).

use elector_protocol::elector::NewsSource;
use elector_protocol::{LeaseRecord, ResourceVersion, StrategyName, Term, Timestamp, Token};

use crate::world::{World, id};

type Change = (&'static str, fn(&mut LeaseRecord));

/// `a` has held the lease for 9 s of its 15; `b` is there to take it.
fn held() -> World {
    let mut world = World::new();
    world.lead("a", "1.2.0");
    world.register("b", "1.1.0");
    world.pass(9.0);
    world
}

fn changed(world: &World, change: fn(&mut LeaseRecord)) -> LeaseRecord {
    let mut record = world.record();
    change(&mut record);
    record
}

/// (R4) holder, term, renewTime, duration: each one alone.
#[test]
fn each_part_of_the_tuple_alone_starts_the_stop_watch_anew() {
    let parts: [Change; 4] = [
        ("holder", |record| record.holder = Some(id("c"))),
        ("term", |record| record.term = Term(7)),
        ("renewTime", |record| {
            record.renew_time = Timestamp::from_micros(1);
        }),
        ("duration", |record| record.duration_seconds = Some(14)),
    ];
    for (part, change) in parts {
        let mut world = held();
        let record = changed(&world, change);
        world.lease(record.clone());
        println!("{part}");
        world.granted_after(f64::from(record.duration_seconds.unwrap()), "b");
    }
}

/// (R4) The uid is the first part of the tuple: a Lease that was created anew is another record.
#[test]
fn the_same_record_under_another_uid_starts_the_stop_watch_anew() {
    let mut world = held();
    let record = world.record();
    world.lease_of("lease-2", record, NewsSource::Watch);
    world.granted_after(15.0, "b");
}

/// (R4) A preference, a strategy or an annotation does not prolong a dead lease, and neither does a gap of the watch.
#[test]
fn nothing_else_in_a_held_record_prolongs_it() {
    let signals: [Change; 6] = [
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
            let mut world = held();
            let record = changed(&world, change);
            world.lease_of("lease-1", record, news);
            println!("{signal} by {news:?}");
            world.granted_after(6.0, "b");
        }
    }
}

/// (R4, R6) What makes an unheld record unproven is part of what is watched.
#[test]
fn an_unproven_record_is_watched_with_its_token_and_its_acquire_time() {
    let parts: [Change; 2] = [
        ("token", |record| {
            record.token = Some(Token(ResourceVersion(1)));
        }),
        ("acquireTime", |record| {
            record.acquire_time = Timestamp::from_micros(1);
        }),
    ];
    for (part, change) in parts {
        let mut world = World::fresh();
        world.register("b", "1.2.0");
        world.lease(LeaseRecord::born(None));
        world.pass(9.0);
        let record = changed(&world, change);
        world.lease(record);
        println!("{part}");
        world.granted_after(15.0, "b");
    }
    let mut world = World::fresh();
    world.register("b", "1.2.0");
    world.lease(LeaseRecord::born(None));
    world.pass(9.0);
    let labelled = world.record();
    world.lease(labelled);
    world.granted_after(6.0, "b");
}

/// (R4) A new process starts from zero, whatever the record says of its own age.
#[test]
fn the_first_sight_of_a_record_starts_its_stop_watch() {
    let mut world = World::new();
    world.register("b", "1.2.0");
    let old = LeaseRecord {
        holder: Some(id("a")),
        duration_seconds: Some(15),
        renew_time: Timestamp::from_micros(1),
        ..LeaseRecord::default()
    };
    world.lease_of("lease-1", old, NewsSource::List);
    world.granted_after(15.0, "b");
}

/// (R4) The same revision told twice is one sighting.
#[test]
fn a_revision_that_is_told_again_prolongs_nothing() {
    let mut world = held();
    let again = world.election.lease().unwrap().clone();
    for news in [NewsSource::Watch, NewsSource::List, NewsSource::OwnWrite] {
        world.election.handle_lease(world.now, again.clone(), news);
    }
    world.granted_after(6.0, "b");
}

/// (R4) To the microsecond: not sooner, and no later either.
#[test]
fn a_record_expires_at_its_duration_and_not_a_microsecond_sooner() {
    let mut world = held();
    world.pass(5.999_999);
    world.ack("b");
    assert_eq!(crate::world::lease_write(&world.step()), None);
    world.pass(0.000_001);
    assert!(crate::world::lease_write(&world.step()).is_some());
}

/// (R4) An event or a reply that is older than what is known says nothing.
#[test]
fn older_revisions_are_ignored_unless_a_list_tells_them() {
    for news in [NewsSource::Watch, NewsSource::OwnWrite] {
        let mut world = held();
        let mut old = world.election.lease().unwrap().clone();
        old.version = ResourceVersion(1);
        old.record.renew_time = Timestamp::from_micros(1);
        world.election.handle_lease(world.now, old, news);
        world.granted_after(6.0, "b");
    }
}
