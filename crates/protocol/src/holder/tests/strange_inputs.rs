//! Any input at any time, in any mode: a holder never panics, and its terms are the ones that it reported.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{
    Just, ProptestConfig, Strategy as Arbitrary, any, prop_assert, prop_oneof, proptest,
};

use super::super::{Holder, LeaseEvent, LeaseOutcome, ReadFailed};
use super::fixture::{config_of, identity, modes};
use crate::lease::{LeaseRecord, LeaseSnapshot};
use crate::lease_watch::NewsSource;
use crate::names::{ResourceVersion, Term, Token, Uid};
use crate::time::{Instant, Moment, Timestamp};

fn timestamps() -> impl Arbitrary<Value = Option<Timestamp>> {
    prop_oneof![
        Just(None),
        (0..3i64).prop_map(Timestamp::from_micros),
        Just(Some(Timestamp::MIN)),
        Just(Some(Timestamp::MAX)),
    ]
}

fn snapshots() -> impl Arbitrary<Value = LeaseSnapshot> {
    let names = || prop_oneof![Just(None), Just(Some("me")), Just(Some("other"))];
    let terms = || prop_oneof![-1..3i32, Just(i32::MAX), Just(i32::MIN)];
    let tokens = prop_oneof![Just(None), (0..6u64).prop_map(Some)];
    (
        (0..2u8, prop_oneof![0..12u64, Just(u64::MAX)]),
        (names(), names()),
        (timestamps(), timestamps()),
        (terms(), terms(), tokens, any::<Option<i32>>()),
    )
        .prop_map(|((uid, version), (holder, preferred), times, rest)| {
            let (term, token_term, token, duration_seconds) = rest;
            LeaseSnapshot {
                uid: Uid::new(uid.to_string()),
                version: ResourceVersion(version),
                record: LeaseRecord {
                    holder: holder.map(identity),
                    duration_seconds,
                    acquire_time: times.0,
                    renew_time: times.1,
                    term: Term(term),
                    strategy: None,
                    preferred_holder: preferred.map(identity),
                    token: token.map(|token| Token(ResourceVersion(token))),
                    token_term: Some(Term(token_term)),
                    life: None,
                },
                overrides: crate::operator_overrides::OperatorOverrides::default(),
            }
        })
}

#[derive(Clone, Debug)]
enum AnyHolderInput {
    Jump(Duration),
    Step(Option<Timestamp>),
    Event(LeaseSnapshot),
    Deleted(u64),
    Absent(u64),
    Ping,
    Read(Option<LeaseSnapshot>),
    ReadFails,
    Outcome(u8, LeaseSnapshot),
    WorkStops,
    ShutDown,
    Withdrawn,
}

fn any_input() -> impl Arbitrary<Value = AnyHolderInput> {
    prop_oneof![
        prop_oneof![
            (0..30_000u64).prop_map(Duration::from_millis),
            Just(Duration::MAX)
        ]
        .prop_map(AnyHolderInput::Jump),
        timestamps().prop_map(AnyHolderInput::Step),
        timestamps().prop_map(AnyHolderInput::Step),
        snapshots().prop_map(AnyHolderInput::Event),
        (0..12u64).prop_map(AnyHolderInput::Deleted),
        (0..12u64).prop_map(AnyHolderInput::Absent),
        snapshots().prop_map(|lease| AnyHolderInput::Read(Some(lease))),
        Just(AnyHolderInput::Read(None)),
        Just(AnyHolderInput::ReadFails),
        (0..6u8, snapshots()).prop_map(|(kind, lease)| AnyHolderInput::Outcome(kind, lease)),
        Just(AnyHolderInput::Ping),
        Just(AnyHolderInput::WorkStops),
        Just(AnyHolderInput::ShutDown),
        Just(AnyHolderInput::Withdrawn),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_is_too_strange(mode in modes(), history in vec(any_input(), 1..60)) {
        let mut holder = Holder::new(config_of(mode));
        let mut now = Instant::default();
        for any_input in history {
            let at = Moment { holder: now, monotonic: Instant::from_epoch(now.since_epoch() / 2) };
            match any_input {
                AnyHolderInput::Jump(duration) => now = now.after(duration),
                AnyHolderInput::Step(wall) => {
                    let decision = holder.step(at, wall.unwrap_or(Timestamp::MIN));
                    prop_assert!(decision.effects.len() <= 2);
                }
                AnyHolderInput::Event(lease) => holder.handle_event(at, LeaseEvent::Seen(lease, NewsSource::Watch)),
                AnyHolderInput::Deleted(version) => {
                    holder.handle_event(at, LeaseEvent::Deleted(ResourceVersion(version)));
                }
                AnyHolderInput::Absent(version) => holder.handle_event(at, LeaseEvent::Absent(ResourceVersion(version))),
                AnyHolderInput::Ping => holder.handle_ping(at),
                AnyHolderInput::Read(reply) => holder.handle_read(at, Ok(reply)),
                AnyHolderInput::ReadFails => holder.handle_read(at, Err(ReadFailed)),
                AnyHolderInput::Outcome(kind, lease) => holder.handle_outcome(at, match kind {
                    0 | 1 => LeaseOutcome::Done(lease),
                    2 => LeaseOutcome::Conflict,
                    3 => LeaseOutcome::Gone,
                    4 => LeaseOutcome::Refused,
                    _ => LeaseOutcome::Unknown,
                }),
                AnyHolderInput::WorkStops => holder.handle_work_stopped(at),
                AnyHolderInput::ShutDown => holder.shut_down(at),
                AnyHolderInput::Withdrawn => holder.handle_withdrawn(),
            }
        }
    }
}
