//! The transitions of a system with holders as client-go makes them.

use super::super::elector_transition::ElectorTransition;
use super::super::search::TransitionKind;
use super::holder::PlainMessage;
use super::system::{ReservationState, ReservationSystem};

/// A transition from a state to the next.
#[derive(Clone, Debug)]
pub(in super::super) enum ReservationTransition {
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

/// A transition of a candidate.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum HolderTransition {
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
    /// It acks a ping.
    Ack,
    /// It dies and starts again under the same name.
    Crash,
}

// === impl ReservationTransition ===

impl ReservationTransition {
    /// Whether it happens when all goes well.
    pub(in super::super) fn kind(
        &self,
        state: &ReservationState,
        system: &ReservationSystem,
    ) -> TransitionKind {
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
                            && !holder.can_take_reply(system.kind.counts),
                    ),
                    HolderTransition::LandOrphan(_) | HolderTransition::Crash => {
                        TransitionKind::Fault
                    }
                }
            }
            Self::Elector(_, by) => by.kind(),
            Self::LandPost => TransitionKind::Prompt,
            Self::Delete | Self::Wipe => TransitionKind::Fault,
        }
    }
}
