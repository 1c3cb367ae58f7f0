//! The search through a system whose processes acquire leases themselves.

use super::super::clocks::Time;
use super::super::search::{Successor, TransitionSystem};
use super::super::state::StateKey;
use super::super::store::Property;
use super::possible::possible;
use super::setup::ModelLock;
use super::system::{AcquisitionState, AcquisitionSystem};
use super::transition::AcquisitionTransition;

// === impl AcquisitionSystem ===

impl TransitionSystem for AcquisitionSystem {
    type State = AcquisitionState;
    type Key = StateKey;
    type Transition = AcquisitionTransition;
    type Violation = Property;

    fn initial(&self) -> Vec<AcquisitionState> {
        (0..self.run.mixes.len())
            .map(|mix| self.start(mix))
            .collect()
    }

    fn successors(&self, state: &AcquisitionState) -> Vec<Successor<Self>> {
        let successor = |by: AcquisitionTransition| {
            let mut next = state.clone();
            let witnesses = next.apply(&by, self);
            if matches!(by, AcquisitionTransition::Tick) {
                self.canonical.apply(&mut next, None, Time::Passes);
                // Time may have ended a belief.
                next.catch_up(self);
                self.canonical.apply(&mut next, None, Time::Stands);
            } else {
                self.canonical.apply(&mut next, Some(state), Time::Stands);
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

    fn key(&mut self, state: &AcquisitionState) -> StateKey {
        let [first, second] = self.run.mixes[state.mix].electors;
        let alike = first == second && self.run.has_like_electors();
        self.parts.key(state, alike)
    }

    fn state(&self, key: StateKey) -> AcquisitionState {
        self.parts.state(key, &self.run)
    }

    fn violation(&self, state: &AcquisitionState) -> Option<Property> {
        let Some(lock) = self.setup.lock else {
            return state.violation(&self.run, |process| process.believes(&self.run));
        };
        let builtin = state.candidates[lock.electors..]
            .iter()
            .any(|process| process.believes(&self.run));
        if builtin && self.has_authority(state, lock) {
            return Some(Property::OneBeliever).filter(|property| self.run.checks(*property));
        }
        state.violation(&self.run, |_| false)
    }

    fn is_goal(&self, state: &AcquisitionState) -> bool {
        match self.setup.lock {
            Some(lock) => self.has_authority(state, lock),
            None => state.is_goal(&self.run, |process| process.believes(&self.run)),
        }
    }

    fn describe(&self, state: &AcquisitionState) -> String {
        let believers: Vec<_> = state
            .candidates
            .iter()
            .filter(|process| process.believes(&self.run))
            .map(|process| process.describe())
            .collect();
        state.describe(&believers)
    }
}

impl AcquisitionSystem {
    /// Whether any elector may act.
    fn has_authority(&self, state: &AcquisitionState, lock: ModelLock) -> bool {
        let mut electors = state.candidates[..lock.electors].iter();
        electors.any(|elector| elector.has_authority(lock, &self.run))
    }
}
