//! Everything that can happen next.

use elector_protocol::LeaseWrite;

use super::candidate::{Message, Work};
use super::clocks::Time;
use super::elector::{ElectorProcess, ElectorRequest};
use super::mutant::Mutant;
use super::run::Run;
use super::search::TransitionKind;
use super::store::Side;
use super::world::{ElectionSystem, State};

/// One thing that happens.
#[derive(Clone, Debug)]
pub(super) enum Transition {
    /// Every clock goes on by its rate.
    Tick,
    /// The same, but this candidate's clock stands still.
    Sleep(usize),
    /// A candidate does one thing.
    Candidate(usize, CandidateTransition),
    /// An elector does one thing.
    Elector(usize, ElectorTransition),
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
pub(super) enum CandidateTransition {
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
    ElectorRequest,
    /// Its work has stopped, as it was told to.
    WorkStops,
    /// Its work ends by itself.
    WorkEnds,
    /// It is told to write a shorter duration from now on.
    Shorten,
    /// The reply to a renewal that it gave up comes after all.
    LateReply,
    /// It looks at its own object, and answers.
    Ack,
    /// It dies and starts again under the same name.
    Crash,
}

/// What happens to an elector.
#[derive(Clone, Debug)]
pub(super) enum ElectorTransition {
    /// Its watch delivers an event, or it lists.
    See,
    /// It does one of the things that are due, and hears of the outcome.
    Decide(ElectorRequest),
    /// It sends a write, which takes its time.
    Send(ElectorRequest),
    /// Its write lands, and it hears of that by its watch.
    Land,
    /// Its watch breaks.
    BreakWatch,
    /// It dies and starts again.
    Restart,
}

// === impl Transition ===

impl Transition {
    /// Whether it happens when all goes well.
    pub(super) fn kind(&self) -> TransitionKind {
        match self {
            Self::Tick => TransitionKind::Time,
            Self::Candidate(_, by) => match by {
                CandidateTransition::Look
                | CandidateTransition::Read
                | CandidateTransition::Land
                | CandidateTransition::Reply
                | CandidateTransition::ElectorRequest
                | CandidateTransition::WorkStops
                | CandidateTransition::Ack => TransitionKind::Prompt,
                CandidateTransition::LandOrphan(_)
                | CandidateTransition::GiveUp
                | CandidateTransition::WorkEnds
                | CandidateTransition::Shorten
                | CandidateTransition::LateReply
                | CandidateTransition::Crash => TransitionKind::Fault,
            },
            Self::Elector(_, by) => match by {
                ElectorTransition::See
                | ElectorTransition::Decide(_)
                | ElectorTransition::Send(_)
                | ElectorTransition::Land => TransitionKind::Prompt,
                ElectorTransition::BreakWatch | ElectorTransition::Restart => TransitionKind::Fault,
            },
            Self::LandPost => TransitionKind::Prompt,
            Self::Sleep(_)
            | Self::Delete
            | Self::Create
            | Self::Blank
            | Self::Wipe
            | Self::DeleteObject(_) => TransitionKind::Fault,
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
pub(super) fn possible(world: &ElectionSystem, state: &State) -> Vec<Transition> {
    let mut transitions = vec![Transition::Tick];
    if world.run.mutant == Some(Mutant::ClockStops) {
        transitions.extend((0..state.candidates.len()).map(Transition::Sleep));
    }
    for index in 0..state.candidates.len() {
        let of_candidate = |by| Transition::Candidate(index, by);
        transitions.extend(of_peer(world, state, index).into_iter().map(of_candidate));
    }
    for index in 0..state.electors.len() {
        let of_elector = |by| Transition::Elector(index, by);
        let elector = &state.electors[index];
        let lands = |write: &LeaseWrite| state.store.may_accept(write, Side::Elector);
        let next = of_watcher(
            &world.run,
            elector,
            &world.acts(elector, &state.store),
            lands,
        );
        transitions.extend(next.into_iter().map(of_elector));
    }
    transitions.extend(of_strangers(state));
    transitions
}

fn of_peer(world: &ElectionSystem, state: &State, index: usize) -> Vec<CandidateTransition> {
    let run = &world.run;
    let candidate = &state.candidates[index];
    let mut transitions = Vec::with_capacity(8);
    if candidate.can_look(&state.store) {
        transitions.push(CandidateTransition::Look);
    }
    if candidate.reading {
        transitions.push(CandidateTransition::Read);
    }
    match &candidate.message {
        Some(Message::Sent(..)) => transitions.push(CandidateTransition::Land),
        Some(Message::Landed(..) | Message::Dead(_)) => {
            transitions.push(CandidateTransition::Reply)
        }
        None => {}
    }
    transitions.extend((0..candidate.orphans.len()).map(CandidateTransition::LandOrphan));
    if candidate.can_give_up(run) {
        transitions.push(CandidateTransition::GiveUp);
    }
    if world.is_due(candidate) {
        transitions.push(CandidateTransition::ElectorRequest);
    }
    match candidate.work {
        Work::Running if run.releases => transitions.push(CandidateTransition::WorkEnds),
        Work::Stopping => transitions.push(CandidateTransition::WorkStops),
        Work::Idle | Work::Running => {}
    }
    let variation = &candidate.variation;
    let shortens = run.mutant.is_some_and(Mutant::shortens);
    if shortens && candidate.work == Work::Running && !variation.short {
        transitions.push(CandidateTransition::Shorten);
    }
    if variation.late_reply.is_some() {
        transitions.push(CandidateTransition::LateReply);
    }
    // Whoever is lame answers at once, before anything else can happen.
    if run.pings && run.refused_candidate != Some(index) && candidate.is_asked(&state.store) {
        transitions.push(CandidateTransition::Ack);
    }
    if candidate.can_crash() {
        transitions.push(CandidateTransition::Crash);
    }
    transitions
}

/// What an elector that can do these acts does next. `lands` tells whether a write would: one on what was replaced is
/// dead (R2).
pub(super) fn of_watcher(
    run: &Run,
    elector: &ElectorProcess,
    acts: &[ElectorRequest],
    lands: impl Fn(&LeaseWrite) -> bool,
) -> Vec<ElectorTransition> {
    let mut transitions = Vec::with_capacity(6);
    if elector.can_see() {
        transitions.push(ElectorTransition::See);
    }
    for act in acts {
        match act {
            ElectorRequest::Write(write) if !lands(write) => {}
            ElectorRequest::Write(_) if run.slow_electors => {
                if elector.message.is_none() {
                    transitions.push(ElectorTransition::Send(act.clone()));
                }
            }
            ElectorRequest::Write(_) | ElectorRequest::Post(_) | ElectorRequest::Ping { .. } => {
                transitions.push(ElectorTransition::Decide(act.clone()));
            }
        }
    }
    if elector.message.is_some() {
        transitions.push(ElectorTransition::Land);
    }
    if run.interference.deletions > 0 && elector.whole {
        transitions.push(ElectorTransition::BreakWatch);
    }
    if run.restarts {
        transitions.push(ElectorTransition::Restart);
    }
    transitions
}

fn of_strangers(state: &State) -> Vec<Transition> {
    let store = &state.store;
    let mut transitions = Vec::new();
    if store.post.is_some() {
        transitions.push(Transition::LandPost);
    }
    let Some(lease) = &store.lease else {
        if store.interference.creations > 0 {
            transitions.push(Transition::Create);
        }
        return transitions;
    };
    if store.interference.deletions > 0 {
        transitions.push(Transition::Delete);
    }
    if store.interference.blanks > 0 {
        transitions.push(Transition::Blank);
    }
    if store.interference.wipes > 0 && lease.record.has_token() {
        transitions.push(Transition::Wipe);
    }
    if store.interference.object_deletions > 0 {
        transitions.extend((0..store.objects.len()).map(Transition::DeleteObject));
    }
    transitions
}
