//! The binaries `elector` and `kubectl-elector`: wiring and words only. The plugin alone is for systems other than Unix too.

mod block_on;
#[cfg(unix)]
mod elector_command;
mod explain;
mod input;
mod kubectl;
mod namespace;
mod output;
mod yaml;

#[cfg(unix)]
mod candidate;
#[cfg(unix)]
mod dev;
#[cfg(unix)]
mod endpoints;
#[cfg(unix)]
mod fence_policy;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod verify;

use std::process::ExitCode;

/// Runs the binary `elector`.
#[cfg(unix)]
pub fn elector() -> ExitCode {
    exit_code(elector_command::run())
}

/// Runs the binary `elector`, which is for Unix: it ends processes by signals.
#[cfg(not(unix))]
pub fn elector() -> ExitCode {
    exit_code(Err(anyhow::anyhow!(
        "run elector: it is for Unix; kubectl-elector is for this system"
    )))
}

/// Runs the binary `kubectl-elector`, a plugin of kubectl.
pub fn kubectl_elector() -> ExitCode {
    exit_code(kubectl::run())
}

fn exit_code(done: anyhow::Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        output::print_error(format_args!("failed to {error:#}"));
        ExitCode::FAILURE
    })
}
