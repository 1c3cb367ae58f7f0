//! Reports of a candidate to its observer.

use std::sync::Arc;
use std::time::Duration;

use elector_protocol::holder::StopReason;
use elector_protocol::{Term, Token};

use crate::config::Mode;
use crate::outcome::TermEnd;
use crate::resolved_config::ResolvedConfig;
use crate::waiting::Waiting;

/// The events of a run, as values. The log says the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The LeaseCandidate exists: from now on this process may be elected.
    Registered,
    /// This process does not lead yet, for this reason: reported once for each reason, until the next term.
    Waiting(Waiting),
    /// This process took the free lease itself, without an elector. [`Self::Leading`] follows.
    Acquired {
        /// The term.
        term: Term,
        /// The time for which the lease had been free by then, by this process's own stop-watch.
        free: Duration,
    },
    /// A term has begun, and its work is about to start.
    Leading {
        /// The term.
        term: Term,
        /// Its fencing token.
        token: Token,
    },
    /// The work was asked to stop. After a loss the belief is over.
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
        /// The end of the term.
        end: TermEnd,
    },
    /// The probe of this process fails ([`Candidate::with_health`](crate::Candidate::with_health)). Its term is given up,
    /// if it leads: [`Self::Stopping`] follows, with [`StopReason::ShutDown`]. It is no candidate until [`Self::Well`].
    Unwell {
        /// The error of the probe, in one line.
        error: String,
    },
    /// The probe of a process that was unwell has passed: it is a candidate again.
    Well,
    /// The work has failed, its term has been given up, and this process is no candidate until it tries again
    /// ([`AfterFailure::Retry`](crate::AfterFailure::Retry)).
    WorkFailed {
        /// The error of the work, or its panic.
        error: String,
        /// The length of the pause.
        retry_after: Duration,
    },
}

/// The function that is told what happens.
pub(crate) type CandidateObserver = Arc<dyn Fn(&Event) + Send + Sync>;

// === impl Event ===

impl Event {
    /// One line about what happened to that candidate.
    pub(crate) fn log(&self, config: &ResolvedConfig) {
        let (lease, candidate) = (&config.lease, &config.identity);
        match self {
            Self::Registered => tracing::info!(%lease, %candidate, "registered"),
            Self::Waiting(waiting) => {
                let at_most = waiting
                    .at_most()
                    .map(|it| tracing::field::debug(to_millis(it)));
                tracing::info!(%lease, %candidate, reason = waiting.reason(), at_most, "waiting");
            }
            Self::Acquired { term, free } => {
                let free = to_millis(*free);
                if config.given.mode == Mode::Plain {
                    tracing::info!(%lease, %term, ?free, "acquired the lease");
                } else {
                    tracing::info!(%lease, %term, ?free, "acquired the lease: no elector is active");
                }
            }
            Self::Leading { term, token } => tracing::info!(%lease, %term, %token, "leading"),
            Self::Stopping { term, reason } => {
                let cause = match reason {
                    StopReason::Lost(loss) => Some(loss.cause()),
                    _ => None,
                };
                tracing::info!(%lease, %term, %reason, cause, "stopping the work");
            }
            Self::WorkStopped { term } => tracing::debug!(%lease, %term, "the work has stopped"),
            Self::Ended { term, end } => {
                tracing::info!(%lease, %term, %end, cause = end.cause(), "stopped leading");
            }
            Self::Unwell { error } => {
                tracing::warn!(%lease, %candidate, error, "unwell: withdrawn until the health probe passes");
            }
            Self::Well => tracing::info!(%lease, %candidate, "the health probe passes again"),
            Self::WorkFailed { error, retry_after } => {
                let retry_after = to_millis(*retry_after);
                tracing::warn!(%lease, %candidate, error, ?retry_after, "the work failed");
            }
        }
    }
}

/// The duration without what is less than a millisecond, for people.
const fn to_millis(duration: Duration) -> Duration {
    Duration::new(duration.as_secs(), duration.subsec_millis() * 1_000_000)
}
