//! `cargo xtask lines`: the lines of Rust of each package, held against the budget that the repository keeps for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{commands, paths};

/// The lines of some files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LineCount {
    production: usize,
    test: usize,
    comment: usize,
    blank: usize,
}

/// The most lines that each package may have, and the most lines of test code for a thousand of production.
#[derive(Debug, Default, PartialEq, Eq)]
struct PackageBudget {
    packages: BTreeMap<String, usize>,
    ratio: usize,
}

/// The budget, from the root of the workspace.
const BUDGET: &str = "xtask/lines.budget";

const HEADER: &str = "\
# The most lines of Rust that each package may have, comments and blank lines included, and the most lines of test code
# for a thousand lines of production code, those apart. Raise a number in the commit that needs it, and say why;
# `cargo xtask lines --lower` lowers the others to what stands.
";

/// Prints the table, and compares it with the budget; with `lower` the budget falls to what stands.
///
/// # Errors
/// When a package has more lines than it may, or none in the budget.
pub(crate) fn run(lower: bool) -> Result<()> {
    let root = paths::workspace();
    let counts = count(root)?;
    let mut sum = LineCount::default();
    println!(
        "{:<22}{:>11}{:>8}{:>10}{:>8}{:>9}{:>9}",
        "package", "production", "test", "comment", "blank", "lines", "budget"
    );
    let path = root.join(BUDGET);
    let mut budget = PackageBudget::read(&fs::read_to_string(&path).unwrap_or_default())?;
    let mut over = Vec::new();
    for (package, count) in &counts {
        let allowed = budget.packages.get(package).copied();
        print_row(package, *count, allowed);
        if allowed.is_none_or(|allowed| count.all() > allowed) {
            over.push(format!(
                "{package} has {} lines, and may have {}",
                count.all(),
                allowed.unwrap_or(0)
            ));
        }
        sum += *count;
    }
    print_row("all", sum, None);
    let ratio = sum.test * 1000 / sum.production.max(1);
    println!(
        "{ratio} lines of test code for 1000 of production, at most {}",
        budget.ratio
    );
    if ratio > budget.ratio {
        over.push(format!(
            "{ratio} lines of test code stand for 1000 of production, and {} may",
            budget.ratio
        ));
    }
    if lower {
        budget.lower(&counts, ratio);
        fs::write(&path, budget.text()).with_context(|| format!("failed to write {BUDGET}"))?;
        return Ok(());
    }
    ensure!(over.is_empty(), "{}; see {BUDGET}", over.join("; "));
    Ok(())
}

fn print_row(package: &str, count: LineCount, budget: Option<usize>) {
    let LineCount {
        production,
        test,
        comment,
        blank,
    } = count;
    let budget = budget.map(|budget| budget.to_string()).unwrap_or_default();
    println!(
        "{package:<22}{production:>11}{test:>8}{comment:>10}{blank:>8}{:>9}{budget:>9}",
        count.all()
    );
}

/// A file of Rust.
pub(crate) struct SourceFile {
    /// From the root of the workspace.
    pub(crate) path: String,
    pub(crate) text: String,
    /// Nothing of it ships.
    pub(crate) is_test: bool,
    /// The folder of its package.
    package: String,
}

/// Every file of Rust in a tree.
///
/// # Errors
/// When git cannot list them, or one cannot be read.
pub(crate) fn sources(root: &Path) -> Result<Vec<SourceFile>> {
    let mut list = Command::new("git");
    list.args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.rs",
        "*Cargo.toml",
    ]);
    let files = commands::read(list.current_dir(root))?.stdout;
    let manifests: BTreeSet<&str> = files
        .lines()
        .filter_map(|file| file.strip_suffix("/Cargo.toml"))
        .collect();
    let mut sources = Vec::new();
    for path in files.lines().filter(|file| file.ends_with(".rs")) {
        if !root.join(path).is_file() {
            continue;
        }
        let text = fs::read_to_string(root.join(path));
        let folders = Path::new(path).ancestors().filter_map(Path::to_str);
        let package = folders.into_iter().find(|it| manifests.contains(it));
        sources.push(SourceFile {
            path: path.to_owned(),
            text: text.with_context(|| format!("failed to read {path}"))?,
            is_test: false,
            package: package
                .with_context(|| format!("{path} belongs to no package"))?
                .to_owned(),
        });
    }
    let test_modules: BTreeSet<String> = sources
        .iter()
        .flat_map(|file| test_modules(&file.path, &file.text))
        .collect();
    for file in &mut sources {
        let inside = file.path.strip_prefix(&file.package).unwrap_or_default();
        file.is_test = file.path.starts_with("tests/")
            || file.path.starts_with("fuzz/")
            || inside.contains("/tests/")
            || inside.contains("/benches/")
            || Path::new(&file.path)
                .ancestors()
                .filter_map(Path::to_str)
                .any(|it| test_modules.contains(it.trim_end_matches(".rs")));
    }
    Ok(sources)
}

/// The lines of each package, by its folder.
fn count(root: &Path) -> Result<BTreeMap<String, LineCount>> {
    let mut counts = BTreeMap::<String, LineCount>::new();
    for file in sources(root)? {
        *counts.entry(file.package).or_default() += LineCount::of(&file.text, file.is_test);
    }
    Ok(counts)
}

/// The files without `.rs`, and the folders, of the modules that a file declares for its tests alone.
fn test_modules(file: &str, text: &str) -> Vec<String> {
    let stem = file.trim_end_matches(".rs");
    let is_root = ["/lib", "/main", "/mod"]
        .iter()
        .any(|root| stem.ends_with(root));
    let folder = if is_root {
        stem.rsplit_once('/').map_or("", |(folder, _)| folder)
    } else {
        stem
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines
        .windows(2)
        .filter(|pair| pair[0] == "#[cfg(test)]")
        .filter_map(|pair| Some(pair[1].strip_suffix(';')?.rsplit_once("mod ")?.1))
        .map(|module| format!("{folder}/{module}"))
        .collect()
}

// === impl LineCount ===

impl LineCount {
    /// The lines of a file. An item behind `#[cfg(test)]` is test code up to the line that closes it, which rustfmt
    /// indents as it indents the attribute.
    fn of(text: &str, is_test: bool) -> Self {
        let mut count = Self::default();
        // The indentation of the item that is test code.
        let mut inside: Option<usize> = None;
        for line in text.lines() {
            let code = line.trim();
            let indentation = line.len() - line.trim_start().len();
            if inside.is_none() && code == "#[cfg(test)]" {
                inside = Some(indentation);
            }
            if code.is_empty() {
                count.blank += 1;
            } else if code.starts_with("//") {
                count.comment += 1;
            } else if is_test || inside.is_some() {
                count.test += 1;
            } else {
                count.production += 1;
            }
            if inside == Some(indentation) && code.ends_with(['}', ';', ',']) {
                inside = None;
            }
        }
        count
    }

    const fn all(self) -> usize {
        self.production + self.test + self.comment + self.blank
    }
}

impl std::ops::AddAssign for LineCount {
    fn add_assign(&mut self, more: Self) {
        self.production += more.production;
        self.test += more.test;
        self.comment += more.comment;
        self.blank += more.blank;
    }
}

// === impl PackageBudget ===

impl PackageBudget {
    fn read(text: &str) -> Result<Self> {
        let mut budget = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, number)) = line.split_once(' ') else {
                bail!("{BUDGET} has the line {line:?}, which is not a name and a number");
            };
            let number = number
                .trim()
                .parse()
                .with_context(|| format!("the number of {name} in {BUDGET}"))?;
            if name == "ratio" {
                budget.ratio = number;
            } else {
                budget.packages.insert(name.to_owned(), number);
            }
        }
        Ok(budget)
    }

    /// Takes what stands where that is less; a package that is new has what it has.
    fn lower(&mut self, counts: &BTreeMap<String, LineCount>, ratio: usize) {
        let least = |(package, count): (&String, &LineCount)| {
            let allowed = self.packages.get(package).copied().unwrap_or(usize::MAX);
            (package.clone(), allowed.min(count.all()))
        };
        self.packages = counts.iter().map(least).collect();
        self.ratio = if self.ratio == 0 {
            ratio
        } else {
            self.ratio.min(ratio)
        };
    }

    fn text(&self) -> String {
        let mut text = HEADER.to_owned();
        for (package, lines) in &self.packages {
            let _ = writeln!(text, "{package} {lines}");
        }
        let _ = writeln!(text, "ratio {}", self.ratio);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_code_is_counted_apart_wherever_it_stands() {
        let text = "//! A file.\n\nuse a;\n#[cfg(test)]\nuse b;\nfn f() {\n    #[cfg(test)]\n    if x {\n        y();\n    }\n    z();\n}\n#[cfg(test)]\nmod tests {\n    // Why.\n    fn g() {\n    }\n}\n";
        let count = LineCount::of(text, false);
        let expected = LineCount {
            production: 4,
            test: 11,
            comment: 2,
            blank: 1,
        };
        assert_eq!(count, expected);
        assert_eq!(LineCount::of(text, true).production, 0);
    }

    #[test]
    fn modules_for_tests_alone_are_found() {
        let text = "mod a;\n#[cfg(test)]\npub(crate) mod b;\n#[cfg(test)]\nmod c {\n}\n";
        let expected = ["crates/x/src/b"];
        assert_eq!(test_modules("crates/x/src/lib.rs", text), expected);
        let expected = ["crates/x/src/y/b"];
        assert_eq!(test_modules("crates/x/src/y.rs", text), expected);
    }

    #[test]
    fn a_budget_only_falls() {
        let mut budget =
            PackageBudget::read("# why\ncrates/a 10\ncrates/b 5\nratio 1700\n").unwrap();
        let lines = |production| LineCount {
            production,
            ..LineCount::default()
        };
        let counts = [("crates/a", 7), ("crates/c", 3)]
            .map(|(package, count)| (package.to_owned(), lines(count)));
        budget.lower(&counts.into(), 1800);
        let text = format!("{HEADER}crates/a 7\ncrates/c 3\nratio 1700\n");
        assert_eq!(budget.text(), text);
        assert_eq!(PackageBudget::read(&text).unwrap(), budget);
        assert!(PackageBudget::read("crates/a\n").is_err());
    }
}
