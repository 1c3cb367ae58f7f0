//! The transitions of a system with candidates of ours.

use super::super::clocks::Time;
use super::super::elector_transition::ElectorTransition;
use super::super::search::TransitionKind;

/// A transition from a state to the next.
#[derive(Clone, Debug)]
pub(in super::super) enum ElectionTransition {
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

/// A transition of a candidate.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum CandidateTransition {
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
    /// Its news have overtaken its request, whose reply it does not wait for.
    SetAside,
    /// It does what is due by its clock.
    Step,
    /// Its work has stopped, as it was told to.
    WorkStops,
    /// Its work ends by itself.
    WorkEnds,
    /// It is told to write a shorter duration from now on.
    Shorten,
    /// The reply to a renewal that it gave up comes after all.
    LateReply,
    /// It looks at its own object, and acks.
    Ack,
    /// It dies and starts again under the same name.
    Crash,
}

// === impl ElectionTransition ===

impl ElectionTransition {
    /// Its kind: prompt, time or a fault.
    pub(in super::super) fn kind(&self) -> TransitionKind {
        match self {
            Self::Tick => TransitionKind::Time,
            Self::Candidate(_, by) => match by {
                CandidateTransition::Look
                | CandidateTransition::Read
                | CandidateTransition::Land
                | CandidateTransition::Reply
                | CandidateTransition::Step
                | CandidateTransition::SetAside
                | CandidateTransition::WorkStops
                | CandidateTransition::Ack => TransitionKind::Prompt,
                CandidateTransition::LandOrphan(_)
                | CandidateTransition::GiveUp
                | CandidateTransition::WorkEnds
                | CandidateTransition::Shorten
                | CandidateTransition::LateReply
                | CandidateTransition::Crash => TransitionKind::Fault,
            },
            Self::Elector(_, by) => by.kind(),
            Self::LandPost => TransitionKind::Prompt,
            Self::Sleep(_)
            | Self::Delete
            | Self::Create
            | Self::Blank
            | Self::Wipe
            | Self::DeleteObject(_) => TransitionKind::Fault,
        }
    }

    /// Its effect on the clocks.
    pub(in super::super) fn time(&self) -> Time {
        match self {
            Self::Tick => Time::Passes,
            Self::Sleep(index) => Time::PassesBut(*index),
            _ => Time::Stands,
        }
    }
}
