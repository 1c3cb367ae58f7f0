//! Which leaders made room, and how many may within a time (R23).

use std::time::Duration;

use elector_protocol::LeaseRecord;
use elector_protocol::elector::{Action, HoldBackCause, NewsSource};

use crate::fixture::{ElectionChange, ElectionFixture, id};
use crate::hold_back::{hand_over, held_back, led, live};

/// The holders that may make room in ten minutes.
fn budget(count: u8) -> HoldBackCause {
    let within = Duration::from_secs(600);
    HoldBackCause::Preemptions { count, within }
}

/// (R23) Three times in ten minutes leaders make room for candidates that accept, and no delay comes between.
#[test]
fn below_the_budget_hand_overs_that_are_accepted_are_not_slowed() {
    let mut fixture = ElectionFixture::led(&[("b", 9)]);
    for (name, minor) in [("c0", 8), ("c1", 7), ("c2", 6)] {
        fixture.register(name, minor);
        hand_over(&mut fixture, name);
        fixture.accept();
        fixture.keep(100);
    }
    fixture.register("c3", 5);
    assert_eq!(held_back(&fixture), Some((budget(3), 300)));
    fixture.says(
        "c3 is better, but c2 is not asked to make room for another 300.0s: leaders have made room 3 times within 600s",
    );
    fixture.settings.timing.preemptions = 4;
    assert_eq!(fixture.action(), Action::Prefer);
    fixture.settings.timing.preemptions = 1;
    assert_eq!(held_back(&fixture), Some((budget(1), 500)));
    fixture.settings.timing.preemptions = 3;
    live(&mut fixture, 300, "c3");
    hand_over(&mut fixture, "c3");
    fixture.accept();
    fixture.register("c4", 4);
    assert_eq!(held_back(&fixture), Some((budget(3), 100)));
}

/// Another elector prefers `to`, and the holder hands over to it.
fn hand_over_by_another(fixture: &mut ElectionFixture, to: &str) {
    fixture.preferred_by_another(Some(to));
    fixture.grant(to);
    fixture.accept();
}

/// (R23) What counts is the newest pre-emptions, however many there have been.
#[test]
fn the_newest_pre_emptions_count_when_more_are_known_than_any_budget_needs() {
    let mut fixture = led();
    fixture.settings.timing.preemptions = 60;
    for _ in 0..65 {
        for name in ["a", "b"] {
            fixture.pass(1.0);
            hand_over_by_another(&mut fixture, name);
        }
    }
    fixture.ack("a");
    // The sixtieth from the end was 59 s ago.
    assert_eq!(held_back(&fixture), Some((budget(60), 541)));
    // An operator may have twice that number: the hundred and twentieth was 119 s ago.
    fixture.prefer("a", 1000.0);
    fixture.ack("a");
    assert_eq!(held_back(&fixture), Some((budget(120), 481)));
}

/// (R13, R23) A leader makes room where it was asked to in its term. One that dies or lets go by itself does not, nor one
/// whose Lease a stranger empties or replaces, and neither does what comes after a pre-emption.
#[test]
fn only_leaders_that_were_asked_to_make_room_count() {
    fn prefer(fixture: &mut ElectionFixture) {
        fixture.preferred_by_another(Some("a"));
    }
    fn grant(fixture: &mut ElectionFixture) {
        fixture.grant("b");
        fixture.accept();
    }
    let ends: [(&str, u8, ElectionChange); 7] = [
        ("let go by itself", 0, |it| {
            it.release();
            grant(it);
        }),
        ("died", 0, |it| {
            it.pass(15.0);
            grant(it);
        }),
        ("emptied", 0, |it| {
            prefer(it);
            it.lease(LeaseRecord::born(None));
            grant(it);
        }),
        ("blanked", 0, |it| {
            prefer(it);
            it.edit(|record| record.holder = None);
            grant(it);
        }),
        ("replaced by another object", 0, |it| {
            prefer(it);
            let record = LeaseRecord {
                holder: Some(id("a")),
                preferred_holder: None,
                ..it.record()
            };
            it.lease_of("lease-2", record, NewsSource::Watch);
            it.pass(15.0);
            grant(it);
        }),
        ("a free lease that carries a preference", 0, |it| {
            it.release();
            prefer(it);
            grant(it);
        }),
        ("an expiry in the next term", 1, |it| {
            hand_over_by_another(it, "a");
            it.pass(15.0);
            grant(it);
        }),
    ];
    for (text, preemptions, end) in ends {
        let mut fixture = led();
        end(&mut fixture);
        fixture.register("c", 0);
        fixture.settings.timing.preemptions = preemptions + 1;
        assert_eq!(fixture.action(), Action::Prefer, "{text}");
        if preemptions > 0 {
            fixture.settings.timing.preemptions = preemptions;
            let held = held_back(&fixture).map(|(because, _)| because);
            assert_eq!(held, Some(budget(preemptions)), "{text}");
        }
    }
}

/// (R23) A stranger that makes the record unreadable for a while ends none of what was learnt from earlier ones.
#[test]
fn pre_emptions_count_after_a_record_that_cannot_be_read() {
    let mut fixture = led();
    for name in ["a", "b", "a"] {
        hand_over_by_another(&mut fixture, name);
    }
    let record = fixture.record();
    fixture.election.handle_lease_unreadable();
    fixture.ack("b");
    assert_eq!(fixture.step().effects, [], "nothing is known of the record");
    fixture.lease(record);
    fixture.register("best", 0);
    assert_eq!(held_back(&fixture), Some((budget(3), 600)));
}
