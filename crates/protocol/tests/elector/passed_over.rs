//! Candidates that did not accept: for how long they are passed over, and what makes that forgotten (R5).

use elector_protocol::elector::{Action, NewsSource, Reason, Vacancy};
use elector_protocol::{CandidateSpec, LeaseRecord, ResourceVersion, Term, Uid};

use crate::fixture::{ElectionFixture, id, pinged};

/// `b` leads; `a` is better, and was granted the lease once without accepting.
fn failed() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("a", "1.1.0");
    in_vain(&mut fixture);
    fixture
}

/// `a` is granted the lease and does not accept, then `b` is and does.
fn in_vain(fixture: &mut ElectionFixture) {
    for name in ["a", "b"] {
        let grant = fixture.grant_to(name);
        fixture.lease(grant);
    }
    fixture.accept();
}

/// `a` is passed over for so many seconds, and for so many more after each further failure.
fn assert_passed_over_for(fixture: &mut ElectionFixture, seconds: &[u64]) {
    for seconds in seconds {
        fixture.keep(seconds - 1);
        assert!(passed_over(fixture), "before {seconds} s");
        fixture.keep(1);
        assert!(!passed_over(fixture), "after {seconds} s");
        in_vain(fixture);
    }
}

/// True if `a`, which is the better one and acks, is passed over.
fn passed_over(fixture: &mut ElectionFixture) -> bool {
    fixture.ack("a");
    match fixture.step().reason {
        Reason::HolderIsBest(_) => true,
        Reason::Preferred { .. } => false,
        reason => panic!("{reason}"),
    }
}

/// (R5) For 1 min, doubling to 15 min, counted from the newest grant that was not accepted.
#[test]
fn each_further_failure_doubles_the_time_up_to_a_quarter_of_an_hour() {
    assert_passed_over_for(&mut failed(), &[60, 120, 240, 480, 900, 900]);
}

/// (R5) The maximum that is set is reached from any start.
#[test]
fn a_short_time_doubles_up_to_the_same_maximum() {
    let mut fixture = failed();
    fixture.settings.timing.passed_over = std::time::Duration::from_secs(10);
    assert_passed_over_for(&mut fixture, &[10, 20, 40, 80, 160, 320, 640, 900]);
}

/// (R5) A hand-over is a grant that the holder writes; one that is not accepted counts like any other.
#[test]
fn a_hand_over_that_is_not_accepted_counts_too() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("a", "1.1.0");
    let decision = fixture.step();
    fixture.apply(&decision);
    let handed_over = fixture.grant_to("a");
    fixture.lease(handed_over);
    fixture.pass(5.0);
    fixture.ack("a");
    fixture.ack("b");
    let decision = fixture.step();
    assert!(
        matches!(&decision.reason, Reason::Granted { to, vacancy: Vacancy::NotAccepted { holder, .. }, .. }
            if to == &id("b") && holder == &id("a")),
        "{decision:?}"
    );
    fixture.apply(&decision);
    fixture.accept();
    assert!(passed_over(&mut fixture));
}

/// (R5) Until its spec or its uid changes, or it goes.
#[test]
fn a_candidate_that_is_another_one_now_is_not_passed_over() {
    let mut fixture = failed();
    fixture.change("a", |candidate| {
        candidate.spec = CandidateSpec::parse("1.40.0", "1.0.0", "OldestEmulationVersion").into();
    });
    assert!(!passed_over(&mut fixture), "another spec");

    let mut fixture = failed();
    fixture.change("a", |candidate| candidate.uid = Uid::new("another"));
    assert!(!passed_over(&mut fixture), "another uid");

    let mut fixture = failed();
    fixture.election.handle_candidate_gone(&id("a"), None);
    fixture.register("a", "1.1.0");
    assert!(!passed_over(&mut fixture), "gone, and back");
}

/// (R5) Nothing else about its object is a reason to forget.
#[test]
fn a_candidate_that_only_acks_is_still_passed_over() {
    let mut fixture = failed();
    fixture.change("a", |candidate| {
        candidate.announced = Some(std::time::Duration::from_secs(20));
        candidate.marked = false;
    });
    assert!(passed_over(&mut fixture));
    fixture.keep(30);
    assert!(passed_over(&mut fixture));
    let older = ResourceVersion(1);
    fixture
        .election
        .handle_candidate_gone(&id("a"), Some(older));
    assert!(passed_over(&mut fixture), "a deletion of long ago");
    let mut another = fixture.mk_candidate("a", "1.0.0");
    another.version = older;
    let now = fixture.now;
    fixture
        .election
        .handle_candidate(now, another, NewsSource::Watch);
    assert!(passed_over(&mut fixture), "a spec of long ago");
}

/// (R5) An accept ends it, with a token or without one: client-go writes none.
#[test]
fn an_accept_is_forgiveness_also_without_a_token() {
    for token in [true, false] {
        let mut fixture = failed();
        let grant = fixture.grant_to("a");
        fixture.lease(grant);
        fixture.pass(1.0);
        if token {
            fixture.accept();
        } else {
            let accepted = LeaseRecord {
                renew_time: Some(fixture.wall()),
                duration_seconds: Some(15),
                ..fixture.record()
            };
            fixture.lease(accepted);
        }
        let grant = fixture.grant_to("b");
        fixture.lease(grant);
        fixture.accept();
        assert!(!passed_over(&mut fixture), "token: {token}");
    }
}

/// (R5, R7) A preference on a grant is no accept of it.
#[test]
fn a_signal_on_a_grant_is_not_taken_for_its_accept() {
    let mut fixture = failed();
    let grant = fixture.grant_to("a");
    fixture.lease(grant);
    let signalled = fixture.record().preferring(Some(id("b")), None);
    fixture.lease(signalled);
    let grant = fixture.grant_to("b");
    fixture.lease(grant);
    fixture.accept();
    fixture.keep(119);
    assert!(passed_over(&mut fixture), "it is the second failure");
}

/// (R5) The term of another Lease of that name is not the one that was granted.
#[test]
fn an_accepted_term_of_a_lease_created_anew_accepts_nothing() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("a", "1.1.0");
    let grant = fixture.grant_to("a");
    fixture.lease(grant.clone());
    fixture.pass(1.0);
    let accepted = LeaseRecord {
        renew_time: Some(fixture.wall()),
        ..grant
    };
    fixture.lease_of("lease-2", accepted, NewsSource::Watch);
    let grant = fixture.grant_to("b");
    fixture.lease_of("lease-2", grant, NewsSource::Watch);
    fixture.pass(1.0);
    let accepted = LeaseRecord {
        renew_time: Some(fixture.wall()),
        duration_seconds: Some(15),
        ..fixture.record()
    };
    fixture.lease_of("lease-2", accepted, NewsSource::Watch);
    assert!(passed_over(&mut fixture));
}

/// (R5) A grant that was emptied was not accepted either.
#[test]
fn a_grant_that_a_stranger_emptied_counts_as_a_failure() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("a", "1.1.0");
    let grant = fixture.grant_to("a");
    fixture.lease(grant);
    let emptied = fixture.record().released(fixture.wall());
    fixture.lease(emptied);
    let grant = fixture.grant_to("b");
    fixture.lease(grant);
    fixture.accept();
    assert!(passed_over(&mut fixture));
}

/// (R5) Only a grant can fail: the end of an accepted term is no failure.
#[test]
fn a_holder_that_expired_is_not_passed_over() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    fixture.register("b", "1.2.0");
    let grant = fixture.grant_to("b");
    fixture.lease(grant);
    fixture.accept();
    assert!(!passed_over(&mut fixture));
}

/// (R5) The deletion of the Lease says nothing about which candidate accepts.
#[test]
fn the_deletion_of_the_lease_forgets_no_failure() {
    let mut fixture = failed();
    let record = fixture.record();
    fixture.delete_lease();
    fixture.lease_of("lease-2", record, NewsSource::Watch);
    assert!(passed_over(&mut fixture));
}

/// (R4) A store that was restored from a backup is met as by a new process, which has seen no failure.
#[test]
fn a_restored_store_forgets_failures() {
    let mut fixture = failed();
    let mut restored = fixture.election.lease().unwrap().clone();
    restored.version = ResourceVersion(1);
    fixture
        .election
        .handle_lease(fixture.now, restored, NewsSource::List);
    fixture.register("a", "1.1.0");
    fixture.register("b", "1.2.0");
    assert!(!passed_over(&mut fixture));
}

/// (R5) The accept window grows with the failures of the electee, and with those of no other.
#[test]
fn the_window_of_one_candidate_does_not_grow_with_anothers_failures() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    for window in [5, 10] {
        fixture.pass(0.1);
        fixture.ack("a");
        let decision = fixture.step();
        assert_eq!(fixture.apply(&decision).duration_seconds, Some(window));
        fixture.pass(f64::from(window));
    }
    fixture.register("b", "1.2.0");
    let decision = fixture.step();
    let granted = fixture.apply(&decision);
    assert_eq!(
        (granted.holder, granted.duration_seconds),
        (Some(id("b")), Some(5))
    );
}

/// (R5) Passed over also at a grant, while another has acked.
#[test]
fn a_candidate_that_failed_is_not_granted_while_another_acks() {
    let mut fixture = failed();
    fixture.register("c", "1.3.0");
    fixture.pass(15.0);
    fixture.ack("a");
    fixture.ack("c");
    let decision = fixture.step();
    assert!(
        matches!(&decision.reason, Reason::Granted { to, .. } if to == &id("c")),
        "{decision:?}"
    );
}

/// (R5, L2) One that did not accept is better than none, once the others had their time to ack.
#[test]
fn a_candidate_that_failed_is_granted_when_the_others_are_silent() {
    let mut fixture = failed();
    fixture.list("c", "1.3.0");
    fixture.pass(15.0);
    fixture.ack("a");
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["b", "c"]);
    let decision = fixture.step();
    assert!(
        matches!(&decision.reason, Reason::AwaitAck(names) if names == &[id("c")]),
        "{decision:?}"
    );
    fixture.pass(2.0);
    let decision = fixture.step();
    assert!(
        matches!(&decision.reason, Reason::Granted { to, .. } if to == &id("a")),
        "{decision:?}"
    );
}

/// (R5, R15) All of those passed over are pinged when no other candidate acks, and the best of them has its time.
#[test]
fn those_passed_over_are_pinged_as_a_last_resort_and_the_best_is_waited_for() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.register("c", "1.3.0");
    fixture.lease(LeaseRecord::born(None));
    for name in ["a", "c"] {
        let grant = fixture.grant_to(name);
        fixture.lease(grant);
    }
    let nobody = LeaseRecord {
        term: Term(9),
        ..fixture.record().released(fixture.wall())
    };
    fixture.lease(nobody);
    fixture.pass(6.0);
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["a", "c"]);
    fixture.ack("c");
    let decision = fixture.step();
    assert!(
        matches!(&decision.reason, Reason::AwaitAck(names) if names == &[id("a")]),
        "{decision:?}"
    );
    fixture.pass(2.0);
    assert_eq!(fixture.step().action(), Action::Grant);
}

/// (R5, R15) While a regular candidate still has time to ack, those passed over are not even pinged.
#[test]
fn those_passed_over_are_not_pinged_while_another_has_time_to_ack() {
    let mut fixture = failed();
    fixture.list("c", "1.3.0");
    fixture.pass(15.0);
    let decision = fixture.step();
    assert_eq!(fixture.deliver_pings(&decision), ["b", "c"]);
    assert_eq!(pinged(&fixture.step()), Vec::<String>::new());
    fixture.pass(2.0);
    assert_eq!(pinged(&fixture.step()), ["a"]);
}
