//! The transitions of a system.

use elector_protocol::LeaseWrite;
use elector_protocol::elector::Effect;

use super::clocks::Time;
use super::search::TransitionKind;

/// A transition from a state to the next.
#[derive(Clone, Debug)]
pub(super) enum ModelTransition {
    /// Every clock goes on by its rate.
    Tick,
    /// The clocks of one process go on otherwise than the others.
    Drift(Time),
    /// A process does one thing.
    Process(usize, ProcessTransition),
    /// An elector does one thing.
    Elector(usize, ElectorTransition),
    /// A POST of an elector lands, if the name is absent.
    LandPost,
    /// A stranger deletes the Lease.
    Delete,
    /// A stranger creates the Lease, without a holder and with a short duration.
    Create,
    /// A stranger makes the Lease look newborn.
    Blank,
    /// A stranger takes the label of the Lease away.
    Unlabel,
    /// A stranger releases the Lease as client-go would.
    Wipe,
    /// An operator freezes the Lease, or takes that back.
    Freeze(bool),
    /// An operator prefers the worst candidate, or takes that back.
    Prefer(bool),
    /// A stranger deletes a candidate's object.
    DeleteObject(usize),
    /// A candidate's object is created.
    CreateObject(usize),
}

/// A transition of a process.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProcessTransition {
    /// Its watch delivers an event, or it lists.
    See,
    /// Its read is answered.
    Read,
    /// Its request lands.
    Land,
    /// A request that it gave up lands.
    LandOrphan(usize),
    /// The reply to its request comes.
    Reply,
    /// It gives up waiting for the reply.
    GiveUp,
    /// Its news have overtaken its request, whose reply it does not wait for.
    SetAside,
    /// It does what is due by its clock.
    Step,
    /// Its work has stopped, as it was asked to.
    WorkStops,
    /// Its work ends by itself.
    WorkEnds,
    /// It is asked to write a shorter duration from now on.
    Shorten,
    /// The reply to a renewal that it gave up comes after all.
    LateReply,
    /// It looks at its own object, and acks.
    Ack,
    /// It sees a ping.
    Ping,
    /// It dies and starts again.
    Crash,
}

/// A transition of an elector.
#[derive(Clone, Debug)]
pub(super) enum ElectorTransition {
    /// Its watch delivers an event, or it lists.
    See,
    /// It carries out one of its effects, which lands at once, and sees the outcome.
    Decide(Effect),
    /// It sends a write, which takes its time.
    Send(LeaseWrite),
    /// Its write lands, and its watch delivers that.
    Land,
    /// Its watch breaks.
    BreakWatch,
    /// It dies and starts again.
    Restart,
}

// === impl ModelTransition ===

impl ModelTransition {
    /// Its kind: prompt, time or a fault.
    pub(super) fn kind(&self) -> TransitionKind {
        match self {
            Self::Tick => TransitionKind::Time,
            Self::Process(
                _,
                ProcessTransition::LandOrphan(_)
                | ProcessTransition::GiveUp
                | ProcessTransition::WorkEnds
                | ProcessTransition::Shorten
                | ProcessTransition::LateReply
                | ProcessTransition::Ping
                | ProcessTransition::Crash,
            )
            | Self::Elector(_, ElectorTransition::BreakWatch | ElectorTransition::Restart)
            | Self::Drift(_)
            | Self::Delete
            | Self::Create
            | Self::Blank
            | Self::Unlabel
            | Self::Wipe
            | Self::Freeze(_)
            | Self::Prefer(_)
            | Self::DeleteObject(_)
            | Self::CreateObject(_) => TransitionKind::Fault,
            Self::Process(..) | Self::Elector(..) | Self::LandPost => TransitionKind::Prompt,
        }
    }

    /// Its effect on the clocks.
    pub(super) fn time(&self) -> Time {
        match self {
            Self::Tick => Time::Passes,
            Self::Drift(time) => *time,
            _ => Time::Stands,
        }
    }
}
