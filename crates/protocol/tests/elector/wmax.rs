//! The use of W_max: how long a process may lead that is not in the record (R6), and where the record does not say
//! (R4).

use std::time::Duration;

use elector_protocol::LeaseRecord;
use elector_protocol::elector::{NewsSource, Reason};

use crate::fixture::{ElectionChange, ElectionFixture, held};

/// The seconds that the unproven record has yet to stand unchanged.
fn remaining(fixture: &ElectionFixture) -> u64 {
    match fixture.step().reason {
        Reason::AwaitProof { remaining } => remaining.as_secs(),
        reason => panic!("no proof is awaited: {reason}"),
    }
}

fn announce(fixture: &mut ElectionFixture, name: &str, seconds: u64) {
    let announced = Some(Duration::from_secs(seconds));
    fixture.change(name, |candidate| candidate.announced = announced);
}

/// An elector has just started; `a` and `b` are its candidates.
fn fresh() -> ElectionFixture {
    let mut fixture = ElectionFixture::fresh();
    fixture.register("a", 1);
    fixture.register("b", 2);
    fixture
}

/// The Lease was deleted for some seconds, and is created anew.
fn recreate(fixture: &mut ElectionFixture, absent: u64) {
    fixture.delete_lease();
    fixture.pass(Duration::from_secs(absent).as_secs_f64());
    fixture.ack("a");
    fixture.lease_of("lease-2", LeaseRecord::born(None), NewsSource::Watch);
}

/// (R6) `--max-lease-duration`, the longest of what the candidates announce, and the longest of the durations seen: each
/// alone decides. Values above 1 h count as 1 h.
#[test]
fn each_part_of_the_longest_lease_alone_decides() {
    let parts: [(u64, ElectionChange); 11] = [
        (15, |_| {}),
        (7, |it| {
            it.settings.timing.max_lease_duration = Duration::from_secs(7);
        }),
        (40, |it| {
            it.settings.timing.max_lease_duration = Duration::from_secs(40);
        }),
        (40, |it| {
            announce(it, "a", 40);
            announce(it, "b", 20);
        }),
        (40, |it| {
            announce(it, "a", 20);
            announce(it, "b", 40);
        }),
        (20, |it| {
            announce(it, "a", 40);
            announce(it, "b", 20);
            it.remove("a");
        }),
        (40, |it| {
            it.lease(held("stranger", Some(40)));
            it.lease(held("stranger", Some(20)));
        }),
        (40, |it| {
            it.lease(held("stranger", Some(20)));
            it.lease(held("stranger", Some(40)));
            it.election.handle_lease_unreadable();
        }),
        // The memory of durations belongs to the store that was seen.
        (15, |it| {
            it.lease(held("stranger", Some(40)));
            it.restore(LeaseRecord::born(None));
            it.register("a", 1);
        }),
        (3600, |it| announce(it, "a", 7200)),
        (3600, |it| it.lease(held("stranger", Some(7200)))),
    ];
    for (index, (seconds, part)) in parts.into_iter().enumerate() {
        let mut fixture = fresh();
        part(&mut fixture);
        fixture.lease(LeaseRecord::born(None));
        assert_eq!(remaining(&fixture), seconds, "part {index}");
    }
}

/// (R6) A holder of the deleted Lease may still lead.
#[test]
fn a_duration_seen_counts_after_the_lease_was_deleted() {
    for absent in [30, 40] {
        let mut fixture = fresh();
        fixture.lease(held("stranger", Some(40)));
        recreate(&mut fixture, absent);
        match absent {
            40 => fixture.grants("a"),
            _ => assert_eq!(remaining(&fixture), 10),
        }
    }
}

/// (R6) `--absent-lease-grace` replaces W_max, in both directions, for the stop-watch and for the proof of absence.
#[test]
fn the_grace_for_absent_leases_replaces_all_of_it() {
    for grace in [0, 3, 60] {
        for absent in [0, grace] {
            let mut fixture = fresh();
            fixture.settings.timing.absent_lease_grace = Some(Duration::from_secs(grace));
            announce(&mut fixture, "a", 50);
            fixture.lease(held("stranger", Some(40)));
            recreate(&mut fixture, absent);
            if absent == grace {
                fixture.grants("a");
            } else {
                assert_eq!(remaining(&fixture), grace);
            }
        }
    }
}

/// (R4) A record without a usable duration counts as W_max, each part of which decides alone.
#[test]
fn a_held_record_without_a_duration_counts_as_long_as_anybodys_could() {
    let parts: [(f64, ElectionChange); 4] = [
        (40.0, |it| {
            it.settings.timing.max_lease_duration = Duration::from_secs(40);
        }),
        (40.0, |it| announce(it, "b", 40)),
        (40.0, |it| it.lease(held("stranger", Some(40)))),
        // The grace is for names without a holder.
        (15.0, |it| {
            it.settings.timing.absent_lease_grace = Some(Duration::ZERO);
        }),
    ];
    for missing in [None, Some(0), Some(-1)] {
        for (seconds, part) in parts {
            let mut fixture = fresh();
            part(&mut fixture);
            fixture.lease(held("stranger", missing));
            fixture.granted_after(seconds, "a");
        }
    }
}

/// (R4) A duration that the record names is counted as it is, however W_max or the grace compares with it.
#[test]
fn a_held_record_with_a_duration_lasts_that_long_and_no_other() {
    for seconds in [5, 40, 7200] {
        let mut fixture = fresh();
        announce(&mut fixture, "b", 30);
        fixture.settings.timing.absent_lease_grace = Some(Duration::ZERO);
        fixture.lease(held("stranger", Some(seconds)));
        fixture.granted_after(f64::from(seconds), "a");
    }
}
