//! Preferences that an elector sees no reason for: how long it takes them for its own blindness (R16, L3).

use elector_protocol::elector::{Action, NewsSource, Reason, WakeReason};
use elector_protocol::{CandidateRecord, CandidateSpec, LeaseRecord, StandDown, Uid};

use crate::fixture::{ElectionFixture, id};

/// `b` leads, and `c` is better by what this elector knows of it, but left its last ping without an ack.
fn silent() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.list("c", "1.1.0");
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["c"]);
    fixture.keep(3);
    assert!(matches!(
        fixture.step().reason,
        Reason::BetterIsSilent { .. }
    ));
    fixture
}

/// Another elector prefers this candidate.
fn prefer(fixture: &mut ElectionFixture, name: &str) {
    let preferring = fixture.record().preferring(Some(id(name)), None);
    fixture.lease(preferring);
}

/// Another elector, or this one, withdraws the preference.
fn withdraw(fixture: &mut ElectionFixture) {
    let withdrawn = fixture.record().preferring(None, None);
    fixture.lease(withdrawn);
}

/// Asserts that the preference stands for so long, that the elector wakes then, and withdraws it.
fn assert_stands_for(fixture: &mut ElectionFixture, seconds: f64) {
    let until = fixture
        .now
        .after(std::time::Duration::from_secs_f64(seconds));
    while fixture.now.after(std::time::Duration::from_millis(900)) < until {
        let decision = fixture.step();
        assert!(
            matches!(decision.reason, Reason::AwaitYield { .. }),
            "{decision:?}"
        );
        fixture.pass(0.9);
        fixture.renew();
    }
    let decision = fixture.step();
    assert!(
        matches!(decision.reason, Reason::AwaitYield { .. }),
        "{decision:?}"
    );
    let wake = decision.wake.unwrap();
    assert_eq!((wake.at, wake.why), (until, WakeReason::PreferenceDoubted));
    fixture.now = until;
    fixture.renew();
    assert_eq!(fixture.step().action(), Action::Withdraw);
}

/// (R16, L3) Another elector saw an ack that this one did not see: the candidate has its ack window to be seen.
#[test]
fn a_candidate_that_another_elector_prefers_is_given_its_time_to_ack() {
    let mut fixture = silent();
    prefer(&mut fixture, "c");
    assert_stands_for(&mut fixture, 2.0);

    let mut fixture = silent();
    fixture.change("c", |candidate| candidate.marked = false);
    fixture.keep(5);
    prefer(&mut fixture, "c");
    assert_stands_for(&mut fixture, 5.0);
}

/// (R16) The ack comes: nothing was ever withdrawn.
#[test]
fn a_preference_stands_when_the_ack_is_seen_after_all() {
    let mut fixture = silent();
    prefer(&mut fixture, "c");
    fixture.pass(1.9);
    fixture.ack("c");
    fixture.pass(3.0);
    assert!(matches!(fixture.step().reason, Reason::AwaitYield { .. }));
}

/// (R16, L3) A candidate that this elector has not seen yet may have been created behind its back.
#[test]
fn a_preferred_candidate_that_was_never_seen_is_given_the_longer_ack_window() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    prefer(&mut fixture, "c");
    assert_stands_for(&mut fixture, 5.0);
}

/// (R16, L3) A deletion that came before the preference may have been followed by a creation.
#[test]
fn a_deletion_before_the_preference_does_not_count_against_it() {
    let mut fixture = silent();
    fixture.election.handle_candidate_gone(&id("c"), None);
    prefer(&mut fixture, "c");
    assert_stands_for(&mut fixture, 5.0);
}

/// (R16, L6) A deletion that was seen while the preference stood is certain.
#[test]
fn a_preference_is_withdrawn_at_once_when_its_candidate_is_seen_deleted() {
    let mut fixture = silent();
    prefer(&mut fixture, "c");
    fixture.election.handle_candidate_gone(&id("c"), None);
    assert_eq!(fixture.step().action(), Action::Withdraw);
}

/// `b` leads, another elector prefers `c`, and to this one `c` is not better.
fn worse() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("c", "1.3.0");
    // The strategy that `b` wishes for counts.
    fixture.change("c", |candidate| {
        candidate.spec = CandidateSpec::parse("1.39.0", "1.3.0", "OldestEmulationVersion").into();
    });
    fixture.register("d", "1.4.0");
    prefer(&mut fixture, "c");
    assert_eq!(fixture.step().action(), Action::Wait);
    fixture
}

/// (R16, L3) The candidate may have another version by now, which this elector has not seen.
#[test]
fn a_preferred_candidate_that_looks_no_better_is_given_its_time_to_be_seen() {
    assert_stands_for(&mut worse(), 2.0);
}

/// (R16) What the order looks at is news: this elector is not blind to the candidate.
#[test]
fn a_preference_is_withdrawn_at_once_when_its_candidate_is_seen_to_change_for_the_worse() {
    let changes: [fn(&mut CandidateRecord); 6] = [
        |c| c.spec = CandidateSpec::parse("1.39.0", "1.5.0", "OldestEmulationVersion").into(),
        |c| c.spec = CandidateSpec::parse("1.39.0", "1.3.0", "example.com/other").into(),
        |c| {
            let mut spec = c.offer().unwrap().clone();
            spec.priority = 1;
            c.spec = Ok(spec).into();
        },
        |c| {
            let mut spec = c.offer().unwrap().clone();
            spec.stand_down = Some(StandDown::Untimed);
            c.spec = Ok(spec).into();
        },
        |c| c.renew = None,
        |c| c.uid = Uid::new("another"),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut fixture = worse();
        fixture.change("c", change);
        let decision = fixture.step();
        assert_eq!(decision.action(), Action::Withdraw, "change {index}");
    }
}

/// (R16, L3) A ping, of whichever elector, and the ack are no news. Otherwise electors that disagree would withdraw and
/// prefer at the pace of their pings.
#[test]
fn what_the_order_does_not_look_at_is_no_news_of_the_preferred_candidate() {
    let changes: [fn(&mut CandidateRecord); 5] = [
        |c| c.ping = c.next_ping(),
        |c| c.renew = c.next_ping(),
        |c| c.marked = true,
        |c| c.announced = Some(std::time::Duration::from_secs(20)),
        |c| c.deleting = true,
    ];
    for change in changes {
        let mut fixture = worse();
        fixture.change("c", change);
        assert_stands_for(&mut fixture, 2.0);
    }
}

/// (R16) News of another candidate says nothing about this one.
#[test]
fn news_of_another_candidate_is_no_news_of_the_preferred_one() {
    let changes: [fn(&mut ElectionFixture); 4] = [
        |it| it.change_version("d", "1.5.0"),
        |it| it.change("d", |candidate| candidate.uid = Uid::new("another")),
        |it| it.election.handle_candidate_gone(&id("d"), None),
        |it| it.register("e", "1.5.0"),
    ];
    for change in changes {
        let mut fixture = worse();
        change(&mut fixture);
        assert_stands_for(&mut fixture, 2.0);
    }
}

/// (R16, L3) Electors of different orders may judge each change differently, and none of them a deletion.
#[test]
fn news_shortens_the_first_withdrawal_of_a_term_and_a_deletion_each() {
    let mut fixture = worse();
    fixture.change_version("c", "1.5.0");
    assert_eq!(fixture.step().action(), Action::Withdraw);
    for (version, seconds) in [("1.6.0", 4.0), ("1.7.0", 8.0)] {
        withdraw(&mut fixture);
        prefer(&mut fixture, "c");
        fixture.change_version("c", version);
        assert_stands_for(&mut fixture, seconds);
    }
    let gone: [fn(&mut ElectionFixture); 3] = [
        |it| it.change("c", |candidate| candidate.uid = Uid::new("another")),
        |it| it.election.handle_candidate_gone(&id("c"), None),
        |it| {
            it.election.handle_candidate_gone(&id("c"), None);
            it.register("c", "1.8.0");
        },
    ];
    for gone in gone {
        withdraw(&mut fixture);
        prefer(&mut fixture, "c");
        let before = fixture.step();
        assert!(
            matches!(before.reason, Reason::AwaitYield { .. }),
            "{before:?}"
        );
        gone(&mut fixture);
        assert_eq!(fixture.step().action(), Action::Withdraw);
    }
}

/// (R16, L3) Two electors that disagree for long withdraw ever more seldom, whatever the candidates.
#[test]
fn each_withdrawal_in_a_term_doubles_the_time_of_the_next_preference() {
    let mut fixture = silent();
    for (name, seconds) in [("c", 2.0), ("d", 10.0), ("c", 8.0), ("c", 16.0)] {
        prefer(&mut fixture, name);
        assert_stands_for(&mut fixture, seconds);
        withdraw(&mut fixture);
    }
}

/// (R16, L3) A preference that electors of different orders move back and forth stays ever longer; the first move comes
/// at once.
#[test]
fn each_move_in_a_term_doubles_the_time_before_the_next_one() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("c", "1.3.0");
    fixture.register("a", "1.1.0");
    fixture.register("b", "1.2.0");
    prefer(&mut fixture, "b");
    for seconds in [0.0, 8.0, 32.0] {
        let until = fixture
            .now
            .after(std::time::Duration::from_secs_f64(seconds));
        if seconds > 0.0 {
            fixture.pass(seconds - 0.1);
            fixture.renew();
            fixture.ack("a");
            fixture.ack("b");
            let decision = fixture.step();
            assert!(
                matches!(decision.reason, Reason::AwaitYield { .. }),
                "{decision:?}"
            );
            let wake = decision.wake.unwrap();
            assert_eq!((wake.at, wake.why), (until, WakeReason::PreferenceDoubted));
        }
        fixture.now = until;
        let decision = fixture.step();
        assert_eq!(fixture.apply(&decision).preferred_holder, Some(id("a")));
        prefer(&mut fixture, "b");
    }
}

/// (R16) No preference stands for longer than a candidate is passed over, however many were withdrawn.
#[test]
fn the_time_of_a_preference_is_bounded() {
    let mut fixture = silent();
    fixture.settings.timing.passed_over_max = std::time::Duration::from_secs(60);
    for _ in 0..40 {
        prefer(&mut fixture, "c");
        withdraw(&mut fixture);
    }
    prefer(&mut fixture, "c");
    assert_stands_for(&mut fixture, 60.0);
}

/// (R16) Renewals do not count as news of the preference; a new term does, and forgets the withdrawals.
#[test]
fn the_next_term_starts_without_withdrawals() {
    let mut fixture = silent();
    for _ in 0..3 {
        prefer(&mut fixture, "c");
        withdraw(&mut fixture);
    }
    let next = LeaseRecord {
        term: fixture.record().term.next(),
        ..fixture.record()
    };
    fixture.lease(next);
    fixture.accept();
    prefer(&mut fixture, "c");
    assert_stands_for(&mut fixture, 2.0);
}

/// (R4, R16) A Lease that a gap hid is met with its preference as if it were new.
#[test]
fn a_preference_that_is_listed_is_a_new_one() {
    let mut fixture = silent();
    let preferring = fixture.record().preferring(Some(id("c")), None);
    fixture.lease_of("lease-1", preferring, NewsSource::List);
    assert_stands_for(&mut fixture, 2.0);
}
