//! Why a run comes to its end, and what is reported of it.

use std::convert::Infallible;

use futures::future::Fuse;
use tokio::sync::oneshot;
use tower::BoxError;

use crate::error::Error;
use crate::outcome::{Outcome, TermEnd};

/// A channel that carries nothing: its end is a shutdown.
pub(crate) type ShutdownSignal = Fuse<oneshot::Receiver<Infallible>>;

/// Why the run is coming to its end.
pub(crate) enum Finish {
    ShutDown,
    WorkEnded,
    WorkFailed(String),
    WorkPanicked(String),
    Unwell(String),
    TermEnded,
}

/// The end of a run, without what its work returned.
pub(crate) struct RunEnd {
    pub(crate) reason: Finish,
    /// The end of the last term, where a term is what ended, or was cut.
    pub(crate) term: Option<TermEnd>,
}

// === impl Finish ===

impl Finish {
    /// Keeps the reason that is to be reported: an error of the work even where something else ended the run first, and
    /// of several reasons of a kind the first.
    pub(crate) fn add_to(self, reason: &mut Option<Self>) {
        let replaces = match reason {
            None => true,
            Some(before) => self.is_error() && !before.is_error(),
        };
        if replaces {
            *reason = Some(self);
        }
    }

    fn is_error(&self) -> bool {
        matches!(self, Self::WorkFailed(_) | Self::WorkPanicked(_))
    }
}

// === impl RunEnd ===

impl RunEnd {
    /// A run whose last term ended so.
    pub(crate) fn new(reason: Option<Finish>, term: Option<TermEnd>) -> Self {
        let reason = reason.unwrap_or(Finish::ShutDown);
        let term = match reason {
            Finish::ShutDown => term,
            // Work has had a term, whatever is known of its end.
            _ => term.or(Some(TermEnd::Unconfirmed)),
        };
        Self { reason, term }
    }

    /// A shutdown between terms.
    pub(crate) const fn shut_down() -> Self {
        Self {
            reason: Finish::ShutDown,
            term: None,
        }
    }

    /// The result for the caller, with what the work returned last.
    pub(crate) fn into_result<T>(
        self,
        returned: Option<Result<T, BoxError>>,
    ) -> Result<Outcome<T>, Error> {
        let ended = |value| Outcome {
            value,
            term: self.term.clone(),
        };
        let term = self.term.clone().unwrap_or(TermEnd::Unconfirmed);
        match (self.reason, returned) {
            (Finish::ShutDown, _) if term == TermEnd::WorkStillRuns => Err(Error::TermEnded(term)),
            (Finish::ShutDown, _) => Ok(ended(None)),
            (Finish::WorkEnded, Some(Ok(value))) => Ok(ended(Some(value))),
            (Finish::WorkFailed(_), Some(Err(error))) => Err(Error::Work { error, term }),
            (Finish::WorkEnded | Finish::WorkFailed(_), _) => {
                unreachable!("the work has left what it returned before it ended")
            }
            (Finish::WorkPanicked(message), _) => Err(Error::Panicked { message, term }),
            (Finish::Unwell(reason), _) => Err(Error::Unwell { reason, term }),
            (Finish::TermEnded, _) => Err(Error::TermEnded(term)),
        }
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::holder::Loss;

    use super::*;

    fn result(reason: Finish, term: Option<TermEnd>) -> Result<Outcome<u32>, String> {
        let result = RunEnd::new(Some(reason), term).into_result(Some(Ok(7)));
        result.map_err(|error| error.to_string())
    }

    #[test]
    fn what_the_caller_or_the_work_ended_is_a_success_and_a_term_is_none() {
        let lost = TermEnd::Lost(Loss::DeadlinePassed);
        for term in [
            None,
            Some(TermEnd::Released),
            Some(TermEnd::Unconfirmed),
            Some(lost.clone()),
        ] {
            let value = None;
            let ended = result(Finish::ShutDown, term.clone());
            assert_eq!(ended, Ok(Outcome { value, term }));
        }
        let (value, term) = (Some(7), Some(lost.clone()));
        let ended = result(Finish::WorkEnded, term.clone());
        assert_eq!(ended, Ok(Outcome { value, term }));
        assert!(result(Finish::TermEnded, Some(lost)).is_err());
        let left = result(Finish::ShutDown, Some(TermEnd::WorkStillRuns));
        assert!(left.is_err(), "work that is left behind");
    }
}
