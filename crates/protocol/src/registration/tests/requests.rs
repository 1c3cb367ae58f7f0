//! Reads and retries after a request, or neither, by its outcome (R15).

use super::super::*;
use super::{NOW, READ, at, create, object, registered};

/// The first thing that is done after the pause that the registration asks for.
fn after_a_pause(registration: &mut Registration) -> Option<RegistrationEffect> {
    let decision = registration.step(NOW, at(20));
    assert_eq!(decision.effect, None, "there is no pause");
    registration.step(decision.wake_at?, at(20)).effect
}

/// A registration that has just sent its ack of a ping.
fn acking() -> Registration {
    let mut registration = registered();
    registration.watch(2, Some(11), Some(10));
    assert!(matches!(
        registration.effect(),
        Some(RegistrationEffect::Replace { .. })
    ));
    registration
}

fn reading() -> Registration {
    let mut registration = registered();
    registration.request_read();
    assert_eq!(registration.effect(), READ);
    registration
}

#[test]
fn a_list_without_the_object_counts_where_it_is_newer_and_calls_for_a_read_where_it_is_older() {
    let mut registration = registered();
    registration.handle_event(CandidateEvent::Absent(ResourceVersion(2)));
    assert_eq!(registration.effect(), create(20));

    let mut registration = registered();
    registration.handle_event(CandidateEvent::Absent(ResourceVersion(0)));
    assert!(registration.is_registered());
    assert_eq!(registration.effect(), READ);
    registration.handle_read(NOW, Ok(None));
    assert_eq!(registration.effect(), create(20));
}

#[test]
fn a_deletion_counts_by_its_version() {
    let mut registration = registered();
    registration.watch(5, None, Some(10));
    registration.handle_event(CandidateEvent::Deleted(ResourceVersion(4)));
    assert!(registration.is_registered(), "of long ago");
    registration.handle_event(CandidateEvent::Deleted(ResourceVersion(7)));
    registration.watch(6, None, Some(10));
    assert_eq!(registration.seen(), None, "it was there before");
}

#[test]
fn a_read_that_a_deletion_overtook_is_not_believed() {
    let mut registration = reading();
    registration.handle_event(CandidateEvent::Deleted(ResourceVersion(2)));
    registration.read(1, None, Some(10));
    assert_eq!(registration.seen(), None);
}

#[test]
fn a_read_of_something_older_means_a_restored_store() {
    let mut registration = registered();
    registration.watch(5, None, Some(10));
    registration.request_read();
    assert_eq!(registration.effect(), READ);
    registration.read(3, None, Some(10));
    assert_eq!(registration.seen(), Some(ResourceVersion(3)));
}

/// At once after a first conflict, and where the object is gone; after a pause otherwise.
#[test]
fn a_request_that_fails_is_followed_by_a_read_or_a_creation() {
    let mut registration = reading();
    registration.handle_read(NOW, Err(ReadFailed));
    assert_eq!(after_a_pause(&mut registration), READ);

    let mut registration = acking();
    registration.outcome(RegistrationOutcome::Unknown);
    assert_eq!(after_a_pause(&mut registration), READ);

    let mut registration = acking();
    registration.outcome(RegistrationOutcome::Gone);
    assert_eq!(registration.effect(), create(20));

    let mut registration = acking();
    registration.outcome(RegistrationOutcome::Conflict);
    assert_eq!(registration.effect(), READ);
    registration.read(3, Some(11), Some(10));
    assert!(registration.effect().is_some(), "the ack");
    registration.outcome(RegistrationOutcome::Conflict);
    assert_eq!(after_a_pause(&mut registration), READ);
}

#[test]
fn a_success_forgets_the_pauses_before_it() {
    let mut registration = acking();
    for _ in 0..3 {
        registration.outcome(RegistrationOutcome::Refused);
        let pause = registration.step(NOW, at(20)).wake_at.unwrap();
        assert!(registration.step(pause, at(20)).effect.is_some());
    }
    registration.done(3, Some(11), Some(20));
    registration.watch(4, Some(30), Some(20));
    assert!(registration.effect().is_some());
    registration.outcome(RegistrationOutcome::Refused);
    let expected = Some(NOW.after(Registration::RETRY_MIN));
    assert_eq!(registration.step(NOW, at(20)).wake_at, expected);
}

#[test]
fn a_withdrawal_does_not_wait_for_the_pause_of_another_request() {
    let mut registration = acking();
    registration.outcome(RegistrationOutcome::Refused);
    assert_eq!(registration.effect(), None);
    registration.withdraw();
    assert!(matches!(
        registration.effect(),
        Some(RegistrationEffect::Delete { .. })
    ));
}

/// A component that may not delete its object leaves it to the electors, which collect it.
#[test]
fn a_withdrawal_that_the_server_refuses_is_over_and_is_not_begun_again() {
    let mut registration = registered();
    registration.withdraw();
    assert!(registration.effect().is_some());
    registration.outcome(RegistrationOutcome::Refused);
    assert!(registration.is_withdrawn());
    registration.withdraw();
    let expected = RegistrationDecision::default();
    assert_eq!(registration.step(NOW, at(20)), expected);
}

/// Another object of the name may say something else: it is written once, like that of an earlier life.
#[test]
fn an_object_of_another_uid_is_written_anew() {
    let mut registration = registered();
    registration.handle_event(CandidateEvent::Seen(CandidateSnapshot {
        uid: Uid::new("u2"),
        ..object(2, None, Some(10))
    }));
    assert!(!registration.is_registered());
    let written = RegistrationEffect::Replace {
        uid: Uid::new("u2"),
        version: ResourceVersion(2),
        ping: None,
        renew: at(20),
    };
    assert_eq!(registration.effect(), Some(written));
}
