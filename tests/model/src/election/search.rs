//! The search through a system with candidates of ours.

use std::rc::Rc;

use super::super::clocks::Time;
use super::super::numbers::NOW;
use super::super::search::{Successor, TransitionSystem};
use super::super::state::StateKey;
use super::super::store::{NAMES, Property};
use super::possible::possible;
use super::system::{ElectionState, ElectionSystem};
use super::transition::ElectionTransition;

// === impl ElectionSystem ===

impl TransitionSystem for ElectionSystem {
    type State = ElectionState;
    type Key = StateKey;
    type Transition = ElectionTransition;
    type Violation = Property;

    fn initial(&self) -> Vec<ElectionState> {
        (0..self.run.mixes.len())
            .map(|mix| self.start(mix))
            .collect()
    }

    fn successors(&self, state: &ElectionState) -> Vec<Successor<Self>> {
        let successor = |by: ElectionTransition| {
            let mut next = state.clone();
            let witnesses = next.apply(&by, self);
            self.canonical.apply(&mut next, Some(state), by.time());
            if by.time().passes() {
                // Time may have ended a belief.
                for candidate in &mut next.candidates {
                    Rc::make_mut(candidate).catch_up(&next.store, &self.run);
                }
                self.canonical.apply(&mut next, None, Time::Stands);
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

    fn key(&mut self, state: &ElectionState) -> StateKey {
        let [first, second] = self.run.mixes[state.mix].electors;
        let alike = first == second && self.run.has_like_electors();
        self.parts.key(state, alike)
    }

    fn state(&self, key: StateKey) -> ElectionState {
        self.parts.state(key, &self.run)
    }

    fn violation(&self, state: &ElectionState) -> Option<Property> {
        state.violation(&self.run, |candidate| candidate.believes(&self.run))
    }

    fn is_goal(&self, state: &ElectionState) -> bool {
        state.is_goal(&self.run, |candidate| candidate.holder.believes(NOW))
    }

    fn describe(&self, state: &ElectionState) -> String {
        let believers: Vec<_> = (0..)
            .zip(&state.candidates)
            .filter(|(_, candidate)| candidate.believes(&self.run))
            .map(|(index, candidate)| match NAMES[candidate.name] {
                name if candidate.name == index => name.to_owned(),
                name => format!("another {name}"),
            })
            .collect();
        state.describe(&believers)
    }
}
