//! The use of W_max: how long a process may lead that is not in the record (R6), and where the record does not say
//! (R4).

use std::time::Duration;

use elector_protocol::elector::{Action, NewsSource, Reason};
use elector_protocol::{LeaseRecord, ResourceVersion};

use crate::fixture::{ElectionFixture, id};

/// The seconds that the unproven record has yet to stand unchanged.
fn remaining(fixture: &ElectionFixture) -> u64 {
    match fixture.step().reason {
        Reason::AwaitProof { remaining } => remaining.as_secs(),
        reason => panic!("no proof is awaited: {reason}"),
    }
}

fn announce(fixture: &mut ElectionFixture, name: &str, seconds: u64) {
    fixture.change(name, |candidate| {
        candidate.announced = Some(Duration::from_secs(seconds));
    });
}

fn held_for(seconds: Option<i32>) -> LeaseRecord {
    LeaseRecord {
        holder: Some(id("stranger")),
        duration_seconds: seconds,
        ..LeaseRecord::default()
    }
}

/// A fixture whose elector has just started; `a` and `b` are its candidates.
fn fresh() -> ElectionFixture {
    let mut fixture = ElectionFixture::fresh();
    fixture.register("a", "1.1.0");
    fixture.register("b", "1.2.0");
    fixture
}

/// (R6) `--max-lease-duration`, where nothing longer is known.
#[test]
fn the_flag_alone_decides_where_nothing_longer_is_known() {
    for seconds in [7, 15, 40] {
        let mut fixture = fresh();
        fixture.settings.timing.max_lease_duration = Duration::from_secs(seconds);
        fixture.lease(LeaseRecord::born(None));
        assert_eq!(remaining(&fixture), seconds);
    }
}

/// (R6) The longest of what the candidates announce.
#[test]
fn the_longest_announced_duration_alone_decides_whoever_announces_it() {
    for (a, b) in [(40, 20), (20, 40)] {
        let mut fixture = fresh();
        announce(&mut fixture, "a", a);
        announce(&mut fixture, "b", b);
        fixture.lease(LeaseRecord::born(None));
        assert_eq!(remaining(&fixture), 40);
        let longest = if a == 40 { "a" } else { "b" };
        fixture.election.handle_candidate_gone(&id(longest), None);
        assert_eq!(remaining(&fixture), 20, "with the candidate it is gone");
    }
}

/// (R6) The longest duration seen in a record of this lease, not that of the last one.
#[test]
fn the_longest_duration_seen_in_any_record_alone_decides() {
    for seen in [[40, 20], [20, 40]] {
        let mut fixture = fresh();
        for seconds in seen {
            fixture.lease(held_for(Some(seconds)));
        }
        fixture.lease(LeaseRecord::born(None));
        assert_eq!(remaining(&fixture), 40, "{seen:?}");
    }
}

/// (R6) A holder of the deleted Lease may still lead.
#[test]
fn a_duration_seen_counts_after_the_lease_was_deleted() {
    let recreated = |absent: f64| {
        let mut fixture = fresh();
        fixture.lease(held_for(Some(40)));
        fixture.delete_lease();
        fixture.pass(absent);
        fixture.ack("a");
        fixture.lease_of("lease-2", LeaseRecord::born(None), NewsSource::Watch);
        fixture
    };
    assert_eq!(remaining(&recreated(30.0)), 10);
    assert_eq!(recreated(40.0).step().action(), Action::Grant);
}

/// (R6) A stranger makes the record of a holder unreadable, and then takes the holder away.
#[test]
fn a_duration_seen_counts_after_a_record_that_cannot_be_read() {
    let mut fixture = fresh();
    fixture.lease(held_for(Some(40)));
    fixture.election.handle_lease_unreadable();
    fixture.lease(LeaseRecord::born(None));
    assert_eq!(remaining(&fixture), 40);
}

/// (R6) Values above 1 h count as 1 h, wherever they stand.
#[test]
fn durations_above_an_hour_count_as_an_hour() {
    let mut fixture = fresh();
    announce(&mut fixture, "a", 7200);
    fixture.lease(LeaseRecord::born(None));
    assert_eq!(remaining(&fixture), 3600);

    let mut fixture = fresh();
    fixture.lease(held_for(Some(7200)));
    fixture.lease(LeaseRecord::born(None));
    assert_eq!(remaining(&fixture), 3600);
}

/// (R6) `--absent-lease-grace` replaces W_max, in both directions, for the stop-watch and for the proof of absence.
#[test]
fn the_grace_for_absent_leases_replaces_all_of_it() {
    for grace in [3, 60] {
        let fixture = |absent: f64| {
            let mut fixture = fresh();
            fixture.settings.timing.absent_lease_grace = Some(Duration::from_secs(grace));
            announce(&mut fixture, "a", 50);
            fixture.lease(held_for(Some(40)));
            fixture.delete_lease();
            fixture.pass(absent);
            fixture.ack("a");
            fixture.lease_of("lease-2", LeaseRecord::born(None), NewsSource::Watch);
            fixture
        };
        assert_eq!(remaining(&fixture(0.0)), grace);
        assert_eq!(
            fixture(f64::from(u32::try_from(grace).unwrap()))
                .step()
                .action(),
            Action::Grant
        );
    }
}

/// (R4) A record without a usable duration counts as W_max, each part of which decides alone.
#[test]
fn a_held_record_without_a_duration_counts_as_long_as_anybodys_could() {
    let parts: [fn(&mut ElectionFixture); 3] = [
        |fixture| fixture.settings.timing.max_lease_duration = Duration::from_secs(40),
        |fixture| announce(fixture, "b", 40),
        |fixture| fixture.lease(held_for(Some(40))),
    ];
    for missing in [None, Some(0), Some(-1)] {
        for part in parts {
            let mut fixture = fresh();
            part(&mut fixture);
            fixture.lease(held_for(missing));
            fixture.granted_after(40.0, "a");
        }
        let mut fixture = fresh();
        fixture.lease(held_for(missing));
        fixture.granted_after(15.0, "a");
    }
}

/// (R6) The grace is for names without a holder: it does not shorten a record that names one (R4).
#[test]
fn the_grace_for_absent_leases_does_not_end_a_held_record() {
    for duration in [None, Some(15)] {
        let mut fixture = fresh();
        fixture.settings.timing.absent_lease_grace = Some(Duration::ZERO);
        fixture.lease(held_for(duration));
        fixture.granted_after(15.0, "a");
    }
}

/// (R4) A duration that the record names is counted as it is, however W_max compares with it.
#[test]
fn a_held_record_with_a_duration_lasts_that_long_and_no_other() {
    for seconds in [5, 40, 7200] {
        let mut fixture = fresh();
        announce(&mut fixture, "b", 30);
        fixture.lease(held_for(Some(seconds)));
        fixture.granted_after(f64::from(seconds), "a");
    }
}

/// (R4) The memory of durations belongs to the store that was seen; one restored from a backup starts it over.
#[test]
fn a_restored_store_forgets_the_durations_seen() {
    let mut fixture = fresh();
    fixture.lease(held_for(Some(40)));
    let mut restored = fixture.election.lease().unwrap().clone();
    restored.version = ResourceVersion(1);
    restored.record = LeaseRecord::born(None);
    fixture
        .election
        .handle_lease(fixture.now, restored, NewsSource::List);
    fixture.register("a", "1.1.0");
    assert_eq!(remaining(&fixture), 15);
}
