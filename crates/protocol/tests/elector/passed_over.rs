//! Candidates that did not accept: for how long they are passed over, and what makes that forgotten (R5).

use std::time::Duration;

use elector_protocol::elector::{Action, NewsSource, Reason};
use elector_protocol::{LeaseRecord, ResourceVersion, Uid};

use crate::fixture::{ElectionChange, ElectionFixture};

/// `b` leads, and `a` is better.
fn led() -> ElectionFixture {
    ElectionFixture::led(&[("b", 2), ("a", 1)])
}

/// `b` leads; `a` is better, and was granted the lease once without accepting.
fn failed() -> ElectionFixture {
    let mut fixture = led();
    in_vain(&mut fixture);
    fixture
}

/// `a` is granted the lease and does not accept, then `b` is and does.
fn in_vain(fixture: &mut ElectionFixture) {
    fixture.grant("a");
    fixture.grant("b");
    fixture.accept();
}

/// The electee accepts as client-go does, which writes no token.
fn accept_without_a_token(fixture: &mut ElectionFixture) {
    fixture.pass(1.0);
    fixture.renew();
    fixture.edit(|record| record.duration_seconds = Some(15));
}

/// True if `a`, which is the better one and acks, is passed over.
#[track_caller]
fn passed_over(fixture: &mut ElectionFixture) -> bool {
    fixture.ack("a");
    match fixture.reason() {
        Reason::HolderIsBest(_) => true,
        Reason::Preferred { .. } => false,
        reason => panic!("{reason}"),
    }
}

/// (R5) For 1 min, doubling to 15 min, counted from the newest grant that was not accepted; the maximum is reached from
/// any start.
#[test]
fn each_further_failure_doubles_the_time_up_to_a_quarter_of_an_hour() {
    for times in [
        [60, 120, 240, 480, 900, 900, 900, 900],
        [10, 20, 40, 80, 160, 320, 640, 900],
    ] {
        let mut fixture = failed();
        fixture.settings.timing.passed_over = Duration::from_secs(times[0]);
        for seconds in times {
            fixture.keep(seconds - 1);
            assert!(passed_over(&mut fixture), "before {seconds} s");
            fixture.keep(1);
            assert!(!passed_over(&mut fixture), "after {seconds} s");
            in_vain(&mut fixture);
        }
    }
}

/// (R5) Until its spec or its uid changes, or it goes. An accept ends it too, with a token or without one; and so does a
/// store that was restored from a backup (R4), which is met as by a new process. A term that ends was accepted.
#[test]
fn a_failure_is_forgotten_when_the_candidate_is_another_one_or_accepts() {
    let changes: [(&str, ElectionChange); 7] = [
        ("another spec", |it| {
            it.change_version("a", "1.40.0", "1.0.0");
        }),
        ("another uid", |it| {
            it.change("a", |a| a.uid = Uid::new("another"));
        }),
        ("gone, and back", |it| {
            it.remove("a");
            it.register("a", 1);
        }),
        ("accepted", |it| {
            it.grant("a");
            it.pass(1.0);
            it.accept();
            it.grant("b");
            it.accept();
        }),
        ("accepted without a token", |it| {
            it.grant("a");
            accept_without_a_token(it);
            it.grant("b");
            it.accept();
        }),
        ("restored", |it| {
            it.show_again(Some(1), NewsSource::List);
            it.register("a", 1);
            it.register("b", 2);
        }),
        ("it led, and was never granted in vain", |it| {
            *it = ElectionFixture::led(&[("a", 1), ("b", 2)]);
            it.grant("b");
            it.accept();
        }),
    ];
    for (text, change) in changes {
        let mut fixture = failed();
        change(&mut fixture);
        assert!(!passed_over(&mut fixture), "{text}");
    }
}

/// (R5) Nothing else is a reason to forget: no other part of its object, no news of long ago, not the deletion of the
/// Lease, which says nothing about which candidate accepts, and no term of another Lease of that name.
#[test]
fn a_failure_is_remembered_whatever_else_happens() {
    let changes: [(&str, ElectionChange); 6] = [
        ("other fields", |it| {
            it.change("a", |a| {
                (a.announced, a.marked) = (Some(Duration::from_secs(20)), false);
            });
            it.keep(30);
        }),
        ("a deletion of long ago", |it| {
            let (a, older) = (it.candidate("a").name, Some(ResourceVersion(1)));
            it.election.handle_candidate_gone(&a, older);
        }),
        ("a spec of long ago", |it| {
            let mut another = it.mk_candidate("a", 0);
            another.version = ResourceVersion(1);
            it.election
                .handle_candidate(it.now, another, NewsSource::Watch);
        }),
        ("the Lease is deleted", |it| {
            let record = it.record();
            it.delete_lease();
            it.lease_of("lease-2", record, NewsSource::Watch);
        }),
        ("its term is accepted in another Lease", |it| {
            *it = led();
            it.grant("a");
            it.pass(1.0);
            let accepted = LeaseRecord {
                renew_time: Some(it.wall()),
                ..it.record()
            };
            it.lease_of("lease-2", accepted, NewsSource::Watch);
            it.grant("b");
            accept_without_a_token(it);
        }),
        ("its grant was emptied", |it| {
            *it = led();
            it.grant("a");
            it.release();
            it.grant("b");
            it.accept();
        }),
    ];
    for (text, change) in changes {
        let mut fixture = failed();
        change(&mut fixture);
        assert!(passed_over(&mut fixture), "{text}");
    }
}

/// (R5) A hand-over is a grant that the holder writes; one that is not accepted counts like any other.
#[test]
fn a_hand_over_that_is_not_accepted_counts_too() {
    let mut fixture = led();
    fixture.prefers("a");
    fixture.grant("a");
    fixture.pass(5.0);
    fixture.ack("a");
    fixture.ack("b");
    fixture.says("a has not accepted its grant within 5s; b is the best that answered");
    fixture.grants("b");
    fixture.accept();
    assert!(passed_over(&mut fixture));
}

/// (R5, R7) A preference on a grant is no accept of it.
#[test]
fn a_signal_on_a_grant_is_not_taken_for_its_accept() {
    let mut fixture = failed();
    fixture.grant("a");
    fixture.preferred_by_another(Some("b"));
    fixture.grant("b");
    fixture.accept();
    fixture.keep(119);
    assert!(passed_over(&mut fixture), "it is the second failure");
}

/// (R5) Passed over also at a grant, while another has acked. (L2) It is better than none, once the others had their time
/// to ack; until then it is not even pinged.
#[test]
fn a_candidate_that_failed_is_granted_only_when_the_others_are_silent() {
    for (acks, electee) in [(true, "c"), (false, "a")] {
        let mut fixture = failed();
        fixture.list("c", 3);
        fixture.pass(15.0);
        assert_eq!(fixture.ping(), ["b", "c"]);
        assert_eq!(fixture.pinged(), [""; 0]);
        fixture.ack("a");
        if acks {
            fixture.ack("c");
        } else {
            fixture.says("waiting for the ack of c");
            fixture.pass(2.0);
        }
        fixture.grants(electee);
    }
}

/// (R5, R15) All of those passed over are pinged when no other candidate acks, and the best of them has its time.
#[test]
fn those_passed_over_are_pinged_as_a_last_resort_and_the_best_is_waited_for() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", 1);
    fixture.register("c", 3);
    fixture.lease(LeaseRecord::born(None));
    for name in ["a", "c"] {
        fixture.grant(name);
    }
    fixture.release();
    fixture.pass(6.0);
    assert_eq!(fixture.ping(), ["a", "c"]);
    fixture.ack("c");
    fixture.says("waiting for the ack of a");
    fixture.pass(2.0);
    assert_eq!(fixture.action(), Action::Grant);
}
