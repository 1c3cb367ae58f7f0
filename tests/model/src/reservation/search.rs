//! The search through a system with holders as client-go makes them.

use super::super::clocks::Time;
use super::super::search::{Successor, TransitionSystem};
use super::super::state::StateKey;
use super::super::store::{NAMES, Property};
use super::holder::PlainHolder;
use super::possible::possible;
use super::system::{ReservationState, ReservationSystem};
use super::transition::ReservationTransition;

// === impl ReservationSystem ===

impl TransitionSystem for ReservationSystem {
    type State = ReservationState;
    type Key = StateKey;
    type Transition = ReservationTransition;
    type Violation = Property;

    fn initial(&self) -> Vec<ReservationState> {
        (0..self.run.mixes.len())
            .map(|mix| self.start(mix))
            .collect()
    }

    fn successors(&self, state: &ReservationState) -> Vec<Successor<Self>> {
        let successor = |by: ReservationTransition| {
            let mut next = state.clone();
            let kind = by.kind(state, self);
            let witnesses = next.apply(&by, self);
            if matches!(by, ReservationTransition::Tick) {
                self.canonical.apply(&mut next, None, Time::Passes);
                next.settle(self);
                self.canonical.apply(&mut next, None, Time::Stands);
            } else {
                self.canonical.apply(&mut next, Some(state), Time::Stands);
            }
            Successor {
                kind,
                by,
                witnesses,
                state: next,
            }
        };
        possible(self, state).into_iter().map(successor).collect()
    }

    fn key(&mut self, state: &ReservationState) -> StateKey {
        let [first, second] = self.run.mixes[state.mix].electors;
        let [one, other] = self.setup.by;
        let alike = first == second && one == other && self.run.has_like_electors();
        self.parts.key(state, alike)
    }

    fn state(&self, key: StateKey) -> ReservationState {
        self.parts.state(key, &self.run)
    }

    fn violation(&self, state: &ReservationState) -> Option<Property> {
        state.violation(&self.run, PlainHolder::believes)
    }

    fn is_goal(&self, state: &ReservationState) -> bool {
        state.is_goal(&self.run, PlainHolder::believes)
    }

    fn describe(&self, state: &ReservationState) -> String {
        let believers: Vec<_> = NAMES
            .iter()
            .zip(&state.candidates)
            .filter(|(_, holder)| holder.believes())
            .map(|(name, _)| (*name).to_owned())
            .collect();
        state.describe(&believers)
    }
}
