//! A holder that cannot be asked to yield is reserved from, when that is allowed (R3 d).

use elector_protocol::elector::{Action, Actor, Move, PreferenceField, Reason, Vacancy, audit};
use elector_protocol::{LeaseRecord, Occupancy, Timestamp};

use crate::fixture::{ElectionFixture, id, pinged};

/// Three candidates of client-go's, `c` the best; `b` leads, on a server that drops `spec.preferredHolder`.
fn client_go() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.settings.preference_field = PreferenceField::Dropped;
    fixture.settings.reserve = true;
    fixture.lead("b", "1.2.0");
    fixture.change("b", |candidate| candidate.marked = false);
    // Its accept carries no token.
    let record = LeaseRecord {
        token: None,
        token_term: None,
        ..fixture.record()
    };
    fixture.lease(record);
    fixture.register("a", "1.3.0");
    fixture.change("a", |candidate| candidate.marked = false);
    fixture.pass(60.0);
    fixture.renew();
    fixture.register("c", "1.1.0");
    fixture
}

#[test]
fn a_lease_is_reserved_until_its_holder_must_have_stopped() {
    let mut fixture = client_go();
    let before = fixture.record();
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::Reserve);
    assert_eq!(
        decision.reason.to_string(),
        "b cannot be asked to yield, so the lease is reserved for 15s, until it must have stopped: c has the older \
         emulation version 1.1.0 (not 1.2.0)"
    );
    let placeholder = fixture.apply(&decision);
    assert_eq!(
        audit(&before, &placeholder, &Actor::Elector),
        Ok(Move::Reserve)
    );
    assert_eq!(placeholder.holder, Some(id("elector.dev:reserved-from:b")));
    assert_eq!(placeholder.term, before.term.next());

    fixture.pass(2.0);
    assert_eq!(
        fixture.step().reason.to_string(),
        "reserved for c: b could not be asked to yield; grant in 13.0s"
    );
    assert_eq!(fixture.step().effects, []);
    fixture.pass(7.9);
    assert_eq!(fixture.step().effects, [], "not late yet");

    // Late: the best is pinged, so that the ack is in when the placeholder expires, and b too, in case c is gone.
    fixture.pass(0.2);
    let decision = fixture.step();
    assert_eq!(pinged(&decision), ["c", "b"]);
    fixture.deliver_pings(&decision);
    fixture.ack("c");
    fixture.pass(4.8);
    assert!(matches!(
        fixture.step().reason,
        Reason::AwaitReserved { .. }
    ));
    fixture.pass(0.1);
    let decision = fixture.step();
    assert!(
        matches!(&decision.reason, Reason::Granted { to, vacancy: Vacancy::Reserved { from, .. }, .. }
            if to == &id("c") && from == &id("b")),
        "{decision:?}"
    );
    assert_eq!(
        decision.reason.to_string(),
        "the lease was reserved for 15s, and b cannot lead any more; c has the older emulation version 1.1.0 (not 1.2.0)"
    );
    let granted = fixture.apply(&decision);
    assert_eq!(
        audit(&placeholder, &granted, &Actor::Elector),
        Ok(Move::GrantExpired)
    );
    assert!(granted.is_unaccepted_grant() && !granted.has_token());
}

#[test]
fn a_placeholder_lasts_as_long_as_anybody_may_lead() {
    for (duration, announced, lasts) in [(15, None, 15), (40, None, 40), (15, Some(25), 25)] {
        let mut fixture = client_go();
        fixture.change("a", |candidate| {
            candidate.announced = announced.map(std::time::Duration::from_secs);
        });
        let record = LeaseRecord {
            duration_seconds: Some(duration),
            ..fixture.record()
        };
        fixture.lease(record);
        let decision = fixture.step();
        assert_eq!(fixture.apply(&decision).duration_seconds, Some(lasts));
    }
}

#[test]
fn only_a_holder_that_cannot_be_asked_to_yield_is_reserved_from() {
    let allowed = client_go();
    assert_eq!(allowed.step().action(), Action::Reserve);

    let mut fixture = client_go();
    fixture.settings.reserve = false;
    assert!(matches!(
        fixture.step().reason,
        Reason::HolderCannotYield { .. }
    ));
    for kept in [PreferenceField::Kept, PreferenceField::Unknown] {
        let mut fixture = client_go();
        fixture.settings.preference_field = kept;
        assert_eq!(fixture.step().action(), Action::Prefer);
    }
    let mut fixture = client_go();
    fixture.change("b", |candidate| candidate.marked = true);
    assert_eq!(fixture.step().action(), Action::Prefer);

    let mut fixture = client_go();
    fixture.election.handle_candidate_gone(&id("b"), None);
    assert!(matches!(
        fixture.step().reason,
        Reason::HolderIsNoCandidate(_)
    ));
    let mut fixture = client_go();
    let unaccepted = LeaseRecord {
        acquire_time: fixture.record().renew_time,
        ..fixture.record()
    };
    fixture.lease(unaccepted);
    assert!(matches!(fixture.step().reason, Reason::AwaitAccept { .. }));
}

#[test]
fn no_lease_is_reserved_for_a_silent_candidate() {
    let mut fixture = client_go();
    fixture.pass(6.0);
    fixture.renew();
    let decision = fixture.step();
    assert_eq!(
        (decision.action(), pinged(&decision)),
        (Action::Ping, vec!["c".to_owned()])
    );
    fixture.deliver_pings(&decision);
    fixture.pass(2.0);
    fixture.renew();
    let decision = fixture.step();
    assert!(matches!(decision.reason, Reason::BetterIsSilent { .. }));
    fixture.ack("c");
    assert_eq!(fixture.step().action(), Action::Reserve);
}

#[test]
fn a_preference_that_the_holder_cannot_see_is_cleared_by_the_reservation() {
    let mut fixture = client_go();
    let record = fixture.record().preferring(Some(id("c")), None);
    fixture.lease(record);
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::Reserve);
    assert_eq!(fixture.apply(&decision).preferred_holder, None);

    let mut fixture = client_go();
    fixture.pass(6.0);
    fixture.renew();
    let record = fixture.record().preferring(Some(id("c")), None);
    fixture.lease(record);
    let decision = fixture.step();
    assert_eq!(decision.action(), Action::Withdraw, "c has yet to ack");
}

#[test]
fn the_former_holder_is_granted_the_lease_when_the_better_one_is_gone() {
    let mut fixture = client_go();
    let decision = fixture.step();
    fixture.apply(&decision);
    fixture.election.handle_candidate_gone(&id("c"), None);
    fixture.pass(10.1);
    let decision = fixture.step();
    // It is pinged, and not waited for as long as another may ack.
    assert_eq!(fixture.deliver_pings(&decision), ["b", "a"]);
    fixture.ack("a");
    fixture.pass(5.0);
    assert!(
        matches!(fixture.step().reason, Reason::Granted { to, .. } if to == id("a")),
        "b has most likely ended with its term"
    );
    fixture.ack("b");
    assert!(matches!(fixture.step().reason, Reason::Granted { to, .. } if to == id("b")));
}

#[test]
fn a_release_of_the_placeholder_by_a_process_of_long_ago_is_not_believed() {
    let mut fixture = client_go();
    let decision = fixture.step();
    let placeholder = fixture.apply(&decision);
    fixture.lease(LeaseRecord {
        token: placeholder.token,
        token_term: placeholder.token_term,
        ..placeholder.released(fixture.wall())
    });
    assert_eq!(fixture.record().occupancy(), Occupancy::Unproven);
    assert!(matches!(fixture.step().reason, Reason::AwaitProof { .. }));
}

#[test]
fn an_elector_that_does_not_reserve_waits_for_a_placeholder_all_the_same() {
    let mut fixture = client_go();
    let decision = fixture.step();
    fixture.apply(&decision);
    fixture.settings.reserve = false;
    fixture.settings.preference_field = PreferenceField::Unknown;
    fixture.pass(14.9);
    assert!(matches!(
        fixture.step().reason,
        Reason::AwaitReserved { .. }
    ));
    fixture.pass(0.1);
    fixture.ack("c");
    assert_eq!(fixture.step().action(), Action::Grant);
}

#[test]
fn a_reservation_has_one_form() {
    let fixture = client_go();
    let before = fixture.record();
    let reserved = |change: fn(&mut LeaseRecord)| {
        let decision = fixture.step();
        let mut record = crate::fixture::lease_write(&decision)
            .unwrap()
            .record
            .clone();
        change(&mut record);
        audit(&before, &record, &Actor::Elector)
    };
    assert_eq!(reserved(|_| {}), Ok(Move::Reserve));
    let flaws: [fn(&mut LeaseRecord); 7] = [
        |record| record.duration_seconds = Some(14),
        |record| record.term = record.term.next(),
        |record| record.token = None,
        |record| record.preferred_holder = Some(id("c")),
        |record| record.renew_time = Some(Timestamp::MAX),
        |record| record.holder = Some(id("elector.dev:reserved-from:c")),
        |record| record.holder = Some(id("c")),
    ];
    for (index, flaw) in flaws.into_iter().enumerate() {
        assert!(reserved(flaw).is_err(), "{index}");
    }
    let marked = LeaseRecord {
        token: Some(elector_protocol::Token(elector_protocol::ResourceVersion(
            1,
        ))),
        token_term: Some(before.term),
        ..before.clone()
    };
    let decision = fixture.step();
    let record = &crate::fixture::lease_write(&decision).unwrap().record;
    assert!(
        audit(&marked, record, &Actor::Elector).is_err(),
        "it reads the annotation"
    );
}
