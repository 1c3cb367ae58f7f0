//! The outcomes that cargo-mutants writes down.

use std::collections::BTreeMap;
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

/// The outcomes in a folder that cargo-mutants wrote, by the names of the mutants.
pub(super) fn outcomes(folder: &Path) -> Result<BTreeMap<String, MutantOutcome>> {
    let file = folder.join("outcomes.json");
    let text = fs::read_to_string(&file);
    let text = text.with_context(|| format!("cargo-mutants wrote no {}", file.display()))?;
    let read: OutcomeFile = serde_json::from_str(&text)
        .with_context(|| format!("failed to read {}", file.display()))?;
    let mut outcomes = BTreeMap::new();
    for written in read.outcomes {
        let PlayedScenario::Mutant(mutant) = written.scenario else {
            continue;
        };
        let verdict = match &*written.summary {
            "CaughtMutant" => MutantVerdict::KilledByItsCrate,
            "Timeout" => MutantVerdict::TimedOut,
            "Unviable" => MutantVerdict::Unviable,
            "MissedMutant" => MutantVerdict::Survived,
            other => bail!("cargo-mutants says {other:?} of {}", mutant.name),
        };
        let test = fs::read_to_string(folder.join(written.log_path)).ok();
        let test = test.and_then(|log| failed_test(&log).map(str::to_owned));
        outcomes.insert(mutant.name, MutantOutcome { verdict, test });
    }
    Ok(outcomes)
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
    fn each_mutant_has_its_verdict_and_the_test_that_its_own_log_names() {
        let folder = tempfile::tempdir().unwrap();
        let log = "test a::passes ... ok\ntest a::holds ... FAILED\ntest b ... FAILED\n";
        fs::write(folder.path().join("1.log"), log).unwrap();
        fs::write(folder.path().join("2.log"), "test a ... ok\n").unwrap();
        let outcome = |name, summary, log| {
            let scenario =
                json!({ "Mutant": { "name": name, "package": "p", "genre": "FnValue" } });
            json!({ "scenario": scenario, "summary": summary, "log_path": log })
        };
        let write = |outcomes| {
            let text = json!({ "outcomes": outcomes, "missed": 1 }).to_string();
            fs::write(folder.path().join("outcomes.json"), text).unwrap();
        };
        write(vec![
            json!({ "scenario": "Baseline", "summary": "Success", "log_path": "0.log" }),
            outcome("caught", "CaughtMutant", "1.log"),
            outcome("missed", "MissedMutant", "2.log"),
        ]);
        let read = outcomes(folder.path()).unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|(name, it)| (&**name, it.verdict, it.test.as_deref()))
            .collect();
        assert_eq!(
            read,
            [
                ("caught", MutantVerdict::KilledByItsCrate, Some("a::holds")),
                ("missed", MutantVerdict::Survived, None),
            ]
        );
        write(vec![outcome("odd", "Eaten", "1.log")]);
        let error = outcomes(folder.path()).unwrap_err().to_string();
        assert!(error.contains("Eaten") && error.contains("odd"), "{error}");
    }
}
