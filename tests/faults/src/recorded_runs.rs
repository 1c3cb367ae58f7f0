//! The recorded runs of the matrix, one a line of `docs/proofs/faults.jsonl`: what the tables are made of, and the floor of
//! work below which no later run may fall.
//!
//! A run is written down as soon as it has passed, in the place of those of the same fault and subject at other commits. So
//! a recording that is broken off goes on where it was, and one of a few rows leaves the others as they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use elector_cluster::{measured, paths};
use serde::{Deserialize, Serialize};

use crate::case::FaultCase;
use crate::case_result::{CaseResult, MAX_STALL};
use crate::fault_catalogue::FAULTS;
use crate::subject::TestSubject;

/// The recorded runs.
#[derive(Debug)]
pub struct RecordedRuns {
    path: PathBuf,
    /// The commit of the runs that are added.
    commit: String,
    runs: Vec<RecordedCase>,
    /// The least work of each fault and subject of which all runs were recorded when this was read.
    least: BTreeMap<(String, TestSubject), f64>,
}

/// A run that has passed.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedCase {
    commit: String,
    kubernetes: String,
    #[serde(flatten)]
    result: CaseResult,
}

/// The number of points by which a run may do less work than the least that is recorded.
const TOLERANCE: f64 = 10.0;

// === impl RecordedRuns ===

impl RecordedRuns {
    /// Reads those of this repository; with `add`, in order to add runs of its commit.
    ///
    /// # Errors
    /// When a line cannot be read, or there is no commit to add runs of.
    pub fn open(add: bool) -> Result<Self> {
        let commit = match add {
            true => measured::commit()?,
            false => String::new(),
        };
        Self::read(paths::workspace().join("docs/proofs/faults.jsonl"), commit)
    }

    fn read(path: PathBuf, commit: String) -> Result<Self> {
        let text = if path.exists() {
            fs::read_to_string(&path)
                .with_context(|| format!("failed to read {}", path.display()))?
        } else {
            String::new()
        };
        let lines = text.lines().enumerate().map(|(line, text)| {
            serde_json::from_str(text).with_context(|| format!("{}:{}", path.display(), line + 1))
        });
        let runs: Vec<RecordedCase> = lines.collect::<Result<_>>()?;
        let mut work: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for RecordedCase { result, .. } in runs.iter().filter(|one| one.result.stall <= MAX_STALL) {
            let of = (result.fault.clone(), result.subject);
            work.entry(of).or_default().push(result.analysis.work);
        }
        // Each phase of a fault may cost another share.
        let complete = |(name, subject): &(String, TestSubject), runs: &[f64]| {
            let fault = FAULTS.iter().find(|fault| fault.name == name);
            fault.is_some_and(|fault| runs.len() >= fault.runs(*subject) as usize)
        };
        let work = work.into_iter().filter(|(of, runs)| complete(of, runs));
        let least = work.map(|(of, runs)| (of, runs.into_iter().fold(f64::MAX, f64::min)));
        Ok(Self {
            path,
            commit,
            least: least.collect(),
            runs,
        })
    }

    /// True if this run is recorded at this commit.
    pub fn has(&self, case: &FaultCase) -> bool {
        let mut runs = self.runs.iter().filter(|one| one.commit == self.commit);
        runs.any(|one| one.result.name() == case.name())
    }

    /// The share of time with work, in percent, below which a run of this fault and subject may not fall; `None` where not
    /// every run was recorded on a machine that had time.
    pub(crate) fn floor(&self, fault: &str, subject: TestSubject) -> Option<f64> {
        let least = self.least.get(&(fault.to_owned(), subject))?;
        Some(least - TOLERANCE)
    }

    /// Records a run, if it has passed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&mut self, kubernetes: &str, result: &CaseResult) -> Result<()> {
        if !result.failures.is_empty() {
            return Ok(());
        }
        self.runs.retain(|one| {
            let same = one.result.is_of(&result.fault, result.subject);
            !same || (one.commit == self.commit && one.result.run != result.run)
        });
        self.runs.push(RecordedCase {
            commit: self.commit.clone(),
            kubernetes: kubernetes.to_owned(),
            result: result.clone(),
        });
        self.runs.sort_by_key(|one| one.result.place());
        let mut text = String::new();
        for one in &self.runs {
            text += &serde_json::to_string(one)?;
            text.push('\n');
        }
        fs::write(&self.path, text)
            .with_context(|| format!("failed to write {}", self.path.display()))
    }

    /// The results of all, in the order of the tables.
    pub(crate) fn results(&self) -> Vec<CaseResult> {
        self.runs.iter().map(|one| one.result.clone()).collect()
    }

    /// Where they come from: commits and releases, each with its number of runs.
    pub(crate) fn sources(&self) -> String {
        let mut sources: Vec<(String, usize)> = Vec::new();
        for one in &self.runs {
            let source = format!("Kubernetes {} at {}", one.kubernetes, one.commit);
            match sources.iter_mut().find(|(known, _)| *known == source) {
                Some((_, count)) => *count += 1,
                None => sources.push((source, 1)),
            }
        }
        let sources = sources
            .iter()
            .map(|(source, count)| format!("{count} on {source}"));
        sources.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(fault: &str, run: u32, work: f64) -> CaseResult {
        CaseResult {
            run,
            ..CaseResult::of_work(fault, TestSubject::Ours, 0.0, work)
        }
    }

    #[test]
    fn runs_take_the_place_of_those_of_other_commits_and_the_least_is_the_floor() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let open = |commit: &str| {
            RecordedRuns::read(folder.path().join("faults.jsonl"), commit.to_owned())
        };
        let floor = |commit| anyhow::Ok(open(commit)?.floor("killed", TestSubject::Ours));
        let mut first = open("first")?;
        first.add("1.36", &result("none", 0, 100.0))?;
        for (run, work, expected) in [(0, 80.0, None), (1, 90.0, None), (2, 70.0, Some(60.0))] {
            first.add("1.36", &result("killed", run, work))?;
            assert_eq!(floor("first")?, expected);
        }
        assert!(result("killed", 2, 59.9).analysis.below(60.0).is_some());
        assert_eq!(result("killed", 2, 60.0).analysis.below(60.0), None);
        let mut second = open("second")?;
        let failed = CaseResult {
            failures: vec!["two believers".to_owned()],
            ..result("killed", 0, 5.0)
        };
        second.add("1.36", &failed)?;
        let stalled = CaseResult {
            stall: MAX_STALL * 2.0,
            ..result("killed", 1, 5.0)
        };
        for one in [0, 2, 3]
            .map(|run| result("killed", run, 90.0))
            .iter()
            .chain([&stalled])
        {
            second.add("1.36", one)?;
        }
        assert_eq!(floor("second")?, Some(80.0));
        let sources = "1 on Kubernetes 1.36 at first, 4 on Kubernetes 1.36 at second";
        assert_eq!(open("second")?.sources(), sources);
        Ok(())
    }
}
