//! A test that a table names: where it stands, what it plays, and whether it runs for every change.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// A test, and the numbers that it plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedTest {
    /// As `file::name`.
    pub(super) path: String,
    pub(super) numbers: Vec<String>,
}

/// When a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    ForEveryChange,
    /// With `--long` alone.
    OnRequest,
}

/// The parts of a test.
struct TestSource<'a> {
    /// Its body; of a scenario, the call that adds it to the suite, with the functions and constants that it names.
    body: String,
    /// The text around its name: attributes, or the call.
    declaration: &'a str,
}

// === impl NamedTest ===

impl NamedTest {
    /// Checks that the test exists and plays its numbers, and finds when it runs.
    pub(super) fn check(&self, workspace: &Path) -> Result<Runs> {
        let path = &self.path;
        let (file, name) = path
            .split_once("::")
            .with_context(|| format!("{path} is not `file::test`"))?;
        let source = fs::read_to_string(workspace.join(file));
        let code = without_comments(&source.with_context(|| format!("failed to read {file}"))?);
        let Some(found) =
            TestSource::function(&code, name).or_else(|| TestSource::scenario(&code, name))
        else {
            bail!("it names the test {name}, which {file} does not have");
        };
        let played: BTreeSet<String> = words(&found.body)
            .map(|word| word.replace('_', ""))
            .collect();
        if let Some(number) = self.numbers.iter().find(|number| !played.contains(*number)) {
            bail!("the test {name} in {file} does not play the number {number}");
        }
        let on_request = ["RequiredFlag::Long", "--long"];
        if on_request
            .iter()
            .any(|flag| found.declaration.contains(flag))
        {
            return Ok(Runs::OnRequest);
        }
        Ok(Runs::ForEveryChange)
    }
}

// === impl TestSource ===

impl<'a> TestSource<'a> {
    /// A test of cargo's. Its attributes begin after the last blank line.
    fn function(code: &'a str, name: &str) -> Option<Self> {
        let start = code.find(&format!("fn {name}("))?;
        let attributes = code[..start].rfind("\n\n").unwrap_or_default();
        Some(Self {
            body: body_at(&code[start..]).to_owned(),
            declaration: &code[attributes..start],
        })
    }

    /// A scenario, whose name is a string in the call that adds it.
    fn scenario(code: &'a str, name: &str) -> Option<Self> {
        let at = code.find(&format!("{name:?}"))?;
        let call = enclosing(code, at)?;
        let named = words(call).filter_map(|word| definition(code, word));
        let body = std::iter::once(call).chain(named).collect::<Vec<_>>();
        Some(Self {
            body: body.join("\n"),
            declaration: call,
        })
    }
}

/// The code of a source.
fn without_comments(source: &str) -> String {
    let code = source.lines().map(|line| {
        let comment = line.match_indices("//").map(|(at, _)| at);
        // Not within a text.
        let outside = |at: &usize| line[..*at].matches('"').count() % 2 == 0;
        let end = comment.into_iter().find(outside).unwrap_or(line.len());
        line[..end].trim_end().to_owned()
    });
    code.collect::<Vec<_>>().join("\n")
}

/// The text between the brackets around this place.
fn enclosing(code: &str, at: usize) -> Option<&str> {
    let mut depth = 0;
    let opening = |byte: u8| {
        depth += i32::from(byte == b')') - i32::from(byte == b'(');
        depth < 0
    };
    let start = code.as_bytes()[..at].iter().copied().rposition(opening)?;
    let mut depth = 0;
    let closing = |byte: u8| {
        depth += i32::from(byte == b'(') - i32::from(byte == b')');
        depth < 0
    };
    let length = code.as_bytes()[at..].iter().copied().position(closing)?;
    Some(&code[start + 1..at + length])
}

/// The function or constant of this name.
fn definition<'a>(code: &'a str, name: &str) -> Option<&'a str> {
    let constant = format!("\nconst {name}: ");
    if let Some(start) = code.find(&constant) {
        return code[start..].split(';').next();
    }
    let function = code.find(&format!("fn {name}("))?;
    Some(body_at(&code[function..]))
}

/// A function up to the next brace at the margin, or at that of the items of a module.
fn body_at(code: &str) -> &str {
    code.split("\n}").next().unwrap_or_default()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
//! Plays "quoted" and fn commented() { 7 }.

pub(crate) fn add(suite: &mut Suite) {
    suite.add("short", MODES, |testbed| Box::pin(quick(testbed)));
    suite.add_with_flag(
        RequiredFlag::Long,
        "long", // for 5 minutes
        LASTS + PROMPTLY,
        |testbed| Box::pin(minutes(testbed, 20)),
    );
}

const LASTS: Duration = Duration::from_secs(600);
const OTHER: &str = "https://host/8";

async fn quick(testbed: Testbed) {
    check(3);
}

async fn minutes(testbed: Testbed) {
    check(4);
}

#[test]
#[ignore = "it needs Helm: `cargo xtask test --long`"]
fn ignored() {
    1_000
}

#[test]
fn plain() {
    check("a // b", 9);
}
"#;

    fn check(name: &str, numbers: &[&str]) -> Result<Runs, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.rs"), SOURCE).unwrap();
        let test = NamedTest {
            path: format!("a.rs::{name}"),
            numbers: numbers.iter().map(|number| (*number).to_owned()).collect(),
        };
        test.check(folder.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_test_or_a_scenario_plays_the_numbers_of_its_own_body() {
        assert_eq!(check("short", &["3"]), Ok(Runs::ForEveryChange));
        assert_eq!(check("plain", &["9"]), Ok(Runs::ForEveryChange));
        assert_eq!(check("long", &["600", "20", "4"]), Ok(Runs::OnRequest));
        assert_eq!(check("ignored", &["1000"]), Ok(Runs::OnRequest));
        for (name, number) in [
            ("short", "4"),
            ("short", "600"),
            ("long", "5"),
            ("plain", "1000"),
        ] {
            let said = check(name, &[number]).unwrap_err();
            assert!(
                said.contains(&format!("does not play the number {number}")),
                "{said}"
            );
        }
    }

    #[test]
    fn what_a_comment_names_is_no_test() {
        for name in ["quoted", "commented"] {
            let said = check(name, &[]).unwrap_err();
            assert!(said.contains(&format!("names the test {name},")), "{said}");
        }
    }
}
