//! Reports of a candidate to its observer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use elector_protocol::LeaseKey;
use elector_protocol::holder::StopReason;

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
    /// A term has begun, and its work is about to start.
    #[non_exhaustive]
    Leading {
        /// The term.
        term: i32,
        /// Its fencing token.
        token: u64,
        /// The way in which it began.
        by: TermOrigin,
    },
    /// The work was asked to stop. After a loss the belief is over.
    #[non_exhaustive]
    Stopping {
        /// The term.
        term: i32,
        /// Why.
        reason: StopReason,
    },
    /// Nothing of the work runs any more.
    #[non_exhaustive]
    WorkStopped {
        /// The term.
        term: i32,
    },
    /// The term is over.
    #[non_exhaustive]
    Ended {
        /// The term.
        term: i32,
        /// The end of the term.
        end: TermEnd,
    },
    /// The probe of this process fails ([`Candidate::with_health`](crate::Candidate::with_health)). Its term is given up,
    /// if it leads: [`Self::Stopping`] follows, with [`StopReason::ShutDown`]. It is no candidate until [`Self::Well`].
    #[non_exhaustive]
    Unwell {
        /// The error of the probe, in one line.
        reason: String,
    },
    /// The probe of a process that was unwell has passed: it is a candidate again.
    Well,
    /// The work has failed, its term has been given up, and this process is no candidate until it tries again
    /// ([`Config::retry_work`](crate::Config::retry_work)).
    #[non_exhaustive]
    WorkFailed {
        /// The error of the work, or its panic.
        error: String,
        /// The length of the pause.
        retry_after: Duration,
    },
}

/// The way in which a term began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TermOrigin {
    /// An elector, or the holder before, chose this process.
    Granted,
    /// This process took the free lease itself, without an elector.
    #[non_exhaustive]
    Acquired {
        /// The time for which the lease had been free by then, by this process's own stop-watch.
        free: Duration,
    },
    /// The term before had lapsed, and this process leads on in a new one: nobody had come between.
    Resumed,
    /// An earlier life of this instance held the lease, which is dead, and this process leads on in a new term
    /// ([`Config::instance_lock`](crate::Config::instance_lock)).
    Rejoined,
    /// There is no election ([`Mode::Disabled`]).
    Disabled,
}

/// The function that is told what happens to the candidate of that lease.
pub(crate) type CandidateObserver = Arc<dyn Fn(&LeaseKey, &Event) + Send + Sync>;

/// An observer that tells the one before first.
pub(crate) fn observed_also(
    before: CandidateObserver,
    observer: impl FnMut(&LeaseKey, &Event) + Send + 'static,
) -> CandidateObserver {
    let observer = Mutex::new(observer);
    Arc::new(move |lease, event| {
        before(lease, event);
        observer.lock().unwrap_or_else(PoisonError::into_inner)(lease, event);
    })
}

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
            Self::Leading { term, token, by } => {
                match by {
                    TermOrigin::Acquired { free } => {
                        let free = to_millis(*free);
                        if config.given.mode == Mode::Plain {
                            tracing::info!(%lease, %term, ?free, "acquired the lease");
                        } else {
                            tracing::info!(%lease, %term, ?free, "acquired the lease: no elector is active");
                        }
                    }
                    TermOrigin::Resumed => {
                        tracing::info!(%lease, %term, "resumed the lease: nobody had taken it");
                    }
                    TermOrigin::Rejoined => {
                        tracing::info!(%lease, %term, "rejoined the lease: the life that held it is dead");
                    }
                    TermOrigin::Granted | TermOrigin::Disabled => {}
                }
                tracing::info!(%lease, %term, %token, "leading");
            }
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
            Self::Unwell { reason } => {
                tracing::warn!(%lease, %candidate, error = reason, "unwell: withdrawn until the health probe passes");
            }
            Self::Well => tracing::info!(%lease, %candidate, "the health probe passes again"),
            Self::WorkFailed { error, retry_after } => {
                let retry_after = to_millis(*retry_after);
                tracing::warn!(%lease, %candidate, error, ?retry_after, "the work failed");
            }
        }
    }
}

/// Events for tests of an observer. A program that matches events cannot make them, since they may tell more one day.
#[cfg(feature = "test-util")]
impl Event {
    /// [`Self::Leading`].
    pub const fn leading(term: i32, token: u64, by: TermOrigin) -> Self {
        Self::Leading { term, token, by }
    }

    /// [`Self::Stopping`].
    pub const fn stopping(term: i32, reason: StopReason) -> Self {
        Self::Stopping { term, reason }
    }

    /// [`Self::WorkStopped`].
    pub const fn work_stopped(term: i32) -> Self {
        Self::WorkStopped { term }
    }

    /// [`Self::Ended`].
    pub const fn ended(term: i32, end: TermEnd) -> Self {
        Self::Ended { term, end }
    }

    /// [`Self::Unwell`].
    pub fn unwell(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self::Unwell { reason }
    }

    /// [`Self::WorkFailed`].
    pub fn work_failed(error: impl Into<String>, retry_after: Duration) -> Self {
        let error = error.into();
        Self::WorkFailed { error, retry_after }
    }
}

/// For the same tests.
#[cfg(feature = "test-util")]
impl TermOrigin {
    /// [`Self::Acquired`].
    pub const fn acquired(free: Duration) -> Self {
        Self::Acquired { free }
    }
}

/// The duration without what is less than a millisecond, for people.
const fn to_millis(duration: Duration) -> Duration {
    Duration::new(duration.as_secs(), duration.subsec_millis() * 1_000_000)
}
