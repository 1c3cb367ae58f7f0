//! A lease that an operator froze: no live leader makes room, and all else goes on (R16).

use std::time::Duration;

use elector_protocol::elector::{Action, Reason};
use elector_protocol::{CandidateSpec, StandDown};

use crate::fixture::{DAY, ElectionFixture, id, lease_write};

/// `b` leads, and `c` is better.
fn led() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.register("c", "1.1.0");
    fixture
}

#[test]
fn no_candidate_is_preferred_until_the_freeze_ends() {
    let mut fixture = led();
    fixture.freeze(5.0);
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "c is better, but b is not asked to make room: the lease is frozen for another 5.0s"
    );
    assert_eq!(
        (decision.action(), &decision.effects[..]),
        (Action::None, &[][..])
    );
    let end = fixture.now.after(Duration::from_secs(5));
    assert_eq!(decision.wake_at(), Some(end));
    fixture.pass(4.999_999);
    fixture.ack("c");
    assert!(matches!(fixture.step().reason, Reason::Frozen { .. }));
    fixture.pass(0.000_001);
    assert_eq!(fixture.step().action(), Action::Prefer);
}

/// A freeze whose reason nobody may remember is none yet.
#[test]
fn a_freeze_that_ends_more_than_a_day_ahead_does_not_count_yet() {
    let mut fixture = led();
    fixture.freeze(f64::from(DAY) + 1.0);
    assert_eq!(fixture.step().action(), Action::Prefer);
    fixture.keep(1);
    fixture.ack("c");
    assert!(matches!(fixture.step().reason, Reason::Frozen { .. }));
}

/// A holder that is told to stand down, or cannot be elected for another reason, is not moved either.
#[test]
fn a_holder_that_is_not_eligible_stays_while_the_lease_is_frozen() {
    let mut fixture = led();
    fixture.stand_down("b", Some(StandDown::Untimed));
    fixture.freeze(60.0);
    assert!(matches!(fixture.step().reason, Reason::Frozen { .. }));
    fixture.word.freeze = None;
    fixture.renew();
    assert_eq!(fixture.step().action(), Action::Prefer);
}

#[test]
fn a_frozen_lease_whose_holder_is_best_has_nothing_to_tell() {
    let mut fixture = ElectionFixture::new();
    fixture.lead("b", "1.2.0");
    fixture.freeze(60.0);
    assert_eq!(fixture.step().reason, Reason::HolderIsBest(id("b")));
}

/// An earlier preference is taken back at once, whichever elector asked it.
#[test]
fn a_preference_that_stands_is_withdrawn_when_the_freeze_begins() {
    let mut fixture = led();
    let preferred = fixture.record().preferring(Some(id("c")), None);
    fixture.lease(preferred);
    assert!(matches!(fixture.step().reason, Reason::AwaitYield { .. }));
    fixture.freeze(60.0);
    let decision = fixture.step();
    assert_eq!(
        decision.reason.to_string(),
        "b is no longer asked to make room: c has to wait, since the lease is frozen"
    );
    assert_eq!(fixture.apply(&decision).preferred_holder, None);
    assert!(matches!(fixture.step().reason, Reason::Frozen { .. }));
}

/// Two electors whose clocks differ on the end do not take each other's word back without end.
#[test]
fn what_another_elector_prefers_again_stands_for_a_while() {
    let mut fixture = led();
    fixture.freeze(60.0);
    let preferred = fixture.record().preferring(Some(id("c")), None);
    fixture.lease(preferred.clone());
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).preferred_holder, None);
    for seconds in [4.0, 8.0, 16.0] {
        fixture.lease(preferred.clone());
        let decision = fixture.step();
        assert!(
            matches!(decision.reason, Reason::AwaitYield { .. }),
            "{decision:?}"
        );
        fixture.pass(seconds - 0.1);
        fixture.renew();
        assert_eq!(lease_write(&fixture.step()), None);
        fixture.pass(0.1);
        let decision = fixture.step();
        assert_eq!(decision.action(), Action::Withdraw, "after {seconds}");
        fixture.apply(&decision);
    }
}

/// Vacancies are filled, and by the best: a release and an expiry alike.
#[test]
fn a_frozen_lease_that_is_free_is_granted() {
    let mut fixture = led();
    fixture.freeze(600.0);
    let released = fixture.record().released(fixture.wall());
    fixture.lease(released);
    let decision = fixture.step();
    assert_eq!(fixture.apply(&decision).holder, Some(id("c")));
    fixture.accept();

    fixture.pass(10.0);
    let decision = fixture.step();
    assert!(matches!(decision.reason, Reason::HolderLate { .. }));
    fixture.deliver_pings(&decision);
    fixture.ack("b");
    fixture.pass(5.0);
    let decision = fixture.step();
    assert_eq!(
        fixture.apply(&decision).holder,
        Some(id("b")),
        "{decision:?}"
    );
}

/// The annotation neither prolongs a term nor shortens one (R4).
#[test]
fn a_freeze_is_no_renewal() {
    let mut fixture = led();
    fixture.pass(9.0);
    fixture.freeze(600.0);
    fixture.pass(1.0);
    assert!(matches!(fixture.step().reason, Reason::HolderLate { .. }));
    fixture.change("b", |candidate| {
        candidate.spec = CandidateSpec::parse("1.40.0", "", "OldestEmulationVersion").into();
    });
    fixture.renew();
    assert!(matches!(fixture.step().reason, Reason::Frozen { .. }));
}
