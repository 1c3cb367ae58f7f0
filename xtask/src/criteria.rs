//! Tables of documents that are held against the repository: the threats in `SECURITY.md`, and the acceptance criteria
//! in `docs/proofs/criteria.md`. Each measure and each test that they name exists, a test plays the numbers that stand
//! beside it, and a row says which of its tests run with `--long` only.

mod named_test;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::paths;
use named_test::{NamedTest, Runs};

/// A table with a row for each of the ids. Its cells are the id, what is meant, the measures if it has that column, the
/// tests, and what is open.
struct Table {
    document: &'static str,
    ids: &'static [&'static str],
    has_measures: bool,
}

/// The threats.
const THREATS: Table = Table {
    document: "SECURITY.md",
    ids: &[
        "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8", "T9", "T10", "T11", "T12", "T13", "T14",
        "T15", "T16", "T17", "T18", "T19",
    ],
    has_measures: true,
};

/// The acceptance criteria.
const CRITERIA: Table = Table {
    document: "docs/proofs/criteria.md",
    ids: &[
        "P-K1", "P-K2", "P-K3", "P-K4", "P-K5", "P-K6", "P-K7", "P-K8", "P-N1", "P-N2", "P-N3",
        "P-N4", "P-N5", "P-N6", "P-N7", "P-N8", "P-N9", "P-N10", "P-N11", "P-L1", "P-L2", "P-L3",
        "P-L4", "P-L5", "P-L5b", "P-L6", "P-L7", "P-M1", "P-M2", "P-M3", "P-M4", "P-M5", "P-M6",
        "P-X-G1", "P-X-G2", "P-X-R1", "P-X-R2", "P-X-R3", "P-X-R4", "P-X-R5", "P-X-R6", "P-X-F1",
        "P-X-F2", "P-X-F3", "P-S1", "P-S2", "P-S3", "P-S4", "P-S5", "P-S6", "P-S7", "P-V1", "P-V2",
        "P-V3", "P-V4", "P-V5", "P-O1", "P-O2", "P-O3", "P-O4",
    ],
    has_measures: false,
};

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DocumentedRow {
    id: String,
    /// The files of its measures.
    measures: Vec<String>,
    tests: Vec<NamedTest>,
    /// The missing part; empty for nothing.
    open: String,
}

/// Checks the tables, and prints a line for each row.
///
/// # Errors
/// When one names something that does not exist, or a row or a cell is missing.
pub(crate) fn check() -> Result<()> {
    for table in [THREATS, CRITERIA] {
        for row in &table.check_in(paths::workspace())? {
            let tests = row.tests.len();
            let measures = match row.measures.len() {
                0 => String::new(),
                measures => format!("{measures} measures, "),
            };
            let open = match row.open.as_str() {
                "" => String::new(),
                open => format!("; open: {open}"),
            };
            println!("{}: {measures}{tests} tests{open}", row.id);
        }
    }
    Ok(())
}

fn read(workspace: &Path, file: &str) -> Result<String> {
    fs::read_to_string(workspace.join(file)).with_context(|| format!("failed to read {file}"))
}

/// The texts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The texts between backticks that are paths of files.
fn paths_in(cell: &str) -> Vec<String> {
    quoted(cell)
        .filter(|text| text.contains('/') || text.contains('.'))
        .filter(|text| !text.contains(' '))
        .map(str::to_owned)
        .collect()
}

/// The tests of a cell, each with the numbers between backticks that follow it.
fn tests_in(cell: &str) -> Vec<NamedTest> {
    let mut tests: Vec<NamedTest> = Vec::new();
    for text in quoted(cell) {
        let is_number = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_');
        match tests.last_mut() {
            Some(test) if is_number => test.numbers.push(text.replace('_', "")),
            _ => tests.extend(
                paths_in(&format!("`{text}`"))
                    .into_iter()
                    .map(|path| NamedTest {
                        path,
                        numbers: Vec::new(),
                    }),
            ),
        }
    }
    tests
}

// === impl Table ===

impl Table {
    fn check_in(&self, workspace: &Path) -> Result<Vec<DocumentedRow>> {
        let document = self.document;
        let text = read(workspace, document)?;
        let rows = self.rows(&text)?;
        let known: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        if known.len() < rows.len() {
            bail!("{document}: an id has more than one row");
        }
        if let Some(missing) = self.ids.iter().find(|id| !known.contains(*id)) {
            bail!("{document}: {missing} has no row");
        }
        if let Some(strange) = known.iter().find(|id| !self.ids.contains(*id)) {
            bail!("{document}: no row is expected of {strange}");
        }
        for row in &rows {
            self.check(row, workspace)?;
        }
        Ok(rows)
    }

    /// The rows whose first cell looks like an id: as the ids, it begins with this letter and has a number.
    fn rows(&self, text: &str) -> Result<Vec<DocumentedRow>> {
        let first = format!("| {}", &self.ids[0][..1]);
        let is_row = |line: &&str| {
            let id = line.split('|').nth(1).unwrap_or_default();
            line.starts_with(&first) && id.contains(|c: char| c.is_ascii_digit())
        };
        text.lines()
            .filter(is_row)
            .map(|line| self.parse(line))
            .collect()
    }

    fn parse(&self, line: &str) -> Result<DocumentedRow> {
        let document = self.document;
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (id, measures, tests, open) = match *cells.as_slice() {
            [id, _threat, measures, tests, open] if self.has_measures => {
                (id, measures, tests, open)
            }
            [id, _criterion, tests, open] if !self.has_measures => (id, "", tests, open),
            _ => bail!(
                "{document}: the row of {} has {} cells and not {}",
                cells.first().copied().unwrap_or_default(),
                cells.len(),
                if self.has_measures { 5 } else { 4 }
            ),
        };
        if open.is_empty() {
            bail!("{document}: the row of {id} does not say what is open, or that none is");
        }
        Ok(DocumentedRow {
            id: id.to_owned(),
            measures: paths_in(measures),
            tests: tests_in(tests),
            open: open.strip_prefix("none").unwrap_or(open).to_owned(),
        })
    }

    fn check(&self, row: &DocumentedRow, workspace: &Path) -> Result<()> {
        let (document, id) = (self.document, &row.id);
        if self.has_measures && row.measures.is_empty() {
            bail!("{document}: the row of {id} names no measure");
        }
        // A part that is not built yet has no test.
        if row.tests.is_empty() && (self.has_measures || row.open.is_empty()) {
            bail!("{document}: the row of {id} names no test");
        }
        for file in &row.measures {
            if !workspace.join(file).is_file() {
                bail!("{document}: {id} names the measure {file}, and there is no such file");
            }
        }
        for test in &row.tests {
            let runs = test
                .check(workspace)
                .with_context(|| format!("{document}: {id}"))?;
            if runs == Runs::OnRequest && !row.open.contains("--long") {
                let test = &test.path;
                bail!("{document}: the row of {id} does not say that {test} runs with --long only");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "| T1 | a coup | It is refused (`policies.yaml`, R23) | `tests/a.rs::it_is_refused`, `tests/a.rs::scenario` | none |";
    const CRITERION: &str = "| P-K1 | 1000 times | `tests/a.rs::it_is_refused` `1_000` | none |";

    /// A workspace with that row, and the same one for each other id.
    fn workspace(table: &Table, row: &str, usual: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let first = table.ids[0];
        let others = table.ids[1..]
            .iter()
            .map(|id| usual.replace(&format!("{first} "), &format!("{id} ")));
        let rows: Vec<String> = std::iter::once(row.to_owned()).chain(others).collect();
        let document = folder.path().join(table.document);
        fs::create_dir_all(document.parent().unwrap()).unwrap();
        fs::write(document, rows.join("\n")).unwrap();
        fs::write(folder.path().join("policies.yaml"), "").unwrap();
        fs::create_dir(folder.path().join("tests")).unwrap();
        let source = "fn it_is_refused() {\n    1000\n}\n\nfn other() {\n    2000\n}\nadd(\"scenario\")\n\
                      add(RequiredFlag::Long, \"slow\")";
        fs::write(folder.path().join("tests/a.rs"), source).unwrap();
        folder
    }

    /// The complaint about the table when this is changed in its first row.
    fn complaint(table: &Table, usual: &str, (from, to): (&str, &str)) -> String {
        let workspace = workspace(table, &usual.replacen(from, to, 1), usual);
        format!("{:#}", table.check_in(workspace.path()).unwrap_err())
    }

    #[test]
    fn the_tables_of_the_documents_hold() {
        for table in [THREATS, CRITERIA] {
            let rows = table.check_in(paths::workspace()).unwrap();
            assert_eq!(rows.len(), table.ids.len());
        }
    }

    #[test]
    fn a_row_is_read_whole() {
        let of_threats = workspace(&THREATS, ROW, ROW);
        let rows = THREATS.check_in(of_threats.path()).unwrap();
        let test = |path: &str, numbers: &[&str]| NamedTest {
            path: path.to_owned(),
            numbers: numbers.iter().map(|number| (*number).to_owned()).collect(),
        };
        assert_eq!(rows[0].measures, ["policies.yaml"]);
        assert_eq!(
            rows[0].tests,
            [
                test("tests/a.rs::it_is_refused", &[]),
                test("tests/a.rs::scenario", &[])
            ]
        );
        assert_eq!(rows[0].open, "");
        let of_criteria = workspace(&CRITERIA, CRITERION, CRITERION);
        let rows = CRITERIA.check_in(of_criteria.path()).unwrap();
        assert_eq!(
            rows[0].tests,
            [test("tests/a.rs::it_is_refused", &["1000"])]
        );
    }

    #[test]
    fn what_is_open_needs_no_test() {
        let row = "| P-K1 | 1000 times | | all of it |";
        let workspace = workspace(&CRITERIA, row, CRITERION);
        let rows = CRITERIA.check_in(workspace.path()).unwrap();
        assert_eq!((rows[0].tests.len(), &*rows[0].open), (0, "all of it"));
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
            ("::it_is_refused", "::it_is", "names the test it_is,"),
            ("tests/a.rs::it", "tests/b.rs::it", "tests/b.rs"),
            ("::scenario", "", "is not `file::test`"),
            ("`policies.yaml`, R23", "R23", "names no measure"),
            (
                "| none |",
                "| |",
                "does not say what is open, or that none is",
            ),
            ("| none |", "|", "has 4 cells and not 5"),
            (
                "::scenario",
                "::slow",
                "tests/a.rs::slow runs with --long only",
            ),
        ] {
            let said = complaint(&THREATS, ROW, (from, to));
            assert!(said.contains(says), "{said}");
        }
        for (from, to, says) in [
            ("P-K1 ", "P-K99 ", "P-K1 has no row"),
            ("`1_000`", "`2000`", "does not play the number 2000"),
            ("`tests/a.rs::it_is_refused` `1_000`", "", "names no test"),
            ("| none |", "| | none |", "has 5 cells and not 4"),
        ] {
            let said = complaint(&CRITERIA, CRITERION, (from, to));
            assert!(said.contains(says), "{said}");
        }
    }
}
