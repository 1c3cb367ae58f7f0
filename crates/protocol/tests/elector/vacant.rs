//! A lease that is missing, unheld or granted in vain, or that is not ours to touch.

use std::time::Duration;

use elector_protocol::elector::{Action, Effect, NewsSource, Reason, Vacancy};
use elector_protocol::{CandidateSpec, LeaseRecord, ResourceVersion};

use crate::fixture::{ElectionFixture, id, lease_write};

#[test]
fn a_new_deployment_starts_at_once_when_the_elector_has_been_up() {
    let mut fixture = ElectionFixture::new();
    fixture.register("b", "1.2.0");
    fixture.register("a", "1.1.0");
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::Create);
    assert!(
        matches!(&decision.effects[..], [Effect::Create(record)] if record.holder.is_none()
        && record.duration_seconds.is_none() && record.acquire_time.is_none() && record.renew_time.is_none())
    );

    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    let record = fixture.apply(&decision);
    assert_eq!(record.holder, Some(id("a")));
    assert_eq!((record.term.0, record.duration_seconds), (1, Some(5)));
    assert!(record.is_unaccepted_grant());
    assert_eq!(
        decision.reason.to_string(),
        "the lease is unheld and no former holder can still lead; a has the older emulation version 1.1.0 (not 1.2.0)"
    );
}

#[test]
fn a_fresh_elector_waits_for_the_longest_lease_before_it_trusts_an_absence() {
    let mut fixture = ElectionFixture::fresh();
    fixture.register("a", "1.1.0");
    assert_eq!(fixture.step().action(), Action::Create);
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    assert!(
        matches!(decision.reason, Reason::AwaitProof { remaining } if remaining == Duration::from_secs(15))
    );
    assert_eq!(
        decision.wake_at(),
        Some(fixture.now.after(Duration::from_secs(5))),
        "the ack stays fresh for 5 s"
    );
    fixture.pass(14.9);
    let decision = fixture.step();
    assert_eq!(
        (decision.action(), fixture.deliver_pings(&decision)),
        (Action::Ping, vec!["a".to_owned()])
    );
    fixture.ack("a");
    assert_eq!(lease_write(&fixture.step()), None);
    fixture.pass(0.1);
    assert_eq!(fixture.step().action(), Action::Grant);
}

#[test]
fn the_grace_for_absent_leases_can_be_given_up() {
    let mut fixture = ElectionFixture::fresh();
    fixture.settings.timing.absent_lease_grace = Some(Duration::ZERO);
    fixture.register("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    assert_eq!(fixture.step().action(), Action::Grant);
}

#[test]
fn a_longer_lease_announced_by_a_candidate_prolongs_the_wait() {
    let mut fixture = ElectionFixture::fresh();
    fixture.register("a", "1.1.0");
    fixture.change("a", |candidate| {
        candidate.announced = Some(Duration::from_secs(40));
    });
    fixture.lease(LeaseRecord::born(None));
    fixture.pass(39.0);
    assert!(matches!(fixture.step().reason, Reason::AwaitProof { .. }));
}

#[test]
fn a_blanked_lease_is_not_free() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    let record = fixture.record();
    fixture.lease(LeaseRecord {
        holder: None,
        ..record
    });
    assert!(
        matches!(fixture.step().reason, Reason::AwaitProof { remaining } if remaining == Duration::from_secs(15))
    );
    let record = fixture.record();
    fixture.lease(LeaseRecord {
        duration_seconds: Some(1),
        ..record
    });
    assert!(
        matches!(fixture.step().reason, Reason::AwaitProof { .. }),
        "the token shows that nobody released it"
    );
}

#[test]
fn a_born_record_that_was_held_once_proves_nothing_any_more() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    fixture.lease(LeaseRecord {
        holder: Some(id("stranger")),
        duration_seconds: Some(15),
        ..LeaseRecord::default()
    });
    fixture.lease(LeaseRecord::born(None));
    assert!(matches!(fixture.step().reason, Reason::AwaitProof { .. }));
}

#[test]
fn a_lease_found_by_a_list_proves_nothing() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    let version = fixture.next_version();
    let snapshot = elector_protocol::LeaseSnapshot {
        uid: elector_protocol::Uid::new("lease-1"),
        version,
        record: LeaseRecord::born(None),
        word: elector_protocol::OperatorWord::default(),
    };
    fixture
        .election
        .handle_lease(fixture.now, snapshot, NewsSource::List);
    assert!(matches!(fixture.step().reason, Reason::AwaitProof { .. }));
}

#[test]
fn a_released_lease_is_granted_at_once_but_not_to_the_one_that_let_go() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    fixture.register("b", "1.2.0");
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    let decision = fixture.step();
    assert!(
        matches!(&decision.reason, Reason::Granted { to, vacancy: Vacancy::Released, .. } if to == &id("b")),
        "{decision:?}"
    );
}

#[test]
fn an_electee_that_never_accepts_is_passed_over() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.register("b", "1.2.0");
    fixture.lease(LeaseRecord::born(None));
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).holder, Some(id("a")));
    for name in ["a", "b"] {
        fixture.ack(name);
    }
    assert!(matches!(fixture.step().reason, Reason::AwaitAccept { .. }));
    fixture.pass(4.0);
    for name in ["a", "b"] {
        fixture.ack(name);
    }
    fixture.pass(1.0);
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "a has not accepted its grant within 5s; b is the best that answered"
    );
    fixture.apply(&decision);
    fixture.accept();
    fixture.ack("a");
    assert_eq!(
        fixture.step().reason,
        Reason::HolderIsBest(id("b")),
        "and not preferred either"
    );
    for _ in 0..6 {
        fixture.pass(9.0);
        fixture.renew();
    }
    fixture.pass(5.0);
    fixture.ack("a");
    assert_eq!(
        fixture.step().reason,
        Reason::HolderIsBest(id("b")),
        "for a minute"
    );
    fixture.pass(1.0);
    assert_eq!(fixture.step().action(), Action::Prefer, "and no longer");
}

#[test]
fn a_sole_candidate_that_does_not_accept_gets_longer_windows() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.lease(LeaseRecord::born(None));
    let mut windows = Vec::new();
    for _ in 0..5 {
        fixture.pass(0.1);
        fixture.ack("a");
        let decision = fixture.step();
        let window = fixture.apply(&decision).duration_seconds.unwrap();
        windows.push(window);
        fixture.pass(f64::from(window));
    }
    assert_eq!(windows, [5, 10, 20, 40, 60]);
    fixture.ack("a");
    let decision = fixture.step();
    fixture.apply(&decision);
    fixture.accept();
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    fixture.pass(0.1);
    fixture.ack("a");
    let decision = fixture.step();
    assert_eq!(
        fixture.apply(&decision).duration_seconds,
        Some(5),
        "an accept ends it"
    );
}

#[test]
fn a_foreign_strategy_gets_an_unheld_lease_and_nothing_more() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.change("a", |c| {
        c.spec = CandidateSpec::parse("1.40.0", "", "example.com/mine").into();
    });
    let decision = fixture.step();
    assert!(matches!(&decision.effects[..], [Effect::Create(record)]
        if record.strategy.as_ref().is_some_and(|s| s.as_str() == "example.com/mine")));
    fixture.lease(LeaseRecord::born(None));
    assert!(
        lease_write(&fixture.step()).is_some_and(|write| write.record.strategy.is_some()),
        "stamped"
    );
    let decision = fixture.step();
    fixture.apply(&decision);
    let decision = fixture.step();
    assert_eq!(
        (decision.action(), decision.effects.len()),
        (Action::Leave, 0)
    );
}

#[test]
fn a_lease_that_no_candidate_names_is_never_written() {
    let mut fixture = ElectionFixture::new();
    fixture.lease(LeaseRecord {
        holder: Some(id("x")),
        duration_seconds: Some(1),
        ..LeaseRecord::default()
    });
    fixture.pass(3600.0);
    let decision = fixture.step();
    assert_eq!(
        (
            decision.action(),
            decision.effects.len(),
            decision.wake_at()
        ),
        (Action::Leave, 0, None)
    );
}

#[test]
fn a_list_below_a_version_already_seen_starts_the_election_anew() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("a", "1.1.0");
    let mut old = fixture.election.lease().unwrap().clone();
    old.version = ResourceVersion(1);
    fixture
        .election
        .handle_lease(fixture.now, old.clone(), NewsSource::Watch);
    assert!(
        fixture.election.lease().unwrap().version > ResourceVersion(1),
        "an old event is ignored"
    );
    fixture
        .election
        .handle_lease(fixture.now, old, NewsSource::List);
    assert_eq!(
        fixture.election.lease().unwrap().version,
        ResourceVersion(1)
    );
    assert_eq!(fixture.election.candidates().count(), 0);
}

#[test]
fn a_created_lease_is_not_created_twice() {
    let mut fixture = ElectionFixture::new();
    fixture.register("a", "1.1.0");
    fixture.election.handle_created(fixture.now);
    let decision = fixture.step();
    assert_eq!(decision.reason, Reason::AwaitCreated);
    fixture.pass(2.0);
    assert_eq!(
        fixture.step().action(),
        Action::Create,
        "unless the watch does not bring it"
    );
}
