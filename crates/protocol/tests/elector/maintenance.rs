//! Work due for every candidate, whichever one leads: a ping in 15 min, and its collection in the end (R15).

use elector_protocol::elector::{Action, Effect, WakeReason};

use crate::fixture::{DAY, ElectionFixture, held};

fn collected(fixture: &ElectionFixture) -> bool {
    let collects = |effect: &Effect| matches!(effect, Effect::Collect { .. });
    fixture.step().effects.iter().any(collects)
}

/// A plain client holds the lease for a day; `c` is a candidate all the same.
fn left() -> ElectionFixture {
    let mut fixture = ElectionFixture::new();
    fixture.register("c", 3);
    fixture.lease(held("plain", i32::try_from(DAY).ok()));
    assert_eq!(fixture.action(), Action::Leave);
    fixture
}

/// (R15, S11) Also where the lease itself is left to others: 30 min without a write *and* a last ping without an ack.
#[test]
fn a_candidate_is_pinged_after_a_quarter_of_an_hour_and_collected_after_half_an_hour() {
    let mut fixture = left();
    assert_eq!(fixture.wake(), (900.0, WakeReason::QuietCandidate));
    fixture.pass(899.999);
    assert_eq!(fixture.pinged(), [""; 0]);
    assert_eq!(fixture.wake(), (0.001, WakeReason::QuietCandidate));
    fixture.pass(0.001);
    assert_eq!(fixture.ping(), ["c"]);
    assert_eq!(fixture.wake(), (2.0, WakeReason::AckWindow));
    fixture.pass(2.0);
    assert_eq!(fixture.wake(), (898.0, WakeReason::Collect));
    fixture.pass(897.999);
    assert!(!collected(&fixture));
    fixture.pass(0.001);
    assert!(collected(&fixture));
    // Its DELETE is not repeated while a finalizer keeps it, at every step, which each renewal of its lease brings.
    fixture.change("c", |candidate| candidate.deleting = true);
    assert!(!collected(&fixture));
    // It stays a candidate, and comes back to life.
    fixture.pass(f64::from(DAY));
    fixture.ack("c");
    fixture.grants("c");
}

/// (R15) Without a ping there is no ack that it owes. pingTime is never cleared: one that equals renewTime was acked.
#[test]
fn a_candidate_that_was_never_pinged_is_not_collected() {
    for acked in [false, true] {
        let mut fixture = left();
        if acked {
            fixture.change("c", |candidate| candidate.ping = candidate.renew);
        }
        fixture.pass(7200.0);
        assert!(!collected(&fixture));
        assert_eq!(fixture.ping(), ["c"]);
        assert!(!collected(&fixture), "it has its time to ack");
        fixture.ack("c");
        fixture.pass(10.0);
        assert!(!collected(&fixture));
    }
}
