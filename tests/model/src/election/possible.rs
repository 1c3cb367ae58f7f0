//! Everything that can happen next in a system with candidates of ours.

use super::super::elector_transition::of_elector;
use super::super::mutant::Mutant;
use super::candidate::{CandidateMessage, ModelWork};
use super::system::{ElectionState, ElectionSystem};
use super::transition::{CandidateTransition, ElectionTransition};

/// All transitions from a state.
pub(in super::super) fn possible(
    system: &ElectionSystem,
    state: &ElectionState,
) -> Vec<ElectionTransition> {
    let mut transitions = vec![ElectionTransition::Tick];
    if system.run.mutant == Some(Mutant::ClockStops) {
        transitions.extend((0..state.candidates.len()).map(ElectionTransition::Sleep));
    }
    for index in 0..state.candidates.len() {
        let of_candidate = |by| ElectionTransition::Candidate(index, by);
        transitions.extend(
            transitions_of_candidate(system, state, index)
                .into_iter()
                .map(of_candidate),
        );
    }
    for index in 0..state.electors.len() {
        let transition = |by| ElectionTransition::Elector(index, by);
        let elector = &state.electors[index];
        let requests = system.requests(elector, &state.store);
        let next = of_elector(&system.run, elector, &requests, &state.store);
        transitions.extend(next.into_iter().map(transition));
    }
    transitions.extend(transitions_of_strangers(state));
    transitions
}

fn transitions_of_candidate(
    system: &ElectionSystem,
    state: &ElectionState,
    index: usize,
) -> Vec<CandidateTransition> {
    let run = &system.run;
    let candidate = &state.candidates[index];
    let mut transitions = Vec::with_capacity(8);
    if candidate.can_look(&state.store) {
        transitions.push(CandidateTransition::Look);
    }
    if candidate.reading {
        transitions.push(CandidateTransition::Read);
    }
    match &candidate.message {
        Some(CandidateMessage::Sent(..)) => transitions.push(CandidateTransition::Land),
        Some(CandidateMessage::Landed(..) | CandidateMessage::Dead(_)) => {
            transitions.push(CandidateTransition::Reply);
        }
        None => {}
    }
    transitions.extend((0..candidate.orphans.len()).map(CandidateTransition::LandOrphan));
    if candidate.can_give_up(run) {
        transitions.push(CandidateTransition::GiveUp);
    }
    if candidate.can_set_aside() {
        transitions.push(CandidateTransition::SetAside);
    }
    if system.is_due(candidate) {
        transitions.push(CandidateTransition::Step);
    }
    match candidate.work {
        ModelWork::Running if run.releases => transitions.push(CandidateTransition::WorkEnds),
        ModelWork::Stopping => transitions.push(CandidateTransition::WorkStops),
        ModelWork::Idle | ModelWork::Running => {}
    }
    let variation = &candidate.variation;
    let shortens = run.mutant.is_some_and(Mutant::shortens);
    if shortens && candidate.work == ModelWork::Running && !variation.short {
        transitions.push(CandidateTransition::Shorten);
    }
    if variation.late_reply.is_some() {
        transitions.push(CandidateTransition::LateReply);
    }
    // The candidate whose writes are refused acks at once, before anything else can happen.
    if run.pings && run.refused_candidate != Some(index) && candidate.is_pinged(&state.store) {
        transitions.push(CandidateTransition::Ack);
    }
    if candidate.can_crash() {
        transitions.push(CandidateTransition::Crash);
    }
    transitions
}

fn transitions_of_strangers(state: &ElectionState) -> Vec<ElectionTransition> {
    let store = &state.store;
    let mut transitions = Vec::new();
    if store.post.is_some() {
        transitions.push(ElectionTransition::LandPost);
    }
    let Some(lease) = &store.lease else {
        if store.interference.creations > 0 {
            transitions.push(ElectionTransition::Create);
        }
        return transitions;
    };
    if store.interference.deletions > 0 {
        transitions.push(ElectionTransition::Delete);
    }
    if store.interference.blanks > 0 {
        transitions.push(ElectionTransition::Blank);
    }
    if store.interference.wipes > 0 && lease.record.has_token() {
        transitions.push(ElectionTransition::Wipe);
    }
    if store.interference.object_deletions > 0 {
        transitions.extend((0..store.objects.len()).map(ElectionTransition::DeleteObject));
    }
    transitions
}
