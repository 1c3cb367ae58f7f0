//! Many runs in numbers, as text and as a page.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::plan::{KINDS, RunPlan};
use crate::simulation::RunReport;

/// Many runs in numbers.
#[derive(Clone, Debug, Default)]
pub struct RunStatistics {
    seeds: u64,
    failed: u64,
    lasted: Duration,
    elections: u64,
    acquired: u64,
    exempt: BTreeMap<&'static str, u64>,
    faults: [u64; KINDS.len()],
    hand_overs: Vec<Duration>,
    fail_overs: Vec<Duration>,
    unelected: Vec<Duration>,
    elector_terms: u64,
    elector_fail_overs: Vec<Duration>,
    recoveries: Vec<Duration>,
    best: Vec<Duration>,
    violations: BTreeMap<&'static str, u64>,
}

// === impl RunStatistics ===

impl RunStatistics {
    /// Adds a run.
    pub fn add(&mut self, plan: &RunPlan, report: &RunReport) {
        self.seeds += 1;
        self.failed += u64::from(!report.violations.is_empty());
        self.lasted += report.lasted;
        let leadership = &report.leadership;
        self.elections += leadership.elections;
        self.acquired += leadership.acquired;
        for (why, count) in &leadership.exempt {
            *self.exempt.entry(why).or_default() += count;
        }
        for fault in &plan.faults {
            if let Some(count) = self.faults.get_mut(fault.kind.index()) {
                *count += 1;
            }
        }
        self.hand_overs.extend(&leadership.hand_overs);
        self.fail_overs.extend(&leadership.fail_overs);
        self.unelected.extend(&leadership.unelected);
        self.elector_terms += leadership.elector_terms;
        self.elector_fail_overs
            .extend(&leadership.elector_fail_overs);
        self.recoveries.extend(&leadership.recoveries);
        self.best.extend(&leadership.best);
        for violation in &report.violations {
            *self.violations.entry(violation.rule).or_default() += 1;
        }
    }

    /// The number of runs.
    #[must_use]
    pub fn seeds(&self) -> u64 {
        self.seeds
    }

    /// The number of runs that failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// The table, as Markdown, which reads well in a terminal too.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "| {name:<34} | {value:<46} |");
        };
        row("what", "how much".to_owned());
        row("---", "---".to_owned());
        row("seeds", self.seeds.to_string());
        row(
            "virtual time",
            format!("{:.1} h", self.lasted.as_secs_f64() / 3600.0),
        );
        row("terms", self.elections.to_string());
        row("- acquired without a grant", self.acquired.to_string());
        row("hand-overs", spread(&self.hand_overs));
        row("fail-overs after a crash", spread(&self.fail_overs));
        row("- without an elector", spread(&self.unelected));
        row(
            "first leader after the last fault",
            spread(&self.recoveries),
        );
        row("best leader after that", spread(&self.best));
        row("terms of an elector's lock", self.elector_terms.to_string());
        row(
            "fail-overs of the electors",
            spread(&self.elector_fail_overs),
        );
        let exempt: u64 = self.exempt.values().sum();
        row("two believers, exempt (S1)", exempt.to_string());
        for (why, count) in &self.exempt {
            row(&format!("- {why}"), count.to_string());
        }
        let count: u64 = self.faults.iter().sum();
        row("faults drawn", count.to_string());
        for (kind, count) in KINDS.iter().zip(self.faults) {
            row(&format!("- {kind}"), count.to_string());
        }
        let violations: u64 = self.violations.values().sum();
        row("violations", violations.to_string());
        for (rule, count) in &self.violations {
            row(&format!("- {rule}"), count.to_string());
        }
        text
    }
}

/// The number of `times`, and their lengths.
fn spread(times: &[Duration]) -> String {
    let mut times = times.to_vec();
    times.sort();
    let at = |share: usize| {
        let index = times.len().saturating_sub(1) * share / 100;
        times.get(index).map_or(0.0, Duration::as_secs_f64)
    };
    if times.is_empty() {
        return "0".to_owned();
    }
    format!(
        "{}: {:.3} / {:.3} / {:.3} / {:.3} s",
        times.len(),
        at(0),
        at(50),
        at(99),
        at(100)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_names_the_least_the_middle_and_the_most() {
        let times: Vec<_> = (1..=101).rev().map(Duration::from_secs).collect();
        assert_eq!(spread(&times), "101: 1.000 / 51.000 / 100.000 / 101.000 s");
        assert_eq!(spread(&[]), "0");
    }
}
