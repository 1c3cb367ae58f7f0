//! Everything that can happen next.

use elector_protocol::{CandidateRecord, LeaseWrite};

use super::super::moves::{ElectorMove, of_watcher};
use super::super::mutant::Mutant;
use super::super::search::Course;
use super::super::store::Side;
use super::holder::PlainMessage;
use super::{State, World};

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// Every clock goes on by its rate.
    Tick,
    /// A candidate does one thing.
    Holder(usize, HolderMove),
    /// An elector does one thing.
    Elector(usize, ElectorMove),
    /// A POST lands, if the name is absent.
    LandPost,
    /// A stranger deletes the Lease.
    Delete,
    /// A client-go process that led long ago releases what it reads, as its own.
    Wipe,
}

/// What happens to a candidate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HolderMove {
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
    Answer,
    /// It dies and starts again under the same name.
    Crash,
}

// === impl Move ===

impl Move {
    /// Whether it happens when all goes well.
    pub(super) fn course(&self, state: &State, world: &World) -> Course {
        let prompt = |so| if so { Course::Prompt } else { Course::Whim };
        match self {
            Self::Tick => Course::Time,
            Self::Holder(index, by) => {
                let holder = &state.holders[*index];
                match by {
                    HolderMove::Write => prompt(holder.is_due()),
                    HolderMove::Land | HolderMove::Reply | HolderMove::Answer => Course::Prompt,
                    // When it is too late for a reply, this is what is left.
                    HolderMove::GiveUp => prompt(
                        matches!(holder.message, Some(PlainMessage::Landed(_)))
                            && !holder.can_hear(world.reserve.counts),
                    ),
                    HolderMove::LandOrphan(_) | HolderMove::Crash => Course::Whim,
                }
            }
            Self::Elector(_, by) => prompt(!matches!(
                by,
                ElectorMove::BreakWatch | ElectorMove::Restart
            )),
            Self::LandPost => Course::Prompt,
            Self::Delete | Self::Wipe => Course::Whim,
        }
    }
}

/// All that can happen in a state.
pub(super) fn possible(world: &World, state: &State) -> Vec<Move> {
    let mut moves = vec![Move::Tick];
    for index in 0..state.holders.len() {
        let of_holder = |by| Move::Holder(index, by);
        moves.extend(
            of_one_holder(world, state, index)
                .into_iter()
                .map(of_holder),
        );
    }
    for index in 0..state.watchers.len() {
        let of_elector = |by| Move::Elector(index, by);
        let watcher = &state.watchers[index];
        let acts = world.acts(index, watcher, &state.store);
        let lands = |write: &LeaseWrite| world.lands(write, &state.store);
        let next = of_watcher(&world.run, watcher, &acts, lands);
        moves.extend(next.into_iter().map(of_elector));
    }
    if state.store.post.is_some() {
        moves.push(Move::LandPost);
    }
    let Some(lease) = &state.store.lease else {
        return moves;
    };
    if state.store.whims.deletions > 0 {
        moves.push(Move::Delete);
    }
    // To wipe a term of client-go's own is harm that no rule of ours can undo: it has no token.
    if state.store.whims.wipes > 0 && lease.record.reserved_from().is_some() {
        moves.push(Move::Wipe);
    }
    moves
}

fn of_one_holder(world: &World, state: &State, index: usize) -> Vec<HolderMove> {
    let run = &world.run;
    let holder = &state.holders[index];
    let mut moves = Vec::with_capacity(6);
    if holder.can_write(index, &state.store) {
        moves.push(HolderMove::Write);
    }
    match &holder.message {
        Some(PlainMessage::Sent(..)) => {
            moves.push(HolderMove::Land);
            if holder.orphans.len() < run.orphans {
                moves.push(HolderMove::GiveUp);
            }
        }
        Some(PlainMessage::Landed(_)) => {
            let heard = holder.can_hear(world.reserve.counts);
            if heard {
                moves.push(HolderMove::Reply);
            }
            if run.lost_replies || !heard {
                moves.push(HolderMove::GiveUp);
            }
        }
        None => {}
    }
    moves.extend((0..holder.orphans.len()).map(HolderMove::LandOrphan));
    let object = state.store.objects[index].as_ref();
    if run.asks && object.is_some_and(CandidateRecord::is_asked) {
        moves.push(HolderMove::Answer);
    }
    if holder.message.is_some() || holder.since.is_some() {
        moves.push(HolderMove::Crash);
    }
    moves
}

// === impl World ===

impl World {
    /// Whether an elector's write would be applied: on the very revision that was judged (R2), unless that is the rule
    /// which is broken.
    pub(super) fn lands(&self, write: &LeaseWrite, store: &super::super::store::Store) -> bool {
        let careless = self.run.mutant == Some(Mutant::ReserveWithoutBase)
            && write.record.reserved_from().is_some();
        store.accepts(write, Side::Elector) || (careless && store.lease.is_some())
    }
}
