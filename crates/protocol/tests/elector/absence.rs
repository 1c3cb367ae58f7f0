//! Names without a Lease: its creation, and the proofs that no process can lead (R2, R6).

use std::time::Duration;

use elector_protocol::elector::{Action, Effect, Election, NewsSource, Reason, WakeReason};
use elector_protocol::{Instant, LeaseRecord, ResourceVersion, Token};

use crate::fixture::{ElectionFixture, assert_reason, held};

/// An elector has just started, and saw that the name is absent; `a` is a candidate.
fn fresh() -> ElectionFixture {
    let mut fixture = ElectionFixture::fresh();
    fixture.register("a", 1);
    fixture
}

#[test]
fn a_new_deployment_starts_at_once_when_the_elector_has_been_up() {
    let mut fixture = ElectionFixture::new();
    fixture.register("b", 2);
    fixture.register("a", 1);
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::Create);
    let [Effect::Create(born)] = &decision.effects[..] else {
        panic!("{decision:?}")
    };
    let strategy = born.strategy.clone();
    assert!(strategy.as_ref().is_some_and(|it| it.strategy().is_some()));
    assert_eq!(born, &LeaseRecord::born(strategy.clone()));
    fixture.lease(LeaseRecord::born(None));
    fixture.says(
        "the lease is unheld and no former holder can still lead; a has the older emulation version 1.1.0 (not 1.2.0)",
    );
    fixture.grants("a");
    let record = fixture.record();
    assert_eq!((record.term.0, record.duration_seconds), (1, Some(5)));
    assert_eq!(record.strategy, strategy);
    assert!(record.is_unaccepted_grant());
}

/// (S11) A Lease that no candidate names is not created, nor one whose candidates have gone.
#[test]
fn a_name_without_candidates_stays_absent() {
    let mut fixture = ElectionFixture::new();
    assert_reason!(fixture, Reason::NoCandidate);
    assert_eq!(fixture.step().effects, []);
    fixture.register("a", 1);
    assert_eq!(fixture.action(), Action::Create);
    fixture.remove("a");
    assert_reason!(fixture, Reason::NoCandidate);
    assert_eq!(fixture.step().effects, []);
}

/// (R6) Otherwise it waits for W_max, and has a fresh ack of the next leader when that is over (R15).
#[test]
fn a_fresh_elector_waits_for_the_longest_lease_before_it_trusts_an_absence() {
    let mut fixture = fresh();
    assert_eq!(fixture.action(), Action::Create);
    fixture.lease(LeaseRecord::born(None));
    fixture.says("the lease is unheld, but a former holder may lead for another 15.0s");
    assert_eq!(fixture.wake(), (5.0, WakeReason::AckStale));
    fixture.pass(12.0);
    assert_eq!(fixture.ping(), ["a"]);
    fixture.ack("a");
    assert_eq!(fixture.wake(), (3.0, WakeReason::ProofOfAbsence));
    fixture.granted_after(3.0, "a");
}

/// (R15) What a candidate has said since the Lease is missing counts for as long as it is.
#[test]
fn the_candidates_of_a_lease_that_cannot_be_created_are_not_asked_again() {
    let mut fixture = fresh();
    fixture.pass(60.0);
    assert_eq!(fixture.ping(), ["a"]);
    fixture.ack("a");
    fixture.pass(60.0);
    assert_eq!(fixture.action(), Action::Create);
    assert_eq!(fixture.pinged(), [""; 0]);
}

/// (R6 a) Events of an unbroken watch prove an absence, up to the ADDED event of this uid, while no revision was held.
#[test]
fn only_an_unbroken_watch_of_unheld_revisions_proves_an_absence() {
    use NewsSource::{List, OwnWrite, Watch};
    let born = || LeaseRecord::born(None);
    let token = || LeaseRecord {
        token: Some(Token(ResourceVersion(1))),
        ..born()
    };
    let stranger = || held("stranger", Some(15));
    for (proven, revisions) in [
        (true, vec![("1", born(), Watch)]),
        (false, vec![("1", born(), OwnWrite)]),
        (false, vec![("1", born(), List)]),
        (false, vec![("1", stranger(), Watch), ("1", born(), Watch)]),
        (false, vec![("1", stranger(), Watch), ("1", token(), Watch)]),
        (
            false,
            vec![
                ("1", born(), Watch),
                ("1", stranger(), Watch),
                ("1", born(), Watch),
            ],
        ),
        (true, vec![("1", born(), Watch), ("1", token(), Watch)]),
        // Nothing comes between a revision and a write on it.
        (true, vec![("1", born(), Watch), ("1", token(), OwnWrite)]),
        (false, vec![("1", born(), Watch), ("1", token(), List)]),
        (false, vec![("1", born(), Watch), ("2", born(), Watch)]),
    ] {
        let mut fixture = ElectionFixture::new();
        fixture.register("a", 1);
        for (uid, record, news) in revisions.clone() {
            fixture.lease_of(uid, record, news);
        }
        let waits = matches!(fixture.reason(), Reason::AwaitProof { .. });
        assert_eq!(waits, !proven, "{revisions:?}");
    }
}

/// (R4, R6 a) The revision known, listed again, shows that there was nothing between; a restored store proves nothing,
/// and neither does what comes before the first list.
#[test]
fn lists_of_the_revision_known_of_an_older_one_and_no_list_at_all() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", 1);
    fixture.lease(LeaseRecord::born(None));
    fixture.show_again(None, NewsSource::List);
    assert_eq!(fixture.action(), Action::Grant);
    fixture.restore(LeaseRecord::born(None));
    fixture.register("a", 1);
    assert_reason!(fixture, Reason::AwaitProof { .. });

    let mut fixture = fresh();
    fixture.election = Election::unknown();
    assert_eq!(fixture.step().wake, None);
    fixture.register("a", 1);
    fixture.says("leases and candidates have not been listed yet");
    fixture.lease(LeaseRecord::born(None));
    assert_reason!(fixture, Reason::AwaitProof { .. });
}

/// (R6 a, c) At least W_max, of which the wait without a holder after the ADDED event is a part.
#[test]
fn an_absence_and_the_wait_after_it_add_up() {
    for absent in [0.0, 6.0, 14.5, 15.0] {
        let mut fixture = ElectionFixture::fresh();
        fixture.pass(absent);
        fixture.register("a", 1);
        fixture.lease(LeaseRecord::born(None));
        if absent < 15.0 {
            fixture.granted_after(15.0 - absent, "a");
        } else {
            fixture.grants("a");
        }
    }
}

/// (R6) Absence starts over after a relist, and only then: a watch that repeats itself had no gap.
#[test]
fn an_absence_starts_over_after_a_relist_and_not_when_it_is_told_again() {
    for (news, proven) in [
        (NewsSource::Watch, true),
        (NewsSource::OwnWrite, true),
        (NewsSource::List, false),
    ] {
        let mut fixture = fresh();
        fixture.pass(14.0);
        fixture.election.handle_lease_gone(fixture.now, None, news);
        fixture.pass(1.0);
        fixture.ack("a");
        fixture.lease(LeaseRecord::born(None));
        assert_eq!(fixture.action() == Action::Grant, proven, "{news:?}");
    }
}

/// (R6) A record without a holder that was emptied, and not released: its token shows that.
#[test]
fn a_blanked_lease_is_not_free() {
    let mut fixture = ElectionFixture::led(&[("a", 1)]);
    fixture.edit(|record| record.holder = None);
    fixture.says("the lease is unheld, but a former holder may lead for another 15.0s");
    fixture.edit(|record| record.duration_seconds = Some(1));
    fixture.says("the lease is unheld, but a former holder may lead for another 15.0s");
}

/// Nothing is known of a record that cannot be read, so nothing is decided about it.
#[test]
fn a_lease_that_cannot_be_read_is_neither_held_nor_absent() {
    let mut fixture = ElectionFixture::led(&[("a", 1), ("b", 2)]);
    fixture.election.handle_lease_unreadable();
    assert!(fixture.election.lease().is_none());
    fixture.pass(3600.0);
    assert_eq!(fixture.action(), Action::Wait);
}

/// (R4) A deletion that is older than what is known is no news.
#[test]
fn a_deletion_of_long_ago_is_ignored() {
    let mut fixture = ElectionFixture::led(&[("a", 1)]);
    let older = Some(ResourceVersion(1));
    fixture
        .election
        .handle_lease_gone(fixture.now, older, NewsSource::Watch);
    assert!(fixture.election.lease().is_some());
    fixture.delete_lease();
    assert!(fixture.election.lease().is_none());
}

/// (R15) A deleted Lease has no former holder: what its candidate said before the deletion still counts.
#[test]
fn the_holder_of_a_deleted_lease_is_no_previous_holder() {
    let mut fixture = ElectionFixture::led(&[("a", 1)]);
    fixture.release();
    assert_eq!(fixture.pinged(), ["a"], "what it said before it let go");
    fixture.delete_lease();
    fixture.pass(60.0);
    fixture.ack("a");
    fixture.lease_of("lease-2", LeaseRecord::born(None), NewsSource::Watch);
    fixture.grants("a");
}

/// (R2) A POST is given 2 s to come by the watch, and is not forgotten about; a complete list knows better.
#[test]
fn a_post_that_the_watch_does_not_bring_is_tried_again_in_time() {
    let mut fixture = fresh();
    fixture.election.handle_created(fixture.now);
    fixture.says("the lease has just been created");
    assert_eq!(fixture.wake(), (2.0, WakeReason::CreationUnseen));
    fixture.pass(1.999);
    assert_eq!(fixture.reason(), Reason::AwaitCreated);
    let mut listed = fixture.election.clone();
    listed.handle_lease_gone(fixture.now, None, NewsSource::List);
    let decision = listed.step(fixture.now, fixture.wall(), &fixture.settings);
    assert_eq!(decision.action(), Action::Create);
    fixture.pass(0.001);
    assert_eq!(fixture.action(), Action::Create);
}

/// (R6) The memory of a name may go when no holder of any duration can be left, and no candidate wants the lease.
#[test]
fn a_name_is_forgotten_after_the_longest_lease_and_not_before() {
    let hour = Duration::from_secs(3600);
    let almost = Duration::from_millis(3_599_999);
    let start = Instant::from_epoch(Duration::from_secs(10));
    let mut election = Election::absent(start);
    assert!(!election.is_forgettable(start.after(almost)));
    assert!(election.is_forgettable(start.after(hour)));
    assert!(!Election::unknown().is_forgettable(start.after(hour)));

    let mut fixture = ElectionFixture::new();
    let candidate = fixture.mk_candidate("a", 1);
    election.handle_candidate(start, candidate, NewsSource::Watch);
    assert!(!election.is_forgettable(start.after(hour)), "a candidate");
    fixture.lease(LeaseRecord::born(None));
    fixture.pass(3600.0);
    assert!(!fixture.election.is_forgettable(fixture.now), "a Lease");
}
