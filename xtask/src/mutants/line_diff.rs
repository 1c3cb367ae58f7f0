//! A diff of single lines, by which cargo-mutants is told where to look for mutants.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The diff that adds these lines of a file, which has them. Lines count from 1.
pub(super) fn line_diff(file: &str, source: &str, lines: &BTreeSet<usize>) -> String {
    let mut diff = format!("--- a/{file}\n+++ b/{file}\n");
    let all: Vec<&str> = source.lines().collect();
    for (added, line) in lines.iter().enumerate() {
        let text = all.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let before = line.saturating_sub(1 + added);
        // Writing to a text cannot fail.
        let _ = writeln!(diff, "@@ -{before},0 +{line},1 @@\n+{text}");
    }
    diff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_an_addition_after_those_before_it() {
        let diff = line_diff("src/a.rs", "a\nb\nc\nd\n", &[2, 4].into());
        let expected = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,0 +2,1 @@\n+b\n@@ -2,0 +4,1 @@\n+d\n";
        assert_eq!(diff, expected);
    }
}
