//! A holder that is late, and one whose lease expires.

use elector_protocol::elector::{Action, WakeReason};

use crate::fixture::{ElectionFixture, id};

#[test]
fn standbys_are_pinged_before_it_hurts_and_the_late_holder_is_not_waited_for() {
    let mut fixture = ElectionFixture::led(&[("a", 1)]);
    fixture.list("b", 2);
    assert_eq!(fixture.action(), Action::None);
    assert_eq!(fixture.wake(), (10.0, WakeReason::HolderLate));
    fixture.pass(10.0);
    fixture.says("a is late with its renewal; standbys are pinged");
    assert_eq!(fixture.ping(), ["a", "b"]);
    assert_eq!(fixture.wake(), (2.0, WakeReason::AckWindow));
    fixture.ack("b");
    fixture.says("a is late with its renewal; b is next");
    assert_eq!(fixture.decided(), None);
    fixture.pass(2.0);
    fixture.ack("b");
    assert_eq!(fixture.wake(), (3.0, WakeReason::Expiry));
    fixture.pass(3.0);
    fixture.says(
        "a has not renewed for 15s; b is the only one that answers; better ones do not answer: a",
    );
    assert_eq!(fixture.write().term.0, 2);
}

#[test]
fn an_expired_holder_that_acks_is_granted_a_new_term() {
    let mut fixture = ElectionFixture::led(&[("a", 1)]);
    fixture.pass(10.0);
    fixture.ping();
    fixture.pass(0.1);
    fixture.ack("a");
    fixture.pass(5.0);
    let record = fixture.write();
    let expected = (Some(id("a")), 2, None);
    assert_eq!((record.holder, record.term.0, record.token), expected);
}
