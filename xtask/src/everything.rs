//! `cargo xtask everything`: the tests, proofs and measurements that take longer than anybody waits for, one after the other.
//!
//! Each is a task of its own, which records what it finds, and a page tells what came of them. A run that is broken off goes
//! on where that page ends, also on another machine, as long as nothing has changed but documents: what the tasks record is
//! no change.

use std::env;
use std::fmt;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::builder::PossibleValuesParser;

use crate::{commands, measured, paths};

/// The page that tells what came of the tasks, from the root of the workspace.
const PAGE: &str = "docs/proofs/everything.md";

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
    ("release-1.33", "test --kubernetes 1.33"),
    ("release-1.34", "test --kubernetes 1.34"),
    ("release-1.35", "test --kubernetes 1.35"),
    ("release-1.37", "test --kubernetes 1.37"),
    ("model", "model --full --record --skip MC-P"),
    ("model-plain", "model --full --record MC-P"),
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
    (
        "scale-electors",
        "bench scale --leases 16000 --candidates 3 --electors 2 --namespaces 2 --record",
    ),
    ("leadership", "bench leadership --record"),
    ("hand-overs", "bench hand-overs --record"),
    ("groups", "bench groups --record"),
    ("noisy", "bench noisy --record"),
    ("soak", "bench soak --minutes 120 --record"),
    ("size", "bench size --record"),
    ("builds", "bench builds --record"),
];

/// The tasks to run.
#[derive(Debug, clap::Args)]
pub(crate) struct EverythingArgs {
    /// Only these
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(STEPS.iter().map(|(name, _)| *name)))]
    names: Vec<String>,

    /// Name those that have not passed since the last change, with their commands, and run none
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

/// A row of the page: a task, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TaskRow {
    name: String,
    command: String,
    end: String,
    minutes: String,
    /// The number of times that it was played, second ones included, as far as rows have counted.
    plays: u32,
    /// The number of times that it failed and then passed with nothing changed.
    flakes: u32,
    commit: String,
}

/// Runs the tasks that have not passed yet, each to its end whatever comes of the others. False if one failed.
///
/// # Errors
/// When code has changed that is in no commit.
pub(crate) fn run(args: &EverythingArgs) -> Result<bool> {
    let mut status = Command::new("git");
    status.args(["status", "--porcelain"]);
    let status = status
        .args(measured::BUT_DOCUMENTS)
        .current_dir(paths::workspace());
    let changed = commands::read(status)?.stdout;
    ensure!(
        args.list || changed.trim().is_empty(),
        "what is recorded names a commit, and these files are in none:\n{changed}"
    );
    let commit = measured::commit()?;
    let folder = paths::workspace().join("target/everything").join(&commit);
    fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let xtask = env::current_exe().context("failed to find this program")?;
    let is_chosen =
        |name: &str| args.names.is_empty() || args.names.iter().any(|chosen| chosen == name);
    let mut passed = true;
    for (name, words) in STEPS.iter().filter(|(name, _)| is_chosen(name)) {
        let known = row_of(&page()?, name);
        if known.as_ref().is_some_and(|row| row.has_passed(&commit)) {
            continue;
        }
        println!("{name}: cargo xtask {words}");
        if args.list {
            continue;
        }
        ensure_same(&commit)?;
        let start = Instant::now();
        let command = || {
            let mut command = Command::new(&xtask);
            command.args(words.split(' '));
            command
        };
        let end = play(&folder, name, command, |end| {
            ensure_same(&commit)?;
            let minutes = start.elapsed().as_secs().div_ceil(60);
            let row = TaskRow {
                name: (*name).to_owned(),
                command: format!("`cargo xtask {words}`"),
                end: end.text().to_owned(),
                minutes: minutes.to_string(),
                plays: 1,
                flakes: 0,
                commit: commit.clone(),
            };
            let page = page()?;
            let row = row.after(row_of(&page, name).as_ref());
            measured::record(PAGE, "everything", &with_row(&page, &row))
        })?;
        passed &= end != StepEnd::Failed;
    }
    println!("logs: {}\n\n{}", folder.display(), page()?);
    Ok(passed)
}

/// Fails where code has been committed since: a document names the commit at which it is recorded, and a row this one.
fn ensure_same(commit: &str) -> Result<()> {
    let now = measured::commit()?;
    ensure!(
        now == commit,
        "code was committed meanwhile, {now} after {commit}: run the tasks again from there"
    );
    Ok(())
}

/// Plays a task, and once more where it failed, and notes the end of each play at once. Each has a log of its own, which no
/// later run overwrites.
fn play(
    folder: &Path,
    name: &str,
    command: impl Fn() -> Command,
    mut note: impl FnMut(StepEnd) -> Result<()>,
) -> Result<StepEnd> {
    for end in [StepEnd::Passed, StepEnd::PassedAgain] {
        let (path, log) = new_log(folder, name)?;
        let failed = || format!("failed to write {}", path.display());
        let mut command = command();
        command.stderr(log.try_clone().with_context(failed)?);
        let line = commands::line(&command);
        let status = command.stdout(log).status();
        if status
            .with_context(|| format!("failed to run {line}"))?
            .success()
        {
            note(end)?;
            return Ok(end);
        }
        println!("  failed: {}", path.display());
        note(StepEnd::Failed)?;
    }
    Ok(StepEnd::Failed)
}

/// A log for a play of a task, with the first number that none has.
fn new_log(folder: &Path, name: &str) -> Result<(PathBuf, File)> {
    let mut number = 1;
    loop {
        let path = folder.join(format!("{name}.{number}.log"));
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            log => {
                let log = log.with_context(|| format!("failed to write {}", path.display()))?;
                return Ok((path, log));
            }
        }
    }
}

fn page() -> Result<String> {
    fs::read_to_string(paths::workspace().join(PAGE))
        .with_context(|| format!("failed to read {PAGE}"))
}

/// The row of a task in the page, if it was ever played.
fn row_of(page: &str, name: &str) -> Option<TaskRow> {
    let mut rows = page.lines().filter_map(TaskRow::of_line);
    rows.find(|row| row.name == name)
}

/// The table of the page with this row in the place of the task's last one.
fn with_row(page: &str, row: &TaskRow) -> String {
    let rows = STEPS
        .iter()
        .filter_map(|(name, _)| match *name == row.name {
            true => Some(row.to_string()),
            false => row_of(page, name).map(|row| row.to_string()),
        });
    let rows: Vec<_> = rows.collect();
    let head =
        "| task | command | | minutes | plays | flakes | at |\n|---|---|---|--:|--:|--:|---|";
    format!("{head}\n{}", rows.join("\n"))
}

// === impl TaskRow ===

impl TaskRow {
    /// The row of a line, also of one that has no counts: it tells of one play.
    fn of_line(line: &str) -> Option<Self> {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
        let (&[name, command, end, minutes], [counts @ .., commit]) = cells.split_first_chunk()?
        else {
            return None;
        };
        let (plays, flakes) = match counts {
            [plays, flakes] => (plays.parse().ok()?, flakes.parse().ok()?),
            _ => (
                1 + u32::from(end != StepEnd::Passed.text()),
                u32::from(end == StepEnd::PassedAgain.text()),
            ),
        };
        let [name, command, end, minutes, commit] =
            [name, command, end, minutes, commit].map(str::to_owned);
        Some(Self {
            name,
            command,
            end,
            minutes,
            plays,
            flakes,
            commit,
        })
    }

    /// A task counts for the commit at which it was played.
    fn has_passed(&self, commit: &str) -> bool {
        self.commit == commit && self.end != StepEnd::Failed.text()
    }

    /// This row with the counts of the one before it, which a later play does not erase. What failed, and then passes at the
    /// same commit, is a flake.
    fn after(self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self };
        let same = before.commit == self.commit && before.end == StepEnd::Failed.text();
        let passes = same && self.end != StepEnd::Failed.text();
        Self {
            plays: before.plays + self.plays,
            flakes: before.flakes + self.flakes + u32::from(passes),
            ..self
        }
    }
}

impl fmt::Display for TaskRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [task, command, end] = [&self.name, &self.command, &self.end];
        let (minutes, plays, flakes, at) = (&self.minutes, self.plays, self.flakes, &self.commit);
        write!(
            f,
            "| {task} | {command} | {end} | {minutes} | {plays} | {flakes} | {at} |"
        )
    }
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
            let mut noted = Vec::new();
            let shell = || {
                let mut shell = Command::new("sh");
                shell.args(["-c", script]).current_dir(folder.path());
                shell
            };
            let end = play(folder.path(), "task", shell, |end| {
                noted.push(end);
                Ok(())
            });
            assert_eq!(noted.last(), end.ok().as_ref());
            noted
        };
        let (passed, failed) = (StepEnd::Passed, StepEnd::Failed);
        assert_eq!(play("echo played"), [passed]);
        let script = "test -e once || { echo broken; touch once; exit 1; }";
        assert_eq!(play(script), [failed, StepEnd::PassedAgain]);
        assert_eq!(play("false"), [failed, failed]);
        for (number, text) in ["played\n", "broken\n", "", "", ""].iter().enumerate() {
            let log = folder.path().join(format!("task.{}.log", number + 1));
            assert_eq!(fs::read_to_string(log).unwrap(), *text, "{number}");
        }
    }

    /// The first play stands in the page though the second one never ends.
    #[test]
    fn a_play_that_fails_counts_at_once_and_its_flake_with_the_next() {
        let row = |end: StepEnd| {
            let line = format!("| seeds | `x` | {} | 1 | 1 | 0 | aa |", end.text());
            TaskRow::of_line(&line).unwrap()
        };
        let failed = row(StepEnd::Failed).after(None);
        assert_eq!((failed.plays, failed.flakes), (1, 0));
        for end in [StepEnd::Passed, StepEnd::PassedAgain] {
            let passed = row(end).after(Some(&failed));
            assert_eq!((passed.plays, passed.flakes), (2, 1));
        }
        let again = row(StepEnd::Failed).after(Some(&failed));
        assert_eq!((again.plays, again.flakes), (2, 0));
    }

    /// A row without counts is one of an earlier version, and one with them has the same ends, by which that finds it.
    #[test]
    fn the_page_keeps_what_came_of_each_task_last_and_counts_what_came_before() {
        let mut page = "| model | `y` | passed | 2 | bb |\n| seeds | `x` | **passed the second time** | 9 | aa |".to_owned();
        for (end, plays, commit) in [
            ("passed", 1, "bb"),
            ("**failed**", 2, "cc"),
            ("passed", 1, "cc"),
            ("passed", 1, "cc"),
            ("**failed**", 2, "dd"),
            ("passed", 1, "ee"),
        ] {
            let new = format!("| seeds | `x` | {end} | 1 | {plays} | 0 | {commit} |");
            let new = TaskRow::of_line(&new).unwrap();
            let known = row_of(&page, "seeds");
            page = with_row(&page, &new.after(known.as_ref()));
        }
        let expected = [
            "| model | `y` | passed | 2 | 1 | 0 | bb |",
            "| seeds | `x` | passed | 1 | 10 | 2 | ee |",
        ];
        assert_eq!(page.lines().skip(2).collect::<Vec<_>>(), expected);
        let has_passed = |row, commit| TaskRow::of_line(row).unwrap().has_passed(commit);
        assert!(has_passed(expected[1], "ee"));
        assert!(!has_passed(expected[1], "ff"), "something changed since");
        let failed = "| seeds | `x` | **failed** | 1 | 1 | 0 | aa |";
        assert!(!has_passed(failed, "aa"));
        let page = super::page().unwrap();
        for row in page.lines().filter(|line| line.starts_with("| ")) {
            assert!(
                TaskRow::of_line(row).is_some() || row.starts_with("| task "),
                "{row}"
            );
        }
    }

    /// Each job of the workflow plays one task, or several that write the same table, and each task has its job.
    #[test]
    fn the_weekly_workflow_names_each_task() {
        let path = paths::workspace().join(".github/workflows/everything.yaml");
        let workflow = fs::read_to_string(path).unwrap();
        let named = workflow
            .lines()
            .filter_map(|line| line.trim().strip_prefix("- task: "));
        let named: Vec<&str> = named.flat_map(str::split_whitespace).collect();
        assert_eq!(named.len(), STEPS.len(), "each is played once");
        let named: BTreeSet<&str> = named.into_iter().collect();
        assert_eq!(named, STEPS.iter().map(|(name, _)| *name).collect());
    }
}
