//! The command that dies with its supervisor.
//!
//! The supervisor runs `elector` once more with a hidden sub-command, which asks the kernel to be killed when its parent
//! dies, makes sure that the parent has not died before, and then becomes the command. There is no window in which the
//! command runs and outlives the supervisor, and no unsafe code between fork and exec.
//!
//! The signal reaches the command itself and not what the command has started: after a SIGKILL of the supervisor, that
//! is left to the command. In every other case the supervisor kills all of it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use clap::Args;

use crate::output::print_error;

/// The hidden sub-command.
#[derive(Debug, Args)]
pub(crate) struct ExecChildArgs {
    /// The process id of the supervisor.
    parent: i32,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Its name, which is not meant to be typed.
pub(crate) const NAME: &str = "exec-with-parent";

/// The exit code of shells for a command that cannot be run.
pub(crate) const CANNOT_RUN: u8 = 126;
/// The exit code of shells for a command that does not exist.
pub(crate) const NOT_FOUND: u8 = 127;

/// Becomes the command. Returns only when it cannot.
pub(crate) fn run(args: &ExecChildArgs) -> ExitCode {
    if let Err(error) = die_with(args.parent) {
        print_error(format_args!(
            "failed to tie {:?} to its parent: {error}",
            args.command[0]
        ));
        return ExitCode::from(CANNOT_RUN);
    }
    let error = Command::new(&args.command[0])
        .args(&args.command[1..])
        .exec();
    print_error(format_args!("failed to run {:?}: {error}", args.command[0]));
    ExitCode::from(match error.kind() {
        std::io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    })
}

#[cfg(target_os = "linux")]
fn die_with(parent: i32) -> Result<(), String> {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    // A parent that died before the line above sends no signal.
    if getppid().map(Pid::as_raw_nonzero).map(i32::from) != Some(parent) {
        return Err("it has died".to_owned());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature everywhere")]
fn die_with(_parent: i32) -> Result<(), String> {
    // No such signal here: a supervisor that is killed leaves its command behind.
    Ok(())
}
