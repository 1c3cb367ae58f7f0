//! Candidates that did not accept: for how long they are passed over, and what makes that forgotten (R5).

use elector_protocol::elector::{Action, NewsSource, Reason, Vacancy};
use elector_protocol::{CandidateSpec, LeaseRecord, ResourceVersion, Term, Uid};

use crate::world::{World, id, pinged};

/// `b` leads; `a` is better, and was granted the lease once without accepting.
fn failed() -> World {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("a", "1.1.0");
    in_vain(&mut world);
    world
}

/// `a` is granted the lease and does not accept, then `b` is and does.
fn in_vain(world: &mut World) {
    for name in ["a", "b"] {
        let grant = world.grant_to(name);
        world.lease(grant);
    }
    world.accept();
}

/// `a` is passed over for so many seconds, and for so many more after each further failure.
fn assert_passed_over_for(world: &mut World, seconds: &[u64]) {
    for seconds in seconds {
        world.keep(seconds - 1);
        assert!(passed_over(world), "before {seconds} s");
        world.keep(1);
        assert!(!passed_over(world), "after {seconds} s");
        in_vain(world);
    }
}

/// Whether `a`, which is the better one and answers, is passed over.
fn passed_over(world: &mut World) -> bool {
    world.ack("a");
    match world.step().reason {
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

/// (R5) The maximum that is set is reached from whatever it starts at.
#[test]
fn a_short_time_doubles_up_to_the_same_maximum() {
    let mut world = failed();
    world.settings.timing.passed_over = std::time::Duration::from_secs(10);
    assert_passed_over_for(&mut world, &[10, 20, 40, 80, 160, 320, 640, 900]);
}

/// (R5) A hand-over is a grant that the holder writes; one that is not accepted counts like any other.
#[test]
fn a_hand_over_that_is_not_accepted_counts_too() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("a", "1.1.0");
    let decision = world.step();
    world.apply(&decision);
    let handed_over = world.grant_to("a");
    world.lease(handed_over);
    world.pass(5.0);
    world.ack("a");
    world.ack("b");
    let decision = world.step();
    assert!(
        matches!(&decision.reason, Reason::Granted { to, vacancy: Vacancy::NotAccepted { holder, .. }, .. }
            if to == &id("b") && holder == &id("a")),
        "{decision:?}"
    );
    world.apply(&decision);
    world.accept();
    assert!(passed_over(&mut world));
}

/// (R5) Until its spec or its uid changes, or it goes.
#[test]
fn a_candidate_that_is_another_one_now_is_not_passed_over() {
    let mut world = failed();
    world.change("a", |candidate| {
        candidate.spec = CandidateSpec::parse("1.40.0", "1.0.0", "OldestEmulationVersion");
    });
    assert!(!passed_over(&mut world), "another spec");

    let mut world = failed();
    world.change("a", |candidate| candidate.uid = Uid::new("another"));
    assert!(!passed_over(&mut world), "another uid");

    let mut world = failed();
    world.election.handle_candidate_gone(&id("a"), None);
    world.register("a", "1.1.0");
    assert!(!passed_over(&mut world), "gone, and back");
}

/// (R5) Nothing else about its object is a reason to forget.
#[test]
fn a_candidate_that_only_acks_is_still_passed_over() {
    let mut world = failed();
    world.change("a", |candidate| {
        candidate.announced = Some(std::time::Duration::from_secs(20));
        candidate.marked = false;
    });
    assert!(passed_over(&mut world));
    world.keep(30);
    assert!(passed_over(&mut world));
    let older = ResourceVersion(1);
    world.election.handle_candidate_gone(&id("a"), Some(older));
    assert!(passed_over(&mut world), "a deletion of long ago");
    let mut another = world.mk_candidate("a", "1.0.0");
    another.version = older;
    let now = world.now;
    world
        .election
        .handle_candidate(now, another, NewsSource::Watch);
    assert!(passed_over(&mut world), "a spec of long ago");
}

/// (R5) An accept ends it, with a token or without one: client-go writes none.
#[test]
fn an_accept_is_forgiveness_also_without_a_token() {
    for token in [true, false] {
        let mut world = failed();
        let grant = world.grant_to("a");
        world.lease(grant);
        world.pass(1.0);
        if token {
            world.accept();
        } else {
            let accepted = LeaseRecord {
                renew_time: Some(world.wall()),
                duration_seconds: Some(15),
                ..world.record()
            };
            world.lease(accepted);
        }
        let grant = world.grant_to("b");
        world.lease(grant);
        world.accept();
        assert!(!passed_over(&mut world), "token: {token}");
    }
}

/// (R5, R7) A preference on a grant is no accept of it.
#[test]
fn a_signal_on_a_grant_is_not_taken_for_its_accept() {
    let mut world = failed();
    let grant = world.grant_to("a");
    world.lease(grant);
    let signalled = world.record().preferring(Some(id("b")), None);
    world.lease(signalled);
    let grant = world.grant_to("b");
    world.lease(grant);
    world.accept();
    world.keep(119);
    assert!(passed_over(&mut world), "it is the second failure");
}

/// (R5) The term of another Lease of that name is not the one that was granted.
#[test]
fn an_accepted_term_of_a_lease_created_anew_accepts_nothing() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("a", "1.1.0");
    let grant = world.grant_to("a");
    world.lease(grant.clone());
    world.pass(1.0);
    let accepted = LeaseRecord {
        renew_time: Some(world.wall()),
        ..grant
    };
    world.lease_of("lease-2", accepted, NewsSource::Watch);
    let grant = world.grant_to("b");
    world.lease_of("lease-2", grant, NewsSource::Watch);
    world.pass(1.0);
    let accepted = LeaseRecord {
        renew_time: Some(world.wall()),
        duration_seconds: Some(15),
        ..world.record()
    };
    world.lease_of("lease-2", accepted, NewsSource::Watch);
    assert!(passed_over(&mut world));
}

/// (R5) A grant that was emptied was not accepted either.
#[test]
fn a_grant_that_a_stranger_emptied_counts_as_a_failure() {
    let mut world = World::new();
    world.lead("b", "1.2.0");
    world.register("a", "1.1.0");
    let grant = world.grant_to("a");
    world.lease(grant);
    let emptied = world.record().released(world.wall());
    world.lease(emptied);
    let grant = world.grant_to("b");
    world.lease(grant);
    world.accept();
    assert!(passed_over(&mut world));
}

/// (R5) Only a grant can fail: the end of an accepted term is no failure.
#[test]
fn a_holder_that_expired_is_not_passed_over() {
    let mut world = World::new();
    world.lead("a", "1.1.0");
    world.register("b", "1.2.0");
    let grant = world.grant_to("b");
    world.lease(grant);
    world.accept();
    assert!(!passed_over(&mut world));
}

/// (R5) The deletion of the Lease says nothing about who accepts.
#[test]
fn the_deletion_of_the_lease_forgets_no_failure() {
    let mut world = failed();
    let record = world.record();
    world.delete_lease();
    world.lease_of("lease-2", record, NewsSource::Watch);
    assert!(passed_over(&mut world));
}

/// (R4) A store that was restored from a backup is met as by a new process, which has seen nobody fail.
#[test]
fn a_restored_store_forgets_failures() {
    let mut world = failed();
    let mut restored = world.election.lease().unwrap().clone();
    restored.version = ResourceVersion(1);
    world
        .election
        .handle_lease(world.now, restored, NewsSource::List);
    world.register("a", "1.1.0");
    world.register("b", "1.2.0");
    assert!(!passed_over(&mut world));
}

/// (R5) The accept window grows with the failures of the electee, and with those of nobody else.
#[test]
fn the_window_of_one_candidate_does_not_grow_with_anothers_failures() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.lease(LeaseRecord::born(None));
    for window in [5, 10] {
        world.pass(0.1);
        world.ack("a");
        let decision = world.step();
        assert_eq!(world.apply(&decision).duration_seconds, Some(window));
        world.pass(f64::from(window));
    }
    world.register("b", "1.2.0");
    let decision = world.step();
    let granted = world.apply(&decision);
    assert_eq!(
        (granted.holder, granted.duration_seconds),
        (Some(id("b")), Some(5))
    );
}

/// (R5) Passed over also at a grant, while another has answered.
#[test]
fn a_candidate_that_failed_is_not_granted_while_another_acks() {
    let mut world = failed();
    world.register("c", "1.3.0");
    world.pass(15.0);
    world.ack("a");
    world.ack("c");
    let decision = world.step();
    assert!(
        matches!(&decision.reason, Reason::Granted { to, .. } if to == &id("c")),
        "{decision:?}"
    );
}

/// (R5, L2) One that did not accept is better than none, once the others had their time to answer.
#[test]
fn a_candidate_that_failed_is_granted_when_the_others_are_silent() {
    let mut world = failed();
    world.list("c", "1.3.0");
    world.pass(15.0);
    world.ack("a");
    let decision = world.step();
    assert_eq!(world.deliver_pings(&decision), ["b", "c"]);
    let decision = world.step();
    assert!(
        matches!(&decision.reason, Reason::AwaitAck(names) if names == &[id("c")]),
        "{decision:?}"
    );
    world.pass(2.0);
    let decision = world.step();
    assert!(
        matches!(&decision.reason, Reason::Granted { to, .. } if to == &id("a")),
        "{decision:?}"
    );
}

/// (R5, R15) All of those passed over are asked when nobody else answers, and the best of them has its time.
#[test]
fn those_passed_over_are_pinged_as_a_last_resort_and_the_best_is_waited_for() {
    let mut world = World::new();
    world.register("a", "1.1.0");
    world.register("c", "1.3.0");
    world.lease(LeaseRecord::born(None));
    for name in ["a", "c"] {
        let grant = world.grant_to(name);
        world.lease(grant);
    }
    let nobody = LeaseRecord {
        term: Term(9),
        ..world.record().released(world.wall())
    };
    world.lease(nobody);
    world.pass(6.0);
    let decision = world.step();
    assert_eq!(world.deliver_pings(&decision), ["a", "c"]);
    world.ack("c");
    let decision = world.step();
    assert!(
        matches!(&decision.reason, Reason::AwaitAck(names) if names == &[id("a")]),
        "{decision:?}"
    );
    world.pass(2.0);
    assert_eq!(world.step().action(), Action::Grant);
}

/// (R5, R15) While a regular candidate still has time to answer, those passed over are not even asked.
#[test]
fn those_passed_over_are_not_pinged_while_another_has_time_to_ack() {
    let mut world = failed();
    world.list("c", "1.3.0");
    world.pass(15.0);
    let decision = world.step();
    assert_eq!(world.deliver_pings(&decision), ["b", "c"]);
    assert_eq!(pinged(&world.step()), Vec::<String>::new());
    world.pass(2.0);
    assert_eq!(pinged(&world.step()), ["a"]);
}
