//! The transitions of a system whose processes acquire leases themselves.

use super::super::elector_transition::ElectorTransition;
use super::super::search::TransitionKind;

/// A transition from a state to the next.
#[derive(Clone, Debug)]
pub(in super::super) enum AcquisitionTransition {
    /// Every clock goes on by its rate.
    Tick,
    /// A process does one thing.
    Process(usize, ProcessTransition),
    /// An elector does one thing.
    Elector(usize, ElectorTransition),
    /// A POST of an elector lands, if the name is absent.
    LandPost,
    /// A stranger deletes the Lease.
    Delete,
    /// A stranger makes the Lease look newborn.
    Blank,
    /// A stranger releases the Lease as client-go would.
    Wipe,
}

/// A transition of a process.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum ProcessTransition {
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
    /// Its work has stopped, as it was told to.
    WorkStops,
    /// Its work ends by itself.
    WorkEnds,
    /// It sees a ping.
    Ping,
    /// It dies and starts again.
    Crash,
}

// === impl AcquisitionTransition ===

impl AcquisitionTransition {
    /// Its kind: prompt, time or a fault.
    pub(in super::super) fn kind(&self) -> TransitionKind {
        match self {
            Self::Tick => TransitionKind::Time,
            Self::Process(_, by) => match by {
                ProcessTransition::See
                | ProcessTransition::Read
                | ProcessTransition::Land
                | ProcessTransition::Reply
                | ProcessTransition::SetAside
                | ProcessTransition::Step
                | ProcessTransition::WorkStops => TransitionKind::Prompt,
                ProcessTransition::LandOrphan(_)
                | ProcessTransition::GiveUp
                | ProcessTransition::WorkEnds
                | ProcessTransition::Ping
                | ProcessTransition::Crash => TransitionKind::Fault,
            },
            Self::Elector(_, by) => by.kind(),
            Self::LandPost => TransitionKind::Prompt,
            Self::Delete | Self::Blank | Self::Wipe => TransitionKind::Fault,
        }
    }
}
