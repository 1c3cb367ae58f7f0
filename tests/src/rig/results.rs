//! The results of the scenarios, as `cargo test` prints them.

use std::fmt::Write as _;
use std::time::Duration;

use crate::rig::scenario::Scenario;

/// The end of a scenario.
pub(super) struct ScenarioResult {
    pub(super) scenario: Scenario,
    pub(super) took: Duration,
    /// The figures, each with its value and unit.
    pub(super) figures: Vec<(String, String)>,
    /// The cells of the suite's table: row, column and value.
    pub(super) cells: Vec<(String, &'static str, Duration)>,
    pub(super) error: Option<String>,
}

// === impl ScenarioResult ===

impl ScenarioResult {
    pub(super) fn line(&self) -> String {
        let state = if self.error.is_none() { "ok" } else { "FAILED" };
        let mut line = format!(
            "test {} ... {state} ({:.1} s",
            self.scenario.full_name(),
            self.took.as_secs_f64()
        );
        for (name, value) in &self.figures {
            // Writing to a String does not fail.
            let _ = write!(line, "; {name} {value}");
        }
        line.push(')');
        line
    }
}

pub(super) fn summary(
    results: &[ScenarioResult],
    filtered_out: usize,
    ignored: usize,
    took: Duration,
) {
    let failures: Vec<&ScenarioResult> = results
        .iter()
        .filter(|result| result.error.is_some())
        .collect();
    if !failures.is_empty() {
        println!("\nfailures:");
    }
    for result in &failures {
        let error = result.error.as_deref().unwrap_or_default();
        println!("\n---- {} ----\n{error}", result.scenario.full_name());
    }
    let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {} passed; {} failed; {ignored} ignored; 0 measured; {filtered_out} filtered out; \
         finished in {:.2}s\n",
        results.len() - failures.len(),
        failures.len(),
        took.as_secs_f64()
    );
}
