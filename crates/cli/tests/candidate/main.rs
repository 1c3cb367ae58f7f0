//! `elector candidate` as a process, and the processes between it and its command.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod groups;
mod languages;
mod leading;
mod probes;
#[cfg(target_os = "linux")]
mod supervisor;
mod variables;

use std::fs;
use std::process::Command;

fn elector() -> Command {
    Command::new(env!("CARGO_BIN_EXE_elector"))
}

/// The state of a process and its parent, `None` where there is no such process.
fn state(process: impl std::fmt::Display) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(") ")?;
    let mut fields = after.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// Has a process stay when it was killed, until this thread waits for it. The kernel may take as long by itself.
#[cfg(target_os = "linux")]
fn trace(process: rustix::process::Pid) -> nix::unistd::Pid {
    use nix::sys::ptrace::{Options, seize};

    let process = nix::unistd::Pid::from_raw(process.as_raw_nonzero().get());
    seize(process, Options::empty()).unwrap();
    process
}

/// True while a process runs. One that only waits for its parent to take note of its end runs no more.
fn runs(process: impl std::fmt::Display) -> bool {
    state(process).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}
