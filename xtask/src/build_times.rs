//! `cargo xtask bench builds`: how long a newcomer waits, from a fresh clone with an empty cargo cache.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::commands::{cargo, show_and_run};
use crate::{measured, paths};

/// The commands in their order, each with the beginning of its row: what one has built is there for the next.
const COMMANDS: [(&str, &[&str]); 3] = [
    (
        "| `cargo xtask demo --once`, first |",
        &["xtask", "demo", "--once", "--plain"],
    ),
    ("| `cargo xtask test`, after that |", &["xtask", "test"]),
    ("| `cargo xtask test`, again |", &["xtask", "test"]),
];

/// The time of a command, and that of the processors for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandTime {
    took: Duration,
    computed: Duration,
}

/// Where the table is recorded, from the root of the workspace.
const DOCUMENT: &str = "CONTRIBUTING.md";

/// Runs the commands in a fresh clone of what is committed, and says how long each took; with `record` into the document
/// too. A command that fails at its end, as tests do, has taken its time, and its row says that it failed.
///
/// # Errors
/// When one cannot be run.
pub(crate) fn run(record: bool) -> Result<()> {
    let folder = tempfile::tempdir().context("failed to make a folder")?;
    let (clone, cache) = (folder.path().join("elector"), folder.path().join("cargo"));
    let mut cloning = Command::new("git");
    cloning.args(["clone", "--quiet"]).arg(paths::workspace());
    show_and_run(cloning.arg(&clone))?;
    fs::create_dir(&cache)?;
    let mut table = "| command | takes | of the processors |\n|---|---|---|\n".to_owned();
    for (row, command) in COMMANDS {
        table.push_str(&format!("{row} {}", time(command, &clone, &cache)?));
        println!("{table}");
    }
    if record {
        measured::record(DOCUMENT, "builds", &table)?;
    }
    Ok(())
}

/// Runs it there, and writes the rest of its row.
fn time(command: &[&str], clone: &Path, cache: &Path) -> Result<String> {
    let mut run = cargo();
    run.args(command)
        .current_dir(clone)
        .env("CARGO_HOME", cache)
        .env_remove("CARGO_TARGET_DIR");
    let (time, end) = CommandTime::with_end(&mut run)?;
    let failed = match end {
        Ok(()) => "",
        Err(error) => {
            println!("{error:#}");
            ", failed"
        }
    };
    Ok(format!("{time}{failed} |\n"))
}

// === impl CommandTime ===

impl CommandTime {
    /// Runs a command, and measures it.
    ///
    /// # Errors
    /// When it fails.
    pub(crate) fn of(command: &mut Command) -> Result<Self> {
        let (time, end) = Self::with_end(command)?;
        end.map(|()| time)
    }

    /// Runs a command that may fail, and measures it all the same.
    fn with_end(command: &mut Command) -> Result<(Self, Result<()>)> {
        let (began, computed) = (Instant::now(), processor_time()?);
        let end = show_and_run(command);
        let time = Self {
            took: began.elapsed(),
            computed: processor_time()?.saturating_sub(computed),
        };
        Ok((time, end))
    }
}

/// Two cells of a table.
impl fmt::Display for CommandTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} | {}", minutes(self.took), minutes(self.computed))
    }
}

/// The processor time of the children of this process that have ended, theirs included.
fn processor_time() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").context("failed to ask for processor time")?;
    children_time(&stat).with_context(|| format!("/proc/self/stat reads {stat:?}"))
}

/// Fields 16 and 17 of proc_pid_stat(5), in hundredths of a second, as on every Linux that Rust runs on.
fn children_time(stat: &str) -> Option<Duration> {
    // The name in parentheses may hold anything.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(13);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks()? + ticks()?) * 10))
}

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_children_is_found_behind_a_name_that_looks_like_fields() {
        let stat = "77 (a ) 1 2 (b) S 1 77 77 0 -1 4194560 1 2 3 4 5 6 1250 75 20 0 1 0 9";
        assert_eq!(children_time(stat), Some(Duration::from_millis(13_250)));
        assert_eq!(children_time("77 (a) S 1"), None);
        assert_eq!(minutes(Duration::from_secs(65)), "1 min 05 s");
    }
}
