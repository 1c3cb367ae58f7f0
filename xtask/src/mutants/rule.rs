//! The rules of docs/protocol.md that mutated code follows, as its comments name them.

use std::collections::BTreeSet;

/// The numbers of the rules that are named from the documentation of a function to that line of it, otherwise those in the
/// head of the file. Lines count from 1.
pub(super) fn rules_at(source: &str, line: usize) -> BTreeSet<u8> {
    let mut rules = BTreeSet::new();
    let mut seen_function = false;
    let above: Vec<&str> = source.lines().take(line).map(str::trim).collect();
    for text in above.iter().rev() {
        let is_documentation = text.starts_with("//") || text.starts_with("#[");
        if text.starts_with("//!") || seen_function && !is_documentation {
            break;
        }
        if let Some((_, comment)) = text.split_once("//") {
            rules.extend(rules_in(comment));
        }
        seen_function |= !is_documentation && text.split(' ').any(|word| word == "fn");
    }
    if rules.is_empty() {
        let head = source.lines().filter(|text| text.starts_with("//!"));
        rules.extend(head.flat_map(rules_in));
    }
    rules
}

/// The numbers of the rules that have a heading, as docs/protocol.md has one for each.
pub(super) fn rules_in_headings(text: &str) -> BTreeSet<u8> {
    let numbers = text.lines().filter_map(|line| line.strip_prefix("### R"));
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Words such as R16.
fn rules_in(text: &str) -> impl Iterator<Item = u8> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter_map(|word| word.strip_prefix('R')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
//! The head (R7).
/// Other (R9).
fn other() {}

/// Two rules ([R16](crate::rules#r16)).
#[must_use]
pub(super) fn of(a: u8) -> u8 {
    // R3: a comment, not RFC or R.
    a + 1
}

fn without(a: u8) -> u8 {
    a + 2
}
";

    #[test]
    fn rules_are_those_of_the_function_or_of_the_file() {
        let at = |line| rules_at(SOURCE, line).into_iter().collect::<Vec<_>>();
        assert_eq!(at(9), [3, 16]);
        assert_eq!(at(7), [16]);
        assert_eq!(at(3), [9]);
        assert_eq!(at(13), [7]);
        let headings = "## Rules\n### R1\n### R13\nR2\n### Rules\n";
        assert_eq!(rules_in_headings(headings), [1, 13].into());
    }
}
