//! `cargo xtask mutants`: small changes of the code that ships, each of which some test should notice.
//!
//! ```text
//!   all mutants of a crate ──seed──> sample ──> tests of the crate ──missed──> tests of its users ──> verdict
//! ```
//!
//! cargo-mutants makes and plays them, in a clone of what is committed, one after the other. Each verdict is written down, so
//! that a run which is broken off goes on where it was.

mod leftovers;
mod outcome;
mod page;
mod reason;
mod rule;
mod sample;
mod verdict;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueEnum};

use self::leftovers::kill_leftovers;
use self::outcome::{MutantOutcome, outcome};
use self::page::MutantPage;
use self::reason::MutantReasons;
use self::rule::{rules_at, rules_in_headings};
use self::sample::{ListedMutant, sample};
use self::verdict::{MutantSample, MutantVerdict, PlayedMutant, VerdictFile};
use crate::cargo_tool::CargoTool;
use crate::commands::{self, cargo};
use crate::{measured, paths, revision};

const TOOL: CargoTool = CargoTool {
    name: "cargo-mutants",
    version: "27.1.0",
};

/// The recorded verdicts and their page, from the root of the workspace.
const RECORDED: &str = "docs/proofs/mutants.tsv";
const PAGE: &str = "docs/proofs/mutants.md";

/// The rules, from the root of a tree.
const PROTOCOL: &str = "docs/protocol.md";

/// A crate whose mutants are played.
struct MutatedCrate {
    package: &'static str,
    /// The number of its mutants in a usual sample.
    sample: usize,
    /// The packages whose tests a mutant meets that its own let pass, if any.
    users: &'static [&'static str],
    /// The time limit for its own tests, in seconds: many times what they take.
    timeout: &'static str,
    /// The files that its sample is of, all where it names none. Lots are of all in any case.
    files: &'static [&'static str],
}

const CRATES: [MutatedCrate; 8] = [
    MutatedCrate {
        package: "elector-protocol",
        sample: 80,
        // A rule is tested where it is decided; and the tests of three users take as long as thirty mutants.
        users: &[],
        timeout: "40",
        files: &[],
    },
    MutatedCrate {
        package: "elector-workqueue",
        sample: 60,
        users: &["elector"],
        timeout: "60",
        files: &[],
    },
    MutatedCrate {
        package: "elector-api",
        sample: 60,
        users: &["elector-runtime", "elector-candidate", "elector"],
        timeout: TIMEOUT,
        files: &[],
    },
    MutatedCrate {
        package: "elector-runtime",
        sample: 60,
        users: &["elector-candidate", "elector"],
        timeout: TIMEOUT,
        files: &[],
    },
    MutatedCrate {
        package: "elector",
        sample: 60,
        users: &["elector-cli"],
        timeout: TIMEOUT,
        files: &[],
    },
    MutatedCrate {
        package: "elector-candidate",
        sample: 60,
        users: &["elector-testing", "elector-cli"],
        timeout: TIMEOUT,
        files: &[],
    },
    MutatedCrate {
        package: "elector-verify",
        sample: 60,
        users: &["elector-cli"],
        timeout: TIMEOUT,
        files: &[],
    },
    MutatedCrate {
        package: "elector-cli",
        sample: 60,
        users: &[],
        timeout: TIMEOUT,
        // Commands, and all that comes of them when a term ends.
        files: &[
            "**/candidate/{child,exec_child,descendants,pid1,reaper,run_end,stop_timer,term_runner}.rs",
            "**/candidate/supervisor*.rs",
        ],
    },
];

/// The crates that ship and have no mutants, and why: shown in the page.
const LEFT_OUT: [(&str, &str); 2] = [
    (
        "elector-apiserver",
        "it stands in for an API server where there is none, elects nobody, and is compared with a real one answer by answer",
    ),
    (
        "elector-testing",
        "it is a kit for the tests of programs, and runs beside no lease that leads anything",
    ),
];

/// The mutants that are wanted.
#[derive(Debug, Args)]
pub(crate) struct MutationRun {
    /// Only the mutants of these packages
    #[arg(value_name = "PACKAGE", value_parser = names())]
    packages: Vec<String>,

    /// The seed that chooses the sample
    #[arg(long, default_value_t = 1, conflicts_with = "again")]
    seed: u64,

    /// The number of mutants of each package, in the place of 80 of elector-protocol and 60 of each other one; all of them
    /// where it has no more
    #[arg(long, value_name = "NUMBER", conflicts_with = "again")]
    sample: Option<usize>,

    /// Play so many breakages that compile, drawn by the seed from all files of all packages together; 0 writes the page anew
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["again", "sample"])]
    lot: Option<usize>,

    /// Play the recorded mutants again that a test noticed, or those that survived, as far as their functions still exist
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "noticed")]
    again: Option<PlayedBefore>,

    /// Play the mutants of the admission policies, all of them, on a real kube-apiserver
    #[arg(long, conflicts_with_all = ["packages", "again", "lot", "sample", "seed", "revision"])]
    policies: bool,

    /// Play the mutants of this revision, in the place of the last one that changed more than documents
    #[arg(long, value_name = "REV")]
    revision: Option<String>,

    /// Write each verdict into docs/proofs at once, and the table at the end
    #[arg(long)]
    record: bool,
}

/// Mutants by what became of them when they were played last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlayedBefore {
    Noticed,
    Survived,
}

/// The output of cargo-mutants, in the folder that it is given.
const OUTPUT: &str = "mutants.out";

/// The time limit for the tests of a mutant, in seconds: several times that of the largest crate.
const TIMEOUT: &str = "240";

/// The cases of each property that a mutant meets first. With all of them the protocol's tests take seven times as long.
const FEW_CASES: &str = "16";

/// The clone, its commit, and what became of the mutants so far.
struct MutationCampaign {
    folder: PathBuf,
    tree: PathBuf,
    commit: String,
    verdicts: VerdictFile,
}

/// Plays them, and prints what became of them.
///
/// # Errors
/// When a mutant cannot be played.
pub(crate) fn run(run: &MutationRun) -> Result<()> {
    if run.policies {
        return play_policies(run.record);
    }
    TOOL.ensure()?;
    let folder = paths::workspace().join("target/mutants");
    let revision = run.revision.clone().map_or_else(measured::commit, Ok)?;
    let (tree, commit) = revision::checkout(&folder, &revision)?;
    let verdicts = VerdictFile::open(&if run.record {
        paths::workspace().join(RECORDED)
    } else {
        folder.join("mutants.tsv")
    })?;
    let mut campaign = MutationCampaign {
        folder,
        tree,
        commit,
        verdicts,
    };
    let is_wanted = |one: &&MutatedCrate| {
        run.packages.is_empty() || run.packages.iter().any(|it| it == one.package)
    };
    let mut wanted = CRATES.iter().filter(is_wanted);
    match run.lot {
        Some(size) => campaign.play_lot(wanted, run.seed, size)?,
        None => wanted.try_for_each(|one| campaign.play_crate(one, run))?,
    }
    let page = fs::read_to_string(paths::workspace().join(PAGE));
    let page = page.with_context(|| format!("failed to read {PAGE}"))?;
    let protocol = fs::read_to_string(campaign.tree.join(PROTOCOL));
    let protocol = protocol.with_context(|| format!("failed to read {PROTOCOL}"))?;
    let all = campaign.list_all()?;
    let page = MutantPage::new(&campaign.verdicts, &all, &page);
    let by_crate = page.by_crate(&LEFT_OUT);
    println!("\n{by_crate}");
    if run.record {
        measured::record(PAGE, "mutants", &by_crate)?;
        let by_rule = page.by_rule(&rules_in_headings(&protocol));
        measured::record(PAGE, "rules", &by_rule)?;
        // A lot says how well the code was guarded before, and its survivors get their tests after it.
        if run.lot.is_none() {
            let played: Vec<_> = CRATES.iter().filter(is_wanted).collect();
            let played: Vec<_> = played.iter().map(|one| one.package).collect();
            let missed = page.missed(&played);
            ensure!(missed.is_empty(), "{}", missed.join("\n"));
        }
    }
    Ok(())
}

/// Plays the mutants of the policies and of the fences, which are scenarios, and fails where one survives that the page does
/// not explain. What is not recorded is written into a copy of the page.
fn play_policies(record: bool) -> Result<()> {
    let page = paths::workspace().join(PAGE);
    let written = match record {
        true => page,
        false => {
            let copy = paths::workspace().join("target/policy-mutants.md");
            fs::copy(&page, &copy)
                .with_context(|| format!("failed to write {}", copy.display()))?;
            copy
        }
    };
    let mut play = cargo();
    let words = "test --package elector-tests --all-features --test real -- --include-ignored --long a_changed_";
    play.args(words.split(' ')).arg("--record").arg(&written);
    commands::show_and_run(&mut play)?;
    let page = fs::read_to_string(&written)
        .with_context(|| format!("failed to read {}", written.display()))?;
    let left = MutantReasons::of_page(&page).unexplained_policies(&page);
    ensure!(
        left.is_empty(),
        "mutants of policies survive that {PAGE} does not explain:\n{}",
        left.join("\n")
    );
    Ok(())
}

/// The file that a mutant changes, as it is without it.
fn source_of(tree: &Path, name: &str) -> Result<String> {
    let file = tree.join(file_of(name));
    fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))
}

fn names() -> [&'static str; 8] {
    CRATES.map(|one| one.package)
}

/// cargo-mutants in the clone, which it changes in place: so the next mutant is compiled from what the last one left.
fn mutants(tree: &Path, package: &str) -> Command {
    let mut command = cargo();
    command
        .current_dir(tree)
        .args([
            "mutants",
            "--in-place",
            "--all-features",
            "--package",
            package,
        ])
        // Code that each mutant compiles anew is seldom worth to be optimised. In many small units, and without the lines of
        // what follows the mutant, little of it is compiled.
        .args([
            "--cargo-arg=--config=profile.dev.debug=0",
            "--cargo-arg=--config=profile.dev.package.elector-protocol.opt-level=1",
            "--cargo-arg=--config=profile.dev.package.elector-protocol.codegen-units=256",
        ])
        // One mutant is judged by the same tests as the next.
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
        .env_remove("CARGO_TARGET_DIR");
    command
}

/// Plays the mutant of this name against the tests of these packages.
fn play_against(
    folder: &Path,
    tree: &Path,
    package: &str,
    (tests, timeout): (&[&str], &str),
    cases: Option<&str>,
    name: &str,
) -> Result<MutantOutcome> {
    let mut play = mutants(tree, package);
    play.args([
        "--baseline",
        "skip",
        "--timeout",
        timeout,
        "--build-timeout",
        "600",
    ])
    .args([
        "--no-times",
        "--colors",
        "never",
        "--cargo-test-arg=--tests",
    ])
    .arg("--output")
    .arg(folder)
    .args(["--re", &format!("^{}$", literal(name))]);
    // cargo-mutants plays a deleted field of a struct whatever the expression says, unless it is of another line.
    let diff = line_diff(file_of(name), &source_of(tree, name)?, line_of(name));
    let path = folder.join("line.diff");
    fs::write(&path, diff).with_context(|| format!("failed to write {}", path.display()))?;
    play.arg("--in-diff").arg(path);
    for tests in tests {
        play.args(["--test-package", tests]);
    }
    play.envs(cases.map(|cases| ("PROPTEST_CASES", cases)));
    // The exit status says the same in fewer words.
    let _ = play.output().context("failed to run cargo-mutants")?;
    // A mutant that ends no child would have it spin beside all that come after.
    kill_leftovers(&tree.join("target"));
    outcome(&folder.join(OUTPUT), name)
}

/// The diff that adds this line of a file, which has it. Lines count from 1.
fn line_diff(file: &str, source: &str, line: usize) -> String {
    let before = line.saturating_sub(1);
    let text = source.lines().nth(before).unwrap_or_default();
    format!("--- a/{file}\n+++ b/{file}\n@@ -{before},0 +{line},1 @@\n+{text}\n")
}

/// The file that a mutant changes.
fn file_of(name: &str) -> &str {
    name.split(':').next().unwrap_or_default()
}

/// The line on which a mutant begins, counted from 1.
fn line_of(name: &str) -> usize {
    let line = name.split(':').nth(1).and_then(|line| line.parse().ok());
    line.unwrap_or_default()
}

/// A regular expression for this text and nothing else.
fn literal(text: &str) -> String {
    text.chars()
        .map(|letter| match letter {
            letter if letter.is_ascii_alphanumeric() => letter.to_string(),
            letter => format!("\\x{{{:x}}}", u32::from(letter)),
        })
        .collect()
}

// === impl MutationCampaign ===

impl MutationCampaign {
    /// The mutants of a package that the sample has, or that were noticed before.
    fn play_crate(&mut self, one: &MutatedCrate, run: &MutationRun) -> Result<()> {
        let all = |files: &[&str]| self.list(one.package, files);
        let again =
            |survived| -> Result<_> { Ok(self.verdicts.again(one.package, &all(&[])?, survived)) };
        let (mutants, chosen): (Vec<_>, _) = match run.again {
            Some(PlayedBefore::Noticed) => (again(false)?, "killed before".to_owned()),
            Some(PlayedBefore::Survived) => (again(true)?, "survived before".to_owned()),
            None => {
                let size = run.sample.unwrap_or(one.sample);
                let mutants = sample(&all(one.files)?, run.seed, size);
                let words = format!("sample of {}, seed {}", mutants.len(), run.seed);
                (mutants, words)
            }
        };
        println!("{}: {} mutants, {chosen}", one.package, mutants.len());
        // Those of one file in a row: little is compiled anew for each.
        for mutant in BTreeSet::from_iter(mutants) {
            self.judge(one, &chosen, mutant)?;
        }
        Ok(())
    }

    /// As many mutants that compile, of all these packages.
    fn play_lot<'a>(
        &mut self,
        of: impl Iterator<Item = &'a MutatedCrate>,
        seed: u64,
        size: usize,
    ) -> Result<()> {
        let (mut all, mut crates) = (Vec::new(), Vec::new());
        for one in of {
            all.extend(self.list(one.package, &[])?);
            crates.push(one);
        }
        let chosen = format!("lot of {size}, seed {seed}");
        let (mut viable, mut noticed) = (0, 0);
        for mutant in sample(&all, seed, all.len()) {
            if viable == size {
                break;
            }
            let one = crates.iter().find(|one| one.package == mutant.package);
            let one = one.with_context(|| format!("{} was not asked for", mutant.package))?;
            let verdict = self.judge(one, &chosen, mutant)?;
            viable += usize::from(verdict != MutantVerdict::Unviable);
            noticed += usize::from(verdict.is_killed());
        }
        println!("{noticed} of {viable} breakages were noticed, {chosen}");
        Ok(())
    }

    /// Plays a mutant, unless that was done at this commit, and notes the verdict.
    fn judge(
        &mut self,
        one: &MutatedCrate,
        chosen: &str,
        ListedMutant { name, rules, .. }: ListedMutant,
    ) -> Result<MutantVerdict> {
        let sample = MutantSample {
            package: one.package.to_owned(),
            commit: self.commit.clone(),
            chosen: chosen.to_owned(),
        };
        let played = match self.verdicts.of(&sample, &name) {
            Some(known) => PlayedMutant {
                sample,
                ..known.clone()
            },
            None => {
                let MutantOutcome { verdict, test } = self.play(one, &name)?;
                PlayedMutant {
                    sample,
                    verdict,
                    name,
                    rules,
                    test,
                }
            }
        };
        let verdict = played.verdict;
        println!("{verdict}: {}", played.name);
        self.verdicts.note(played)?;
        Ok(verdict)
    }

    /// Every mutant of each package.
    fn list_all(&self) -> Result<Vec<ListedMutant>> {
        let listed: Result<Vec<_>> = CRATES.iter().map(|it| self.list(it.package, &[])).collect();
        Ok(listed?.concat())
    }

    /// Every mutant of a package in these files, or in all of them where none is named.
    fn list(&self, package: &str, files: &[&str]) -> Result<Vec<ListedMutant>> {
        let mut list = mutants(&self.tree, package);
        list.args(["--list", "--json"]);
        for file in files {
            list.args(["--file", file]);
        }
        let listed = commands::read(&mut list)?.stdout;
        let mut listed: Vec<ListedMutant> = serde_json::from_str(&listed)
            .with_context(|| format!("failed to read the mutants of {package}"))?;
        for mutant in &mut listed {
            mutant.rules = rules_at(&source_of(&self.tree, &mutant.name)?, line_of(&mutant.name));
        }
        Ok(listed)
    }

    /// Plays a mutant, against the tests of its crate first: with few cases of each property, which most do not outlive, then
    /// with all.
    fn play(&self, of: &MutatedCrate, name: &str) -> Result<MutantOutcome> {
        let play = |tests: &[&str], timeout, cases| {
            let (folder, tree) = (&self.folder, &self.tree);
            play_against(folder, tree, of.package, (tests, timeout), cases, name)
        };
        let own = [of.package];
        let mut outcome = play(&own, of.timeout, Some(FEW_CASES))?;
        if outcome.verdict == MutantVerdict::Survived {
            outcome = play(&own, of.timeout, None)?;
        }
        if outcome.verdict == MutantVerdict::Survived && !of.users.is_empty() {
            outcome = play(of.users, TIMEOUT, None)?;
            outcome.verdict = match outcome.verdict {
                MutantVerdict::KilledByItsCrate => MutantVerdict::KilledByUsers,
                MutantVerdict::Unviable => bail!("the users of {} do not compile", of.package),
                other => other,
            };
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_addition_after_those_before_it() {
        let diff = line_diff("src/a.rs", "a\nb\nc\n", 2);
        let expected = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,0 +2,1 @@\n+b\n";
        assert_eq!(diff, expected);
    }

    #[test]
    fn a_literal_matches_letter_by_letter() {
        assert_eq!(literal("a<b"), "a\\x{3c}b");
    }

    #[test]
    fn each_crate_that_ships_is_mutated_or_left_out_and_each_user_is_a_member() {
        let mut metadata = cargo();
        metadata.args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
        let metadata = commands::read(&mut metadata).unwrap().stdout;
        let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
        let members = metadata["packages"].as_array().unwrap().iter();
        let ships = |it: &&serde_json::Value| {
            let manifest = it["manifest_path"].as_str().unwrap();
            Path::new(manifest).starts_with(paths::workspace().join("crates"))
        };
        let members = members.filter(ships);
        let members: BTreeSet<_> = members.map(|it| it["name"].as_str().unwrap()).collect();
        let known = names()
            .into_iter()
            .chain(LEFT_OUT.map(|(package, _)| package));
        assert_eq!(known.collect::<BTreeSet<_>>(), members);
        for user in CRATES.iter().flat_map(|one| one.users) {
            assert!(members.contains(user), "{user}");
        }
    }
}
