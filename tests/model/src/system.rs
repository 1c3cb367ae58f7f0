//! The system of a run, as it is searched: one Lease, processes that may come to lead, electors, and clocks.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use elector_protocol::elector::{Effect, Settings};
use elector_protocol::holder::HolderConfig;
use elector_protocol::{
    CandidateRecord, CandidateSpec, LeaseRecord, Membership, ResourceVersion, StrategyName,
    Timestamp, Uid,
};

use super::canonical::Canonical;
use super::clocks::Time;
use super::elector::ElectorProcess;
use super::instance::ModelInstance;
use super::intern::{QuickMap, address};
use super::mutant::Mutant;
use super::numbers::{BUCKET, NOW, timestamp};
use super::process::ModelProcess;
use super::run::{Run, Start};
use super::search::{Successor, TransitionSystem};
use super::state::{StateKey, StateParts, SystemState};
use super::store::{GROUP, LeaseStore, NAMES, Property, identity};
use super::transition::ModelTransition;
use super::witness::Witnesses;

/// A system, ready to be searched.
pub(super) struct ModelSystem {
    pub(super) run: Run,
    pub(super) canonical: Canonical,
    /// By the name.
    pub(super) configs: [Arc<HolderConfig>; NAMES.len()],
    /// By the life of an elector.
    pub(super) settings: [Settings; 2],
    /// True if electors that differ in nothing but their place are one.
    pub(super) swaps_electors: bool,
    /// True if what follows from a part of a state alone is worked out once, and not again while the part is unchanged.
    pub(super) remembers: bool,
    parts: StateParts,
    /// The effects of the electors that have been met, by address: an interned part is kept for ever.
    effects: RefCell<QuickMap<usize, Rc<Vec<Effect>>>>,
    /// The processes whose step would do something, in the same way.
    due: RefCell<QuickMap<usize, bool>>,
}

// === impl ModelSystem ===

impl ModelSystem {
    /// The system of a run.
    pub(super) fn new(run: Run) -> Self {
        let timings = run.timings_of_lives();
        Self {
            canonical: Canonical::new(run, timings.clone()),
            configs: std::array::from_fn(|name| Arc::new(run.holder_config(name))),
            settings: timings.map(|timing| Settings {
                timing,
                ..Settings::default()
            }),
            swaps_electors: run.has_like_electors(),
            remembers: true,
            parts: StateParts::default(),
            effects: RefCell::default(),
            due: RefCell::default(),
            run,
        }
    }

    /// The effects of an elector's step. Most electors are met many times.
    pub(super) fn effects(
        &self,
        elector: &Rc<ElectorProcess>,
        store: &LeaseStore,
    ) -> Rc<Vec<Effect>> {
        let effects = || Rc::new(elector.effects(store, &self.settings, &self.run));
        // A mutant may look at more than the elector's own memory.
        if self.run.mutant.is_some() || !self.remembers {
            return effects();
        }
        let mut known = self.effects.borrow_mut();
        Rc::clone(known.entry(address(elector)).or_insert_with(effects))
    }

    /// True if a process's step would do something.
    pub(super) fn is_due(&self, process: &Rc<ModelProcess>) -> bool {
        if !self.remembers {
            return process.is_due(&self.run);
        }
        let mut known = self.due.borrow_mut();
        *known
            .entry(address(process))
            .or_insert_with(|| process.is_due(&self.run))
    }

    /// The state after a transition, and the possibilities that it showed.
    pub(super) fn follow(
        &self,
        state: &SystemState,
        by: &ModelTransition,
    ) -> (SystemState, Witnesses) {
        let time = by.time();
        let mut next = state.clone();
        let witnesses = next.apply(by, self);
        let unchanged = self.remembers.then_some(state);
        self.canonical.apply(&mut next, unchanged, time);
        if time.passes() {
            next.catch_up(&self.run);
            self.settle(&mut next);
        }
        let met = self.met(state, &next);
        (next, witnesses | met)
    }

    /// The witnesses of what the electors came to know.
    fn met(&self, before: &SystemState, after: &SystemState) -> Witnesses {
        let pairs = before.electors.iter().zip(&after.electors);
        let changed = pairs.filter(|(before, after)| {
            (self.run.doubles || self.run.operated) && !Rc::ptr_eq(before, after)
        });
        changed.fold(Witnesses::empty(), |met, (_, elector)| {
            met | elector.witnesses(&self.settings)
        })
    }

    /// Replaces every number of a state by what it means.
    pub(super) fn settle(&self, state: &mut SystemState) {
        self.canonical.apply(state, None, Time::Stands);
    }

    /// The state at the start, with the clocks of a mix.
    fn start(&self, mix: usize) -> SystemState {
        let run = &self.run;
        let process = |index| {
            let name = run.name_of(index);
            let instance = ModelInstance::new(index, run);
            let config = Arc::clone(&self.configs[name]);
            Rc::new(ModelProcess::of_instance(name, config, instance))
        };
        let mut state = SystemState {
            mix,
            store: Rc::new(run.store()),
            candidates: (0..run.candidates).map(process).collect(),
            electors: (0..run.electors)
                .map(|_| Rc::new(ElectorProcess::new(0, None)))
                .collect(),
        };
        self.canonical.apply(&mut state, None, Time::Stands);
        state
    }

    /// True if any elector may act that holds a lock: those have authority, and the others are the built-in one.
    fn has_authority(&self, state: &SystemState) -> bool {
        let run = &self.run;
        run.lock.is_some_and(|lock| {
            let mut electors = state.candidates[..lock.electors].iter();
            electors.any(|elector| elector.has_authority(lock, run))
        })
    }
}

impl TransitionSystem for ModelSystem {
    type State = SystemState;
    type Key = StateKey;
    type Transition = ModelTransition;
    type Violation = Property;

    fn initial(&self) -> Vec<SystemState> {
        let mixes = 0..self.run.mixes.len();
        mixes.map(|mix| self.start(mix)).collect()
    }

    fn successors(&self, state: &SystemState) -> Vec<Successor<Self>> {
        let successor = |by: ModelTransition| {
            let (next, witnesses) = self.follow(state, &by);
            Successor {
                kind: by.kind(),
                by,
                witnesses,
                state: next,
            }
        };
        self.possible(state).into_iter().map(successor).collect()
    }

    fn key(&mut self, state: &SystemState) -> StateKey {
        let [first, second] = self.run.mixes[state.mix].electors;
        let alike = first == second && self.swaps_electors;
        self.parts.key(state, alike)
    }

    fn state(&self, key: StateKey) -> SystemState {
        self.parts.state(key, &self.run)
    }

    fn violation(&self, state: &SystemState) -> Option<Property> {
        let run = &self.run;
        let believes = |process: &&Rc<ModelProcess>| process.believes(run);
        let two = match run.lock {
            // Two electors may hold their lock, and beside the built-in one none may act.
            Some(lock) => {
                let mut builtin = state.candidates[lock.electors..].iter();
                builtin.any(|process| process.believes(run)) && self.has_authority(state)
            }
            None => state.candidates.iter().filter(believes).count() > 1,
        };
        let found = if two {
            Some(Property::OneBeliever)
        } else {
            state.store.broken
        };
        found.filter(|property| run.checks(*property))
    }

    fn is_goal(&self, state: &SystemState) -> bool {
        if self.run.lock.is_some() {
            return self.has_authority(state);
        }
        let lease = state.store.lease.as_ref();
        let words = lease.map(|lease| (&lease.overrides.freeze, &lease.overrides.prefer));
        let mut electors = state.electors.iter();
        let reversed = electors.any(|elector| elector.reverses(&self.run));
        let goals = match words {
            _ if !self.run.best => 0..self.run.candidates,
            Some((Some(_), _)) => 0..self.run.candidates,
            Some((None, Some(_))) => self.run.candidates - 1..self.run.candidates,
            _ if reversed => self.run.candidates - 1..self.run.candidates,
            _ => 0..1,
        };
        let mut goals = state.candidates[goals].iter();
        goals.any(|process| process.believes(&self.run))
    }

    fn describe(&self, state: &SystemState) -> String {
        let processes = state.candidates.iter();
        let believers = processes.filter(|process| process.believes(&self.run));
        let believers: Vec<_> = believers.map(|process| NAMES[process.name]).collect();
        format!("{}; believing: {believers:?}", state.store.describe())
    }
}

// === impl Run ===

impl Run {
    /// The server as it stands at the start.
    fn store(&self) -> LeaseStore {
        // Without an elector the objects are of no use.
        let objects = match self.electors {
            0 => 0,
            _ => self.name_of(self.candidates - 1) + 1,
        };
        let last = identity(NAMES[self.candidates - 1]);
        let joins = |object: &CandidateRecord| self.group && object.name == last;
        let mut store = LeaseStore {
            revision: ResourceVersion(1),
            lease: None,
            objects: (0..objects)
                .map(|name| Some(self.candidate(name)))
                .map(|object| object.filter(|object| !joins(object)))
                .collect(),
            post: None,
            labelled: true,
            created: 0,
            interference: self.interference,
            acked: if self.pings { 0 } else { u8::MAX },
            fence: self.fence,
            written: matches!(self.mutant, Some(Mutant::ExpireByRenewTime(_))).then_some(NOW),
            gone: None,
            lax: self.lax,
            watched: Property::ALL
                .into_iter()
                .filter(|property| self.checks(*property))
                .fold(0, |bits, property| bits | property.bit()),
            restraint: self.doubles.then(|| self.restraint()),
            broken: None,
        };
        if self.start == Start::Released {
            let born = LeaseRecord::born(Some(StrategyName::oldest_emulation_version()));
            store.create(born.released(timestamp(0)));
        }
        store
    }

    /// The object of a candidate as it stands at the start. The lower the index, the better the candidate.
    pub(super) fn candidate(&self, index: usize) -> CandidateRecord {
        let emulation = format!("1.{}.0", if self.ranked { index } else { 0 });
        let spec =
            CandidateSpec::parse("1.9.0", &emulation, StrategyName::OLDEST_EMULATION_VERSION);
        let membership = self.group.then(|| {
            Arc::new(Membership {
                group: GROUP.into(),
                member: self.member(index),
            })
        });
        let spec = spec.map(|spec| CandidateSpec { membership, ..spec });
        let bucket = BUCKET * i64::try_from(index).unwrap_or(0);
        CandidateRecord {
            name: identity(NAMES[index]),
            uid: Uid::new(NAMES[index]),
            version: ResourceVersion((bucket + BUCKET).unsigned_abs()),
            created: Timestamp::MIN,
            ping: None,
            renew: Some(timestamp(bucket)),
            marked: true,
            announced: self.announced.then(|| self.lease_duration()),
            deleting: false,
            spec: spec.into(),
        }
    }
}
