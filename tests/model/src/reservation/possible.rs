//! Everything that can happen next in a system with holders as client-go makes them.

use elector_protocol::{CandidateRecord, LeaseWrite};

use super::super::elector_transition::of_elector;
use super::holder::PlainMessage;
use super::system::{ReservationState, ReservationSystem};
use super::transition::{HolderTransition, ReservationTransition};

/// All transitions from a state.
pub(in super::super) fn possible(
    system: &ReservationSystem,
    state: &ReservationState,
) -> Vec<ReservationTransition> {
    let mut transitions = vec![ReservationTransition::Tick];
    for index in 0..state.candidates.len() {
        let of_holder = |by| ReservationTransition::Holder(index, by);
        transitions.extend(
            transitions_of_holder(system, state, index)
                .into_iter()
                .map(of_holder),
        );
    }
    for index in 0..state.electors.len() {
        let transition = |by| ReservationTransition::Elector(index, by);
        let elector = &state.electors[index];
        let requests = system.requests(index, elector, &state.store);
        let lands = |write: &LeaseWrite| system.lands(write, &state.store);
        let next = of_elector(&system.run, elector, &requests, lands);
        transitions.extend(next.into_iter().map(transition));
    }
    if state.store.post.is_some() {
        transitions.push(ReservationTransition::LandPost);
    }
    let Some(lease) = &state.store.lease else {
        return transitions;
    };
    if state.store.interference.deletions > 0 {
        transitions.push(ReservationTransition::Delete);
    }
    // To wipe a term of client-go's own is harm that no rule of ours can undo: it has no token.
    if state.store.interference.wipes > 0 && lease.record.reserved_from().is_some() {
        transitions.push(ReservationTransition::Wipe);
    }
    transitions
}

fn transitions_of_holder(
    system: &ReservationSystem,
    state: &ReservationState,
    index: usize,
) -> Vec<HolderTransition> {
    let run = &system.run;
    let holder = &state.candidates[index];
    let mut transitions = Vec::with_capacity(6);
    if holder.can_write(index, &state.store) {
        transitions.push(HolderTransition::Write);
    }
    match &holder.message {
        Some(PlainMessage::Sent(..)) => {
            transitions.push(HolderTransition::Land);
            if holder.orphans.len() < run.orphans {
                transitions.push(HolderTransition::GiveUp);
            }
        }
        Some(PlainMessage::Landed(_)) => {
            let in_time = holder.can_take_reply(system.kind.counts);
            if in_time {
                transitions.push(HolderTransition::Reply);
            }
            if run.lost_replies || !in_time {
                transitions.push(HolderTransition::GiveUp);
            }
        }
        None => {}
    }
    transitions.extend((0..holder.orphans.len()).map(HolderTransition::LandOrphan));
    let object = state.store.objects[index].as_ref();
    if run.pings && object.is_some_and(CandidateRecord::is_pinged) {
        transitions.push(HolderTransition::Ack);
    }
    if holder.message.is_some() || holder.since.is_some() {
        transitions.push(HolderTransition::Crash);
    }
    transitions
}
