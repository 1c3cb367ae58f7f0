//! Tables of documents that are held against the repository: the threats in `SECURITY.md`, and the acceptance criteria
//! in `docs/proofs/criteria.md`. Each measure and each test that they name exists, a test plays the numbers that stand
//! beside it, and a row says which of its tests run with `--long` only.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use crate::paths;

/// A table whose rows begin with an id. Its cells are the id, what is meant, the measures if it has that column, the
/// tests, and what is open.
struct Table {
    document: &'static str,
    /// The beginning of its rows.
    rows: &'static str,
    has_measures: bool,
}

const TABLES: [Table; 2] = [
    Table {
        document: "SECURITY.md",
        rows: "| T",
        has_measures: true,
    },
    Table {
        document: "docs/proofs/criteria.md",
        rows: "| P-",
        has_measures: false,
    },
];

/// Checks the tables, and prints a line for each row.
///
/// # Errors
/// When one names something that does not exist, or a cell is missing.
pub(crate) fn check() -> Result<()> {
    for table in TABLES {
        for line in table.check(paths::workspace())? {
            println!("{line}");
        }
    }
    Ok(())
}

// === impl Table ===

impl Table {
    /// A line about each row.
    fn check(&self, workspace: &Path) -> Result<Vec<String>> {
        let text = read(workspace, self.document)?;
        let mut ids = BTreeSet::new();
        let mut lines = Vec::new();
        for row in text.lines().filter(|line| line.starts_with(self.rows)) {
            let id = row.split('|').nth(1).unwrap_or_default().trim();
            let line = self.check_row(row, workspace);
            lines.push(line.with_context(|| format!("{}: the row of {id}", self.document))?);
            ensure!(ids.insert(id), "{}: {id} has two rows", self.document);
        }
        ensure!(!ids.is_empty(), "{} has no table", self.document);
        Ok(lines)
    }

    fn check_row(&self, row: &str, workspace: &Path) -> Result<String> {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (id, measures, tests, open) = match *cells.as_slice() {
            [id, _, measures, tests, open] if self.has_measures => (id, measures, tests, open),
            [id, _, tests, open] if !self.has_measures => (id, "", tests, open),
            _ => bail!("it has {} cells", cells.len()),
        };
        ensure!(
            !open.is_empty(),
            "it does not say what is open, or that none is"
        );
        let is_path = |text: &&str| text.contains(['/', '.']) && !text.contains(' ');
        let measures: Vec<_> = quoted(measures).filter(is_path).collect();
        ensure!(
            !self.has_measures || !measures.is_empty(),
            "it names no measure"
        );
        for file in &measures {
            let is_file = workspace.join(file).is_file();
            ensure!(
                is_file,
                "it names the measure {file}, and there is no such file"
            );
        }
        let mut test = None;
        let mut count = 0;
        for text in quoted(tests) {
            if text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'_')
            {
                let test: &NamedTest = test.as_ref().context("a number stands before all tests")?;
                test.plays(&text.replace('_', ""))?;
            } else if is_path(&text) {
                let named = test.insert(NamedTest::find(text, workspace)?);
                let says_so = !named.on_request || open.contains("--long");
                ensure!(says_so, "it does not say that {text} runs with --long only");
                count += 1;
            }
        }
        // A part that is not built yet has no test.
        ensure!(
            count > 0 || (!self.has_measures && open != "none"),
            "it names no test"
        );
        Ok(format!(
            "{id}: {} measures, {count} tests; open: {open}",
            measures.len()
        ))
    }
}

/// A test that a row names as `file::name`.
struct NamedTest {
    path: String,
    /// Its code; of a scenario, which a call adds to the suite by its name, that of its file.
    body: String,
    /// True if it runs with `--long` alone.
    on_request: bool,
}

// === impl NamedTest ===

impl NamedTest {
    fn find(path: &str, workspace: &Path) -> Result<Self> {
        let (file, name) = path
            .split_once("::")
            .with_context(|| format!("{path} is not `file::test`"))?;
        let code = without_comments(&read(workspace, file)?);
        let (body, declaration) = if let Some(at) = code.find(&format!("fn {name}(")) {
            let body = code[at..].split("\n}").next().unwrap_or_default();
            let attributes = code[..at].rfind("\n\n").unwrap_or_default();
            (body, &code[attributes..at])
        } else if let Some(at) = code.find(&format!("{name:?}")) {
            let call = code[..at].rfind([';', '{']).unwrap_or_default();
            (code.as_str(), &code[call..at])
        } else {
            bail!("it names the test {name}, which {file} does not have");
        };
        Ok(Self {
            path: path.to_owned(),
            body: body.to_owned(),
            on_request: declaration.contains("Flag::Long") || declaration.contains("--long"),
        })
    }

    fn plays(&self, number: &str) -> Result<()> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut words = self.body.split(|c| !is_part(c));
        let plays = words.any(|word| word.replace('_', "") == number);
        ensure!(
            plays,
            "the test {} does not play the number {number}",
            self.path
        );
        Ok(())
    }
}

/// The texts between backticks.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn without_comments(source: &str) -> String {
    let lines = source.lines();
    let code = lines.filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

fn read(workspace: &Path, file: &str) -> Result<String> {
    fs::read_to_string(workspace.join(file)).with_context(|| format!("failed to read {file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAT: &str = "| T1 | a coup | It is refused (`policies.yaml`, R23) | `a.rs::it_is_refused` `1_000`, `a.rs::scenario` | none |";

    #[test]
    fn the_tables_of_the_documents_hold() {
        check().unwrap();
    }

    #[test]
    fn what_does_not_exist_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        write("policies.yaml", "");
        write(
            "a.rs",
            "// fn commented()\nfn it_is_refused() {\n    1000\n}\n\nfn other() {\n    2000\n}\n\
             add(\"scenario\");\nadd(RequiredFlag::Long, \"slow\");",
        );
        let table = &TABLES[0];
        for (from, to, says) in [
            ("", "", ""),
            (
                "policies.yaml",
                "other.yaml",
                "names the measure other.yaml",
            ),
            ("::it_is_refused", "::it_is", "names the test it_is,"),
            (
                "::it_is_refused",
                "::commented",
                "names the test commented,",
            ),
            ("a.rs::it", "b.rs::it", "failed to read b.rs"),
            ("::scenario", "", "is not `file::test`"),
            ("`1_000`", "`2000`", "does not play the number 2000"),
            ("`policies.yaml`, R23", "R23", "names no measure"),
            (
                "| none |",
                "| |",
                "does not say what is open, or that none is",
            ),
            ("| none |", "|", "has 4 cells"),
            ("::scenario", "::slow", "a.rs::slow runs with --long only"),
            ("T1", "U1", "has no table"),
        ] {
            write(table.document, &THREAT.replacen(from, to, 1));
            match table.check(folder.path()) {
                Ok(rows) => assert_eq!((says, rows.len()), ("", 1)),
                Err(error) => {
                    let said = format!("{error:#}");
                    assert!(!says.is_empty() && said.contains(says), "{says}: {said}");
                }
            }
        }
    }
}
