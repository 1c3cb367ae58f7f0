//! A state of the world, and how it is kept small: shared parts, canonical numbers, interned keys.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::candidate::TenureConfig;
use elector_protocol::elector::Settings;
use elector_protocol::{
    Candidate, CandidateSpec, CandidateTiming, Identity, LeaseRecord, Renumber, ResourceVersion,
    Strategy, Timestamp, Uid,
};

use super::candidate::Peer;
use super::elector::{Act, Watcher};
use super::intern::{Interner, QuickMap, address};
use super::moves::{Move, possible};
use super::numbers::{Aging, Assign, BUCKET, NOW, Numbers, timestamp};
use super::run::{LEASE_DURATION, RENEW_DEADLINE, Run, Start};
use super::search::{Model, Successor};
use super::store::{NAMES, Property, Store};

/// The whole world at one moment. Every clock reads [`NOW`].
#[derive(Clone)]
pub(super) struct State {
    /// Which of the run's clock mixes.
    pub(super) mix: usize,
    pub(super) store: Rc<Store>,
    pub(super) peers: Vec<Rc<Peer>>,
    pub(super) watchers: Vec<Rc<Watcher>>,
}

/// A run, ready to be searched.
pub(super) struct World {
    pub(super) run: Run,
    pub(super) settings: Settings,
    pub(super) configs: Vec<Arc<TenureConfig>>,
    /// Ages of what an elector saw of the Lease are alike from here on.
    pub(super) ages: Duration,
    /// Ages of questions and answers from here on are alike. That is not exact: whether a question came before or
    /// after a round began is forgotten with its age, so that old answers count for more than they should. This adds
    /// grants and takes none away.
    pub(super) sightings: Duration,
    stores: Interner<Store>,
    peers: Interner<Peer>,
    watchers: Interner<Watcher>,
    scratch: RefCell<Scratch>,
    /// By address of the interned process, which it keeps for ever.
    acts: RefCell<QuickMap<usize, Rc<Vec<Act>>>>,
    due: RefCell<QuickMap<usize, bool>>,
}

/// Kept between moves for its memory alone.
#[derive(Default)]
struct Scratch {
    shared: Numbers,
    private: Numbers,
}

/// The numbers of a state's parts: mix, store, two candidates, two electors.
pub(super) type Key = [u32; 6];

// === impl World ===

impl World {
    /// The world of a run.
    pub(super) fn new(run: Run) -> Self {
        let timing = run.candidate_timing();
        let config = |name: &&str| {
            Arc::new(TenureConfig {
                identity: identity(name),
                timing: CandidateTiming::clone(&timing),
            })
        };
        let sightings = if run.asks {
            run.elector_timing().ack_window
        } else {
            // Every answer is fresh for ever.
            Duration::ZERO
        };
        Self {
            ages: LEASE_DURATION,
            sightings,
            settings: Settings {
                timing: run.elector_timing(),
                ..Settings::default()
            },
            configs: NAMES[..run.candidates].iter().map(config).collect(),
            stores: Interner::new(),
            peers: Interner::new(),
            watchers: Interner::new(),
            scratch: RefCell::default(),
            acts: RefCell::default(),
            due: RefCell::default(),
            run,
        }
    }

    /// Lets a tick pass, or no time at all, and replaces every number by what it means. `before` is the state that
    /// this one was made from: what both share is canonical already, unless the store changed or time passed.
    pub(super) fn canonical(&self, state: &mut State, before: Option<&State>, tick: bool) {
        let mut scratch = self.scratch.borrow_mut();
        let Scratch { shared, private } = &mut *scratch;
        let mix = self.run.mixes[state.mix];
        let timing = &self.settings.timing;
        let rate = |seconds: u64| Duration::from_secs(if tick { seconds } else { 0 });
        let before = before.filter(|before| !tick && Rc::ptr_eq(&before.store, &state.store));
        shared.clear();
        // Collecting leaves the store as it is, but it takes a store that could be changed.
        Store::clone(&state.store).renumber(shared);
        shared.sort();
        let mut process = 0;
        for (index, seconds) in (0..state.peers.len()).zip(mix.candidates) {
            let aging = Aging {
                by: rate(seconds),
                limit: RENEW_DEADLINE,
                ..Aging::default()
            };
            let peer = &mut state.peers[index];
            if before.is_none_or(|before| !Rc::ptr_eq(&before.peers[index], peer)) {
                rename(Rc::make_mut(peer), process, shared, private, aging);
            }
            process += 1;
        }
        for (index, seconds) in (0..state.watchers.len()).zip(mix.electors) {
            let aging = Aging {
                by: rate(seconds),
                limit: self.ages,
                sightings: self.sightings,
                passed_over: timing.passed_over,
                usual: timing.max_lease_duration,
            };
            let watcher = &mut state.watchers[index];
            if before.is_none_or(|before| !Rc::ptr_eq(&before.watchers[index], watcher)) {
                rename(Rc::make_mut(watcher), process, shared, private, aging);
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
    pub(super) fn acts(&self, watcher: &Rc<Watcher>, store: &Store) -> Rc<Vec<Act>> {
        let acts = || Rc::new(watcher.acts(store, &self.settings, &self.run));
        // A shortcut may look at more than the elector's own memory.
        if self.run.shortcut.is_some() {
            return acts();
        }
        let mut known = self.acts.borrow_mut();
        Rc::clone(known.entry(address(watcher)).or_insert_with(acts))
    }

    /// Whether a candidate's step would do something.
    pub(super) fn is_due(&self, peer: &Rc<Peer>) -> bool {
        let mut known = self.due.borrow_mut();
        *known.entry(address(peer)).or_insert_with(|| peer.is_due())
    }

    fn start(&self, mix: usize) -> State {
        let run = &self.run;
        let mut store = Store {
            revision: ResourceVersion(1),
            lease: None,
            objects: (0..run.candidates)
                .map(|index| Some(run.candidate(index)))
                .collect(),
            post: None,
            created: 0,
            whims: run.whims,
            answered: if run.asks { 0 } else { u8::MAX },
            broken: None,
        };
        if run.start == Start::Released {
            let born = LeaseRecord::born(Some(Strategy::oldest_emulation_version()));
            store.create(born.released(timestamp(0)));
        }
        let peers = self
            .configs
            .iter()
            .enumerate()
            .map(|(index, config)| Rc::new(Peer::new(index, Arc::clone(config))));
        let watchers = (0..run.electors).map(|_| Rc::new(Watcher::new(None)));
        let mut state = State {
            mix,
            store: Rc::new(store),
            peers: peers.collect(),
            watchers: watchers.collect(),
        };
        self.canonical(&mut state, None, false);
        state
    }
}

impl Model for World {
    type State = State;
    type Key = Key;
    type Move = Move;
    type Violation = Property;

    fn initial(&self) -> Vec<State> {
        (0..self.run.mixes.len())
            .map(|mix| self.start(mix))
            .collect()
    }

    fn successors(&self, state: &State) -> Vec<Successor<Self>> {
        let successor = |by: Move| {
            let mut next = state.clone();
            let witnesses = next.happen(&by, self);
            let tick = matches!(by, Move::Tick);
            self.canonical(&mut next, Some(state), tick);
            if tick {
                // Time may have ended a belief.
                for peer in &mut next.peers {
                    Rc::make_mut(peer).catch_up(&next.store, &self.run);
                }
                self.canonical(&mut next, None, false);
            }
            Successor {
                course: by.course(),
                by,
                witnesses,
                state: next,
            }
        };
        possible(self, state).into_iter().map(successor).collect()
    }

    fn key(&mut self, state: &State) -> Key {
        let mut key = [0; 6];
        key[0] = u32::try_from(state.mix).unwrap_or(u32::MAX);
        key[1] = self.stores.index(&state.store);
        for (slot, peer) in key[2..4].iter_mut().zip(&state.peers) {
            *slot = self.peers.index(peer);
        }
        for (slot, watcher) in key[4..6].iter_mut().zip(&state.watchers) {
            *slot = self.watchers.index(watcher);
        }
        let [first, second] = self.run.mixes[state.mix].electors;
        let alike = first == second && matches!(self.run.lagging, 0 | 2) && !self.run.slow_electors;
        if alike && state.watchers.len() == 2 {
            // Which of two equal electors is which makes no difference.
            key[4..6].sort_unstable();
        }
        key
    }

    fn state(&self, key: Key) -> State {
        let [mix, store, peers @ .., first, second] = key;
        State {
            mix: mix as usize,
            store: self.stores.part(store),
            peers: peers[..self.run.candidates]
                .iter()
                .map(|peer| self.peers.part(*peer))
                .collect(),
            watchers: [first, second][..self.run.electors]
                .iter()
                .map(|watcher| self.watchers.part(*watcher))
                .collect(),
        }
    }

    fn violation(&self, state: &State) -> Option<Property> {
        let believers = state.peers.iter().filter(|peer| peer.believes()).count();
        let found = if believers > 1 {
            Some(Property::OneBeliever)
        } else {
            state.store.broken
        };
        found.filter(|property| self.run.checks(*property))
    }

    fn is_home(&self, state: &State) -> bool {
        let homes = if self.run.best { 1 } else { state.peers.len() };
        state.peers[..homes]
            .iter()
            .any(|peer| peer.tenure.believes(NOW))
    }

    fn describe(&self, state: &State) -> String {
        let lease = state.store.lease.as_ref().map_or_else(
            || "no lease".to_owned(),
            |lease| {
                let record = &lease.record;
                let holder = record.holder.as_ref().map_or("nobody", Identity::as_str);
                let duration = record.duration_seconds.unwrap_or_default();
                let token = if record.has_token() { ", accepted" } else { "" };
                format!("{} {holder} for {duration}s{token}", lease.uid)
            },
        );
        let believers: Vec<_> = NAMES
            .iter()
            .zip(&state.peers)
            .filter(|(_, peer)| peer.believes())
            .map(|(name, _)| *name)
            .collect();
        format!("{lease}; believing: {believers:?}")
    }
}

// === impl Run ===

impl Run {
    /// The object of a candidate as it stands at the start. The lower the index, the better the candidate.
    pub(super) fn candidate(&self, index: usize) -> Candidate {
        let emulation = format!("1.{index}.0");
        let spec = CandidateSpec::parse("1.9.0", &emulation, Strategy::OLDEST_EMULATION_VERSION);
        let bucket = BUCKET * i64::try_from(index).unwrap_or(0);
        Candidate {
            name: identity(NAMES[index]),
            uid: Uid::new(NAMES[index]),
            version: ResourceVersion((bucket + BUCKET).unsigned_abs()),
            created: Timestamp::MIN,
            ping: None,
            renew: Some(timestamp(bucket)),
            marked: true,
            announced: None,
            spec,
        }
    }
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
