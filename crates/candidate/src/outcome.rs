//! The end of a run, and that of a term.

use std::fmt;

use elector_protocol::Identity;
use elector_protocol::holder::{Ending, Loss};

/// The end of a run that was asked for: by a shutdown, or by work that was done. All else is an
/// [`Error`](crate::Error).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome<T> {
    /// The value that the work returned, where it ended by itself. `None` after a shutdown.
    pub value: Option<T>,
    /// The end of the term that was cut by the shutdown, or of that of the work. `None` where this process did not lead.
    pub term: Option<TermEnd>,
}

/// The end of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TermEnd {
    /// The work stopped, and this process granted the lease to its successor.
    HandedOver {
        /// The successor.
        to: Identity,
    },
    /// The work stopped, and this process let the lease go.
    Released,
    /// The belief ended first.
    Lost(Loss),
    /// The work stopped, but the server did not confirm in time that the lease was given up. At worst it expires.
    Unconfirmed,
    /// The work, or a task that it has spawned, did not stop, not even when it was dropped: it blocks its thread. The
    /// lease is left to expire.
    WorkStillRuns,
}

// === impl TermEnd ===

impl TermEnd {
    /// The cause in one word, the same in outcomes, logs, metrics and Events: `handed_over`, `released`, `unconfirmed`,
    /// `work_still_runs`, or that of the loss ([`Loss::cause`]).
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::HandedOver { .. } => "handed_over",
            Self::Released => "released",
            Self::Lost(loss) => loss.cause(),
            Self::Unconfirmed => "unconfirmed",
            Self::WorkStillRuns => "work_still_runs",
        }
    }
}

impl From<Ending> for TermEnd {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::HandedOver { to } => Self::HandedOver { to },
            Ending::Released => Self::Released,
            Ending::Lost(why) => Self::Lost(why),
        }
    }
}

impl fmt::Display for TermEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HandedOver { to } => write!(f, "handed over to {to}"),
            Self::Released => f.write_str("released"),
            Self::Lost(why) => write!(f, "lost: {why}"),
            Self::Unconfirmed => f.write_str("given up, unconfirmed by the server"),
            Self::WorkStillRuns => f.write_str("left to expire, because the work does not stop"),
        }
    }
}
