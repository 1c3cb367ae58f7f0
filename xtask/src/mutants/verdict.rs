//! The verdicts on mutants: written down one by one, summed up, and recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::sample::ListedMutant;
use crate::measured;
use crate::paths;

/// The verdict on a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MutantVerdict {
    /// A test of its crate failed.
    KilledByItsCrate,
    /// None did, and one of a crate that uses it.
    KilledByUsers,
    /// The tests did not end.
    TimedOut,
    /// It does not compile, and counts for nothing.
    Unviable,
    /// All tests passed.
    Survived,
}

/// A mutant and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlayedMutant {
    package: String,
    name: String,
    verdict: MutantVerdict,
}

/// A file with a mutant in each line: package, verdict, name.
pub(super) struct VerdictFile {
    /// Where more is written.
    file: Option<File>,
    played: Vec<PlayedMutant>,
}

/// The recorded verdicts, from the root of the workspace, and their page.
const RECORDED: &str = "docs/proofs/mutants.tsv";
const PAGE: &str = "docs/proofs/mutants.md";

// === impl MutantVerdict ===

impl MutantVerdict {
    const ALL: [Self; 5] = [
        Self::KilledByItsCrate,
        Self::KilledByUsers,
        Self::TimedOut,
        Self::Unviable,
        Self::Survived,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::KilledByItsCrate => "killed",
            Self::KilledByUsers => "killed-by-users",
            Self::TimedOut => "timed-out",
            Self::Unviable => "unviable",
            Self::Survived => "survived",
        }
    }

    fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    /// The verdict of cargo-mutants on the one mutant that it played.
    pub(super) fn read(folder: &Path, name: &str) -> Result<Self> {
        let lists = [
            ("caught.txt", Self::KilledByItsCrate),
            ("timeout.txt", Self::TimedOut),
            ("unviable.txt", Self::Unviable),
            ("missed.txt", Self::Survived),
        ];
        for (list, verdict) in lists {
            let text = fs::read_to_string(folder.join(list));
            let text = text.with_context(|| format!("cargo-mutants wrote no {list}"))?;
            if text.lines().any(|line| line == name) {
                return Ok(verdict);
            }
        }
        bail!(
            "cargo-mutants did not play {name:?}; its log is in {}",
            folder.display()
        )
    }

    /// True if a test noticed.
    const fn is_killed(self) -> bool {
        matches!(
            self,
            Self::KilledByItsCrate | Self::KilledByUsers | Self::TimedOut
        )
    }
}

impl fmt::Display for MutantVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl PlayedMutant ===

impl PlayedMutant {
    pub(super) fn new(package: &str, name: String, verdict: MutantVerdict) -> Self {
        Self {
            package: package.to_owned(),
            name,
            verdict,
        }
    }

    fn of_line(line: &str) -> Option<Self> {
        let (package, rest) = line.split_once('\t')?;
        let (verdict, name) = rest.split_once('\t')?;
        Some(Self::new(
            package,
            name.to_owned(),
            MutantVerdict::of_name(verdict)?,
        ))
    }
}

impl fmt::Display for PlayedMutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}\t{}", self.package, self.verdict, self.name)
    }
}

// === impl VerdictFile ===

impl VerdictFile {
    /// The verdicts of a run that may have been broken off.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.with_context(|| format!("failed to open {}", path.display()))?;
        if !text.is_empty() && !text.ends_with('\n') {
            // It was broken off within a line.
            writeln!(file).context("failed to write a verdict down")?;
        }
        Ok(Self {
            file: Some(file),
            played: Self::read(&text),
        })
    }

    /// Those of the repository; none before the first were recorded.
    pub(super) fn recorded() -> Self {
        let text = fs::read_to_string(paths::workspace().join(RECORDED));
        Self {
            file: None,
            played: Self::read(&text.unwrap_or_default()),
        }
    }

    fn read(text: &str) -> Vec<PlayedMutant> {
        // A line may be half of one.
        text.lines().filter_map(PlayedMutant::of_line).collect()
    }

    pub(super) fn of(&self, name: &str) -> Option<MutantVerdict> {
        let mut played = self.played.iter();
        Some(played.find(|played| played.name == name)?.verdict)
    }

    pub(super) fn note(&mut self, package: &str, name: &str, verdict: MutantVerdict) -> Result<()> {
        let played = PlayedMutant::new(package, name.to_owned(), verdict);
        if let Some(file) = &mut self.file {
            writeln!(file, "{played}").context("failed to write a verdict down")?;
        }
        self.played.push(played);
        Ok(())
    }

    /// Those of all mutants of a package that make the change of one which was killed.
    pub(super) fn killed_again(&self, package: &str, all: &[ListedMutant]) -> Vec<ListedMutant> {
        let killed =
            |played: &&PlayedMutant| played.package == package && played.verdict.is_killed();
        let killed = self.played.iter().filter(killed);
        let changes: BTreeSet<&str> = killed.map(|it| ListedMutant::change(&it.name)).collect();
        let same = |mutant: &&ListedMutant| changes.contains(ListedMutant::change(&mutant.name));
        all.iter().filter(same).cloned().collect()
    }
}

/// Prints the table and those that survived, and records both.
pub(super) fn sum_up(
    played: &BTreeMap<&str, Vec<PlayedMutant>>,
    seed: u64,
    commit: &str,
    record: bool,
) -> Result<()> {
    let mut table = format!(
        "At {commit}, seed {seed}.\n\n| crate | played | killed by its own tests | by those of its users | timed out | \
         do not compile | survived |\n|---|---|---|---|---|---|---|\n"
    );
    let mut survivors = String::new();
    for (package, played) in played {
        let count = |verdict| played.iter().filter(|it| it.verdict == verdict).count();
        let counts = MutantVerdict::ALL.map(|verdict| count(verdict).to_string());
        table += &format!(
            "| {package} | {} | {} |\n",
            played.len(),
            counts.join(" | ")
        );
        for survivor in played
            .iter()
            .filter(|it| it.verdict == MutantVerdict::Survived)
        {
            survivors += &format!("* {package}: `{}`\n", survivor.name);
        }
    }
    println!("\n{table}\n{survivors}");
    if !record {
        return Ok(());
    }
    let lines: String = played
        .values()
        .flatten()
        .map(|it| format!("{it}\n"))
        .collect();
    fs::write(paths::workspace().join(RECORDED), lines)
        .with_context(|| format!("failed to write {RECORDED}"))?;
    let survivors = format!("Those that survived:\n\n{survivors}");
    measured::record(PAGE, "mutants", &format!("{table}\n{survivors}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(name: &str) -> ListedMutant {
        ListedMutant {
            name: name.to_owned(),
        }
    }

    #[test]
    fn verdicts_are_found_again_after_a_run_that_was_broken_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("verdicts.tsv");
        for (number, verdict) in MutantVerdict::ALL.into_iter().enumerate() {
            let mut file = VerdictFile::open(&path).unwrap();
            file.note("p", &number.to_string(), verdict).unwrap();
        }
        let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
        write!(torn, "p\tkil").unwrap();
        let mut file = VerdictFile::open(&path).unwrap();
        file.note("p", "next", MutantVerdict::Survived).unwrap();
        let file = VerdictFile::open(&path).unwrap();
        assert_eq!(file.of("next"), Some(MutantVerdict::Survived));
        for (number, verdict) in MutantVerdict::ALL.into_iter().enumerate() {
            assert_eq!(file.of(&number.to_string()), Some(verdict));
        }
        assert_eq!(file.of("kil"), None);
    }

    #[test]
    fn a_killed_mutant_is_found_again_where_its_function_has_moved() {
        let line =
            |package, verdict, at| format!("{package}\t{verdict}\tsrc/a.rs:{at}: {at} in f\n");
        let text = line("p", "killed", "1:1")
            + &line("p", "survived", "2:1")
            + &line("q", "killed", "3:1");
        let recorded = VerdictFile {
            file: None,
            played: VerdictFile::read(&text),
        };
        let all = [
            "src/b.rs:9:9: 1:1 in f",
            "src/b.rs:9:9: 2:1 in f",
            "src/b.rs:9:9: 3:1 in f",
        ];
        let again = recorded.killed_again("p", &all.map(mutant));
        assert_eq!(again, [mutant(all[0])]);
    }

    #[test]
    fn what_the_tool_wrote_is_read_and_a_mutant_that_it_did_not_play_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for list in ["caught", "timeout", "unviable", "missed"] {
            fs::write(
                folder.path().join(format!("{list}.txt")),
                format!("{list}\n"),
            )
            .unwrap();
        }
        let read = |name| MutantVerdict::read(folder.path(), name);
        assert_eq!(read("caught").unwrap(), MutantVerdict::KilledByItsCrate);
        assert_eq!(read("missed").unwrap(), MutantVerdict::Survived);
        assert!(read("other").unwrap_err().to_string().contains("\"other\""));
    }
}
