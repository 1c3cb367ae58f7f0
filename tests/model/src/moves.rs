//! Everything that can happen next.

use elector_protocol::LeaseWrite;

use super::candidate::{Message, Work};
use super::clocks::Time;
use super::elector::{Act, Watcher};
use super::mutant::Mutant;
use super::run::Run;
use super::search::Course;
use super::store::Side;
use super::world::{State, World};

/// One thing that happens.
#[derive(Clone, Debug)]
pub(super) enum Move {
    /// Every clock goes on by its rate.
    Tick,
    /// The same, but this candidate's clock stands still.
    Sleep(usize),
    /// A candidate does one thing.
    Candidate(usize, CandidateMove),
    /// An elector does one thing.
    Elector(usize, ElectorMove),
    /// A POST lands, if the name is absent.
    LandPost,
    /// A stranger deletes the Lease.
    Delete,
    /// A stranger creates the Lease, without a holder and with a short duration.
    Create,
    /// A stranger makes the Lease look newborn.
    Blank,
    /// A stranger releases the Lease as client-go would.
    Wipe,
    /// A stranger deletes a candidate's object.
    DeleteObject(usize),
}

/// What happens to a candidate.
#[derive(Clone, Copy, Debug)]
pub(super) enum CandidateMove {
    /// Its watch delivers the Lease.
    Look,
    /// Its read is answered.
    Read,
    /// Its write lands.
    Land,
    /// A write that it gave up lands.
    LandOrphan(usize),
    /// The reply to its write comes.
    Reply,
    /// It gives up waiting for the reply.
    GiveUp,
    /// It does what is due by its clock.
    Act,
    /// Its work has stopped, as it was told to.
    WorkStops,
    /// Its work ends by itself.
    WorkEnds,
    /// It is told to write a shorter duration from now on.
    Shorten,
    /// The reply to a renewal that it gave up comes after all.
    LateReply,
    /// It looks at its own object, and answers.
    Answer,
    /// It dies and starts again under the same name.
    Crash,
}

/// What happens to an elector.
#[derive(Clone, Debug)]
pub(super) enum ElectorMove {
    /// Its watch delivers an event, or it lists.
    See,
    /// It does one of the things that are due, and hears of the outcome.
    Decide(Act),
    /// It sends a write, which takes its time.
    Send(Act),
    /// Its write lands, and it hears of that by its watch.
    Land,
    /// Its watch breaks.
    BreakWatch,
    /// It dies and starts again.
    Restart,
}

// === impl Move ===

impl Move {
    /// Whether it happens when all goes well.
    pub(super) fn course(&self) -> Course {
        match self {
            Self::Tick => Course::Time,
            Self::Candidate(_, by) => match by {
                CandidateMove::Look
                | CandidateMove::Read
                | CandidateMove::Land
                | CandidateMove::Reply
                | CandidateMove::Act
                | CandidateMove::WorkStops
                | CandidateMove::Answer => Course::Prompt,
                CandidateMove::LandOrphan(_)
                | CandidateMove::GiveUp
                | CandidateMove::WorkEnds
                | CandidateMove::Shorten
                | CandidateMove::LateReply
                | CandidateMove::Crash => Course::Whim,
            },
            Self::Elector(_, by) => match by {
                ElectorMove::See
                | ElectorMove::Decide(_)
                | ElectorMove::Send(_)
                | ElectorMove::Land => Course::Prompt,
                ElectorMove::BreakWatch | ElectorMove::Restart => Course::Whim,
            },
            Self::LandPost => Course::Prompt,
            Self::Sleep(_)
            | Self::Delete
            | Self::Create
            | Self::Blank
            | Self::Wipe
            | Self::DeleteObject(_) => Course::Whim,
        }
    }

    /// What it does to the clocks.
    pub(super) fn time(&self) -> Time {
        match self {
            Self::Tick => Time::Passes,
            Self::Sleep(index) => Time::PassesBut(*index),
            _ => Time::Stands,
        }
    }
}

/// All that can happen in a state.
pub(super) fn possible(world: &World, state: &State) -> Vec<Move> {
    let mut moves = vec![Move::Tick];
    if world.run.mutant == Some(Mutant::ClockStops) {
        moves.extend((0..state.peers.len()).map(Move::Sleep));
    }
    for index in 0..state.peers.len() {
        let of_candidate = |by| Move::Candidate(index, by);
        moves.extend(of_peer(world, state, index).into_iter().map(of_candidate));
    }
    for index in 0..state.watchers.len() {
        let of_elector = |by| Move::Elector(index, by);
        let watcher = &state.watchers[index];
        let lands = |write: &LeaseWrite| state.store.may_accept(write, Side::Elector);
        let next = of_watcher(
            &world.run,
            watcher,
            &world.acts(watcher, &state.store),
            lands,
        );
        moves.extend(next.into_iter().map(of_elector));
    }
    moves.extend(of_strangers(state));
    moves
}

fn of_peer(world: &World, state: &State, index: usize) -> Vec<CandidateMove> {
    let run = &world.run;
    let peer = &state.peers[index];
    let mut moves = Vec::with_capacity(8);
    if peer.can_look(&state.store) {
        moves.push(CandidateMove::Look);
    }
    if peer.reading {
        moves.push(CandidateMove::Read);
    }
    match &peer.message {
        Some(Message::Sent(..)) => moves.push(CandidateMove::Land),
        Some(Message::Landed(..) | Message::Dead(_)) => moves.push(CandidateMove::Reply),
        None => {}
    }
    moves.extend((0..peer.orphans.len()).map(CandidateMove::LandOrphan));
    if peer.can_give_up(run) {
        moves.push(CandidateMove::GiveUp);
    }
    if world.is_due(peer) {
        moves.push(CandidateMove::Act);
    }
    match peer.work {
        Work::Running if run.releases => moves.push(CandidateMove::WorkEnds),
        Work::Stopping => moves.push(CandidateMove::WorkStops),
        Work::Idle | Work::Running => {}
    }
    let variation = &peer.variation;
    let shortens = run.mutant.is_some_and(Mutant::shortens);
    if shortens && peer.work == Work::Running && !variation.short {
        moves.push(CandidateMove::Shorten);
    }
    if variation.late_reply.is_some() {
        moves.push(CandidateMove::LateReply);
    }
    // Whoever is lame answers at once, before anything else can happen.
    if run.asks && run.lame != Some(index) && peer.is_asked(&state.store) {
        moves.push(CandidateMove::Answer);
    }
    if peer.can_crash() {
        moves.push(CandidateMove::Crash);
    }
    moves
}

/// What an elector that can do these acts does next. `lands` tells whether a write would: one on what was replaced is
/// dead (R2).
pub(super) fn of_watcher(
    run: &Run,
    watcher: &Watcher,
    acts: &[Act],
    lands: impl Fn(&LeaseWrite) -> bool,
) -> Vec<ElectorMove> {
    let mut moves = Vec::with_capacity(6);
    if watcher.can_see() {
        moves.push(ElectorMove::See);
    }
    for act in acts {
        match act {
            Act::Write(write) if !lands(write) => {}
            Act::Write(_) if run.slow_electors => {
                if watcher.message.is_none() {
                    moves.push(ElectorMove::Send(act.clone()));
                }
            }
            Act::Write(_) | Act::Post(_) | Act::Ask { .. } => {
                moves.push(ElectorMove::Decide(act.clone()));
            }
        }
    }
    if watcher.message.is_some() {
        moves.push(ElectorMove::Land);
    }
    if run.whims.deletions > 0 && watcher.whole {
        moves.push(ElectorMove::BreakWatch);
    }
    if run.restarts {
        moves.push(ElectorMove::Restart);
    }
    moves
}

fn of_strangers(state: &State) -> Vec<Move> {
    let store = &state.store;
    let mut moves = Vec::new();
    if store.post.is_some() {
        moves.push(Move::LandPost);
    }
    let Some(lease) = &store.lease else {
        if store.whims.creations > 0 {
            moves.push(Move::Create);
        }
        return moves;
    };
    if store.whims.deletions > 0 {
        moves.push(Move::Delete);
    }
    if store.whims.blanks > 0 {
        moves.push(Move::Blank);
    }
    if store.whims.wipes > 0 && lease.record.has_token() {
        moves.push(Move::Wipe);
    }
    if store.whims.object_deletions > 0 {
        moves.extend((0..store.objects.len()).map(Move::DeleteObject));
    }
    moves
}
