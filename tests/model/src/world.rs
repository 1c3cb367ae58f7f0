//! A state of the world, and how it is kept small: shared parts, canonical numbers, interned keys.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::elector::Settings;
use elector_protocol::holder::HolderConfig;
use elector_protocol::{
    CandidateRecord, CandidateSpec, CandidateTiming, Identity, LeaseRecord, Renumber,
    ResourceVersion, StrategyName, Timestamp, Uid,
};

use super::candidate::CandidateProcess;
use super::clocks::Time;
use super::elector::{ElectorProcess, ElectorRequest};
use super::intern::{Interner, QuickMap, address};
use super::mutant::Mutant;
use super::numbers::{Aging, Assign, BUCKET, NOW, Numbers, timestamp};
use super::run::{Run, Start};
use super::search::{Successor, TransitionSystem};
use super::store::{LeaseStore, NAMES, Property};
use super::transitions::{Transition, possible};

/// The whole world at one moment. Every clock reads [`NOW`].
#[derive(Clone)]
pub(super) struct State {
    /// Which of the run's clock mixes.
    pub(super) mix: usize,
    pub(super) store: Rc<LeaseStore>,
    pub(super) candidates: Vec<Rc<CandidateProcess>>,
    pub(super) electors: Vec<Rc<ElectorProcess>>,
}

/// A run, ready to be searched.
pub(super) struct ElectionSystem {
    pub(super) run: Run,
    pub(super) settings: Settings,
    pub(super) configs: Vec<Arc<HolderConfig>>,
    /// Ages of what an elector saw of the Lease are alike from here on.
    pub(super) ages: Duration,
    /// Ages of questions and answers from here on are alike. That is not exact: whether a question came before or
    /// after a round began is forgotten with its age, so that old answers count for more than they should. This adds
    /// grants and takes none away.
    pub(super) sightings: Duration,
    stores: Interner<LeaseStore>,
    candidates: Interner<CandidateProcess>,
    electors: Interner<ElectorProcess>,
    scratch: RefCell<Scratch>,
    /// By address of the interned process, which it keeps for ever.
    acts: RefCell<QuickMap<usize, Rc<Vec<ElectorRequest>>>>,
    due: RefCell<QuickMap<usize, bool>>,
}

/// Kept between moves for its memory alone.
struct Scratch {
    /// The numbers of the store that most successors of a state share with it.
    kept: Numbers,
    kept_of: Option<Rc<LeaseStore>>,
    /// Those of a store that changed.
    changed: Numbers,
    private: Numbers,
}

/// The numbers of a state's parts: mix, store, three candidates, two electors.
pub(super) type Key = [u32; 7];

// === impl Scratch ===

impl Scratch {
    fn new(zero_recurs: bool) -> Self {
        Self {
            kept: Numbers::new(zero_recurs),
            kept_of: None,
            changed: Numbers::new(zero_recurs),
            private: Numbers::default(),
        }
    }
}

// === impl ElectionSystem ===

impl ElectionSystem {
    /// The world of a run.
    pub(super) fn new(run: Run) -> Self {
        let timing = run.candidate_timing();
        let config = |index| {
            Arc::new(HolderConfig {
                identity: identity(NAMES[run.name_of(index)]),
                timing: CandidateTiming::clone(&timing),
            })
        };
        let sightings = if run.pings {
            run.elector_timing().ack_window
        } else {
            // Every answer is fresh for ever.
            Duration::ZERO
        };
        Self {
            ages: run.lease_duration(),
            sightings,
            settings: Settings {
                timing: run.elector_timing(),
                ..Settings::default()
            },
            configs: (0..run.candidates).map(config).collect(),
            stores: Interner::new(),
            candidates: Interner::new(),
            electors: Interner::new(),
            scratch: RefCell::new(Scratch::new(run.strangers_restart_terms())),
            acts: RefCell::default(),
            due: RefCell::default(),
            run,
        }
    }

    /// Lets time pass, or no time at all, and replaces every number by what it means. `before` is the state that
    /// this one was made from: what both share is canonical already, unless the store changed or time passed.
    pub(super) fn canonical(&self, state: &mut State, before: Option<&State>, time: Time) {
        let mut scratch = self.scratch.borrow_mut();
        let Scratch {
            kept,
            kept_of,
            changed,
            private,
        } = &mut *scratch;
        let mix = self.run.mixes[state.mix];
        let timing = &self.settings.timing;
        let tick = time.passes();
        if tick && state.store.written.is_some() {
            let by = Duration::from_secs(mix.electors[0]);
            Rc::make_mut(&mut state.store).age(by, self.ages);
        }
        let is_store = |store: &Rc<LeaseStore>| Rc::ptr_eq(store, &state.store);
        let before = before.filter(|before| is_store(&before.store));
        let shared = if kept_of.as_ref().is_some_and(is_store) {
            &*kept
        } else if before.is_some() {
            *kept_of = Some(Rc::clone(&state.store));
            numbers_of(&state.store, kept)
        } else {
            numbers_of(&state.store, changed)
        };
        let before = before.filter(|_| !tick);
        let mut process = 0;
        for (index, seconds) in (0..state.candidates.len()).zip(mix.candidates) {
            let aging = Aging {
                by: Duration::from_secs(time.of_candidate(index, seconds)),
                limit: self.run.renew_deadline(),
                ..Aging::default()
            };
            let candidate = &mut state.candidates[index];
            if before.is_none_or(|before| !Rc::ptr_eq(&before.candidates[index], candidate)) {
                rename(Rc::make_mut(candidate), process, shared, private, aging);
            }
            process += 1;
        }
        for (index, seconds) in (0..state.electors.len()).zip(mix.electors) {
            let aging = Aging {
                by: Duration::from_secs(time.of_elector(seconds)),
                limit: self.ages,
                sightings: self.sightings,
                passed_over: timing.passed_over,
                usual: timing.max_lease_duration,
            };
            let elector = &mut state.electors[index];
            if before.is_none_or(|before| !Rc::ptr_eq(&before.electors[index], elector)) {
                rename(Rc::make_mut(elector), process, shared, private, aging);
            }
            // Only what is sent needs numbers of its own; without that, equal electors are told apart by nothing.
            process += usize::from(self.run.slow_electors);
        }
        if before.is_none() && !tick {
            private.clear();
            let store = Rc::make_mut(&mut state.store);
            Assign::new(shared, private, process, Aging::default()).apply(store);
        }
    }

    /// What an elector would do, by its step. Most electors are met many times.
    pub(super) fn acts(
        &self,
        elector: &Rc<ElectorProcess>,
        store: &LeaseStore,
    ) -> Rc<Vec<ElectorRequest>> {
        let acts = || Rc::new(elector.acts(store, &self.settings, &self.run));
        // A mutant may look at more than the elector's own memory.
        if self.run.mutant.is_some() {
            return acts();
        }
        let mut known = self.acts.borrow_mut();
        Rc::clone(known.entry(address(elector)).or_insert_with(acts))
    }

    /// Whether a candidate's step would do something.
    pub(super) fn is_due(&self, candidate: &Rc<CandidateProcess>) -> bool {
        let mut known = self.due.borrow_mut();
        *known
            .entry(address(candidate))
            .or_insert_with(|| candidate.is_due())
    }

    fn start(&self, mix: usize) -> State {
        let run = &self.run;
        let objects = (0..=run.name_of(run.candidates - 1)).map(|index| Some(run.candidate(index)));
        let store = run.store(objects.collect());
        let candidates = self.configs.iter().enumerate().map(|(index, config)| {
            Rc::new(CandidateProcess::new(
                index,
                run.name_of(index),
                Arc::clone(config),
            ))
        });
        let electors = (0..run.electors).map(|_| Rc::new(ElectorProcess::new(None)));
        let mut state = State {
            mix,
            store: Rc::new(store),
            candidates: candidates.collect(),
            electors: electors.collect(),
        };
        self.canonical(&mut state, None, Time::Stands);
        state
    }
}

impl TransitionSystem for ElectionSystem {
    type State = State;
    type Key = Key;
    type Transition = Transition;
    type Violation = Property;

    fn initial(&self) -> Vec<State> {
        (0..self.run.mixes.len())
            .map(|mix| self.start(mix))
            .collect()
    }

    fn successors(&self, state: &State) -> Vec<Successor<Self>> {
        let successor = |by: Transition| {
            let mut next = state.clone();
            let witnesses = next.apply(&by, self);
            self.canonical(&mut next, Some(state), by.time());
            if by.time().passes() {
                // Time may have ended a belief.
                for candidate in &mut next.candidates {
                    Rc::make_mut(candidate).catch_up(&next.store, &self.run);
                }
                self.canonical(&mut next, None, Time::Stands);
            }
            Successor {
                kind: by.kind(),
                by,
                witnesses,
                state: next,
            }
        };
        possible(self, state).into_iter().map(successor).collect()
    }

    fn key(&mut self, state: &State) -> Key {
        let mut key = [0; 7];
        key[0] = u32::try_from(state.mix).unwrap_or(u32::MAX);
        key[1] = self.stores.index(&state.store);
        for (slot, candidate) in key[2..5].iter_mut().zip(&state.candidates) {
            *slot = self.candidates.index(candidate);
        }
        for (slot, elector) in key[5..7].iter_mut().zip(&state.electors) {
            *slot = self.electors.index(elector);
        }
        let [first, second] = self.run.mixes[state.mix].electors;
        let alike = first == second && matches!(self.run.lagging, 0 | 2) && !self.run.slow_electors;
        if alike && state.electors.len() == 2 {
            // Which of two equal electors is which makes no difference.
            key[5..7].sort_unstable();
        }
        key
    }

    fn state(&self, key: Key) -> State {
        let [mix, store, candidates @ .., first, second] = key;
        State {
            mix: mix as usize,
            store: self.stores.part(store),
            candidates: candidates[..self.run.candidates]
                .iter()
                .map(|candidate| self.candidates.part(*candidate))
                .collect(),
            electors: [first, second][..self.run.electors]
                .iter()
                .map(|elector| self.electors.part(*elector))
                .collect(),
        }
    }

    fn violation(&self, state: &State) -> Option<Property> {
        let believers = state
            .candidates
            .iter()
            .filter(|candidate| candidate.believes(&self.run));
        let found = if believers.count() > 1 {
            Some(Property::OneBeliever)
        } else {
            state.store.broken
        };
        found.filter(|property| self.run.checks(*property))
    }

    fn is_goal(&self, state: &State) -> bool {
        let goals = if self.run.best {
            1
        } else {
            state.candidates.len()
        };
        state.candidates[..goals]
            .iter()
            .any(|candidate| candidate.holder.believes(NOW))
    }

    fn describe(&self, state: &State) -> String {
        let lease = state.store.describe();
        let believers: Vec<_> = (0..)
            .zip(&state.candidates)
            .filter(|(_, candidate)| candidate.believes(&self.run))
            .map(|(index, candidate)| match NAMES[candidate.name] {
                name if candidate.name == index => name.to_owned(),
                name => format!("another {name}"),
            })
            .collect();
        format!("{lease}; believing: {believers:?}")
    }
}

// === impl Run ===

impl Run {
    /// Which name the candidate of an index bears.
    pub(super) fn name_of(&self, index: usize) -> usize {
        if self.one_name { 0 } else { index }
    }

    /// The server as it stands at the start.
    pub(super) fn store(&self, objects: Vec<Option<CandidateRecord>>) -> LeaseStore {
        let mut store = LeaseStore {
            revision: ResourceVersion(1),
            lease: None,
            objects,
            post: None,
            created: 0,
            interference: self.interference,
            acked: if self.pings { 0 } else { u8::MAX },
            highest: self.fence.highest(),
            written: matches!(self.mutant, Some(Mutant::ExpireByRenewTime(_))).then_some(NOW),
            gone: None,
            lax: self.lax,
            watched: Property::ALL
                .into_iter()
                .filter(|property| self.checks(*property))
                .fold(0, |bits, property| bits | property.bit()),
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
        let emulation = format!("1.{index}.0");
        let spec =
            CandidateSpec::parse("1.9.0", &emulation, StrategyName::OLDEST_EMULATION_VERSION);
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
            spec,
        }
    }
}

/// Collects the numbers of a store.
fn numbers_of<'n>(store: &Rc<LeaseStore>, numbers: &'n mut Numbers) -> &'n Numbers {
    numbers.clear();
    // Collecting leaves the store as it is, but it takes a store that could be changed.
    LeaseStore::clone(store).renumber(numbers);
    numbers.sort();
    numbers
}

/// Renumbers one process: its memory, what it has sent and what it is yet to be told.
pub(super) fn rename(
    part: &mut impl Renumber,
    process: usize,
    shared: &Numbers,
    private: &mut Numbers,
    aging: Aging,
) {
    private.clear();
    part.renumber(private);
    private.retain_private(shared);
    private.sort();
    Assign::new(shared, private, process, aging).apply(part);
}

fn identity(name: &str) -> Identity {
    Identity::new(name).unwrap_or_else(|| unreachable!("names are not empty"))
}
