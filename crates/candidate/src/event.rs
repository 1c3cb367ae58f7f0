//! What a candidate tells its observer.

use elector_protocol::holder::StopReason;
use elector_protocol::{Identity, LeaseKey, Term, Token};

use crate::outcome::TermEnd;

/// What happens during a run, as values. The log says the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The LeaseCandidate exists: from now on this process may be elected.
    Registered,
    /// A term has begun, and its work is about to start.
    Leading {
        /// The term.
        term: Term,
        /// Its fencing token.
        token: Token,
    },
    /// The work was told to stop. After a loss the belief is over.
    Stopping {
        /// The term.
        term: Term,
        /// Why.
        reason: StopReason,
    },
    /// Nothing of the work runs any more.
    WorkStopped {
        /// The term.
        term: Term,
    },
    /// The term is over.
    Ended {
        /// The term.
        term: Term,
        /// How it ended.
        end: TermEnd,
    },
}

/// The function that is told what happens.
pub(crate) type CandidateObserver = Box<dyn FnMut(&Event) + Send>;

// === impl Event ===

impl Event {
    /// One line about what happened to that candidate.
    pub(crate) fn log(&self, lease: &LeaseKey, candidate: &Identity) {
        match self {
            Self::Registered => tracing::info!(%lease, %candidate, "registered"),
            Self::Leading { term, token } => tracing::info!(%lease, %term, %token, "leading"),
            Self::Stopping { term, reason } => {
                tracing::info!(%lease, %term, %reason, "stopping the work");
            }
            Self::WorkStopped { term } => tracing::debug!(%lease, %term, "the work has stopped"),
            Self::Ended { term, end } => tracing::info!(%lease, %term, %end, "leading no more"),
        }
    }
}
