//! Failed hand-overs cost the preference, and not the lease (R23).

use std::time::Duration;

use elector_protocol::Uid;
use elector_protocol::elector::{Action, HoldBackCause, NewsSource, Reason, WakeReason};

use crate::fixture::{ElectionChange, ElectionFixture, assert_reason};

/// `b` leads, and `a` is better.
pub(crate) fn led() -> ElectionFixture {
    ElectionFixture::led(&[("b", 2), ("a", 1)])
}

/// The elector prefers this candidate, which is better and has acked, and the holder hands over to it.
pub(crate) fn hand_over(fixture: &mut ElectionFixture, name: &str) {
    fixture.ack(name);
    fixture.prefers(name);
    fixture.grant(name);
}

/// The accept window of the present grant ends, and `b`, which acks, is granted the lease again and accepts.
fn regrant(fixture: &mut ElectionFixture) {
    fixture.pass(5.0);
    fixture.ack("b");
    fixture.grants("b");
    fixture.accept();
}

/// This candidate did not accept the lease that `b` handed over to it; `b` leads again.
fn fail(fixture: &mut ElectionFixture, name: &str) {
    hand_over(fixture, name);
    regrant(fixture);
}

/// `a` did not accept the lease that `b` handed over to it, and `c`, as good, was there then.
fn failed() -> ElectionFixture {
    let mut fixture = led();
    fixture.register("c", 1);
    fail(&mut fixture, "a");
    fixture.ack("c");
    fixture
}

/// The cause that holds the best candidate back, and for how long.
#[track_caller]
pub(crate) fn held_back(fixture: &ElectionFixture) -> Option<(HoldBackCause, u64)> {
    let decision = fixture.step();
    assert_eq!(decision.effects, [], "{decision:?}");
    let Reason::HeldBack {
        because, remaining, ..
    } = decision.reason
    else {
        return None;
    };
    let (wake, until) = (decision.wake.unwrap(), fixture.now.after(remaining));
    assert!(wake.at < until || wake.at == until && wake.why == WakeReason::HeldBack);
    assert_eq!(remaining.subsec_nanos(), 0);
    Some((because, remaining.as_secs()))
}

/// Seconds pass, in which the holder renews and the candidate acks.
pub(crate) fn live(fixture: &mut ElectionFixture, seconds: u64, candidate: &str) {
    fixture.keep(seconds);
    fixture.ack(candidate);
}

fn after(failures: u8) -> HoldBackCause {
    HoldBackCause::FailedHandOver { failures }
}

const NEW: HoldBackCause = HoldBackCause::NewSinceFailure;

/// (R23) For 1 min, whichever candidate it would be that is preferred. The deletion of the Lease does not forget it.
#[test]
fn after_a_failed_hand_over_no_candidate_is_preferred_for_a_minute() {
    for deleted in [false, true] {
        let mut fixture = failed();
        fixture.remove("a");
        if deleted {
            let record = fixture.record();
            fixture.delete_lease();
            fixture.lease_of("lease-2", record, NewsSource::Watch);
        }
        assert_eq!(held_back(&fixture), Some((after(1), 60)));
        live(&mut fixture, 59, "c");
        assert_eq!(held_back(&fixture), Some((after(1), 1)));
        live(&mut fixture, 1, "c");
        assert_eq!(fixture.action(), Action::Prefer);
    }
}

/// (R23) A free lease goes to one that has led, where that answers: for that minute, and for ten minutes before a candidate
/// that has appeared since. Then it goes to the best.
#[test]
fn a_free_lease_goes_to_one_that_has_led_for_as_long_as_a_failure_counts() {
    for (best, seconds, expected) in [
        ("c", 59, "b"),
        ("c", 60, "c"),
        ("d", 599, "b"),
        ("d", 600, "d"),
    ] {
        let mut fixture = failed();
        fixture.remove("a");
        if best == "d" {
            fixture.remove("c");
            fixture.register("d", 0);
        }
        live(&mut fixture, seconds - 1, best);
        fixture.release();
        fixture.ping();
        fixture.pass(1.0);
        fixture.ack("b");
        fixture.grants(expected);
    }
}

/// (R23) Failures in a row are an hour apart at most.
#[test]
fn a_failure_is_forgotten_after_an_hour() {
    for (seconds, failures, held) in [(3_599, 2, 120), (3_600, 1, 60)] {
        let mut fixture = failed();
        fixture.remove("a");
        fixture.register("d", 1);
        live(&mut fixture, seconds - 5, "c");
        fail(&mut fixture, "c");
        fixture.ack("d");
        assert_eq!(held_back(&fixture), Some((after(failures), held)));
    }
}

/// (R23) What is held back, why and until when, in words.
#[test]
fn a_hold_back_says_what_is_held_back_and_why_and_until_when() {
    let mut fixture = failed();
    fixture.remove("a");
    fixture.register("d", 1);
    assert_eq!(fixture.action(), Action::None);
    fixture.says(
        "c is better, but b is not asked to make room for another 60.0s: the last hand-over was not accepted",
    );
    live(&mut fixture, 60, "c");
    fail(&mut fixture, "c");
    fixture.says(
        "d is better, but b is not asked to make room for another 120.0s: the last 2 hand-overs were not accepted",
    );
    fixture.register("e", 0);
    fixture.says(
        "e is better, but b is not asked to make room for another 600.0s: it appeared or changed after a hand-over that \
         was not accepted, and has never led",
    );
}

/// (R23) So waits a candidate that changes its version, its name or its uid after a failure: also where it does so all
/// the time.
#[test]
fn a_candidate_that_appears_or_changes_after_a_failure_waits_for_ten_minutes() {
    let changes: [ElectionChange; 4] = [
        |it| it.register("d", 1),
        |it| it.change_version("a", "1.41.0", "1.0.0"),
        |it| it.register("a", 1),
        |it| {
            it.change("c", |c| c.uid = Uid::new("another"));
            it.ack("c");
        },
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut fixture = failed();
        if index != 1 {
            fixture.remove("a");
        }
        if index != 3 {
            fixture.remove("c");
        }
        change(&mut fixture);
        assert_eq!(held_back(&fixture), Some((NEW, 600)), "change {index}");
    }
    let mut fixture = failed();
    fixture.remove("c");
    for minor in 0..200 {
        fixture.change_version("a", &format!("1.{}.0", 41 + minor), "1.0.0");
        fixture.ack("a");
        assert_eq!(held_back(&fixture), Some((NEW, 600 - 3 * minor)));
        live(&mut fixture, 3, "a");
    }
    assert_eq!(fixture.action(), Action::Prefer);
}

/// (R23) A candidate that has led is trusted with a new version, once the minute is over.
#[test]
fn a_candidate_that_has_accepted_a_term_waits_for_a_minute_alone() {
    let mut fixture = ElectionFixture::led(&[("c", 3), ("b", 2)]);
    hand_over(&mut fixture, "b");
    fixture.accept();
    fixture.register("a", 1);
    fail(&mut fixture, "a");
    fixture.change_version("c", "1.41.0", "1.0.0");
    fixture.ack("c");
    assert_eq!(held_back(&fixture), Some((after(1), 60)));
    // Another object of that name has not led.
    fixture.remove("c");
    fixture.register("c", 1);
    assert_eq!(held_back(&fixture), Some((NEW, 600)));
}

/// (R23) The time doubles with each further failure up to 15 min, and falls back after an hour without one.
#[test]
fn each_further_failure_doubles_the_time_until_an_hour_passes_without_one() {
    let mut fixture = led();
    fixture.settings.timing.preemptions = 60;
    let mut name = "a".to_owned();
    for (failures, seconds) in (1..).zip([60, 120, 240, 480, 900, 900]) {
        // Each failure is that of a candidate that was there before the last one.
        let next = format!("c{failures}");
        fixture.register(&next, 1);
        fail(&mut fixture, &name);
        fixture.remove(&name);
        fixture.ack(&next);
        assert_eq!(held_back(&fixture), Some((after(failures), seconds)));
        live(&mut fixture, seconds, &next);
        name = next;
    }
    live(&mut fixture, 2700, &name);
    fixture.register("c7", 1);
    fail(&mut fixture, &name);
    fixture.ack("c7");
    assert_eq!(held_back(&fixture), Some((after(1), 60)));
}

/// (R23) A hand-over, and a release for a better candidate with the grant that follows; also where the preference is
/// withdrawn by then, since the holder had begun to stop (R12). A grant of a lease that was free costs its electee alone.
#[test]
fn grants_that_a_preference_brought_about_count_like_hand_overs() {
    for (counts, withdrawn) in [(true, false), (true, true), (false, false)] {
        let mut fixture = led();
        if counts {
            fixture.prefers("a");
        }
        if withdrawn {
            fixture.preferred_by_another(None);
        }
        fixture.release();
        fixture.grants("a");
        fixture.register("c", 1);
        if counts {
            regrant(&mut fixture);
            fixture.ack("c");
            assert_eq!(held_back(&fixture), Some((after(1), 60)));
        } else {
            fixture.pass(5.0);
            fixture.ack("b");
            fixture.ack("c");
            fixture.grants("c");
        }
    }
}

/// (R23) The second failure counts whoever asked for it: a preference of another elector stands, and is watched.
#[test]
fn a_preference_of_another_elector_stands_and_counts() {
    let mut fixture = failed();
    fixture.preferred_by_another(Some("c"));
    assert_reason!(fixture, Reason::AwaitYield { .. });
    // Its own preference would replace it by a better one.
    fixture.register("d", 0);
    assert_reason!(fixture, Reason::AwaitYield { .. });
    fixture.grant("c");
    regrant(&mut fixture);
    fixture.remove("d");
    fixture.remove("c");
    assert_eq!(held_back(&fixture), None, "a is passed over itself");
    fixture.settings.timing.passed_over_max = Duration::from_secs(100);
    fixture.change_version("a", "1.41.0", "1.0.0");
    fixture.settings.timing.preemption_window = Duration::from_secs(1);
    assert_eq!(held_back(&fixture), Some((after(2), 100)));
}

/// (R23) The vacancy after a failed hand-over goes to a candidate that has led, and not to the next name of the account
/// that let it fail.
#[test]
fn while_hand_overs_fail_grants_go_first_to_candidates_that_have_led() {
    let mut fixture = led();
    hand_over(&mut fixture, "a");
    fixture.register("d", 1);
    regrant(&mut fixture);
    // Also later, when `b` lets go: the newcomer is not even waited for.
    fixture.keep(30);
    fixture.release();
    fixture.pass(6.0);
    fixture.ack("d");
    assert_eq!(fixture.ping(), ["b"]);
    fixture.ack("b");
    fixture.grants("b");
    fixture.accept();
    // When no candidate that has led acks, any other will do.
    fixture.keep(10);
    fixture.release();
    fixture.pass(6.0);
    fixture.ping();
    fixture.pass(2.0);
    fixture.ack("d");
    fixture.grants("d");
}

/// (R23) After ten minutes, or where candidates were there before the failure and the minute is over, the best is
/// granted again.
#[test]
fn grants_go_to_the_best_again_when_the_hold_back_is_over() {
    for (seconds, elected) in [(59, "b"), (61, "a")] {
        let mut fixture = led();
        fixture.register("c", 0);
        fail(&mut fixture, "c");
        fixture.remove("c");
        fixture.keep(seconds);
        fixture.release();
        // `b` has just let go, and its ack must come after that.
        fixture.ack("a");
        fixture.ping();
        fixture.pass(0.1);
        fixture.ack("b");
        fixture.grants(elected);
    }
}
