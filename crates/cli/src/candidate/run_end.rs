//! The end of a run, in words and as an exit code.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use elector_candidate::{Config, Error, TermEnd};

use crate::output;

/// The exit code for wrong usage, as clap has it.
pub(super) const WRONG_USAGE: u8 = 2;

/// The exit code of a run that failed, or the words for its error.
pub(super) fn exit_code(error: Error) -> anyhow::Result<ExitCode> {
    match error {
        // The API that the cluster serves takes fewer names than others.
        Error::Config(error) => {
            output::print_error(error);
            Ok(ExitCode::from(WRONG_USAGE))
        }
        error => Err(failure(error)),
    }
}

/// The notice of a grace that a loss does not leave, in words.
pub(super) fn grace_after_loss(grace: Duration, config: &Config) -> Option<String> {
    let left = config.stop_budget();
    (grace > left).then(|| {
        format!(
            "grace-period {grace:?}: after a loss at most {left:?} of it are left, because the command is killed before \
             another candidate can lead; after a pause, or once another holder is known, nothing is left"
        )
    })
}

/// The words for a run that failed.
fn failure(error: Error) -> anyhow::Error {
    match &error {
        Error::TermEnded(TermEnd::WorkStillRuns) => anyhow!("stop the command: it still runs"),
        Error::Panicked { message, .. } => anyhow!("run the command: {message}"),
        Error::TermEnded(_) | Error::Unwell { .. } => {
            anyhow::Error::from(error).context("keep running")
        }
        _ => error.into(),
    }
}
