//! Arbitrary records, candidates and histories.

use std::time::Duration;

use elector_protocol::elector::NewsSource;
use elector_protocol::{
    CandidateRecord, CandidateSpec, Identity, LeaseRecord, OperatorOverrides, ResourceVersion,
    StrategyName, Term, Timestamp, Token, Uid,
};
use proptest::option;
use proptest::prelude::{Just, Strategy as Arbitrary, any, prop_oneof};
use proptest::sample::select;

use crate::operators::words;

/// One thing that can happen to an election.
#[derive(Clone, Debug)]
pub(crate) enum ElectionEvent {
    Pass(Duration),
    Lease {
        uid: u8,
        record: LeaseRecord,
        news: NewsSource,
    },
    LeaseGone(NewsSource),
    Candidate {
        candidate: CandidateRecord,
        news: NewsSource,
    },
    CandidateGone(Identity),
    Created,
    /// An operator annotates the Lease.
    Word(OperatorOverrides),
    /// The write of the last decision is applied and its reply arrives.
    Applied,
    /// The record changes in a way that its holder would: the same but for the renewal time.
    Renewed,
}

pub(crate) fn identities() -> impl Arbitrary<Value = Identity> {
    prop_oneof!["[abc]", "[abc]", ".{1,8}"].prop_filter_map("never empty", Identity::new)
}

pub(crate) fn timestamps() -> impl Arbitrary<Value = Timestamp> {
    prop_oneof![
        (0..20i64).prop_filter_map("in range", Timestamp::from_micros),
        any::<i64>().prop_map(|micros| Timestamp::from_micros(micros).unwrap_or(Timestamp::MAX)),
        Just(Timestamp::MIN),
        Just(Timestamp::MAX),
    ]
}

pub(crate) fn durations() -> impl Arbitrary<Value = Duration> {
    prop_oneof![
        (0..20_000u64).prop_map(Duration::from_millis),
        (0..4_000u64).prop_map(Duration::from_secs),
        Just(Duration::MAX),
    ]
}

pub(crate) fn strategies() -> impl Arbitrary<Value = StrategyName> {
    prop_oneof![
        4 => Just(StrategyName::oldest_emulation_version()),
        1 => Just(StrategyName::parse("example.com/x").unwrap()),
    ]
}

/// Those that Elector decides itself.
pub(crate) fn known_strategies() -> impl Arbitrary<Value = StrategyName> {
    select(StrategyName::KNOWN.to_vec()).prop_map(|name| StrategyName::parse(name).unwrap())
}

pub(crate) fn records() -> impl Arbitrary<Value = LeaseRecord> {
    let numbers = (
        option::of(prop_oneof![0..20i32, any::<i32>()]),
        prop_oneof![0..4i32, any::<i32>(), Just(i32::MAX)],
    );
    let times = (
        option::of(timestamps()),
        option::of(timestamps()),
        any::<bool>(),
    );
    let signals = (option::of(strategies()), option::of(identities()));
    let token = (option::of(0..9u64), option::of(0..4i32));
    let holder = option::of(identities());
    (holder, numbers, times, signals, token).prop_map(
        |(
            holder,
            (duration, term),
            (acquire, renew, equal),
            (strategy, preferred),
            (token, token_term),
        )| LeaseRecord {
            holder,
            duration_seconds: duration,
            acquire_time: acquire,
            renew_time: if equal { acquire } else { renew },
            term: Term(term),
            strategy,
            preferred_holder: preferred,
            token: token.map(|token| Token(ResourceVersion(token))),
            token_term: token_term.map(Term),
            life: None,
        },
    )
}

pub(crate) fn candidates() -> impl Arbitrary<Value = CandidateRecord> {
    let versions = (
        prop_oneof!["1\\.[0-2]\\.0", "1\\.[0-2]\\.0", ".{0,12}"],
        prop_oneof!["1\\.[0-2]\\.0", "1\\.[0-2]\\.0", ".{0,12}"],
        prop_oneof![
            Just("OldestEmulationVersion"),
            Just("OldestEmulationVersion"),
            Just("a/b"),
            // With a comma it is a list.
            Just("a/b,OldestEmulationVersion"),
            Just("OldestEmulationVersion,a/b"),
            Just("")
        ],
    );
    let times = (
        option::of(timestamps()),
        option::weighted(0.9, timestamps()),
        timestamps(),
    );
    (
        identities(),
        0..2u8,
        versions,
        times,
        any::<bool>(),
        option::of(durations()),
    )
        .prop_map(
            |(
                name,
                uid,
                (binary, emulation, strategy),
                (ping, renew, created),
                marked,
                announced,
            )| CandidateRecord {
                name,
                uid: Uid::new(uid.to_string()),
                version: ResourceVersion(0),
                created,
                ping,
                renew,
                marked,
                announced,
                deleting: false,
                spec: if strategy.contains(',') {
                    let list: Vec<_> = strategy.split(',').collect();
                    CandidateSpec::parse_list(&binary, &emulation, &list).into()
                } else {
                    CandidateSpec::parse(&binary, &emulation, strategy).into()
                },
            },
        )
}

/// A marked candidate that has just renewed, of these versions.
pub(crate) fn candidate(
    name: Identity,
    version: ResourceVersion,
    renew: Timestamp,
    emulation: &str,
) -> CandidateRecord {
    let strategy = StrategyName::OLDEST_EMULATION_VERSION;
    CandidateRecord {
        uid: Uid::new(name.as_str()),
        name,
        version,
        created: Timestamp::MIN,
        ping: None,
        renew: Some(renew),
        marked: true,
        announced: None,
        deleting: false,
        spec: CandidateSpec::parse("1.9.0", emulation, strategy).into(),
    }
}

pub(crate) fn news() -> impl Arbitrary<Value = NewsSource> {
    prop_oneof![4 => Just(NewsSource::Watch), 1 => Just(NewsSource::List), 1 => Just(NewsSource::OwnWrite)]
}

pub(crate) fn events() -> impl Arbitrary<Value = ElectionEvent> {
    prop_oneof![
        4 => durations().prop_map(ElectionEvent::Pass),
        3 => (0..2u8, records(), news()).prop_map(|(uid, record, news)| ElectionEvent::Lease { uid, record, news }),
        1 => news().prop_map(ElectionEvent::LeaseGone),
        4 => (candidates(), news()).prop_map(|(candidate, news)| ElectionEvent::Candidate { candidate, news }),
        1 => identities().prop_map(ElectionEvent::CandidateGone),
        1 => Just(ElectionEvent::Created),
        6 => Just(ElectionEvent::Applied),
        2 => Just(ElectionEvent::Renewed),
        1 => words().prop_map(ElectionEvent::Word),
    ]
}
