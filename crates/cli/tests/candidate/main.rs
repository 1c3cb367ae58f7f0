//! `elector candidate` as a process, and the processes between it and its command.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

mod leading;
mod probes;
#[cfg(target_os = "linux")]
mod supervisor;
mod variables;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// The longest wait for anything: a machine under load is slow.
const PATIENCE: Duration = Duration::from_secs(60);

fn elector() -> Command {
    Command::new(env!("CARGO_BIN_EXE_elector"))
}

/// The value of a condition, once it has one.
fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The state of a process and its parent, `None` where there is no such process.
fn state(process: impl std::fmt::Display) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(") ")?;
    let mut fields = after.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

/// True while a process runs. One that only waits for its parent to take note of its end runs no more.
fn runs(process: impl std::fmt::Display) -> bool {
    state(process).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}
