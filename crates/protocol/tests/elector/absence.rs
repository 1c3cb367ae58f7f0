//! Proofs and non-proofs that a name was absent (R6 a); the wait for a POST (R2).

use std::time::Duration;

use elector_protocol::elector::{Action, Effect, Election, NewsSource, Reason};
use elector_protocol::{Instant, LeaseRecord, LeaseSnapshot, ResourceVersion, Token, Uid};

use crate::fixture::{ElectionFixture, id, pinged};

fn await_proof(fixture: &ElectionFixture) -> bool {
    matches!(fixture.step().reason, Reason::AwaitProof { .. })
}

/// The name has been absent for an hour when the Lease becomes known in this way.
fn appeared(record: LeaseRecord, news: NewsSource) -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.lease_of("lease-1", record, news);
    fixture
}

/// (R6 a) By the watch, up to the ADDED event of this uid; neither by the reply to a POST nor by a list.
#[test]
fn only_an_event_proves_what_was_before_it() {
    let born = || LeaseRecord::born(None);
    assert!(!await_proof(&appeared(born(), NewsSource::Watch)));
    assert!(await_proof(&appeared(born(), NewsSource::OwnWrite)));
    assert!(await_proof(&appeared(born(), NewsSource::List)));
}

/// (R6 a) No revision of this uid was ever held, the first one included.
#[test]
fn a_lease_that_appeared_held_proves_nothing_when_it_is_blanked() {
    let held = LeaseRecord {
        holder: Some(id("stranger")),
        duration_seconds: Some(15),
        ..LeaseRecord::default()
    };
    let mut fixture = appeared(held, NewsSource::Watch);
    fixture.lease(LeaseRecord::born(None));
    assert!(await_proof(&fixture));
    fixture.lease(LeaseRecord {
        token: Some(Token(ResourceVersion(1))),
        ..LeaseRecord::default()
    });
    assert!(await_proof(&fixture));
}

/// (R6 a) A process that has listed nothing knows of no absence.
#[test]
fn what_comes_before_the_first_list_proves_nothing() {
    let mut fixture = ElectionFixture::new();
    fixture.election = Election::unknown();
    fixture.register("a", "1.1.0");
    assert_eq!(fixture.step().reason, Reason::NotSynced);
    fixture.lease(LeaseRecord::born(None));
    assert!(await_proof(&fixture));
}

/// (R6 a) The proof belongs to this uid, to a watch without a gap, and to records without a holder.
#[test]
fn the_proof_of_absence_ends_with_the_uid_and_with_the_watch() {
    let born = || LeaseRecord::born(None);
    let marked = || LeaseRecord {
        token: Some(Token(ResourceVersion(1))),
        ..born()
    };
    let mut fixture = appeared(born(), NewsSource::Watch);
    fixture.lease(marked());
    assert!(!await_proof(&fixture), "it was never held");
    fixture.lease_of("lease-1", born(), NewsSource::OwnWrite);
    assert!(
        !await_proof(&fixture),
        "nothing comes between a revision and a write on it"
    );

    let mut fixture = appeared(born(), NewsSource::Watch);
    fixture.lease_of("lease-1", marked(), NewsSource::List);
    assert!(await_proof(&fixture), "a gap");

    let mut fixture = appeared(born(), NewsSource::Watch);
    fixture.lease_of("lease-2", born(), NewsSource::Watch);
    assert!(await_proof(&fixture), "another uid");
}

/// (R6 a) A list that shows the very revision known shows that there was nothing between.
#[test]
fn a_list_of_the_revision_known_leaves_the_proof_alone() {
    let mut fixture = appeared(LeaseRecord::born(None), NewsSource::Watch);
    let known = fixture.election.lease().unwrap().clone();
    fixture
        .election
        .handle_lease(fixture.now, known, NewsSource::List);
    assert!(!await_proof(&fixture));
}

/// (R6 a, c) At least W_max, of which the wait without a holder after the ADDED event is a part.
#[test]
fn an_absence_and_the_wait_after_it_add_up() {
    let after = |absent: f64| {
        let mut fixture = ElectionFixture::fresh();
        fixture.pass(absent);
        fixture.register("a", "1.1.0");
        fixture.lease(LeaseRecord::born(None));
        fixture
    };
    assert_eq!(after(15.0).step().action(), Action::Grant);
    for absent in [0.0, 6.0, 14.5] {
        let mut fixture = after(absent);
        assert!(await_proof(&fixture));
        fixture.granted_after(15.0 - absent, "a");
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
        let mut fixture = ElectionFixture::fresh();
        fixture.register("a", "1.1.0");
        fixture.pass(14.0);
        fixture.election.handle_lease_gone(fixture.now, None, news);
        fixture.pass(1.0);
        fixture.ack("a");
        fixture.lease(LeaseRecord::born(None));
        assert_eq!(await_proof(&fixture), !proven, "{news:?}");
    }
}

/// (R4) A deletion that is older than what is known is no news.
#[test]
fn a_deletion_of_long_ago_is_ignored() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    let older = Some(ResourceVersion(1));
    fixture
        .election
        .handle_lease_gone(fixture.now, older, NewsSource::Watch);
    assert!(fixture.election.lease().is_some());
    fixture.delete_lease();
    assert!(fixture.election.lease().is_none());
}

/// (R4) After a restore the store's records prove nothing of what was before.
#[test]
fn a_restored_store_proves_no_absence() {
    let mut fixture = appeared(LeaseRecord::born(None), NewsSource::Watch);
    let restored = LeaseSnapshot {
        uid: Uid::new("lease-1"),
        version: ResourceVersion(1),
        record: LeaseRecord::born(None),
        word: elector_protocol::OperatorWord::default(),
    };
    fixture
        .election
        .handle_lease(fixture.now, restored, NewsSource::List);
    fixture.register("a", "1.1.0");
    assert!(await_proof(&fixture));
}

/// (R15) A deleted Lease has no former holder: what its candidate said before the deletion still counts.
#[test]
fn the_holder_of_a_deleted_lease_is_no_previous_holder() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    assert_eq!(
        pinged(&fixture.step()),
        ["a"],
        "what it said before it let go"
    );
    fixture.delete_lease();
    fixture.pass(60.0);
    fixture.ack("a");
    fixture.lease_of("lease-2", LeaseRecord::born(None), NewsSource::Watch);
    assert_eq!(fixture.step().action(), Action::Grant);
}

/// (R2, R6) The candidates are pinged while the POST is under way, so that the ack is there with the Lease.
#[test]
fn the_best_is_pinged_in_the_step_that_creates_the_lease() {
    let mut fixture = ElectionFixture::new();
    fixture.list("a", "1.1.0");
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::Create);
    assert_eq!(pinged(&decision), ["a"]);
}

/// (R2) A POST is given 2 s to come by the watch, and is not forgotten about.
#[test]
fn a_post_that_the_watch_does_not_bring_is_tried_again_in_time() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.election.handle_created(fixture.now);
    let decision = fixture.step();
    assert_eq!(decision.reason, Reason::AwaitCreated);
    let settled = fixture.now.after(Duration::from_secs(2));
    assert_eq!(decision.wake_at(), Some(settled));
    fixture.pass(1.999);
    assert_eq!(fixture.step().reason, Reason::AwaitCreated);
    fixture.pass(0.001);
    assert_eq!(fixture.step().action(), Action::Create);
}

/// (R2) A complete list without the Lease knows better than the reply to the POST before it.
#[test]
fn a_list_without_the_lease_leads_to_another_post() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.election.handle_created(fixture.now);
    fixture
        .election
        .handle_lease_gone(fixture.now, None, NewsSource::List);
    assert_eq!(fixture.step().action(), Action::Create);
}

/// (R3) A grant stamps the strategy that it was decided by; so does a POST.
#[test]
fn a_lease_says_by_which_strategy_it_is_elected_from_its_creation_on() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    let decision = fixture.step();
    assert!(
        matches!(&decision.effects[..], [Effect::Create(born)]
            if born.strategy.as_ref().is_some_and(|strategy| strategy.strategy().is_some())),
        "{decision:?}"
    );
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    assert!(fixture.apply(&decision).strategy.is_some());
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
    let candidate = fixture.mk_candidate("a", "1.1.0");
    election.handle_candidate(start, candidate, NewsSource::Watch);
    assert!(!election.is_forgettable(start.after(hour)), "a candidate");
    fixture.lease(LeaseRecord::born(None));
    fixture.pass(3600.0);
    assert!(!fixture.election.is_forgettable(fixture.now), "a Lease");
}
