//! The state of a system, and how it is kept small: shared parts, and keys of interned parts.

use std::rc::Rc;

use super::elector::ElectorProcess;
use super::intern::Interner;
use super::process::ModelProcess;
use super::run::Run;
use super::store::LeaseStore;

/// The whole system at one moment. Every clock reads [`NOW`](super::numbers::NOW).
#[derive(Clone)]
pub(super) struct SystemState {
    /// Which of the run's clock mixes.
    pub(super) mix: usize,
    pub(super) store: Rc<LeaseStore>,
    pub(super) candidates: Vec<Rc<ModelProcess>>,
    pub(super) electors: Vec<Rc<ElectorProcess>>,
}

/// All parts of states that were ever met.
#[derive(Default)]
pub(super) struct StateParts {
    stores: Interner<LeaseStore>,
    candidates: Interner<ModelProcess>,
    electors: Interner<ElectorProcess>,
}

/// The numbers of a state's parts: mix, store, three candidates, two electors.
pub(super) type StateKey = [u32; 7];

// === impl StateParts ===

impl StateParts {
    /// The key of a state; `alike`: which of two electors is which makes no difference.
    pub(super) fn key(&mut self, state: &SystemState, alike: bool) -> StateKey {
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
    pub(super) fn state(&self, key: StateKey, run: &Run) -> SystemState {
        let [mix, store, candidates @ .., first, second] = key;
        let candidates = candidates[..run.candidates].iter();
        let electors = [first, second];
        SystemState {
            mix: mix as usize,
            store: self.stores.part(store),
            candidates: candidates.map(|part| self.candidates.part(*part)).collect(),
            electors: electors[..run.electors]
                .iter()
                .map(|part| self.electors.part(*part))
                .collect(),
        }
    }
}
