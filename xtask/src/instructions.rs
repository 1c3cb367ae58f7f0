//! `cargo xtask bench instructions`: the processor instructions of what is done for each event, held against a budget. They are
//! the same on a busy machine, where times are not.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::commands::{self, cargo};
use crate::paths;

/// The budget, from the root of the workspace.
const BUDGET: &str = "xtask/instructions.budget";

const HEADER: &str = "\
# The most instructions of what is done for each event of a watch, as valgrind counts them in a release build. A count may be
# 5 % more: another processor has other ways to copy memory. Raise a number in the commit that needs it, and say why;
# `cargo xtask bench instructions --lower` writes what stands.
";

/// The repetitions of each, few and many: the start of the program is in both counts.
const TIMES: [u64; 2] = [100, 1_100];

/// Counts them, and compares them with the budget; with `lower` the budget becomes what was counted. Without valgrind
/// nothing is counted.
///
/// # Errors
/// When something takes more than it may.
pub(crate) fn run(lower: bool) -> Result<()> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("left out: instructions, which valgrind counts, and which is not installed");
        return Ok(());
    }
    let path = paths::workspace().join(BUDGET);
    let known = fs::read_to_string(&path).unwrap_or_default();
    let budget = read(&known)?;
    let program = build()?;
    let (mut text, mut over) = (HEADER.to_owned(), Vec::new());
    for operation in ["read-candidate", "read-lease", "step-3", "step-64"] {
        let [without, with] = TIMES.map(|times| count(&program, operation, times));
        let each = (with? - without?) / (TIMES[1] - TIMES[0]);
        let allowed = budget.get(operation).copied().unwrap_or_default();
        println!("{operation:<16}{each:>9} instructions, budget {allowed}");
        if each > allowed + allowed / 20 {
            over.push(operation);
        }
        text += &format!("{operation} {each}\n");
    }
    if lower {
        return fs::write(&path, text).with_context(|| format!("failed to write {BUDGET}"));
    }
    ensure!(
        over.is_empty(),
        "more than {BUDGET} has: {}",
        over.join(", ")
    );
    Ok(())
}

/// Builds the program, and finds it.
fn build() -> Result<PathBuf> {
    let mut build = cargo();
    build.args("bench --no-run --locked --package elector-api --bench instructions".split(' '));
    let built = commands::read(build.arg("--message-format=json"))?.stdout;
    let mut executables = built.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message["executable"].as_str()?))
    });
    executables.next_back().context("cargo names no executable")
}

/// The instructions of the whole program.
fn count(program: &Path, operation: &str, times: u64) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(program).args([operation, &times.to_string()]);
    let counted = commands::read(&mut valgrind)?.stderr;
    let collected = counted
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    let (_, collected) = collected.context("valgrind counted nothing")?;
    collected.trim().parse().context("valgrind wrote no number")
}

fn read(text: &str) -> Result<BTreeMap<&str, u64>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entry = |line| -> Result<(&str, u64)> {
        let Some((name, number)) = str::split_once(line, ' ') else {
            bail!("{BUDGET}: {line:?} is no name and number");
        };
        let number = number.parse();
        Ok((name, number.with_context(|| format!("{BUDGET}: {line:?}"))?))
    };
    lines.map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_a_name_and_a_number_in_each_line() {
        let budget = read("# a comment\nstep-3 17\n").unwrap();
        assert_eq!(budget, BTreeMap::from([("step-3", 17)]));
        let error = read("step-3\n").unwrap_err().to_string();
        assert_eq!(error, format!("{BUDGET}: \"step-3\" is no name and number"));
    }
}
