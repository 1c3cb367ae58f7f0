//! Figures of a scenario in a document, between two lines that name the scenario.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;

use anyhow::{Context as _, Result};

use crate::rig::results::ScenarioResult;

/// Writes the figures of these scenarios into a document that has a place for them.
///
/// # Errors
/// When there is no place for one of them, or the document cannot be read or written.
pub(super) fn record(path: &Path, results: &[ScenarioResult]) -> Result<()> {
    let context = || format!("failed to record figures in {}", path.display());
    let mut text = fs::read_to_string(path).with_context(context)?;
    for result in results {
        let name = result.scenario.full_name();
        text = with_table(&text, &name, &table(&result.figures)).with_context(context)?;
    }
    fs::write(path, text).with_context(context)
}

fn with_table(text: &str, name: &str, table: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- measured: {name} -->\n"), "<!-- end -->\n");
    let (before, rest) = text
        .split_once(&begin)
        .with_context(|| format!("there is no line {}", begin.trim()))?;
    let (_, after) = rest
        .split_once(end)
        .with_context(|| format!("there is no line {} after {}", end.trim(), begin.trim()))?;
    Ok(format!("{before}{begin}\n{table}\n{end}{after}"))
}

fn table(figures: &[(String, String)]) -> String {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut table = format!("| measured, {processors} processors | |\n|---|---|\n");
    for (name, value) in figures {
        // Writing to a String does not fail.
        let _ = writeln!(table, "| {name} | {value} |");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_a_scenario_is_replaced_and_nothing_else() {
        let text = "a\n<!-- measured: one -->\nold\n<!-- end -->\nb\n<!-- measured: two -->\n<!-- end -->\n";
        let new = with_table(text, "one", "| new |\n").unwrap();
        assert_eq!(new, text.replace("old\n", "\n| new |\n\n"));
        assert_eq!(with_table(&new, "one", "| new |\n").unwrap(), new);
        let error = with_table(text, "three", "").unwrap_err().to_string();
        assert_eq!(error, "there is no line <!-- measured: three -->");
    }
}
