//! A system with candidates of ours, as it is searched.

use std::rc::Rc;

use super::super::clocks::Time;
use super::super::lease_system::CandidateKind;
use super::super::numbers::NOW;
use super::super::search::TransitionKind;
use super::super::store::{NAMES, Property};
use super::super::witness::Witnesses;
use super::candidate::CandidateProcess;
use super::possible::possible;
use super::system::{ElectionKind, ElectionState, ElectionSystem};
use super::transition::ElectionTransition;

// === impl ElectionKind ===

impl CandidateKind for ElectionKind {
    type Candidate = CandidateProcess;
    type Transition = ElectionTransition;

    fn start(system: &ElectionSystem, mix: usize) -> ElectionState {
        system.start(mix)
    }

    fn possible(system: &ElectionSystem, state: &ElectionState) -> Vec<ElectionTransition> {
        possible(system, state)
    }

    fn transition_kind(
        _: &ElectionSystem,
        _: &ElectionState,
        by: &ElectionTransition,
    ) -> TransitionKind {
        by.kind()
    }

    fn time(by: &ElectionTransition) -> Time {
        by.time()
    }

    fn apply(
        system: &ElectionSystem,
        state: &mut ElectionState,
        by: &ElectionTransition,
    ) -> Witnesses {
        state.apply(by, system)
    }

    fn catch_up(system: &ElectionSystem, state: &mut ElectionState) {
        for candidate in &mut state.candidates {
            Rc::make_mut(candidate).catch_up(&state.store, &system.run);
        }
    }

    fn violation(system: &ElectionSystem, state: &ElectionState) -> Option<Property> {
        state.violation(&system.run, |candidate| candidate.believes(&system.run))
    }

    fn is_goal(system: &ElectionSystem, state: &ElectionState) -> bool {
        state.is_goal(&system.run, |candidate| candidate.holder.believes(NOW))
    }

    fn believers(system: &ElectionSystem, state: &ElectionState) -> Vec<String> {
        let candidates = (0..).zip(&state.candidates);
        let believers = candidates.filter(|(_, candidate)| candidate.believes(&system.run));
        let name = |(index, candidate): (usize, &Rc<CandidateProcess>)| match NAMES[candidate.name]
        {
            name if candidate.name == index => name.to_owned(),
            name => format!("another {name}"),
        };
        believers.map(name).collect()
    }
}
