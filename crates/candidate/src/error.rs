//! The error of a run, and the ways in which a program ends with it.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::process::ExitCode;

use elector_protocol::Identity;
use tower::BoxError;

use crate::config::ConfigError;
use crate::outcome::TermEnd;

/// The reason for which a candidate cannot be made, or its run ended otherwise than by a shutdown or by work that was done.
///
/// One is reported: that of the work first, whatever else ended the run, then a panic, the end of a part, the health
/// probe, the term. A server that is away, a right that is missing and a watch that is forbidden are none: they are
/// logged, and tried again.
///
/// `Display` is one line, [`source`](StdError::source) leads on from it, and `Debug`, which a `main` with `?` prints, is
/// the line with its causes.
///
/// | variant | what helps |
/// |---|---|
/// | `Config`, `Registration` | a change: print it and exit |
/// | `Connect`, `Local` | a restart may |
/// | `Work` | `error.downcast_ref::<MyError>()`, else exit |
/// | `Panicked`, `PartEnded`, `Unwell`, `TermEnded` | exit, and be started anew; `term` says how the lease went |
///
/// Where the term is [`TermEnd::WorkStillRuns`], call [`std::process::exit`]: a runtime that ends waits for the blocked
/// thread while another process may lead.
#[non_exhaustive]
pub enum Error {
    /// The configuration breaks a rule.
    Config(ConfigError),
    /// No connection could be set up: no kubeconfig and no service account names a cluster, or it cannot be used.
    Connect(BoxError),
    /// This machine refuses a thread or a signal handler.
    Local(io::Error),
    /// The LeaseCandidate cannot be registered under this name: it belongs to another lease, which cannot be changed, or
    /// the server refuses it as invalid. Choose another name, or delete that object if no process uses it.
    Registration {
        /// The name of the LeaseCandidate.
        candidate: Identity,
        /// The reason.
        source: BoxError,
    },
    /// The work failed, perhaps while it was being stopped. This error reads, and leads to its sources, as that of the work
    /// does.
    Work {
        /// The error that the work returned.
        error: BoxError,
        /// The end of its term.
        term: TermEnd,
    },
    /// The work panicked, or a task that it has spawned ([`Leadership::spawn`](crate::Leadership::spawn)).
    Panicked {
        /// The panic's message.
        message: String,
        /// The end of its term.
        term: TermEnd,
    },
    /// This process was unwell ([`Candidate::with_health`](crate::Candidate::with_health)), and the run was to end with its
    /// term ([`Config::one_term`](crate::Config::one_term)) or could not go on because its work still runs.
    Unwell {
        /// The error of the probe, in one line.
        reason: String,
        /// The end of its term.
        term: TermEnd,
    },
    /// A part that has to run beside the work ([`Candidate::alongside`](crate::Candidate::alongside)) ended before a
    /// shutdown. The work was stopped and the lease given up.
    PartEnded {
        /// The name of the part.
        part: String,
        /// Its end: `ended`, with what it returned, or `panicked`, with the message.
        how: String,
        /// The end of the term, if there was one.
        term: Option<TermEnd>,
    },
    /// A term ended otherwise, and the run was to end with it ([`Config::one_term`](crate::Config::one_term),
    /// [`HeldLease::release`](crate::HeldLease::release)) or could not go on because its work still runs.
    TermEnded(TermEnd),
}

// === impl Error ===

impl Error {
    /// The exit code of a process that ends with this: 2 where its configuration is wrong, as the command line has it for
    /// wrong usage, otherwise 1, which has a supervisor start it again.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => write!(f, "configure the candidate: {error}"),
            Self::Connect(error) | Self::Work { error, .. } => error.fmt(f),
            Self::Local(error) => error.fmt(f),
            Self::Registration { candidate, source } => write!(f, "register {candidate}: {source}"),
            Self::Panicked { message, .. } => write!(f, "the work panicked: {message}"),
            Self::Unwell { reason, term } => write!(f, "unwell: {reason}; the term ended: {term}"),
            Self::PartEnded { part, how, term } => {
                write!(f, "run {part} alongside the work: it {how}")?;
                term.iter()
                    .try_for_each(|end| write!(f, "; the term ended: {end}"))
            }
            Self::TermEnded(end) => write!(f, "the term ended: {end}"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_causes(self))
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Connect(error)
            | Self::Work { error, .. }
            | Self::Registration { source: error, .. } => error.source(),
            Self::Local(error) => error.source(),
            _ => None,
        }
    }
}

/// The text of an error with those of its causes, as far as it does not have them already.
pub(crate) fn with_causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use elector_protocol::holder::Loss;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("write the table")]
    struct WriteError(#[source] io::Error);

    #[test]
    fn the_error_of_the_work_is_kept_with_its_sources() {
        let error = WriteError(io::Error::other("no space"));
        let term = TermEnd::Released;
        let error = Error::Work {
            error: error.into(),
            term,
        };
        assert_eq!(error.to_string(), "write the table");
        assert_eq!(error.source().unwrap().to_string(), "no space");
        assert_eq!(format!("{error:?}"), "write the table: no space");
        let Error::Work { error, .. } = error else {
            unreachable!()
        };
        assert!(error.is::<WriteError>());
    }

    #[test]
    fn the_line_says_how_the_term_ended_and_the_exit_code_whether_a_restart_helps() {
        let lost = TermEnd::Lost(Loss::DeadlinePassed);
        let config = crate::Config::plain("Web").validate().unwrap_err();
        for (error, text, code) in [
            (
                Error::TermEnded(lost.clone()),
                "the term ended: lost: no renewal succeeded within the renew deadline",
                ExitCode::FAILURE,
            ),
            (
                Error::Unwell {
                    reason: "disk full".to_owned(),
                    term: TermEnd::Released,
                },
                "unwell: disk full; the term ended: released",
                ExitCode::FAILURE,
            ),
            (
                Error::PartEnded {
                    part: "http".to_owned(),
                    how: "ended".to_owned(),
                    term: None,
                },
                "run http alongside the work: it ended",
                ExitCode::FAILURE,
            ),
            (
                Error::Panicked {
                    message: "at line 3".to_owned(),
                    term: lost,
                },
                "the work panicked: at line 3",
                ExitCode::FAILURE,
            ),
            (
                Error::Config(config),
                "configure the candidate: lease is refused",
                ExitCode::from(2),
            ),
        ] {
            assert!(error.to_string().starts_with(text), "{error}");
            assert_eq!(format!("{error:?}"), error.to_string());
            assert_eq!(error.exit_code(), code, "{error}");
        }
    }
}
