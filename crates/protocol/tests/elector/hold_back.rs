//! Failed hand-overs cost the preference, and not the lease; and so do many that succeed (R23).

use std::time::Duration;

use elector_protocol::elector::{Action, HoldBackCause, NewsSource, Reason, WakeReason};
use elector_protocol::{CandidateSpec, Uid};

use crate::fixture::{ElectionFixture, id, pinged};

/// `b` leads, and `a` is better.
pub(crate) fn led() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("a", "1.1.0");
    fixture
}

/// The elector prefers this candidate, which is better and has acked, and the holder hands over to it.
pub(crate) fn hand_over(fixture: &mut ElectionFixture, name: &str) {
    fixture.ack(name);
    let decision = fixture.step();
    assert_eq!(
        fixture.apply(&decision).preferred_holder,
        Some(id(name)),
        "{decision:?}"
    );
    let handed_over = fixture.grant_to(name);
    fixture.lease(handed_over);
}

/// The accept window of the present grant ends, and `b`, which acks, is granted the lease again and accepts.
fn regrant(fixture: &mut ElectionFixture) {
    fixture.pass(5.0);
    fixture.ack("b");
    let decision = fixture.step();
    assert_eq!(
        fixture.apply(&decision).holder,
        Some(id("b")),
        "{decision:?}"
    );
    fixture.accept();
}

/// `a` did not accept the lease that `b` handed over to it; `b` leads again.
fn failed() -> ElectionFixture {
    let mut fixture = led();
    hand_over(&mut fixture, "a");
    regrant(&mut fixture);
    fixture
}

/// The candidate becomes a better one in place, which R5 takes for another candidate.
fn change_version(fixture: &mut ElectionFixture, name: &str, minor: u64) {
    fixture.change(name, |candidate| {
        let binary = format!("1.{minor}.0");
        candidate.spec = CandidateSpec::parse(&binary, "1.0.0", "OldestEmulationVersion").into();
    });
}

/// The cause that holds the best candidate back, and for how long.
pub(crate) fn held_back(fixture: &ElectionFixture) -> Option<(HoldBackCause, u64)> {
    let decision = fixture.step();
    assert_eq!(decision.effects, [], "{decision:?}");
    match decision.reason {
        Reason::HeldBack {
            because, remaining, ..
        } => {
            let wake = decision.wake.unwrap();
            assert!(
                wake.why == WakeReason::HeldBack && wake.at == fixture.now.after(remaining)
                    || wake.at < fixture.now.after(remaining),
                "{wake:?}"
            );
            assert_eq!(remaining.subsec_nanos(), 0);
            Some((because, remaining.as_secs()))
        }
        _ => None,
    }
}

/// Passes so many seconds, in which the holder renews and the candidate acks.
pub(crate) fn live(fixture: &mut ElectionFixture, seconds: u64, candidate: &str) {
    fixture.keep(seconds);
    fixture.ack(candidate);
}

/// The candidate is deleted.
fn forget(fixture: &mut ElectionFixture, name: &str) {
    fixture.election.handle_candidate_gone(&id(name), None);
}

const AFTER_ONE: HoldBackCause = HoldBackCause::FailedHandOver { failures: 1 };
const AFTER_TWO: HoldBackCause = HoldBackCause::FailedHandOver { failures: 2 };

/// (R23) For 1 min, whichever candidate it would be that is preferred.
#[test]
fn after_a_failed_hand_over_no_candidate_is_preferred_for_a_minute() {
    let mut fixture = led();
    fixture.register("c", "1.1.0");
    hand_over(&mut fixture, "a");
    regrant(&mut fixture);
    forget(&mut fixture, "a");
    fixture.ack("c");
    assert_eq!(held_back(&fixture), Some((AFTER_ONE, 60)));
    live(&mut fixture, 59, "c");
    assert_eq!(held_back(&fixture), Some((AFTER_ONE, 1)));
    live(&mut fixture, 1, "c");
    assert_eq!(fixture.step().action(), Action::Prefer);
}

/// (R23) What is held back, why and until when, in words.
#[test]
fn a_hold_back_says_what_is_held_back_and_why_and_until_when() {
    let mut fixture = failed();
    change_version(&mut fixture, "a", 41);
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::None);
    assert_eq!(
        decision.reason.to_string(),
        "a is better, but b is not asked to make room for another 600.0s: it appeared or changed after a hand-over that \
         was not accepted, and has never led"
    );
    let mut fixture = led();
    fixture.register("c", "1.1.0");
    fixture.register("d", "1.1.0");
    hand_over(&mut fixture, "a");
    regrant(&mut fixture);
    forget(&mut fixture, "a");
    assert_eq!(
        fixture.step().reason.to_string(),
        "c is better, but b is not asked to make room for another 60.0s: the last hand-over was not accepted"
    );
    live(&mut fixture, 60, "c");
    hand_over(&mut fixture, "c");
    regrant(&mut fixture);
    assert_eq!(
        fixture.step().reason.to_string(),
        "d is better, but b is not asked to make room for another 120.0s: the last 2 hand-overs were not accepted"
    );
}

/// (R23) An account that changes its version all the time is not preferred for the whole window.
#[test]
fn a_candidate_that_changes_its_version_after_a_failure_waits_for_ten_minutes() {
    let mut fixture = failed();
    for minor in 0..200 {
        change_version(&mut fixture, "a", 41 + minor);
        fixture.ack("a");
        let left = 600 - 3 * minor;
        assert_eq!(
            held_back(&fixture),
            Some((HoldBackCause::NewSinceFailure, left))
        );
        live(&mut fixture, 3, "a");
    }
    assert_eq!(fixture.step().action(), Action::Prefer);
}

/// (R23) So is one that changes its name, or its uid.
#[test]
fn a_candidate_that_appears_after_a_failure_waits_for_ten_minutes() {
    let mut fixture = failed();
    forget(&mut fixture, "a");
    fixture.register("d", "1.1.0");
    assert_eq!(
        held_back(&fixture),
        Some((HoldBackCause::NewSinceFailure, 600))
    );
    forget(&mut fixture, "d");
    fixture.register("a", "1.1.0");
    assert_eq!(
        held_back(&fixture),
        Some((HoldBackCause::NewSinceFailure, 600)),
        "gone and back"
    );

    let mut fixture = led();
    fixture.register("c", "1.1.0");
    hand_over(&mut fixture, "a");
    regrant(&mut fixture);
    fixture.change("c", |candidate| candidate.uid = Uid::new("another"));
    fixture.ack("c");
    assert_eq!(
        held_back(&fixture),
        Some((HoldBackCause::NewSinceFailure, 600))
    );
}

/// (R23) A candidate that has led is trusted with a new version, once the minute is over.
#[test]
fn a_candidate_that_has_accepted_a_term_waits_for_a_minute_alone() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("c", "1.3.0");
    fixture.register("b", "1.2.0");
    hand_over(&mut fixture, "b");
    fixture.accept();
    fixture.register("a", "1.1.0");
    hand_over(&mut fixture, "a");
    regrant(&mut fixture);
    change_version(&mut fixture, "c", 41);
    fixture.ack("c");
    assert_eq!(held_back(&fixture), Some((AFTER_ONE, 60)));
    // Another object of that name has not led.
    forget(&mut fixture, "c");
    fixture.register("c", "1.1.0");
    assert_eq!(
        held_back(&fixture),
        Some((HoldBackCause::NewSinceFailure, 600))
    );
}

/// (R23) The time doubles with each further failure up to 15 min, and falls back after an hour without one.
#[test]
fn each_further_failure_doubles_the_time_until_an_hour_passes_without_one() {
    let mut fixture = led();
    fixture.settings.timing.preemptions = 60;
    for (index, seconds) in [60, 120, 240, 480, 900, 900].into_iter().enumerate() {
        // Each failure is that of a candidate that was there before the last one.
        let next = format!("c{}", index + 1);
        fixture.register(&next, "1.1.0");
        let name = format!("c{index}");
        let name = if index == 0 { "a" } else { name.as_str() };
        hand_over(&mut fixture, name);
        regrant(&mut fixture);
        forget(&mut fixture, name);
        fixture.ack(&next);
        let held = held_back(&fixture).map(|(_, left)| left);
        assert_eq!(held, Some(seconds), "failure {}", index + 1);
        live(&mut fixture, seconds, &next);
    }
    live(&mut fixture, 2700, "c6");
    fixture.register("c7", "1.1.0");
    hand_over(&mut fixture, "c6");
    regrant(&mut fixture);
    fixture.ack("c7");
    assert_eq!(held_back(&fixture), Some((AFTER_ONE, 60)));
}

/// (R23) A release for a better candidate and the grant that follows are a hand-over too.
#[test]
fn a_grant_that_a_preference_brought_about_counts_like_a_hand_over() {
    let mut fixture = led();
    fixture.register("c", "1.1.0");
    let decision = fixture.step();
    fixture.apply(&decision);
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).holder, Some(id("a")));
    regrant(&mut fixture);
    fixture.ack("c");
    assert_eq!(held_back(&fixture), Some((AFTER_ONE, 60)));
}

/// (R12, R23) A holder that had begun to stop lets go although the preference is withdrawn by then.
#[test]
fn a_release_after_a_withdrawal_is_a_pre_emption_too() {
    let mut fixture = led();
    fixture.register("c", "1.1.0");
    let decision = fixture.step();
    fixture.apply(&decision);
    let withdrawn = fixture.record().preferring(None, None);
    fixture.lease(withdrawn);
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    let grant = fixture.grant_to("a");
    fixture.lease(grant);
    regrant(&mut fixture);
    fixture.ack("c");
    assert_eq!(held_back(&fixture), Some((AFTER_ONE, 60)));
}

/// (R5, R23) A grant that no preference brought about costs its electee alone.
#[test]
fn a_grant_of_a_lease_that_was_free_costs_no_preference() {
    let mut fixture = led();
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    let grant = fixture.grant_to("a");
    fixture.lease(grant);
    regrant(&mut fixture);
    fixture.register("c", "1.1.0");
    hand_over(&mut fixture, "c");
}

/// (R23) The second failure counts whoever asked for it: a preference of another elector stands, and is watched.
#[test]
fn a_preference_of_another_elector_stands_and_counts() {
    let mut fixture = led();
    fixture.register("c", "1.1.0");
    hand_over(&mut fixture, "a");
    regrant(&mut fixture);
    fixture.ack("c");
    let preferring = fixture.record().preferring(Some(id("c")), None);
    fixture.lease(preferring);
    let decision = fixture.step();
    assert!(
        matches!(decision.reason, Reason::AwaitYield { .. }),
        "{decision:?}"
    );
    // Its own preference would replace it by a better one.
    fixture.register("d", "1.0.0");
    let decision = fixture.step();
    assert!(
        matches!(decision.reason, Reason::AwaitYield { .. }),
        "{decision:?}"
    );
    let handed_over = fixture.grant_to("c");
    fixture.lease(handed_over);
    regrant(&mut fixture);
    forget(&mut fixture, "d");
    forget(&mut fixture, "c");
    assert_eq!(held_back(&fixture), None, "a is passed over itself");
    fixture.settings.timing.passed_over_max = Duration::from_secs(100);
    change_version(&mut fixture, "a", 41);
    fixture.settings.timing.preemption_window = Duration::from_secs(1);
    assert_eq!(held_back(&fixture), Some((AFTER_TWO, 100)));
}

/// (R23) The vacancy after a failed hand-over goes to a candidate that has led, and not to the next name of the account
/// that let it fail.
#[test]
fn while_hand_overs_fail_grants_go_first_to_candidates_that_have_led() {
    let mut fixture = led();
    hand_over(&mut fixture, "a");
    fixture.register("d", "1.1.0");
    regrant(&mut fixture);
    // Also later, when `b` lets go: the newcomer is not even waited for.
    fixture.keep(30);
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    fixture.pass(6.0);
    fixture.ack("d");
    let decision = fixture.step();
    assert_eq!(pinged(&decision), ["b"], "{decision:?}");
    fixture.deliver_pings(&decision);
    fixture.ack("b");
    let decision = fixture.step();
    assert_eq!(
        fixture.apply(&decision).holder,
        Some(id("b")),
        "{decision:?}"
    );
    fixture.accept();
    // When no candidate that has led acks, any other will do.
    fixture.keep(10);
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    fixture.pass(6.0);
    let decision = fixture.step();
    fixture.deliver_pings(&decision);
    fixture.pass(2.0);
    fixture.ack("d");
    let decision = fixture.step();
    assert_eq!(
        fixture.apply(&decision).holder,
        Some(id("d")),
        "{decision:?}"
    );
}

/// (R23) After ten minutes, or where candidates were there before the failure and the minute is over, the best is
/// granted again.
#[test]
fn grants_go_to_the_best_again_when_the_hold_back_is_over() {
    let mut fixture = led();
    fixture.register("c", "1.0.0");
    hand_over(&mut fixture, "c");
    regrant(&mut fixture);
    forget(&mut fixture, "c");
    for (seconds, elected) in [(59, "b"), (61, "a")] {
        let mut fixture = ElectionFixture {
            election: fixture.election.clone(),
            settings: fixture.settings.clone(),
            word: fixture.word.clone(),
            ..fixture
        };
        fixture.keep(seconds);
        let released = fixture.record().released(fixture.wall());
        fixture.lease(released);
        for name in ["a", "b"] {
            fixture.ack(name);
        }
        let decision = fixture.step();
        // `b` has just let go, and its ack must come after that.
        fixture.deliver_pings(&decision);
        fixture.pass(0.1);
        fixture.ack("b");
        let decision = fixture.step();
        assert!(
            matches!(&decision.reason, Reason::Granted { to, .. } if to == &id(elected)),
            "{decision:?}"
        );
    }
}

/// (R23) The deletion of the Lease does not forget what failed.
#[test]
fn a_failed_hand_over_is_remembered_over_the_deletion_of_the_lease() {
    let mut fixture = led();
    fixture.register("c", "1.1.0");
    hand_over(&mut fixture, "a");
    regrant(&mut fixture);
    let record = fixture.record();
    fixture.delete_lease();
    fixture.lease_of("lease-2", record, NewsSource::Watch);
    fixture.ack("c");
    assert_eq!(held_back(&fixture), Some((AFTER_ONE, 60)));
}
