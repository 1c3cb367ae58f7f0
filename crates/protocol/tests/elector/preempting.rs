//! Which leaders made room, and how many may within a time (R23).

use std::time::Duration;

use elector_protocol::LeaseRecord;
use elector_protocol::elector::{Action, HoldBackCause, NewsSource};

use crate::fixture::{ElectionFixture, id};
use crate::hold_back::{hand_over, held_back, led, live};

/// (R23) Three times in ten minutes leaders make room for candidates that accept, and no delay comes between.
#[test]
fn below_the_budget_hand_overs_that_are_accepted_are_not_slowed() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.9.0");
    for (index, minor) in [8, 7, 6].into_iter().enumerate() {
        let name = format!("c{index}");
        fixture.register(&name, &format!("1.{minor}.0"));
        hand_over(&mut fixture, &name);
        fixture.accept();
        fixture.keep(100);
    }
    fixture.register("c3", "1.5.0");
    let budget = HoldBackCause::Preemptions {
        count: 3,
        within: Duration::from_secs(600),
    };
    assert_eq!(held_back(&fixture), Some((budget, 300)));
    assert_eq!(
        fixture.step().reason.to_string(),
        "c3 is better, but c2 is not asked to make room for another 300.0s: leaders have made room 3 times within 600s"
    );
    fixture.settings.timing.preemptions = 4;
    assert_eq!(fixture.step().action(), Action::Prefer);
    fixture.settings.timing.preemptions = 1;
    assert_eq!(held_back(&fixture).map(|(_, left)| left), Some(500));
    fixture.settings.timing.preemptions = 3;
    live(&mut fixture, 300, "c3");
    hand_over(&mut fixture, "c3");
    fixture.accept();
    fixture.register("c4", "1.4.0");
    assert_eq!(held_back(&fixture).map(|(_, left)| left), Some(100));
}

/// (R13, R23) Leaders that die or let go by themselves use up no budget.
#[test]
fn only_leaders_that_were_asked_to_make_room_count() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.9.0");
    for _ in 0..4 {
        let released = fixture.record().released(fixture.wall());
        fixture.lease(released);
        let grant = fixture.grant_to("b");
        fixture.lease(grant);
        fixture.accept();
        fixture.pass(15.0);
        let grant = fixture.grant_to("b");
        fixture.lease(grant);
        fixture.accept();
    }
    fixture.register("a", "1.1.0");
    assert_eq!(fixture.step().action(), Action::Prefer);
}

/// Another elector prefers `to`, and the holder hands over to it.
fn hand_over_by_another(fixture: &mut ElectionFixture, to: &str) {
    let preferring = fixture.record().preferring(Some(id(to)), None);
    fixture.lease(preferring);
    let grant = fixture.grant_to(to);
    fixture.lease(grant);
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
    let budget = HoldBackCause::Preemptions {
        count: 60,
        within: Duration::from_secs(600),
    };
    assert_eq!(held_back(&fixture), Some((budget, 541)));
    // An operator may have as many more: the hundred and twentieth was 119 s ago.
    fixture.prefer("a", 1000.0);
    fixture.ack("a");
    let budget = HoldBackCause::Preemptions {
        count: 120,
        within: Duration::from_secs(600),
    };
    assert_eq!(held_back(&fixture), Some((budget, 481)));
}

/// (R23) A stranger that makes the record unreadable for a while ends none of what was learnt from earlier ones.
#[test]
fn pre_emptions_count_after_a_record_that_cannot_be_read() {
    let mut fixture = led();
    for name in ["a", "b", "a"] {
        fixture.lease(fixture.record().preferring(Some(id(name)), None));
        fixture.lease(fixture.grant_to(name));
        fixture.accept();
    }
    let record = fixture.record();
    fixture.election.handle_lease_unreadable();
    fixture.ack("b");
    assert_eq!(fixture.step().effects, [], "nothing is known of the record");
    fixture.lease(record);
    fixture.register("best", "1.0.0");
    fixture.ack("best");
    let because = held_back(&fixture).map(|(because, _)| because);
    let three = matches!(because, Some(HoldBackCause::Preemptions { count: 3, .. }));
    assert!(three, "{because:?}");
}

/// (R13, R23) A stranger that empties or replaces the Lease of a leader that was asked to make room pre-empts no leader,
/// and neither does what comes after a pre-emption.
#[test]
fn terms_that_end_otherwise_are_no_pre_emptions() {
    fn prefer(fixture: &mut ElectionFixture) {
        fixture.lease(fixture.record().preferring(Some(id("a")), None));
    }
    fn grant(fixture: &mut ElectionFixture) {
        fixture.lease(fixture.grant_to("b"));
        fixture.accept();
    }
    type Change = fn(&mut ElectionFixture);
    let ends: [(&str, u8, Change); 5] = [
        ("emptied", 0, |fixture| {
            prefer(fixture);
            fixture.lease(LeaseRecord::born(None));
            grant(fixture);
        }),
        ("blanked", 0, |fixture| {
            prefer(fixture);
            fixture.lease(LeaseRecord {
                holder: None,
                ..fixture.record()
            });
            grant(fixture);
        }),
        ("replaced by another object", 0, |fixture| {
            prefer(fixture);
            let record = LeaseRecord {
                holder: Some(id("a")),
                preferred_holder: None,
                ..fixture.record()
            };
            fixture.lease_of("lease-2", record, NewsSource::Watch);
            fixture.pass(15.0);
            let grant = fixture.grant_to("b");
            fixture.lease_of("lease-2", grant, NewsSource::Watch);
            fixture.accept();
        }),
        ("a free lease that carries a preference", 0, |fixture| {
            let released = fixture.record().released(fixture.wall());
            fixture.lease(released.preferring(Some(id("a")), None));
            grant(fixture);
        }),
        ("an expiry in the next term", 1, |fixture| {
            hand_over_by_another(fixture, "a");
            fixture.pass(15.0);
            grant(fixture);
        }),
    ];
    for (text, preemptions, end) in ends {
        let mut fixture = led();
        fixture.settings.timing.preemptions = preemptions + 1;
        end(&mut fixture);
        fixture.register("c", "1.0.0");
        let decision = fixture.step();
        assert_eq!(decision.action(), Action::Prefer, "{text}: {decision:?}");
    }
}
