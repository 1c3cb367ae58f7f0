//! The end of a run, and the reasons for which it could not go on.

use std::fmt;

use elector_protocol::Identity;
use elector_protocol::holder::{Ending, Loss};
use elector_runtime::RequestError;

use crate::config::ConfigError;

/// The end of a run. Exactly one is reported, and an error of the work is never lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum RunOutcome<T, E> {
    /// The caller asked for it. The end of the term that was cut by it, if one was.
    ShutDown(Option<TermEnd>),
    /// The work ended by itself, and the lease was given up afterwards.
    WorkEnded {
        /// The value that the work returned.
        value: T,
        /// The end of its term.
        term: TermEnd,
    },
    /// The work failed, perhaps while it was being stopped.
    WorkFailed {
        /// The error that the work returned.
        error: E,
        /// The end of its term.
        term: TermEnd,
    },
    /// The work panicked, or a task that it has spawned ([`crate::Leadership::spawn`]).
    WorkPanicked {
        /// The panic's message.
        message: String,
        /// The end of its term.
        term: TermEnd,
    },
    /// This process was unwell ([`Candidate::with_health`](crate::Candidate::with_health)), and the run was to end with its
    /// term ([`crate::AfterTerm::Return`]) or could not go on because its work still runs.
    Unwell {
        /// The error of the probe, in one line.
        error: String,
        /// The end of its term.
        term: TermEnd,
    },
    /// A term ended otherwise, and the run was to end with it ([`crate::AfterTerm::Return`]) or could not go on
    /// because its work still runs.
    TermEnded(TermEnd),
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

/// Why a run could not go on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunError {
    /// The configuration breaks a rule.
    Config(ConfigError),
    /// The LeaseCandidate of this name belongs to another lease, which cannot be changed: choose another name, or
    /// delete that object if no process uses it.
    BoundElsewhere {
        /// The name.
        name: Identity,
        /// The other lease.
        lease: String,
    },
    /// The server refuses the LeaseCandidate as invalid.
    Invalid(RequestError),
    /// A part that has to run beside the work ([`Candidate::alongside`](crate::Candidate::alongside)) ended before a
    /// shutdown. The work was stopped and the lease given up. A program ends with this, to be started anew.
    PartEnded {
        /// The name of the part.
        part: String,
        /// Its end: `ended`, with what it returned, or `panicked`, with the message.
        how: String,
        /// The end of the term, if there was one.
        term: Option<TermEnd>,
    },
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

// === impl RunError ===

impl From<ConfigError> for RunError {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => write!(f, "configure the candidate: {error}"),
            Self::BoundElsewhere { name, lease } => write!(
                f,
                "register {name}: its LeaseCandidate belongs to the lease {lease} and cannot change that"
            ),
            Self::Invalid(error) => write!(f, "register: {error}"),
            Self::PartEnded { part, how, term } => {
                write!(f, "run {part} alongside the work: it {how}")?;
                term.iter()
                    .try_for_each(|end| write!(f, "; the term ended: {end}"))
            }
        }
    }
}

impl std::error::Error for RunError {}
