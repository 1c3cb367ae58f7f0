//! An outcome as a result, for callers whose process ends with the run.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use crate::outcome::{RunOutcome, TermEnd};

/// Why a run was no success ([`RunOutcome::into_result`]).
#[derive(Debug)]
#[non_exhaustive]
pub enum RunFailure {
    /// The work failed. This error reads, and leads to its sources, as that of the work does.
    Work(Box<dyn Error + Send + Sync>),
    /// The work panicked, or a task that it has spawned, with this message.
    Panicked(String),
    /// This process was unwell, and the run could not go on.
    Unwell {
        /// The error of the probe, in one line.
        error: String,
        /// The end of its term.
        term: TermEnd,
    },
    /// The term ended although neither the caller nor the work asked for it, or its work still runs.
    TermEnded(TermEnd),
}

// === impl RunOutcome ===

impl<T, E> RunOutcome<T, E> {
    /// The outcome as a result: what the work returned, or nothing where the caller ended the run.
    ///
    /// ```
    /// use elector_candidate::{RunOutcome, TermEnd};
    ///
    /// let term = TermEnd::Released;
    /// let failed = RunOutcome::<(), _>::WorkFailed { error: "disk full", term };
    /// assert_eq!(failed.into_result().unwrap_err().to_string(), "disk full");
    /// ```
    ///
    /// # Errors
    ///
    /// When the work failed or panicked, whatever else ended the run; when a term was the end of the run, by a loss, a
    /// hand-over or a probe that failed ([`AfterTerm::Return`](crate::AfterTerm::Return)); and when work that does not stop was left behind.
    pub fn into_result(self) -> Result<Option<T>, RunFailure>
    where
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        match self {
            Self::WorkFailed { error, .. } => Err(RunFailure::Work(error.into())),
            Self::WorkPanicked { message, .. } => Err(RunFailure::Panicked(message)),
            Self::TermEnded(end) | Self::ShutDown(Some(end @ TermEnd::WorkStillRuns)) => {
                Err(RunFailure::TermEnded(end))
            }
            Self::Unwell { error, term } => Err(RunFailure::Unwell { error, term }),
            Self::ShutDown(_) => Ok(None),
            Self::WorkEnded { value, .. } => Ok(Some(value)),
        }
    }

    /// The exit code of a process that ends with the run: 0 where [`Self::into_result`] is no error, otherwise 1, which
    /// tells whatever watches over the process to start it again.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::ShutDown(Some(TermEnd::WorkStillRuns))
            | Self::TermEnded(_)
            | Self::Unwell { .. }
            | Self::WorkFailed { .. }
            | Self::WorkPanicked { .. } => ExitCode::FAILURE,
            Self::ShutDown(_) | Self::WorkEnded { .. } => ExitCode::SUCCESS,
        }
    }
}

// === impl RunFailure ===

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work(error) => error.fmt(f),
            Self::Panicked(message) => write!(f, "the work panicked: {message}"),
            Self::Unwell { error, term } => write!(f, "unwell: {error}; the term ended: {term}"),
            Self::TermEnded(end) => write!(f, "the term ended: {end}"),
        }
    }
}

impl Error for RunFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Work(error) => error.source(),
            Self::Panicked(_) | Self::Unwell { .. } | Self::TermEnded(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::Identity;
    use elector_protocol::holder::Loss;

    use super::*;

    type Outcome = RunOutcome<u32, std::io::Error>;

    /// The exit code, and the value or the message.
    fn result(outcome: Outcome) -> (bool, Result<Option<u32>, String>) {
        let success = outcome.exit_code() == ExitCode::SUCCESS;
        let result = outcome.into_result();
        (success, result.map_err(|failure| failure.to_string()))
    }

    #[test]
    fn what_the_caller_or_the_work_ended_is_a_success() {
        let lost = TermEnd::Lost(Loss::DeadlinePassed);
        for end in [
            None,
            Some(TermEnd::Released),
            Some(TermEnd::Unconfirmed),
            Some(lost.clone()),
        ] {
            assert_eq!(result(Outcome::ShutDown(end)), (true, Ok(None)));
        }
        let ended = Outcome::WorkEnded {
            value: 7,
            term: lost,
        };
        assert_eq!(result(ended), (true, Ok(Some(7))));
    }

    #[test]
    fn a_term_that_ends_the_run_is_none_nor_is_work_that_is_left_behind() {
        let to = Identity::new("b").unwrap();
        for (end, text) in [
            (
                TermEnd::Lost(Loss::DeadlinePassed),
                "the term ended: lost: no renewal succeeded within the renew deadline",
            ),
            (
                TermEnd::HandedOver { to },
                "the term ended: handed over to b",
            ),
        ] {
            let ended = result(Outcome::TermEnded(end));
            assert_eq!(ended, (false, Err(text.to_owned())));
        }
        let (success, left) = result(Outcome::ShutDown(Some(TermEnd::WorkStillRuns)));
        assert!(!success && left.is_err());
    }

    #[test]
    fn the_error_of_the_work_is_kept_with_its_sources() {
        let inner = std::io::Error::other("no space");
        let error = std::io::Error::other(inner);
        let failed = Outcome::WorkFailed {
            error,
            term: TermEnd::Released,
        };
        assert_eq!(failed.exit_code(), ExitCode::FAILURE);
        let failure = failed.into_result().unwrap_err();
        assert_eq!(failure.to_string(), "no space");
        let RunFailure::Work(error) = &failure else {
            panic!("{failure:?}");
        };
        assert!(error.is::<std::io::Error>());
        assert_eq!(failure.source().is_some(), error.source().is_some());
        let message = "at line 3".to_owned();
        let panicked = Outcome::WorkPanicked {
            message,
            term: TermEnd::Released,
        };
        let text = "the work panicked: at line 3".to_owned();
        assert_eq!(result(panicked), (false, Err(text)));
    }
}
