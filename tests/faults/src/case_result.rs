//! The result of a case.

use serde::{Deserialize, Serialize};

use crate::analysis::Analysis;
use crate::fault_catalogue::FAULTS;
use crate::last_operation::LastOperation;
use crate::subject::TestSubject;

/// The result of a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseResult {
    /// The fault's name.
    pub fault: String,
    /// The subject.
    pub subject: TestSubject,
    /// The run.
    pub run: u32,
    /// The phase of the renewal interval at which the fault struck, from 0 to 1.
    pub phase: f64,
    /// The longest time that an undisturbed process stood still meanwhile, seconds.
    pub stall: f64,
    /// The analysis of the register's log.
    #[serde(flatten)]
    pub analysis: Analysis,
    /// The last operation of the leader that the fault struck.
    pub last_operation: Option<LastOperation>,
    /// The changes of the client at work, where a picture may show the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<(f64, String)>,
    /// The violations. The work of others' candidates is not judged; what an elector of ours does for them is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// The stall of the machine, seconds, above which gaps and work say more about it than about the fault.
pub(crate) const MAX_STALL: f64 = 1.0;

// === impl CaseResult ===

impl CaseResult {
    /// The name of its case.
    pub(crate) fn name(&self) -> String {
        format!("{}::{}::{}", self.fault, self.subject, self.run)
    }

    pub(crate) fn is_of(&self, fault: &str, subject: TestSubject) -> bool {
        self.fault == fault && self.subject == subject
    }

    /// Its place in the tables.
    pub(crate) fn place(&self) -> (Option<usize>, TestSubject, u32) {
        let row = FAULTS.iter().position(|fault| fault.name == self.fault);
        (row, self.subject, self.run)
    }

    /// A run in which nothing happened.
    #[cfg(test)]
    pub(crate) fn of(fault: &str, subject: TestSubject) -> Self {
        Self {
            fault: fault.to_owned(),
            subject,
            run: 0,
            phase: 0.5,
            stall: 0.1,
            analysis: Analysis::default(),
            last_operation: None,
            changes: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// One with this much work, and two believers for this many seconds.
    #[cfg(test)]
    pub(crate) fn of_work(
        fault: &str,
        subject: TestSubject,
        two_believers: f64,
        work: f64,
    ) -> Self {
        let mut result = Self::of(fault, subject);
        (result.analysis.two_believers, result.analysis.work) = (two_believers, work);
        result
    }
}

/// The worst of all runs; gaps and work of those alone in which the machine had time for all processes, or of the one
/// in which it had the most.
pub(crate) fn worst(runs: &[&CaseResult]) -> Analysis {
    let undisturbed = Analysis::worst(undisturbed(runs));
    Analysis {
        worst_gap: undisturbed.worst_gap,
        work: undisturbed.work,
        ..Analysis::worst(runs.iter().map(|one| &one.analysis))
    }
}

/// The runs in which the machine had time, or the one in which it had the most.
pub(crate) fn undisturbed<'r>(runs: &[&'r CaseResult]) -> impl Iterator<Item = &'r Analysis> {
    let least = runs.iter().map(|one| one.stall).fold(f64::MAX, f64::min);
    let runs = runs.iter().copied();
    let runs = runs.filter(move |one| one.stall <= least.max(MAX_STALL));
    runs.map(|one| &one.analysis)
}
