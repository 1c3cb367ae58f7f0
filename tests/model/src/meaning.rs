//! Walks beside the search, with numbers that keep their history, and compares: what the search forgets must make no
//! difference to what can follow.

use std::collections::HashSet;
use std::fmt::Debug;
use std::rc::Rc;
use std::time::Duration;

use elector_protocol::elector::Effect;
use elector_protocol::{Instant, LeaseWrite, Renumber, Renumbering, Term, Timestamp};

use super::catalogue::runs;
use super::clocks::Time;
use super::numbers::{Aging, FRESH, NOW, timestamp};
use super::search::TransitionSystem;
use super::state::{StateKey, SystemState};
use super::system::ModelSystem;
use super::transition::{ElectorTransition, ModelTransition};

/// Ages without limit. Versions and terms stay as they are; wire times, of which every write wants a new one, are kept
/// apart by one numbering for all processes.
struct Remember {
    aging: Aging,
    /// True if acks grow old.
    pings: bool,
    lease_times: Vec<Timestamp>,
    candidate_times: Vec<Timestamp>,
    collecting: bool,
    /// The process whose memory it is, where several may write for the first time at this moment: the times of these
    /// writes differ.
    writer: i64,
}

const LONG: Duration = Duration::from_secs(200);

impl Renumbering for Remember {
    fn instant(&mut self, instant: &mut Instant) {
        if !self.collecting {
            self.aging.age(instant, LONG);
        }
    }

    fn sighting(&mut self, instant: &mut Instant) {
        if self.pings {
            self.instant(instant);
        } else {
            *instant = NOW;
        }
    }

    fn preference(&mut self, instant: &mut Instant) -> bool {
        self.instant(instant);
        self.pings
    }

    fn heard(&mut self, instant: &mut Instant) {
        *instant = NOW;
    }

    fn lease_time(&mut self, time: &mut Timestamp) {
        // A process may write twice at this moment, and differ by as little as possible.
        if let Ok(write @ 0..10) = u32::try_from(time.as_micros() - FRESH) {
            *time = timestamp(FRESH + 10 * self.writer + i64::from(write));
        }
        renumber(&mut self.lease_times, time, self.collecting, 0);
    }

    fn candidate_time(&mut self, time: &mut Timestamp) {
        let bucket = time.as_micros() / super::numbers::BUCKET * super::numbers::BUCKET;
        renumber(&mut self.candidate_times, time, self.collecting, bucket);
    }
}

fn renumber(times: &mut Vec<Timestamp>, time: &mut Timestamp, collecting: bool, floor: i64) {
    if collecting {
        times.push(*time);
        return;
    }
    let place = times.binary_search(time).unwrap();
    *time = timestamp(floor + 10 * i64::try_from(place).unwrap());
}

/// Lets time pass, and keeps all that there is to know.
fn remember(system: &ModelSystem, state: &mut SystemState, time: Time) {
    let mix = system.run.mixes[state.mix];
    if time.passes()
        && let Some(restraint) = &mut Rc::make_mut(&mut state.store).restraint
    {
        // The judge forgets by itself.
        restraint.age(Duration::from_secs(time.of_elector(mix.electors[0])));
    }
    let mut numbers = Remember {
        aging: Aging::default(),
        pings: system.run.pings,
        lease_times: Vec::new(),
        candidate_times: Vec::new(),
        collecting: true,
        writer: 0,
    };
    for collecting in [true, false] {
        numbers.collecting = collecting;
        numbers.lease_times.sort_unstable();
        numbers.lease_times.dedup();
        numbers.candidate_times.sort_unstable();
        numbers.candidate_times.dedup();
        numbers.writer = 0;
        Rc::make_mut(&mut state.store).renumber(&mut numbers);
        // A write that is in the store already is one, whoever knows of it.
        let stored = numbers.lease_times.contains(&timestamp(FRESH));
        let rates = mix.candidates.into_iter().enumerate();
        for (candidate, (index, rate)) in state.candidates.iter_mut().zip(rates) {
            numbers.writer += i64::from(!stored);
            numbers.aging = Aging::of_candidate(time, index, rate);
            Rc::make_mut(candidate).renumber(&mut numbers);
        }
        for (elector, rate) in state.electors.iter_mut().zip(mix.electors) {
            numbers.writer += i64::from(!stored);
            numbers.aging = Aging {
                by: Duration::from_secs(time.of_elector(rate)),
                ..Aging::default()
            };
            Rc::make_mut(elector).renumber(&mut numbers);
        }
    }
}

/// All that can follow a state that remembers everything.
fn following(system: &ModelSystem, state: &SystemState) -> Vec<SystemState> {
    let follow = |by: &ModelTransition| {
        let mut next = state.clone();
        let time = by.time();
        next.apply(by, system);
        remember(system, &mut next, time);
        if time.passes() {
            next.catch_up(&system.run);
            remember(system, &mut next, Time::Stands);
        }
        next
    };
    system.possible(state).iter().map(follow).collect()
}

/// The key of what a state means.
fn meaning(system: &mut ModelSystem, state: &SystemState) -> StateKey {
    let mut state = state.clone();
    system.canonical.apply(&mut state, None, Time::Stands);
    system.key(&state)
}

/// Walks through the system of a run at random.
fn walk(mut system: ModelSystem) {
    let id = system.run.id();
    if system.run.pings {
        // Ages of acks are told apart only roughly, which this walk would see.
        let canonical = &mut system.canonical;
        (canonical.ages, canonical.sightings, canonical.preference) = (LONG, LONG, LONG);
    }
    let mut dice = 1_u64;
    for walk in 0..150 {
        let mut state = system.initial().remove(0);
        for step in 0..80 {
            state = kept(&mut system, &state);
            let key = meaning(&mut system, &state);
            let known = system.state(key);
            let next = following(&system, &state);
            let expected = system.successors(&known);
            assert_eq!(next.len(), expected.len(), "{id}, walk {walk}, step {step}");
            for (next, expected) in next.iter().zip(expected) {
                let by = expected.by;
                assert_eq!(
                    meaning(&mut system, next),
                    system.key(&expected.state),
                    "{id}, walk {walk}, step {step}: {by:?}"
                );
            }
            state = next[chosen(&mut dice, next.len())].clone();
        }
    }
}

/// One of so many.
fn chosen(dice: &mut u64, among: usize) -> usize {
    *dice = dice
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*dice >> 33).unwrap() % among
}

/// The same state, of parts that are kept: processes are recognised by their address.
fn kept(system: &mut ModelSystem, state: &SystemState) -> SystemState {
    let key = system.key(state);
    system.state(key)
}

/// The sights of a state that no memory of an old term may change: the Lease, the believers, the violation, and all that
/// can happen next.
fn sights(system: &ModelSystem, state: &SystemState) -> impl PartialEq + Debug {
    let lease = state.store.lease.as_ref().map(|lease| {
        let record = &lease.record;
        let names = [&record.holder, &record.preferred_holder];
        let kind = (record.occupancy(), record.has_token());
        (&lease.uid, names, kind, record.term == Term(0))
    });
    let run = &system.run;
    let processes = state.candidates.iter();
    let believers: Vec<_> = processes.map(|process| process.believes(run)).collect();
    let happens = |by: ModelTransition| match by {
        ModelTransition::Elector(index, ElectorTransition::Decide(effect)) => match effect {
            Effect::Write(LeaseWrite { record, .. }) => {
                format!("{index} {:?} {:?}", record.holder, record.preferred_holder)
            }
            Effect::Ping { name, .. } => format!("{index} pings {name}"),
            effect => format!("{index} {effect:?}"),
        },
        by => format!("{by:?}"),
    };
    let next: Vec<_> = system.possible(state).into_iter().map(happens).collect();
    (lease, believers, state.store.broken, next)
}

/// Walks two ways at a time, with numbers that keep their history and with those that are replaced, and compares what
/// can be seen on them.
fn walk_beside(mut system: ModelSystem) {
    let id = system.run.id();
    let mut dice = 1_u64;
    let mut recurred = 0;
    for walk in 0..300 {
        let mut whole = system.initial().remove(0);
        let mut reduced = whole.clone();
        let mut grown = false;
        for step in 0..80 {
            (whole, reduced) = (kept(&mut system, &whole), kept(&mut system, &reduced));
            let next = following(&system, &whole);
            let expected = system.successors(&reduced);
            assert_eq!(next.len(), expected.len(), "{id}, walk {walk}, step {step}");
            let choice = chosen(&mut dice, next.len());
            let (next, expected) = (&next[choice], &expected[choice]);
            let by = &expected.by;
            (whole, reduced) = (kept(&mut system, next), kept(&mut system, &expected.state));
            assert_eq!(
                sights(&system, &whole),
                sights(&system, &reduced),
                "{id}, walk {walk}, step {step}: {by:?}"
            );
            let term = whole.store.lease.as_ref().map(|lease| lease.record.term);
            grown |= term > Some(Term(0));
            recurred += u32::from(grown && term == Some(Term(0)));
        }
    }
    assert!(recurred > 100, "{id}: no term restarts at zero");
}

/// Next to which old term a term comes to lie that restarts at zero is another number, and of no consequence.
#[test]
fn where_terms_restart_at_zero_what_is_forgotten_makes_no_difference() {
    for id in ["MC-Q6", "MC-X1-off", "MC-P1e", "MC-P-gap"] {
        let run = runs().into_iter().find(|run| run.id() == id);
        let mut run = run.unwrap();
        run.interference.blanks = 1;
        walk_beside(ModelSystem::new(run));
    }
}

#[test]
fn what_is_forgotten_makes_no_difference() {
    let walked = [
        "MC-S0",
        "MC-S1",
        "MC-G1",
        "MC-X2-off",
        "MC-D2",
        "MC-P1",
        "MC-P2e",
        "MC-P9",
    ];
    for run in runs().into_iter().filter(|run| walked.contains(&run.id())) {
        walk(ModelSystem::new(run));
    }
}

/// Every state that can be reached in some steps, found by numbers that keep their history and by what they mean.
#[test]
fn every_state_is_met_that_numbers_without_end_would_meet() {
    for id in ["MC-L5", "MC-X2-off", "MC-P1", "MC-P2e", "MC-P9"] {
        let run = runs().into_iter().find(|run| run.id() == id);
        let mut system = ModelSystem::new(run.unwrap());
        let mut whole = system.initial();
        whole.truncate(1);
        let mut reduced: HashSet<StateKey> = whole.iter().map(|state| system.key(state)).collect();
        let mut steps = 0;
        while whole.len() < 10_000 {
            let mut keys = HashSet::new();
            for state in &whole {
                keys.extend(
                    following(&system, state)
                        .iter()
                        .map(|next| system.key(next)),
                );
            }
            whole = keys.iter().map(|key| system.state(*key)).collect();
            let mut next = HashSet::new();
            for key in &reduced {
                let successors = system.successors(&system.state(*key));
                next.extend(successors.iter().map(|it| system.key(&it.state)));
            }
            reduced = next;
            let meant: HashSet<_> = whole
                .iter()
                .map(|state| meaning(&mut system, state))
                .collect();
            steps += 1;
            assert!(meant == reduced, "{id}, step {steps}");
        }
        assert!(reduced.len() < whole.len(), "{id}: nothing was reduced");
        assert!(steps > 6, "{id}: {steps} steps");
    }
}
