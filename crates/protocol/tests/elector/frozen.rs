//! A lease that an operator froze: no live leader makes room, and all else goes on (R16).

use elector_protocol::StandDown;
use elector_protocol::elector::{Action, Reason, WakeReason};

use crate::fixture::{DAY, ElectionChange, ElectionFixture, assert_reason};

/// `b` leads, and `c` is better.
fn led() -> ElectionFixture {
    ElectionFixture::led(&[("b", 2), ("c", 1)])
}

#[test]
fn no_candidate_is_preferred_until_the_freeze_ends() {
    let mut fixture = led();
    fixture.freeze(5.0);
    fixture
        .says("c is better, but b is not asked to make room: the lease is frozen for another 5.0s");
    assert_eq!(fixture.action(), Action::None);
    assert_eq!(fixture.step().effects, []);
    assert_eq!(fixture.wake(), (5.0, WakeReason::Frozen));
    fixture.pass(4.999_999);
    fixture.ack("c");
    assert_reason!(fixture, Reason::Frozen { .. });
    fixture.pass(0.000_001);
    assert_eq!(fixture.action(), Action::Prefer);
}

/// A freeze whose reason may be forgotten when it ends is none yet.
#[test]
fn a_freeze_that_ends_more_than_a_day_ahead_does_not_count_yet() {
    let mut fixture = led();
    fixture.freeze(f64::from(DAY) + 1.0);
    assert_eq!(fixture.action(), Action::Prefer);
    fixture.keep(1);
    fixture.ack("c");
    assert_reason!(fixture, Reason::Frozen { .. });
}

/// A holder that cannot be elected, or is asked to stand down, is not moved either; where it is the best, there is
/// nothing to tell.
#[test]
fn a_holder_that_is_not_eligible_stays_while_the_lease_is_frozen() {
    let changes: [ElectionChange; 2] = [
        |it| it.stand_down("b", Some(StandDown::Untimed)),
        |it| it.change_version("b", "1.40.0", ""),
    ];
    for change in changes {
        let mut fixture = led();
        fixture.change_version("c", "1.40.0", "1.3.0");
        fixture.freeze(60.0);
        fixture.best("b");
        change(&mut fixture);
        assert_reason!(fixture, Reason::Frozen { .. });
        fixture.overrides.freeze = None;
        fixture.renew();
        assert_eq!(fixture.action(), Action::Prefer);
    }
}

/// An earlier preference is taken back at once, whichever elector asked it. What another elector prefers again stands
/// for a while: two electors whose clocks differ on the end do not take each other's word back without end.
#[test]
fn a_preference_that_stands_is_withdrawn_when_the_freeze_begins() {
    let mut fixture = led();
    fixture.preferred_by_another(Some("c"));
    assert_reason!(fixture, Reason::AwaitYield { .. });
    fixture.freeze(60.0);
    fixture.says("b is no longer asked to make room: c has to wait, since the lease is frozen");
    assert_eq!(fixture.write().preferred_holder, None);
    assert_reason!(fixture, Reason::Frozen { .. });
    for seconds in [4.0, 8.0, 16.0] {
        fixture.preferred_by_another(Some("c"));
        assert_reason!(fixture, Reason::AwaitYield { .. });
        fixture.pass(seconds - 0.1);
        fixture.renew();
        assert_eq!(fixture.decided(), None);
        fixture.pass(0.1);
        assert_eq!(fixture.action(), Action::Withdraw, "after {seconds}");
        fixture.write();
    }
}

/// Vacancies are filled, and by the best: a release and an expiry alike. The annotation neither prolongs a term nor
/// shortens one (R4).
#[test]
fn a_frozen_lease_that_is_free_is_granted() {
    let mut fixture = led();
    fixture.freeze(600.0);
    fixture.release();
    fixture.grants("c");
    fixture.accept();

    fixture.pass(9.0);
    fixture.freeze(600.0);
    fixture.pass(1.0);
    assert_reason!(fixture, Reason::HolderLate { .. });
    fixture.ping();
    fixture.ack("b");
    fixture.pass(5.0);
    fixture.grants("b");
}
