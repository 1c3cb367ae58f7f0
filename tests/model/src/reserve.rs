//! Holders as client-go makes them, on a server that drops `preferredHolder`, and electors that may reserve (R3 d).
//!
//! Such a holder renews for as long as it is named, makes room for nobody, and stops by its own deadline alone: that it
//! may stop sooner, when it reads another name, only leaves out some of what is searched here. The electors are the
//! production ones, and so is all that happens to them.

mod apply;
mod holder;
mod mutants;
mod transitions;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use elector_protocol::elector::{PreferenceField, Settings};
use elector_protocol::{CandidateRecord, Renumber};

use self::holder::PlainHolder;
use self::transitions::{Transition, possible};
use super::elector::{ElectorProcess, ElectorRequest};
use super::intern::{Interner, QuickMap, address};
use super::numbers::{Aging, Assign, Numbers};
use super::run::{Run, Timing};
use super::search::{Successor, TransitionSystem};
use super::store::{LeaseStore, NAMES, Property};
use super::world::{Key, rename};

/// A world of unmodified client-go candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reserve {
    /// Which electors reserve.
    pub(crate) by: [bool; 2],
    /// From where a holder counts its deadline.
    pub(crate) counts: Counts,
    /// W of the holders, and `W_max` of the electors.
    pub(crate) duration: Duration,
}

/// From where a holder counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    /// From the sending of its last successful write.
    FromSend,
    /// From the reply, which it waits for as long as this.
    FromReply(Duration),
}

/// The whole world at one moment. Every clock reads the same.
#[derive(Clone)]
pub(crate) struct State {
    mix: usize,
    store: Rc<LeaseStore>,
    candidates: Vec<Rc<PlainHolder>>,
    electors: Vec<Rc<ElectorProcess>>,
}

/// A run of this kind, ready to be searched.
pub(crate) struct ReservationSystem {
    run: Run,
    reserve: Reserve,
    settings: [Settings; 2],
    stores: Interner<LeaseStore>,
    candidates: Interner<PlainHolder>,
    electors: Interner<ElectorProcess>,
    scratch: RefCell<(Numbers, Numbers)>,
    /// Whether the elector reserves, and its address: it is interned, and kept for ever.
    acts: RefCell<KnownRequests>,
}

/// W of the holders, unless a run says otherwise.
const LEASE_DURATION: Duration = Duration::from_secs(Timing::USUAL.lease);
/// H of the holders.
const RENEW_DEADLINE: Duration = Duration::from_secs(Timing::USUAL.belief);

/// What an elector would do, where it has been asked before.
type KnownRequests = QuickMap<(bool, usize), Rc<Vec<ElectorRequest>>>;

// === impl Reserve ===

impl Reserve {
    /// Every elector reserves, and holders count from the send.
    pub(crate) const RULES: Self = Self {
        by: [true, true],
        counts: Counts::FromSend,
        duration: LEASE_DURATION,
    };
}

// === impl ReservationSystem ===

impl ReservationSystem {
    /// The world of a run.
    pub(crate) fn new(run: Run, reserve: Reserve) -> Self {
        let settings = reserve.by.map(|reserves| {
            let mut timing = run.elector_timing();
            timing.max_lease_duration = reserve.duration;
            Settings {
                timing,
                preference_field: PreferenceField::Dropped,
                reserve: reserves,
            }
        });
        let shared = Numbers::new(run.strangers_restart_terms());
        Self {
            run,
            reserve,
            settings,
            stores: Interner::new(),
            candidates: Interner::new(),
            electors: Interner::new(),
            scratch: RefCell::new((shared, Numbers::default())),
            acts: RefCell::default(),
        }
    }

    fn start(&self, mix: usize) -> State {
        let run = &self.run;
        let object = |index| CandidateRecord {
            marked: false,
            ..run.candidate(index)
        };
        let objects = (0..run.candidates).map(|index| Some(object(index)));
        let store = run.store(objects.collect());
        let mut state = State {
            mix,
            store: Rc::new(store),
            candidates: (0..run.candidates)
                .map(|_| Rc::new(PlainHolder::default()))
                .collect(),
            electors: (0..run.electors)
                .map(|_| Rc::new(ElectorProcess::new(None)))
                .collect(),
        };
        self.canonical(&mut state, false);
        state
    }

    /// What an elector would do, by its step.
    fn acts(
        &self,
        index: usize,
        elector: &Rc<ElectorProcess>,
        store: &LeaseStore,
    ) -> Rc<Vec<ElectorRequest>> {
        let acts = || Rc::new(elector.acts(store, &self.settings[index], &self.run));
        // A mutant may look at more than the elector's own memory.
        if self.run.mutant.is_some() {
            return acts();
        }
        let mut known = self.acts.borrow_mut();
        let key = (self.settings[index].reserve, address(elector));
        Rc::clone(known.entry(key).or_insert_with(acts))
    }

    /// Lets a tick pass, or no time at all, and replaces every number by what it means.
    fn canonical(&self, state: &mut State, tick: bool) {
        let mut scratch = self.scratch.borrow_mut();
        let (shared, private) = &mut *scratch;
        let mix = self.run.mixes[state.mix];
        let timing = &self.settings[0].timing;
        let rate = |seconds: u64| Duration::from_secs(if tick { seconds } else { 0 });
        shared.clear();
        // Collecting leaves the store as it is, but it takes a store that could be changed.
        LeaseStore::clone(&state.store).renumber(shared);
        shared.sort();
        let mut process = 0;
        for (holder, seconds) in state.candidates.iter_mut().zip(mix.candidates) {
            let aging = Aging {
                by: rate(seconds),
                limit: RENEW_DEADLINE,
                ..Aging::default()
            };
            rename(Rc::make_mut(holder), process, shared, private, aging);
            process += 1;
        }
        for (elector, seconds) in state.electors.iter_mut().zip(mix.electors) {
            let aging = Aging {
                by: rate(seconds),
                limit: self.reserve.duration,
                // As in the main world.
                sightings: if self.run.pings {
                    timing.ack_window
                } else {
                    Duration::ZERO
                },
                passed_over: timing.passed_over,
                usual: self.reserve.duration,
            };
            rename(Rc::make_mut(elector), process, shared, private, aging);
            // Only what is sent needs numbers of its own; without that, equal electors are told apart by nothing.
            process += usize::from(self.run.slow_electors);
        }
        if !tick {
            private.clear();
            let store = Rc::make_mut(&mut state.store);
            Assign::new(shared, private, process, Aging::default()).apply(store);
        }
    }
}

impl TransitionSystem for ReservationSystem {
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
            let kind = by.kind(state, self);
            let witnesses = next.apply(&by, self);
            if matches!(by, Transition::Tick) {
                self.canonical(&mut next, true);
                next.settle(self);
            }
            self.canonical(&mut next, false);
            Successor {
                kind,
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
        for (slot, holder) in key[2..5].iter_mut().zip(&state.candidates) {
            *slot = self.candidates.index(holder);
        }
        for (slot, elector) in key[5..7].iter_mut().zip(&state.electors) {
            *slot = self.electors.index(elector);
        }
        let [first, second] = self.run.mixes[state.mix].electors;
        let [one, other] = self.reserve.by;
        let alike = first == second && one == other && matches!(self.run.lagging, 0 | 2);
        if alike && !self.run.slow_electors && state.electors.len() == 2 {
            // Which of two equal electors is which makes no difference.
            key[5..7].sort_unstable();
        }
        key
    }

    fn state(&self, key: Key) -> State {
        let [mix, store, holders @ .., first, second] = key;
        State {
            mix: mix as usize,
            store: self.stores.part(store),
            candidates: holders[..self.run.candidates]
                .iter()
                .map(|holder| self.candidates.part(*holder))
                .collect(),
            electors: [first, second][..self.run.electors]
                .iter()
                .map(|elector| self.electors.part(*elector))
                .collect(),
        }
    }

    fn violation(&self, state: &State) -> Option<Property> {
        let believers = state.candidates.iter().filter(|holder| holder.believes());
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
            .any(|holder| holder.believes())
    }

    fn describe(&self, state: &State) -> String {
        let lease = state.store.describe();
        let believers: Vec<_> = NAMES
            .iter()
            .zip(&state.candidates)
            .filter(|(_, holder)| holder.believes())
            .map(|(name, _)| *name)
            .collect();
        format!("{lease}; believing: {believers:?}")
    }
}
