//! The common part of the systems: one Lease, candidates of one kind, electors, and clocks.

use std::fmt;
use std::hash::Hash;
use std::rc::Rc;

use elector_protocol::Renumber;

use super::canonical::Canonical;
use super::clocks::Time;
use super::elector::{ElectorProcess, ElectorRequest};
use super::elector_steps::ElectorSteps;
use super::run::Run;
use super::search::{Successor, TransitionKind, TransitionSystem};
use super::state::{Parts, StateKey, SystemState};
use super::store::{LeaseStore, Property};
use super::witness::Witnesses;

/// A system with candidates of this kind, ready to be searched.
pub(super) struct LeaseSystem<K: CandidateKind> {
    pub(super) run: Run,
    pub(super) canonical: Canonical,
    pub(super) parts: Parts<K::Candidate>,
    pub(super) steps: ElectorSteps,
    /// The part peculiar to systems of this kind.
    pub(super) kind: K,
}

/// The kind of a system's candidates, and their transitions.
pub(super) trait CandidateKind: Sized {
    /// A candidate.
    type Candidate: Clone + Eq + Hash + Renumber;
    /// A step from one state to the next.
    type Transition: fmt::Debug;

    /// The state at the start, with the clocks of a mix.
    fn start(system: &LeaseSystem<Self>, mix: usize) -> SystemState<Self::Candidate>;
    /// All that can happen next.
    fn possible(
        system: &LeaseSystem<Self>,
        state: &SystemState<Self::Candidate>,
    ) -> Vec<Self::Transition>;
    /// The kind of a transition.
    fn transition_kind(
        system: &LeaseSystem<Self>,
        state: &SystemState<Self::Candidate>,
        by: &Self::Transition,
    ) -> TransitionKind;
    /// Its effect on the clocks.
    fn time(by: &Self::Transition) -> Time;
    /// Applies a transition, and then everything that follows from it at once. Numbers are left as they are.
    fn apply(
        system: &LeaseSystem<Self>,
        state: &mut SystemState<Self::Candidate>,
        by: &Self::Transition,
    ) -> Witnesses;
    /// The immediate consequences of time that has passed, which may have ended a belief.
    fn catch_up(system: &LeaseSystem<Self>, state: &mut SystemState<Self::Candidate>);
    /// The property that a state violates.
    fn violation(
        system: &LeaseSystem<Self>,
        state: &SystemState<Self::Candidate>,
    ) -> Option<Property>;
    /// True if this is a state that must stay within reach.
    fn is_goal(system: &LeaseSystem<Self>, state: &SystemState<Self::Candidate>) -> bool;
    /// The names of the candidates that believe.
    fn believers(system: &LeaseSystem<Self>, state: &SystemState<Self::Candidate>) -> Vec<String>;
}

// === impl LeaseSystem ===

impl<K: CandidateKind> LeaseSystem<K> {
    /// The requests of an elector, by its step.
    pub(super) fn requests(
        &self,
        elector: &Rc<ElectorProcess>,
        store: &LeaseStore,
    ) -> Rc<Vec<ElectorRequest>> {
        self.steps.requests(elector, store, &self.run)
    }

    /// A canonical state of these parts, with an elector that knows nothing for each of the run.
    pub(super) fn state_of(
        &self,
        mix: usize,
        store: LeaseStore,
        candidates: Vec<Rc<K::Candidate>>,
    ) -> SystemState<K::Candidate> {
        let electors = (0..self.run.electors).map(|_| Rc::new(ElectorProcess::new(None)));
        let mut state = SystemState {
            mix,
            store: Rc::new(store),
            candidates,
            electors: electors.collect(),
        };
        self.canonical.apply(&mut state, None, Time::Stands);
        state
    }
}

impl<K: CandidateKind> TransitionSystem for LeaseSystem<K> {
    type State = SystemState<K::Candidate>;
    type Key = StateKey;
    type Transition = K::Transition;
    type Violation = Property;

    fn initial(&self) -> Vec<Self::State> {
        let mixes = 0..self.run.mixes.len();
        mixes.map(|mix| K::start(self, mix)).collect()
    }

    fn successors(&self, state: &Self::State) -> Vec<Successor<Self>> {
        let successor = |by: K::Transition| {
            let kind = K::transition_kind(self, state, &by);
            let time = K::time(&by);
            let mut next = state.clone();
            let witnesses = K::apply(self, &mut next, &by);
            self.canonical.apply(&mut next, Some(state), time);
            if time.passes() {
                K::catch_up(self, &mut next);
                self.canonical.apply(&mut next, None, Time::Stands);
            }
            Successor {
                by,
                kind,
                witnesses,
                state: next,
            }
        };
        K::possible(self, state)
            .into_iter()
            .map(successor)
            .collect()
    }

    fn key(&mut self, state: &Self::State) -> StateKey {
        let [first, second] = self.run.mixes[state.mix].electors;
        let alike = first == second && self.run.has_like_electors();
        self.parts.key(state, alike)
    }

    fn state(&self, key: StateKey) -> Self::State {
        self.parts.state(key, &self.run)
    }

    fn violation(&self, state: &Self::State) -> Option<Property> {
        K::violation(self, state)
    }

    fn is_goal(&self, state: &Self::State) -> bool {
        K::is_goal(self, state)
    }

    fn describe(&self, state: &Self::State) -> String {
        state.describe(&K::believers(self, state))
    }
}
