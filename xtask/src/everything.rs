//! `cargo xtask everything`: the tests, proofs and measurements that take longer than anybody waits for, one after the other.
//!
//! Each is a task of its own, which records what it finds. A run that is broken off goes on where it was, as long as nothing
//! has changed but documents: what the tasks record is no change.

use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::builder::PossibleValuesParser;

use crate::commands;
use crate::paths;

/// Each task: its name, and the words after `cargo xtask`.
const STEPS: &[(&str, &str)] = &[
    (
        "scenarios",
        "test --require-real --long --upgrade-from defd72eda167 --timeout 2h",
    ),
    (
        "modes",
        "test --require-real --all-modes --upgrade-from 7ff9d5615830 --timeout 2h",
    ),
    ("release-1.31", "test --kubernetes 1.31"),
    ("release-1.32", "test --kubernetes 1.32"),
    ("release-1.34", "test --kubernetes 1.34"),
    ("release-1.37", "test --kubernetes 1.37"),
    ("model", "model --full --record"),
    ("seeds", "sim --seeds 10000 --from 0 --record"),
    ("faults", "faults --record"),
    ("mutants", "mutants --record"),
    ("policy-mutants", "mutants --policies --record"),
    ("upstream", "bench upstream --record"),
    (
        "scale",
        "bench scale --leases 1000,10000,100000 --candidates 3 --record",
    ),
    (
        "scale-real",
        "bench scale --leases 3000 --candidates 3 --server real --record",
    ),
    (
        "scale-groups",
        "bench scale --leases 16000,16000,16000 --candidates 3 --parts 16 --namespaces 2 --record",
    ),
    ("leadership", "bench leadership --record"),
    ("hand-overs", "bench hand-overs --record"),
    ("groups", "bench groups --record"),
    ("noisy", "bench noisy --record"),
    ("soak", "bench soak --record"),
    ("size", "bench size --record"),
];

/// The tasks to run.
#[derive(Debug, clap::Args)]
pub(crate) struct EverythingArgs {
    /// Only these
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(STEPS.iter().map(|(name, _)| *name)))]
    names: Vec<String>,

    /// Name them, with their commands and what came of them, and run none
    #[arg(long)]
    list: bool,
}

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepEnd {
    Passed,
    /// It failed, and passed when it was played again: a flake is a bug until it is proven otherwise.
    PassedAgain,
    Failed,
}

/// Runs the tasks that have not passed yet, each to its end whatever comes of the others. False if one failed.
///
/// # Errors
/// When code has changed that is in no commit.
pub(crate) fn run(args: &EverythingArgs) -> Result<bool> {
    let but_documents = ["--", ".", ":!docs", ":!README.md"];
    let changed = git(&["status", "--porcelain"], &but_documents)?;
    ensure!(
        args.list || changed.is_empty(),
        "what is recorded names a commit, and these files are in none:\n{changed}"
    );
    let commit = git(&["log", "-1", "--format=%h", "--abbrev=12"], &but_documents)?;
    let folder = paths::workspace().join("target/everything").join(&commit);
    fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let is_chosen =
        |name: &str| args.names.is_empty() || args.names.iter().any(|chosen| chosen == name);
    let mut rows = Vec::new();
    for (name, words) in STEPS.iter().filter(|(name, _)| is_chosen(name)) {
        let passed = folder.join(format!("{name}.passed"));
        if let Ok(row) = fs::read_to_string(&passed) {
            rows.push(row);
            continue;
        }
        if args.list {
            rows.push(row(name, words, "has not passed", Duration::ZERO));
            continue;
        }
        println!("{name}: cargo xtask {words}");
        let start = Instant::now();
        let xtask = env::current_exe().context("failed to find this program")?;
        let end = play(&folder, name, || {
            let mut command = Command::new(&xtask);
            command.args(words.split(' '));
            command
        })?;
        let row = row(name, words, end.text(), start.elapsed());
        if end != StepEnd::Failed {
            fs::write(&passed, &row)
                .with_context(|| format!("failed to write {}", passed.display()))?;
        }
        rows.push(row);
    }
    println!(
        "at {commit}; logs: {}\n\n| task | command | | s |\n|---|---|---|--:|",
        folder.display()
    );
    rows.iter().for_each(|row| println!("{row}"));
    Ok(args.list || !rows.iter().any(|row| row.contains(StepEnd::Failed.text())))
}

/// Plays a task, and once more where it failed. What it prints goes to a log each time.
fn play(folder: &Path, name: &str, command: impl Fn() -> Command) -> Result<StepEnd> {
    for (log, end) in [
        (format!("{name}.log"), StepEnd::Passed),
        (format!("{name}.again.log"), StepEnd::PassedAgain),
    ] {
        let path = folder.join(log);
        let failed = || format!("failed to write {}", path.display());
        let log = File::create(&path).with_context(failed)?;
        let mut command = command();
        command.stderr(log.try_clone().with_context(failed)?);
        let line = commands::line(&command);
        let status = command.stdout(log).status();
        if status
            .with_context(|| format!("failed to run {line}"))?
            .success()
        {
            return Ok(end);
        }
        println!("  failed: {}", path.display());
    }
    Ok(StepEnd::Failed)
}

fn row(name: &str, words: &str, end: &str, took: Duration) -> String {
    let seconds = took.as_secs();
    format!("| {name} | `cargo xtask {words}` | {end} | {seconds} |")
}

fn git(verb: &[&str], paths: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    git.args(verb).args(paths).current_dir(paths::workspace());
    Ok(commands::read(&mut git)?.stdout.trim().to_owned())
}

// === impl StepEnd ===

impl StepEnd {
    const fn text(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::PassedAgain => "**passed the second time**",
            Self::Failed => "**failed**",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_task_that_fails_is_played_once_more() {
        let folder = TempDir::new().unwrap();
        let play = |script: &str| {
            play(folder.path(), "task", || {
                let mut shell = Command::new("sh");
                shell.args(["-c", script]).current_dir(folder.path());
                shell
            })
            .unwrap()
        };
        assert_eq!(play("echo played"), StepEnd::Passed);
        let expected = StepEnd::PassedAgain;
        assert_eq!(play("test -e once || { touch once; exit 1; }"), expected);
        assert_eq!(play("false"), StepEnd::Failed);
        let log = fs::read_to_string(folder.path().join("task.log")).unwrap();
        assert_eq!(log, "", "each task begins its log anew");
    }

    /// Each job of the workflow plays one task, and each task has its job.
    #[test]
    fn the_weekly_workflow_names_each_task() {
        let path = paths::workspace().join(".github/workflows/everything.yaml");
        let workflow = fs::read_to_string(path).unwrap();
        let named = workflow
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- task: "));
        let named: BTreeSet<&str> = named.collect();
        assert_eq!(named, STEPS.iter().map(|(name, _)| *name).collect());
    }
}
