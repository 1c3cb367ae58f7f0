//! Preferences that an elector sees no reason for: how long it takes them for its own blindness (R16, L3).

use std::time::Duration;

use elector_protocol::elector::{Action, NewsSource, Reason, WakeReason};
use elector_protocol::{StandDown, StrategyName, Uid};

use crate::fixture::{ElectionChange, ElectionFixture, assert_reason, id};

/// `b` leads, and `c` is better by what this elector knows of it, but left its last ping without an ack.
fn silent() -> ElectionFixture {
    let mut fixture = ElectionFixture::led(&[("b", 2)]);
    fixture.list("c", 1);
    assert_eq!(fixture.ping(), ["c"]);
    fixture.keep(3);
    assert_reason!(fixture, Reason::BetterIsSilent { .. });
    fixture
}

/// `b` leads, another elector prefers `c`, and to this one `c` is not better.
fn worse() -> ElectionFixture {
    let mut fixture = ElectionFixture::led(&[("b", 2), ("c", 3), ("d", 4)]);
    // The strategy that `b` wishes for counts.
    fixture.change_version("c", "1.39.0", "1.3.0");
    prefer(&mut fixture, "c");
    assert_eq!(fixture.action(), Action::Wait);
    fixture
}

/// Another elector prefers this candidate.
fn prefer(fixture: &mut ElectionFixture, name: &str) {
    fixture.preferred_by_another(Some(name));
}

/// Asserts that the preference stands for this time, that the elector wakes then, and withdraws it.
#[track_caller]
fn assert_stands_for(fixture: &mut ElectionFixture, seconds: f64) {
    let until = fixture.now.after(Duration::from_secs_f64(seconds));
    while fixture.now.after(Duration::from_millis(900)) < until {
        assert_reason!(fixture, Reason::AwaitYield { .. });
        fixture.pass(0.9);
        fixture.renew();
    }
    assert_reason!(fixture, Reason::AwaitYield { .. });
    let wake = fixture.step().wake.unwrap();
    assert_eq!((wake.at, wake.why), (until, WakeReason::PreferenceDoubted));
    fixture.now = until;
    fixture.renew();
    assert_eq!(fixture.action(), Action::Withdraw);
}

/// (R16, L3) Another elector saw an ack, a version or a creation that this one did not see: the candidate has its ack
/// window to be seen, the longer one where it is not known. Nothing else that comes is news of it. A ping, of whichever
/// elector, and the ack are none: otherwise electors that disagree would withdraw and prefer at the pace of their pings.
#[test]
fn a_preference_stands_for_the_ack_window_of_its_candidate() {
    type Start = fn() -> ElectionFixture;
    let histories: [(f64, Start, ElectionChange); 15] = [
        (2.0, silent, |it| prefer(it, "c")),
        (5.0, silent, |it| {
            it.change("c", |c| c.marked = false);
            it.keep(5);
            prefer(it, "c");
        }),
        (
            5.0,
            || ElectionFixture::led(&[("b", 2)]),
            |it| prefer(it, "c"),
        ),
        // It may have been created anew since its deletion.
        (5.0, silent, |it| {
            it.remove("c");
            prefer(it, "c");
        }),
        // A Lease that a gap hid is met with its preference as if it were new.
        (2.0, silent, |it| {
            let preferring = it.record().preferring(Some(id("c")), None);
            it.lease_of("lease-1", preferring, NewsSource::List);
        }),
        (2.0, worse, |_| {}),
        (2.0, worse, |it| it.change("c", |c| c.ping = c.next_ping())),
        (2.0, worse, |it| it.change("c", |c| c.renew = c.next_ping())),
        (2.0, worse, |it| it.change("c", |c| c.marked = true)),
        (2.0, worse, |it| {
            it.change("c", |c| c.announced = Some(Duration::from_secs(20)));
        }),
        (2.0, worse, |it| it.change("c", |c| c.deleting = true)),
        (2.0, worse, |it| it.change_version("d", "1.40.0", "1.5.0")),
        (2.0, worse, |it| {
            it.change("d", |d| d.uid = Uid::new("another"));
        }),
        (2.0, worse, |it| it.remove("d")),
        (2.0, worse, |it| it.register("e", 5)),
    ];
    for (index, (seconds, start, change)) in histories.into_iter().enumerate() {
        println!("{index}");
        let mut fixture = start();
        change(&mut fixture);
        assert_stands_for(&mut fixture, seconds);
    }
}

/// (R16) The ack comes: nothing was ever withdrawn.
#[test]
fn a_preference_stands_when_the_ack_is_seen_after_all() {
    let mut fixture = silent();
    prefer(&mut fixture, "c");
    fixture.pass(1.9);
    fixture.ack("c");
    fixture.pass(3.0);
    assert_reason!(fixture, Reason::AwaitYield { .. });
}

/// (R16, L6) A deletion that was seen while the preference stood is certain, and what the order looks at is news: this
/// elector is not blind to the candidate.
#[test]
fn a_preference_is_withdrawn_at_once_when_its_candidate_is_seen_to_change_for_the_worse() {
    let changes: [ElectionChange; 7] = [
        |it| it.remove("c"),
        |it| it.change_version("c", "1.39.0", "1.5.0"),
        |it| {
            it.change_spec("c", |spec| {
                spec.strategy = StrategyName::parse("a/b").unwrap();
            });
        },
        |it| it.change_spec("c", |spec| spec.priority = 1),
        |it| it.stand_down("c", Some(StandDown::Untimed)),
        |it| it.change("c", |c| c.renew = None),
        |it| it.change("c", |c| c.uid = Uid::new("another")),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut fixture = worse();
        change(&mut fixture);
        assert_eq!(fixture.action(), Action::Withdraw, "change {index}");
    }
}

/// (R16, L3) Electors of different orders may judge each change differently, and none of them a deletion.
#[test]
fn news_shortens_the_first_withdrawal_of_a_term_and_a_deletion_each() {
    let mut fixture = worse();
    fixture.change_version("c", "1.40.0", "1.5.0");
    assert_eq!(fixture.action(), Action::Withdraw);
    for (version, seconds) in [("1.6.0", 4.0), ("1.7.0", 8.0)] {
        fixture.preferred_by_another(None);
        prefer(&mut fixture, "c");
        fixture.change_version("c", "1.40.0", version);
        assert_stands_for(&mut fixture, seconds);
    }
    let gone: [ElectionChange; 3] = [
        |it| it.change("c", |candidate| candidate.uid = Uid::new("another")),
        |it| it.remove("c"),
        |it| {
            it.remove("c");
            it.register("c", 8);
        },
    ];
    for gone in gone {
        fixture.preferred_by_another(None);
        prefer(&mut fixture, "c");
        assert_reason!(fixture, Reason::AwaitYield { .. });
        gone(&mut fixture);
        assert_eq!(fixture.action(), Action::Withdraw);
    }
}

/// (R16, L3) Two electors that disagree for long withdraw ever more seldom, whatever the candidates.
#[test]
fn each_withdrawal_in_a_term_doubles_the_time_of_the_next_preference() {
    let mut fixture = silent();
    for (name, seconds) in [("c", 2.0), ("d", 10.0), ("c", 8.0), ("c", 16.0)] {
        prefer(&mut fixture, name);
        assert_stands_for(&mut fixture, seconds);
        fixture.preferred_by_another(None);
    }
    // The next term starts without withdrawals.
    fixture.edit(|record| record.term = record.term.next());
    fixture.accept();
    prefer(&mut fixture, "c");
    assert_stands_for(&mut fixture, 2.0);
}

/// (R16) No preference stands for longer than a candidate is passed over, however many were withdrawn.
#[test]
fn the_time_of_a_preference_is_bounded() {
    let mut fixture = silent();
    fixture.settings.timing.passed_over_max = Duration::from_secs(60);
    for _ in 0..40 {
        prefer(&mut fixture, "c");
        fixture.preferred_by_another(None);
    }
    prefer(&mut fixture, "c");
    assert_stands_for(&mut fixture, 60.0);
}

/// (R16, L3) A preference that electors of different orders move back and forth stays ever longer; the first move comes
/// at once.
#[test]
fn each_move_in_a_term_doubles_the_time_before_the_next_one() {
    let mut fixture = ElectionFixture::led(&[("c", 3), ("a", 1), ("b", 2)]);
    prefer(&mut fixture, "b");
    for seconds in [0.0, 8.0, 32.0] {
        let until = fixture.now.after(Duration::from_secs_f64(seconds));
        if seconds > 0.0 {
            fixture.pass(seconds - 0.1);
            fixture.renew();
            fixture.ack("a");
            fixture.ack("b");
            assert_reason!(fixture, Reason::AwaitYield { .. });
            let wake = fixture.step().wake.unwrap();
            assert_eq!((wake.at, wake.why), (until, WakeReason::PreferenceDoubted));
        }
        fixture.now = until;
        fixture.prefers("a");
        prefer(&mut fixture, "b");
    }
}
