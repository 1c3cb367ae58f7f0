//! Everything that can happen next.

use elector_protocol::{CandidateRecord, LeaseWrite};

use super::super::mutant::Mutant;
use super::super::search::TransitionKind;
use super::super::store::Side;
use super::super::transitions::{ElectorTransition, of_watcher};
use super::holder::PlainMessage;
use super::{ReservationSystem, State};

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Transition {
    /// Every clock goes on by its rate.
    Tick,
    /// A candidate does one thing.
    Holder(usize, HolderTransition),
    /// An elector does one thing.
    Elector(usize, ElectorTransition),
    /// A POST lands, if the name is absent.
    LandPost,
    /// A stranger deletes the Lease.
    Delete,
    /// A client-go process that led long ago releases what it reads, as its own.
    Wipe,
}

/// What happens to a candidate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HolderTransition {
    /// It reads the Lease, which names it, and sends a write.
    Write,
    /// Its write lands.
    Land,
    /// A write that it gave up lands.
    LandOrphan(usize),
    /// The reply to its write comes.
    Reply,
    /// It gives up waiting for the reply.
    GiveUp,
    /// It answers a question.
    Ack,
    /// It dies and starts again under the same name.
    Crash,
}

// === impl Transition ===

impl Transition {
    /// Whether it happens when all goes well.
    pub(super) fn kind(&self, state: &State, world: &ReservationSystem) -> TransitionKind {
        let prompt = |so| {
            if so {
                TransitionKind::Prompt
            } else {
                TransitionKind::Fault
            }
        };
        match self {
            Self::Tick => TransitionKind::Time,
            Self::Holder(index, by) => {
                let holder = &state.candidates[*index];
                match by {
                    HolderTransition::Write => prompt(holder.is_due()),
                    HolderTransition::Land | HolderTransition::Reply | HolderTransition::Ack => {
                        TransitionKind::Prompt
                    }
                    // When it is too late for a reply, this is what is left.
                    HolderTransition::GiveUp => prompt(
                        matches!(holder.message, Some(PlainMessage::Landed(_)))
                            && !holder.can_hear(world.reserve.counts),
                    ),
                    HolderTransition::LandOrphan(_) | HolderTransition::Crash => {
                        TransitionKind::Fault
                    }
                }
            }
            Self::Elector(_, by) => prompt(!matches!(
                by,
                ElectorTransition::BreakWatch | ElectorTransition::Restart
            )),
            Self::LandPost => TransitionKind::Prompt,
            Self::Delete | Self::Wipe => TransitionKind::Fault,
        }
    }
}

/// All that can happen in a state.
pub(super) fn possible(world: &ReservationSystem, state: &State) -> Vec<Transition> {
    let mut transitions = vec![Transition::Tick];
    for index in 0..state.candidates.len() {
        let of_holder = |by| Transition::Holder(index, by);
        transitions.extend(
            of_one_holder(world, state, index)
                .into_iter()
                .map(of_holder),
        );
    }
    for index in 0..state.electors.len() {
        let of_elector = |by| Transition::Elector(index, by);
        let elector = &state.electors[index];
        let acts = world.acts(index, elector, &state.store);
        let lands = |write: &LeaseWrite| world.lands(write, &state.store);
        let next = of_watcher(&world.run, elector, &acts, lands);
        transitions.extend(next.into_iter().map(of_elector));
    }
    if state.store.post.is_some() {
        transitions.push(Transition::LandPost);
    }
    let Some(lease) = &state.store.lease else {
        return transitions;
    };
    if state.store.interference.deletions > 0 {
        transitions.push(Transition::Delete);
    }
    // To wipe a term of client-go's own is harm that no rule of ours can undo: it has no token.
    if state.store.interference.wipes > 0 && lease.record.reserved_from().is_some() {
        transitions.push(Transition::Wipe);
    }
    transitions
}

fn of_one_holder(world: &ReservationSystem, state: &State, index: usize) -> Vec<HolderTransition> {
    let run = &world.run;
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
            let in_time = holder.can_hear(world.reserve.counts);
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
    if run.pings && object.is_some_and(CandidateRecord::is_asked) {
        transitions.push(HolderTransition::Ack);
    }
    if holder.message.is_some() || holder.since.is_some() {
        transitions.push(HolderTransition::Crash);
    }
    transitions
}

// === impl ReservationSystem ===

impl ReservationSystem {
    /// Whether an elector's write would be applied: on the very revision that was judged (R2), unless that is the rule
    /// which is broken.
    pub(super) fn lands(
        &self,
        write: &LeaseWrite,
        store: &super::super::store::LeaseStore,
    ) -> bool {
        let careless = self.run.mutant == Some(Mutant::ReserveWithoutBase)
            && write.record.reserved_from().is_some();
        store.accepts(write, Side::Elector) || (careless && store.lease.is_some())
    }
}
