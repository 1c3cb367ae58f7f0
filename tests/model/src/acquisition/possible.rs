//! Everything that can happen next in a system whose processes acquire leases themselves.

use super::super::elector::ElectorRequest;
use super::super::elector_transition::{ElectorTransition, of_elector};
use super::process::{AcquiringMessage, ProcessWork};
use super::system::{AcquisitionState, AcquisitionSystem};
use super::transition::{AcquisitionTransition, ProcessTransition};

/// All transitions from a state.
pub(super) fn possible(
    system: &AcquisitionSystem,
    state: &AcquisitionState,
) -> Vec<AcquisitionTransition> {
    let mut transitions = vec![AcquisitionTransition::Tick];
    for index in 0..state.candidates.len() {
        let of_process = |by| AcquisitionTransition::Process(index, by);
        let next = transitions_of_process(system, state, index);
        transitions.extend(next.into_iter().map(of_process));
    }
    for index in 0..state.electors.len() {
        let transition = |by| AcquisitionTransition::Elector(index, by);
        let elector = &state.electors[index];
        let requests = system.requests(elector, &state.store);
        let mut next = of_elector(&system.run, elector, &requests, &state.store);
        if !system.kind.setup.electors_write {
            next.retain(|by| !writes(by));
        }
        transitions.extend(next.into_iter().map(transition));
    }
    let store = &state.store;
    if store.post.is_some() {
        transitions.push(AcquisitionTransition::LandPost);
    }
    let Some(lease) = &store.lease else {
        return transitions;
    };
    if store.interference.deletions > 0 {
        transitions.push(AcquisitionTransition::Delete);
    }
    if store.interference.blanks > 0 {
        transitions.push(AcquisitionTransition::Blank);
    }
    if store.interference.wipes > 0 && lease.record.has_token() {
        transitions.push(AcquisitionTransition::Wipe);
    }
    transitions
}

/// True if an elector changes the Lease by it.
fn writes(by: &ElectorTransition) -> bool {
    matches!(
        by,
        ElectorTransition::Decide(ElectorRequest::Write(_) | ElectorRequest::Post(_))
            | ElectorTransition::Send(_)
    )
}

fn transitions_of_process(
    system: &AcquisitionSystem,
    state: &AcquisitionState,
    index: usize,
) -> Vec<ProcessTransition> {
    let run = &system.run;
    let process = &state.candidates[index];
    let mut transitions = Vec::with_capacity(8);
    if process.can_see() {
        transitions.push(ProcessTransition::See);
    }
    if process.reading {
        transitions.push(ProcessTransition::Read);
    }
    match &process.message {
        Some(AcquiringMessage::Sent(_)) => transitions.push(ProcessTransition::Land),
        Some(AcquiringMessage::Landed(..) | AcquiringMessage::Dead) => {
            transitions.push(ProcessTransition::Reply);
        }
        None => {}
    }
    transitions.extend((0..process.orphans.len()).map(ProcessTransition::LandOrphan));
    if process.can_give_up(run) {
        transitions.push(ProcessTransition::GiveUp);
    }
    if process.can_set_aside() {
        transitions.push(ProcessTransition::SetAside);
    }
    if system.is_due(process) {
        transitions.push(ProcessTransition::Step);
    }
    match process.work {
        ProcessWork::Running if run.releases => transitions.push(ProcessTransition::WorkEnds),
        ProcessWork::Stopping => transitions.push(ProcessTransition::WorkStops),
        ProcessWork::Idle | ProcessWork::Running => {}
    }
    if system.kind.setup.pinged && process.can_be_pinged() {
        transitions.push(ProcessTransition::Ping);
    }
    if process.can_crash() {
        transitions.push(ProcessTransition::Crash);
    }
    transitions
}
