//! The state of a system, and how it is kept small: shared parts, and keys of interned parts.

use std::hash::Hash;
use std::rc::Rc;

use super::elector::ElectorProcess;
use super::intern::Interner;
use super::run::Run;
use super::store::{Landed, LeaseStore, Property, Side};

/// The whole system at one moment, with candidates of the kind `C`. Every clock reads [`NOW`](super::numbers::NOW).
#[derive(Clone)]
pub(super) struct SystemState<C> {
    /// Which of the run's clock mixes.
    pub(super) mix: usize,
    pub(super) store: Rc<LeaseStore>,
    pub(super) candidates: Vec<Rc<C>>,
    pub(super) electors: Vec<Rc<ElectorProcess>>,
}

/// All parts of states that were ever met.
pub(super) struct Parts<C> {
    stores: Interner<LeaseStore>,
    candidates: Interner<C>,
    electors: Interner<ElectorProcess>,
}

/// The numbers of a state's parts: mix, store, three candidates, two electors.
pub(super) type StateKey = [u32; 7];

// === impl SystemState ===

impl<C> SystemState<C> {
    /// Lets every elector that does not lag see all that its watch has to deliver.
    pub(super) fn settle_electors(&mut self, run: &Run) {
        for elector in self.electors.iter_mut().skip(run.lagging) {
            while elector.can_see() {
                Rc::make_mut(elector).see(&self.store, run);
            }
        }
    }

    /// Tells every elector of a change of the Lease, each in its own time; the elector `but` has seen it already. A
    /// write on what was replaced is dead (R2).
    pub(super) fn deliver_lease(&mut self, run: &Run, but: Option<usize>) {
        for (index, elector) in self.electors.iter_mut().enumerate() {
            let elector = Rc::make_mut(elector);
            let message = elector.message.take();
            elector.message = message.filter(|write| self.store.may_accept(write, Side::Elector));
            if but != Some(index) {
                elector.deliver(self.store.lease.clone(), run);
            }
        }
    }

    /// Tells every elector of a change of a candidate's object. The candidate's own delay covers that this may take its
    /// time.
    pub(super) fn deliver_object(&mut self, index: usize, run: &Run) {
        for elector in &mut self.electors {
            if elector.knows_candidates() {
                let object = self.store.objects[index].as_ref();
                Rc::make_mut(elector).see_object(index, object, run);
            }
        }
    }

    /// A POST that was sent lands. Whether it created the Lease.
    pub(super) fn land_post(&mut self) -> bool {
        let store = Rc::make_mut(&mut self.store);
        let created = store.post.take().map(|record| store.create(record));
        created == Some(Landed::Applied)
    }

    /// The property that the state violates, of those that the run checks.
    pub(super) fn violation(&self, run: &Run, believes: impl Fn(&C) -> bool) -> Option<Property> {
        let believers = self.candidates.iter().filter(|it| believes(it)).count();
        let found = if believers > 1 {
            Some(Property::OneBeliever)
        } else {
            self.store.broken
        };
        found.filter(|property| run.checks(*property))
    }

    /// True if a candidate leads that must stay within reach as a leader.
    pub(super) fn is_goal(&self, run: &Run, leads: impl Fn(&C) -> bool) -> bool {
        let goals = if run.best { 1 } else { self.candidates.len() };
        self.candidates[..goals].iter().any(|it| leads(it))
    }

    /// The state in one line, with the names of the candidates that believe.
    pub(super) fn describe(&self, believers: &[String]) -> String {
        format!("{}; believing: {believers:?}", self.store.describe())
    }
}

// === impl Parts ===

impl<C: Eq + Hash> Parts<C> {
    /// No parts yet.
    pub(super) fn new() -> Self {
        Self {
            stores: Interner::new(),
            candidates: Interner::new(),
            electors: Interner::new(),
        }
    }

    /// The key of a state; `alike`: which of two electors is which makes no difference.
    pub(super) fn key(&mut self, state: &SystemState<C>, alike: bool) -> StateKey {
        let mut key = [0; 7];
        key[0] = u32::try_from(state.mix).unwrap_or(u32::MAX);
        key[1] = self.stores.index(&state.store);
        for (slot, candidate) in key[2..5].iter_mut().zip(&state.candidates) {
            *slot = self.candidates.index(candidate);
        }
        for (slot, elector) in key[5..7].iter_mut().zip(&state.electors) {
            *slot = self.electors.index(elector);
        }
        if alike && state.electors.len() == 2 {
            key[5..7].sort_unstable();
        }
        key
    }

    /// The state of a key.
    pub(super) fn state(&self, key: StateKey, run: &Run) -> SystemState<C> {
        let [mix, store, candidates @ .., first, second] = key;
        SystemState {
            mix: mix as usize,
            store: self.stores.part(store),
            candidates: candidates[..run.candidates]
                .iter()
                .map(|candidate| self.candidates.part(*candidate))
                .collect(),
            electors: [first, second][..run.electors]
                .iter()
                .map(|elector| self.electors.part(*elector))
                .collect(),
        }
    }
}
