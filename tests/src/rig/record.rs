//! Figures of a scenario in a document, between two lines that name the scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_cluster::measured;

use crate::rig::results::ScenarioResult;

/// Writes the figures of these scenarios into a document that has a place for them.
pub(super) fn record(path: &Path, results: &[ScenarioResult]) -> Result<()> {
    for result in results {
        measured::record(path, &result.scenario.full_name(), &table(&result.figures))?;
    }
    Ok(())
}

/// Writes the table of the suite into a document that has a place for it: a row for each row of the cells of these
/// scenarios, which have one for each column. `earlier` is the commit that was upgraded, if one was.
pub(super) fn record_table(
    path: &Path,
    columns: &[&'static str],
    earlier: Option<&str>,
    results: &[ScenarioResult],
) -> Result<()> {
    let cells = results.iter().flat_map(|result| result.cells.iter());
    let mut known = BTreeMap::new();
    for (row, column, value) in cells {
        known.insert((row.as_str(), *column), *value);
    }
    let table = cells_table(columns, earlier, &known)?;
    measured::record(path, TABLE, &table)
}

fn cells_table(
    columns: &[&'static str],
    earlier: Option<&str>,
    cells: &BTreeMap<(&str, &str), Duration>,
) -> Result<String> {
    let rows: BTreeSet<&str> = cells.keys().map(|(row, _)| *row).collect();
    let mut table = format!(
        "| seconds | {} |\n|---|{}\n",
        columns.join(" | "),
        "---|".repeat(columns.len())
    );
    for row in rows {
        // Writing to a String does not fail.
        let _ = write!(table, "| `{row}` |");
        for column in columns {
            let value = cells.get(&(row, *column));
            let value = value.with_context(|| format!("{row} has no cell {column}"))?;
            let _ = write!(table, " {:.2} |", value.as_secs_f64());
        }
        table.push('\n');
    }
    if let Some(commit) = earlier {
        let commit = &commit[..commit.len().min(12)];
        let _ = writeln!(table, "\nUpgraded from {commit}.");
    }
    Ok(table)
}

fn table(figures: &[(String, String)]) -> String {
    let mut table = "| measured | |\n|---|---|\n".to_owned();
    for (name, value) in figures {
        // Writing to a String does not fail.
        let _ = writeln!(table, "| {name} | {value} |");
    }
    table
}

/// The name of the suite's table in a document.
const TABLE: &str = "overlays";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_suite_has_every_cell_or_is_refused() {
        let second = Duration::from_secs(1);
        let mut cells = BTreeMap::from([(("b", "up"), second / 4), (("a", "up"), second)]);
        cells.insert(("a", "down"), second * 2);
        let error = cells_table(&["up", "down"], None, &cells).unwrap_err();
        assert_eq!(error.to_string(), "b has no cell down");
        cells.insert(("b", "down"), second * 3);
        let table = cells_table(&["up", "down"], Some("0123456789abcdef"), &cells).unwrap();
        let rows = "| seconds | up | down |\n|---|---|---|\n| `a` | 1.00 | 2.00 |\n| `b` | 0.25 | 3.00 |\n";
        assert!(table.starts_with(rows), "{table}");
        let holds = table.ends_with("\n\nUpgraded from 0123456789ab.\n");
        assert!(holds, "{table}");
    }
}
