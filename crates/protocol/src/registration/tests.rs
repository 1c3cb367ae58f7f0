//! Scenarios of one registration, each named by what happens.

mod requests;

use proptest::collection::vec;
use proptest::prelude::{
    Just, ProptestConfig, Strategy as Arbitrary, prop_assert, prop_oneof, proptest,
};

use super::*;

const NOW: Instant = Instant::from_epoch(Duration::from_secs(100));

fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).unwrap()
}

fn object(version: u64, ping: Option<i64>, renew: Option<i64>) -> CandidateSnapshot {
    CandidateSnapshot {
        uid: Uid::new("u1"),
        version: ResourceVersion(version),
        lease: "web".into(),
        ping: ping.map(at),
        renew: renew.map(at),
    }
}

const READ: Option<RegistrationEffect> = Some(RegistrationEffect::Read);

fn create(renew: i64) -> Option<RegistrationEffect> {
    Some(RegistrationEffect::Create { renew: at(renew) })
}

fn replace(version: u64, ping: Option<i64>, renew: i64) -> RegistrationEffect {
    RegistrationEffect::Replace {
        uid: Uid::new("u1"),
        version: ResourceVersion(version),
        ping: ping.map(at),
        renew: at(renew),
    }
}

impl Registration {
    /// The effect of a step at time 20.
    fn effect(&mut self) -> Option<RegistrationEffect> {
        self.step(NOW, at(20)).effect
    }

    fn watch(&mut self, version: u64, ping: Option<i64>, renew: Option<i64>) {
        self.handle_event(CandidateEvent::Seen(object(version, ping, renew)));
    }

    fn read(&mut self, version: u64, ping: Option<i64>, renew: Option<i64>) {
        self.handle_read(NOW, Ok(Some(object(version, ping, renew))));
    }

    fn done(&mut self, version: u64, ping: Option<i64>, renew: Option<i64>) {
        let reply = object(version, ping, renew);
        self.outcome(RegistrationOutcome::Done(Some(reply)));
    }

    /// A step at that time does nothing, and sets no time to look again.
    #[track_caller]
    fn rests(&mut self, now: Timestamp) {
        assert_eq!(self.step(NOW, now), RegistrationDecision::default());
    }

    fn outcome(&mut self, outcome: RegistrationOutcome) {
        self.handle_outcome(NOW, outcome);
    }
}

/// A registration that has created its object at version 1, time 10.
fn registered() -> Registration {
    let mut registration = Registration::new("web");
    assert_eq!(registration.step(NOW, at(10)).effect, create(10));
    registration.rests(at(10));
    registration.done(1, None, Some(10));
    assert!(registration.is_registered());
    assert_eq!(registration.step(NOW, at(11)).effect, None);
    registration
}

/// Found by the simulation: the read brought what had been there before the ping, which was then never
/// acked, since it stayed and no event named it again.
#[test]
fn a_ping_that_comes_while_a_read_is_under_way_is_acked() {
    let mut registration = registered();
    registration.request_read();
    assert_eq!(registration.effect(), READ);
    registration.watch(2, Some(11), Some(10));
    registration.read(1, None, Some(10));
    let ack = replace(2, Some(11), 20);
    assert_eq!(registration.effect(), Some(ack));
}

/// Found by the simulation: a restored store brought a ping back that had been acked, and it was never acked again.
#[test]
fn a_list_with_something_older_is_not_believed_and_calls_for_a_read() {
    let mut registration = registered();
    registration.watch(3, Some(11), Some(12));
    registration.handle_event(CandidateEvent::Listed(object(2, Some(11), Some(10))));
    assert_eq!(registration.seen(), Some(ResourceVersion(3)));
    assert_eq!(registration.effect(), READ);
    registration.read(2, Some(11), Some(10));
    let ack = replace(2, Some(11), 20);
    assert_eq!(registration.effect(), Some(ack));
}

#[test]
fn an_object_that_comes_while_a_read_finds_none_is_read_again() {
    let mut registration = registered();
    registration.request_read();
    registration.step(NOW, at(20));
    registration.watch(2, None, Some(10));
    registration.handle_read(NOW, Ok(None));
    assert_eq!(registration.effect(), READ);
}

/// Found by the simulation: a candidate whose object a stranger had overwritten stayed out of every election.
#[test]
fn an_object_that_a_stranger_spoilt_is_written_anew_and_not_again_at_once() {
    let mut registration = registered();
    let repair = |version| replace(version, None, 20);
    registration.watch(2, None, Some(10));
    registration.handle_overwritten(ResourceVersion(2));
    assert_eq!(registration.effect(), Some(repair(2)));
    // The watch shows the own write before the reply does.
    registration.watch(3, None, Some(20));
    registration.handle_overwritten(ResourceVersion(3));
    registration.done(3, None, Some(20));
    assert_eq!(registration.effect(), None);
    let later = NOW.after(Registration::REPAIR_PAUSE);
    assert_eq!(registration.step(later, at(20)).wake_at, None);

    registration.watch(4, None, Some(10));
    registration.handle_overwritten(ResourceVersion(4));
    let decision = registration.step(NOW, at(20));
    assert_eq!((decision.effect, decision.wake_at), (None, Some(later)));
    assert_eq!(registration.step(later, at(20)).effect, Some(repair(4)));
}

#[test]
fn a_revision_that_is_not_the_newest_is_not_repaired() {
    let mut registration = registered();
    registration.handle_overwritten(ResourceVersion(2));
    assert_eq!(registration.effect(), None);
}

/// Found by the simulation: at the end of time there is no later ping, so it was never pinged again.
#[test]
fn times_at_the_end_of_time_are_taken_back() {
    let end = Timestamp::MAX.as_micros();
    for (ping, renew) in [
        (Some(end), Some(end)),
        (Some(end), Some(10)),
        (None, Some(end)),
    ] {
        let mut registration = registered();
        registration.watch(2, ping, renew);
        let repair = replace(2, None, 20);
        assert_eq!(registration.effect(), Some(repair));
        registration.done(3, None, Some(20));
        assert_eq!(registration.step(NOW, at(30)).effect, None);
    }
}

#[test]
fn a_ping_is_acked_once_and_never_below_it() {
    let mut registration = registered();
    registration.watch(2, Some(5000), Some(10));
    let ack = replace(2, Some(5000), 5000);
    assert_eq!(registration.effect(), Some(ack));
    assert!(registration.is_registered(), "while it is answered");
    registration.done(3, Some(5000), Some(5000));
    // The watch shows the ping again, late.
    registration.watch(2, Some(5000), Some(10));
    registration.rests(at(30));
}

#[test]
fn a_candidate_that_cannot_lead_keeps_silent() {
    let mut registration = registered();
    registration.ack_pings(false);
    registration.watch(2, Some(11), Some(10));
    assert_eq!(registration.effect(), None);
    registration.ack_pings(true);
    assert!(registration.effect().is_some());
}

#[test]
fn an_object_of_an_earlier_life_is_taken_over() {
    let mut registration = Registration::new("web");
    let _ = registration.step(NOW, at(10));
    registration.outcome(RegistrationOutcome::Conflict);
    assert_eq!(registration.step(NOW, at(10)).effect, READ);
    registration.read(7, None, Some(10));
    let Some(RegistrationEffect::Replace { version, renew, .. }) =
        registration.step(NOW, at(10)).effect
    else {
        panic!("the object is not written");
    };
    assert_eq!((version, renew), (ResourceVersion(7), at(11)));
}

#[test]
fn an_object_of_another_lease_is_reported_and_left_alone() {
    let mut registration = Registration::new("web");
    let foreign = CandidateSnapshot {
        lease: "db".into(),
        ..object(7, None, Some(1))
    };
    registration.handle_event(CandidateEvent::Seen(foreign));
    assert_eq!(registration.bound_elsewhere(), Some("db"));
    registration.rests(at(10));
    registration.withdraw();
    assert_eq!(registration.step(NOW, at(10)).effect, None);
    assert!(registration.is_withdrawn());
}

#[test]
fn a_deleted_object_is_created_again() {
    let mut registration = registered();
    registration.handle_event(CandidateEvent::Deleted(ResourceVersion(2)));
    assert!(!registration.is_registered());
    assert_eq!(registration.effect(), create(20));
}

#[test]
fn a_withdrawal_waits_for_a_write_of_unknown_outcome() {
    let mut registration = Registration::new("web");
    let _ = registration.step(NOW, at(10));
    registration.withdraw();
    registration.rests(at(10));
    registration.outcome(RegistrationOutcome::Unknown);
    let later = registration.step(NOW, at(10)).wake_at.unwrap();
    assert_eq!(later, NOW.after(Registration::RETRY_MIN));
    assert_eq!(registration.step(later, at(10)).effect, READ);
    registration.handle_read(later, Ok(Some(object(1, None, Some(10)))));
    let delete = RegistrationEffect::Delete {
        uid: Uid::new("u1"),
    };
    assert_eq!(registration.step(later, at(10)).effect, Some(delete));
    assert!(!registration.is_withdrawn());
    registration.handle_outcome(later, RegistrationOutcome::Gone);
    assert_eq!(registration.step(later, at(10)).effect, None);
    assert!(registration.is_withdrawn());
}

#[test]
fn failures_pause_and_double_up_to_five_seconds() {
    let mut registration = Registration::new("web");
    let mut now = NOW;
    let mut pauses = Vec::new();
    for _ in 0..7 {
        assert!(registration.step(now, at(10)).effect.is_some());
        registration.handle_outcome(now, RegistrationOutcome::Refused);
        let wake_at = registration.step(now, at(10)).wake_at.unwrap();
        pauses.push(wake_at.since(now).as_millis());
        now = wake_at;
    }
    assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 5000, 5000]);
}

#[derive(Clone, Debug)]
enum AnyRegistrationInput {
    Pass(u64),
    Step(i64),
    Event(CandidateEvent),
    Read(Option<Option<CandidateSnapshot>>),
    Outcome(RegistrationOutcome),
    AckPings(bool),
    Withdraw,
}

fn objects() -> impl Arbitrary<Value = CandidateSnapshot> {
    let times = || {
        prop_oneof![
            Just(None),
            (0..4i64).prop_map(Some),
            Just(Some(Timestamp::MAX.as_micros()))
        ]
    };
    (0..9u64, 0..2u8, times(), times()).prop_map(|(version, uid, ping, renew)| CandidateSnapshot {
        uid: Uid::new(uid.to_string()),
        ..object(version, ping, renew)
    })
}

fn any_input() -> impl Arbitrary<Value = AnyRegistrationInput> {
    use RegistrationOutcome::{Conflict, Done, Gone, Refused, Unknown};
    prop_oneof![
        (0..7_000u64).prop_map(AnyRegistrationInput::Pass),
        (0..5i64).prop_map(AnyRegistrationInput::Step),
        (0..5i64).prop_map(AnyRegistrationInput::Step),
        objects().prop_map(|seen| AnyRegistrationInput::Event(CandidateEvent::Seen(seen))),
        (0..9u64).prop_map(
            |version| AnyRegistrationInput::Event(CandidateEvent::Deleted(ResourceVersion(
                version
            )))
        ),
        (0..9u64).prop_map(
            |version| AnyRegistrationInput::Event(CandidateEvent::Absent(ResourceVersion(version)))
        ),
        objects().prop_map(|seen| AnyRegistrationInput::Read(Some(Some(seen)))),
        prop_oneof![
            Just(AnyRegistrationInput::Read(None)),
            Just(AnyRegistrationInput::Read(Some(None)))
        ],
        objects().prop_map(|seen| AnyRegistrationInput::Outcome(Done(Some(seen)))),
        prop_oneof![
            Just(Conflict),
            Just(Gone),
            Just(Refused),
            Just(Unknown),
            Just(Done(None))
        ]
        .prop_map(AnyRegistrationInput::Outcome),
        prop_oneof![
            Just(AnyRegistrationInput::AckPings(true)),
            Just(AnyRegistrationInput::AckPings(false))
        ],
        Just(AnyRegistrationInput::Withdraw),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// After any input an ack is never below its ping and always a change, one request is under way at a time,
    /// and nothing is written after the withdrawal.
    #[test]
    fn no_input_is_too_strange(history in vec(any_input(), 1..60)) {
        let mut registration = Registration::new("web");
        let (mut now, mut under_way, mut withdrawing) = (NOW, false, false);
        for any_input in history {
            match any_input {
                AnyRegistrationInput::Pass(millis) => now = now.after(Duration::from_millis(millis)),
                AnyRegistrationInput::Step(wall) => {
                    let Some(effect) = registration.step(now, at(wall)).effect else {
                        continue;
                    };
                    prop_assert!(!under_way, "two requests at once: {effect:?}");
                    under_way = true;
                    let deletes = matches!(effect, RegistrationEffect::Delete { .. });
                    let reads = effect == RegistrationEffect::Read;
                    prop_assert!(reads || deletes == withdrawing, "{effect:?}");
                    if let RegistrationEffect::Replace { ping, renew, .. } = effect {
                        let before = registration.seen.as_ref().and_then(|seen| seen.renew);
                        prop_assert!(Some(renew) != before);
                        prop_assert!(ping.is_none_or(|ping| ping <= renew || ping == Timestamp::MAX));
                    }
                }
                AnyRegistrationInput::Event(event) => registration.handle_event(event),
                AnyRegistrationInput::Read(reply) => {
                    if registration.tracked.is_reading() {
                        under_way = false;
                        registration.handle_read(now, reply.ok_or(ReadFailed));
                    }
                }
                AnyRegistrationInput::Outcome(outcome) => {
                    if registration.write.is_some() {
                        under_way = false;
                        registration.handle_outcome(now, outcome);
                    }
                }
                AnyRegistrationInput::AckPings(acks) => registration.ack_pings(acks),
                AnyRegistrationInput::Withdraw => {
                    registration.withdraw();
                    withdrawing = true;
                }
            }
        }
    }
}
