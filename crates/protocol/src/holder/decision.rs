//! The decision of a step of a holder, as data.

use std::fmt;

use crate::lease::{LeaseRecord, LeaseWrite};
use crate::names::{Identity, Term, Token};
use crate::renumber::{Renumber, Renumbering, renumber};
use crate::time::Instant;

/// The outcome of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The effects due now, in this order.
    pub effects: Vec<Effect>,
    /// When to step again if nothing happens before.
    pub wake_at: Option<Instant>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// GET the Lease, as a quorum read, and report by [`super::Holder::handle_read`].
    Read,
    /// POST the Lease with this record, which is unheld, and report by [`super::Holder::handle_outcome`]
    /// ([R2](crate::rules#r2)).
    Create(LeaseRecord),
    /// PUT the Lease with the uid and resourceVersion named, and report by [`super::Holder::handle_outcome`].
    Write {
        /// The purpose of the write.
        kind: WriteKind,
        /// The write.
        write: LeaseWrite,
    },
    /// The term has begun: start the work. The belief is [`super::Holder::belief`].
    Start {
        /// The term.
        term: Term,
        /// Its fencing token.
        token: Token,
    },
    /// Stop the work, and report by [`super::Holder::handle_work_stopped`] when nothing of it runs any more.
    ///
    /// A stop for a hand-over or a shutdown may be followed by one for a loss: the belief is gone then, and what is
    /// left of the work must end now.
    Stop(StopReason),
    /// A term that was started is over: its work has stopped, and the lease is no longer ours to touch.
    Ended(Ending),
}

/// The purpose of a write of the Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WriteKind {
    /// The electee's first own write, which begins the term ([R5](crate::rules#r5), [R8](crate::rules#r8)).
    Accept,
    /// A process takes a free lease itself: its grant and its accept in one ([R18](crate::rules#r18)).
    Acquire,
    /// A process whose term has lapsed, and whose work has ended, begins its next term on its own unchanged record
    /// ([R20](crate::rules#r20)).
    Resume,
    /// A process begins the next term of an earlier life of its instance, which is dead ([R21](crate::rules#r21)).
    Rejoin,
    /// The holder's sign of life ([R11](crate::rules#r11)).
    Renew,
    /// The holder lets go, its work having stopped ([R12](crate::rules#r12)).
    Release,
    /// The holder grants the lease to its successor, its work having stopped ([R12](crate::rules#r12)).
    HandOff(Identity),
}

/// Why the work is to stop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// Another candidate is preferred; the lease goes to it once the work has stopped.
    HandOver {
        /// The successor.
        to: Identity,
    },
    /// The process shuts down; the lease is released once the work has stopped.
    ShutDown,
    /// The belief has ended, and the lease will not be touched again.
    Lost(Loss),
}

/// The end of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// This holder granted the lease to its successor.
    HandedOver {
        /// The successor.
        to: Identity,
    },
    /// This holder let go.
    Released,
    /// The belief ended before the lease was given up.
    Lost(Loss),
}

/// Why the belief ended before the lease was given up ([R10](crate::rules#r10)).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// No write was proven for the whole renew deadline.
    DeadlinePassed,
    /// The Lease names another holder, or none.
    Taken {
        /// Its holder now.
        by: Option<Identity>,
    },
    /// The Lease was deleted, or another of its name was created.
    Deleted,
    /// A new term was granted to this very identity.
    NewTerm,
    /// Another process renewed this term under this identity: two share a name ([R8](crate::rules#r8)).
    NameShared,
    /// The store shows an older revision than was seen before: a backup was restored ([R4](crate::rules#r4)).
    StoreRestored,
}

// === impl Decision ===

renumber!(Decision { effects, wake_at });

// === impl Effect ===

impl Renumber for Effect {
    fn renumber(&mut self, by: &mut dyn Renumbering) {
        match self {
            Self::Write { write, .. } => write.renumber(by),
            Self::Start { term, token } => {
                term.renumber(by);
                token.renumber(by);
            }
            // A record that is created has no numbers yet.
            Self::Read | Self::Create(_) | Self::Stop(_) | Self::Ended(_) => {}
        }
    }
}

// === impl WriteKind ===

impl WriteKind {
    /// True if a term begins with it.
    pub const fn begins_term(&self) -> bool {
        matches!(
            self,
            Self::Accept | Self::Acquire | Self::Resume | Self::Rejoin
        )
    }
}

impl fmt::Display for WriteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accept => "accept",
            Self::Acquire => "acquire",
            Self::Resume => "resume",
            Self::Rejoin => "rejoin",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::HandOff(_) => "hand-off",
        })
    }
}

// === impl StopReason ===

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HandOver { to } => write!(f, "{to} is preferred"),
            Self::ShutDown => f.write_str("shutting down"),
            Self::Lost(loss) => loss.fmt(f),
        }
    }
}

// === impl Ending ===

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HandedOver { to } => write!(f, "handed over to {to}"),
            Self::Released => f.write_str("released"),
            Self::Lost(loss) => write!(f, "lost: {loss}"),
        }
    }
}

// === impl Loss ===

impl Loss {
    /// The cause in one word, for labels and logs.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::DeadlinePassed => "deadline_passed",
            Self::Taken { by: Some(_) } => "taken",
            Self::Taken { by: None } => "removed",
            Self::Deleted => "deleted",
            Self::NewTerm => "new_term",
            Self::NameShared => "name_shared",
            Self::StoreRestored => "store_restored",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadlinePassed => f.write_str("no renewal succeeded within the renew deadline"),
            Self::Taken { by: Some(holder) } => write!(f, "{holder} holds the lease"),
            Self::Taken { by: None } => {
                f.write_str("another process removed the holder from the lease")
            }
            Self::Deleted => f.write_str("the lease was deleted"),
            Self::NewTerm => f.write_str("a new term was granted to this identity"),
            Self::NameShared => f.write_str("another process renews the lease under this identity"),
            Self::StoreRestored => f.write_str("the store was restored from an older state"),
        }
    }
}
