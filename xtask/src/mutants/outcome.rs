//! The outcomes that cargo-mutants writes down.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::sample::ListedMutant;
use super::verdict::MutantVerdict;

/// The outcome of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MutantOutcome {
    pub(super) verdict: MutantVerdict,
    /// The first test that failed.
    pub(super) test: Option<String>,
}

#[derive(Deserialize)]
struct OutcomeFile {
    outcomes: Vec<WrittenOutcome>,
}

#[derive(Deserialize)]
struct WrittenOutcome {
    scenario: PlayedScenario,
    summary: String,
    log_path: PathBuf,
}

#[derive(Deserialize)]
enum PlayedScenario {
    Baseline,
    Mutant(ListedMutant),
}

/// The outcome of the mutant of that name, in a folder that cargo-mutants wrote.
pub(super) fn outcome(folder: &Path, name: &str) -> Result<MutantOutcome> {
    let file = folder.join("outcomes.json");
    let text = fs::read_to_string(&file);
    let text = text.with_context(|| format!("cargo-mutants wrote no {}", file.display()))?;
    let read: OutcomeFile = serde_json::from_str(&text)
        .with_context(|| format!("failed to read {}", file.display()))?;
    let is_meant = |it: &WrittenOutcome| matches!(&it.scenario, PlayedScenario::Mutant(mutant) if mutant.name == name);
    let written = read.outcomes.into_iter().find(is_meant);
    let written = written.with_context(|| {
        let folder = folder.display();
        format!("cargo-mutants did not play {name:?}; its log is in {folder}")
    })?;
    let verdict = match &*written.summary {
        "CaughtMutant" => MutantVerdict::KilledByItsCrate,
        "Timeout" => MutantVerdict::TimedOut,
        "Unviable" => MutantVerdict::Unviable,
        "MissedMutant" => MutantVerdict::Survived,
        other => bail!("cargo-mutants says {other:?} of {name}"),
    };
    let test = fs::read_to_string(folder.join(written.log_path)).ok();
    let test = test.and_then(|log| failed_test(&log).map(str::to_owned));
    Ok(MutantOutcome { verdict, test })
}

/// The first test that failed, by the log of a mutant.
fn failed_test(log: &str) -> Option<&str> {
    let mut ends = log.lines().filter_map(|line| line.strip_prefix("test "));
    ends.find_map(|end| end.strip_suffix(" ... FAILED"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mutant_has_its_verdict_and_the_test_that_its_own_log_names() {
        let folder = tempfile::tempdir().unwrap();
        let log = "test a::passes ... ok\ntest a::holds ... FAILED\ntest b ... FAILED\n";
        fs::write(folder.path().join("1.log"), log).unwrap();
        fs::write(folder.path().join("2.log"), "test a ... ok\n").unwrap();
        let written = |name, summary, log| {
            let scenario =
                json!({ "Mutant": { "name": name, "package": "p", "genre": "FnValue" } });
            json!({ "scenario": scenario, "summary": summary, "log_path": log })
        };
        let outcomes = [
            json!({ "scenario": "Baseline", "summary": "Success", "log_path": "0.log" }),
            written("caught", "CaughtMutant", "1.log"),
            written("missed", "MissedMutant", "2.log"),
            written("odd", "Eaten", "1.log"),
        ];
        let text = json!({ "outcomes": outcomes, "missed": 1 }).to_string();
        fs::write(folder.path().join("outcomes.json"), text).unwrap();
        for (name, verdict, test) in [
            ("caught", MutantVerdict::KilledByItsCrate, Some("a::holds")),
            ("missed", MutantVerdict::Survived, None),
        ] {
            let test = test.map(str::to_owned);
            let expected = MutantOutcome { verdict, test };
            assert_eq!(outcome(folder.path(), name).unwrap(), expected);
        }
        for (name, why) in [
            ("odd", "\"Eaten\" of odd"),
            ("none", "did not play \"none\""),
        ] {
            let error = outcome(folder.path(), name).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
