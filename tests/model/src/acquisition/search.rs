//! A system whose processes acquire leases themselves, as it is searched.

use super::super::clocks::Time;
use super::super::lease_system::CandidateKind;
use super::super::search::TransitionKind;
use super::super::store::Property;
use super::super::witness::Witnesses;
use super::possible::possible;
use super::process::AcquiringProcess;
use super::setup::ModelLock;
use super::system::{AcquisitionKind, AcquisitionState, AcquisitionSystem};
use super::transition::AcquisitionTransition;

// === impl AcquisitionKind ===

impl CandidateKind for AcquisitionKind {
    type Candidate = AcquiringProcess;
    type Transition = AcquisitionTransition;

    fn start(system: &AcquisitionSystem, mix: usize) -> AcquisitionState {
        system.start(mix)
    }

    fn possible(
        system: &AcquisitionSystem,
        state: &AcquisitionState,
    ) -> Vec<AcquisitionTransition> {
        possible(system, state)
    }

    fn transition_kind(
        _: &AcquisitionSystem,
        _: &AcquisitionState,
        by: &AcquisitionTransition,
    ) -> TransitionKind {
        by.kind()
    }

    fn time(by: &AcquisitionTransition) -> Time {
        match by {
            AcquisitionTransition::Tick => Time::Passes,
            _ => Time::Stands,
        }
    }

    fn apply(
        system: &AcquisitionSystem,
        state: &mut AcquisitionState,
        by: &AcquisitionTransition,
    ) -> Witnesses {
        state.apply(by, system)
    }

    fn catch_up(system: &AcquisitionSystem, state: &mut AcquisitionState) {
        state.catch_up(system);
    }

    fn violation(system: &AcquisitionSystem, state: &AcquisitionState) -> Option<Property> {
        let run = &system.run;
        let Some(lock) = system.kind.setup.lock else {
            return state.violation(run, |process| process.believes(run));
        };
        let builtin = state.candidates[lock.electors..]
            .iter()
            .any(|process| process.believes(run));
        if builtin && has_authority(system, state, lock) {
            return Some(Property::OneBeliever).filter(|property| run.checks(*property));
        }
        state.violation(run, |_| false)
    }

    fn is_goal(system: &AcquisitionSystem, state: &AcquisitionState) -> bool {
        match system.kind.setup.lock {
            Some(lock) => has_authority(system, state, lock),
            None => state.is_goal(&system.run, |process| process.believes(&system.run)),
        }
    }

    fn believers(system: &AcquisitionSystem, state: &AcquisitionState) -> Vec<String> {
        let processes = state.candidates.iter();
        let believers = processes.filter(|process| process.believes(&system.run));
        believers.map(|process| process.describe()).collect()
    }
}

/// True if any elector may act.
fn has_authority(system: &AcquisitionSystem, state: &AcquisitionState, lock: ModelLock) -> bool {
    let mut electors = state.candidates[..lock.electors].iter();
    electors.any(|elector| elector.has_authority(lock, &system.run))
}
