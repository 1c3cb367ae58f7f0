//! The table of threats in `SECURITY.md`, held against the repository: each measure and each test that it names exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::paths;

/// Where the table is.
const DOCUMENT: &str = "SECURITY.md";

/// The threats, each of which has a row.
const THREATS: [&str; 18] = [
    "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "T13", "T14", "T15",
    "T16", "T17", "T18",
];

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ThreatRow {
    id: String,
    /// The files of its measures.
    measures: Vec<String>,
    /// Its tests, as `file::name`.
    tests: Vec<String>,
    /// What is not defended against yet; empty for nothing.
    open: String,
}

/// Checks the table, and prints a line for each threat.
///
/// # Errors
/// When it names something that does not exist, or a row or a cell is missing.
pub(crate) fn check() -> Result<()> {
    let rows = check_in(paths::workspace())?;
    for row in &rows {
        let (measures, tests) = (row.measures.len(), row.tests.len());
        let open = match row.open.as_str() {
            "" => String::new(),
            open => format!("; open: {open}"),
        };
        println!("{}: {measures} measures, {tests} tests{open}", row.id);
    }
    Ok(())
}

fn check_in(workspace: &Path) -> Result<Vec<ThreatRow>> {
    let text = read(workspace, DOCUMENT)?;
    let rows = rows(&text)?;
    let known: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    if known.len() < rows.len() {
        bail!("{DOCUMENT}: a threat has more than one row");
    }
    if let Some(missing) = THREATS.iter().find(|id| !known.contains(*id)) {
        bail!("{DOCUMENT}: {missing} has no row");
    }
    if let Some(strange) = known.iter().find(|id| !THREATS.contains(*id)) {
        bail!("{DOCUMENT}: {strange} is no threat that a row is expected of");
    }
    for row in &rows {
        row.check(workspace)?;
    }
    Ok(rows)
}

/// The rows whose first cell is the id of a threat.
fn rows(text: &str) -> Result<Vec<ThreatRow>> {
    let lines = text.lines().filter(|line| line.starts_with("| T"));
    lines.map(ThreatRow::parse).collect()
}

fn read(workspace: &Path, file: &str) -> Result<String> {
    fs::read_to_string(workspace.join(file)).with_context(|| format!("failed to read {file}"))
}

/// What stands between backticks and is the path of a file.
fn paths_in(cell: &str) -> Vec<String> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted
        .filter(|text| text.contains('/') || text.contains('.'))
        .filter(|text| !text.contains(' '))
        .map(str::to_owned)
        .collect()
}

// === impl ThreatRow ===

impl ThreatRow {
    fn parse(line: &str) -> Result<Self> {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let &[id, _threat, measures, tests, open] = cells.as_slice() else {
            let id = cells.first().copied().unwrap_or_default();
            bail!(
                "{DOCUMENT}: the row of {id} has {} cells and not 5",
                cells.len()
            );
        };
        if open.is_empty() {
            bail!("{DOCUMENT}: the row of {id} does not say what is open, or that none is");
        }
        Ok(Self {
            id: id.to_owned(),
            measures: paths_in(measures),
            tests: paths_in(tests),
            open: open.strip_prefix("none").unwrap_or(open).to_owned(),
        })
    }

    fn check(&self, workspace: &Path) -> Result<()> {
        let id = &self.id;
        if self.measures.is_empty() || self.tests.is_empty() {
            bail!("{DOCUMENT}: the row of {id} names no measure, or no test");
        }
        for file in &self.measures {
            if !workspace.join(file).is_file() {
                bail!("{DOCUMENT}: {id} names the measure {file}, and there is no such file");
            }
        }
        for test in &self.tests {
            let (file, name) = test.split_once("::").with_context(|| {
                format!("{DOCUMENT}: {id} names {test}, which is not `file::test`")
            })?;
            let source = read(workspace, file).with_context(|| format!("{DOCUMENT}: {id}"))?;
            // A test of cargo's, or a scenario, whose name is a string.
            if !source.contains(&format!("fn {name}(")) && !source.contains(&format!("{name:?}")) {
                bail!("{DOCUMENT}: {id} names the test {name}, which {file} does not have");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "| T1 | a coup | It is refused (`policies.yaml`, R23) | `tests/a.rs::it_is_refused`, `tests/a.rs::scenario` | none |";

    /// A workspace with that row, and the same one for each other threat.
    fn workspace(row: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let others = THREATS[1..]
            .iter()
            .map(|id| ROW.replace("T1 ", &format!("{id} ")));
        let rows: Vec<String> = std::iter::once(row.to_owned()).chain(others).collect();
        fs::write(folder.path().join(DOCUMENT), rows.join("\n")).unwrap();
        fs::write(folder.path().join("policies.yaml"), "").unwrap();
        fs::create_dir(folder.path().join("tests")).unwrap();
        let source = "fn it_is_refused() {}\nadd(\"scenario\")";
        fs::write(folder.path().join("tests/a.rs"), source).unwrap();
        folder
    }

    fn complaint(row: &str) -> String {
        let workspace = workspace(row);
        format!("{:#}", check_in(workspace.path()).unwrap_err())
    }

    #[test]
    fn the_threats_have_measures_and_tests() {
        let rows = check_in(paths::workspace()).unwrap();
        assert_eq!(rows.len(), THREATS.len());
    }

    #[test]
    fn a_row_is_read_whole() {
        let workspace = workspace(ROW);
        let rows = check_in(workspace.path()).unwrap();
        assert_eq!(rows[0].measures, ["policies.yaml"]);
        assert_eq!(
            rows[0].tests,
            ["tests/a.rs::it_is_refused", "tests/a.rs::scenario"]
        );
        assert_eq!(rows[0].open, "");
    }

    #[test]
    fn what_does_not_exist_is_named() {
        for (from, to, says) in [
            ("T1 ", "T99 ", "T1 has no row"),
            ("T1 ", "T2 ", "more than one row"),
            (
                "policies.yaml",
                "other.yaml",
                "T1 names the measure other.yaml",
            ),
            ("::it_is_refused", "::it_is", "T1 names the test it_is,"),
            ("tests/a.rs::it", "tests/b.rs::it", "tests/b.rs"),
            ("::scenario", "", "which is not `file::test`"),
            (
                "`policies.yaml`, R23",
                "R23",
                "names no measure, or no test",
            ),
            (
                "| none |",
                "| |",
                "does not say what is open, or that none is",
            ),
            ("| none |", "|", "has 4 cells and not 5"),
        ] {
            let said = complaint(&ROW.replacen(from, to, 1));
            assert!(said.contains(says), "{said}");
        }
    }
}
