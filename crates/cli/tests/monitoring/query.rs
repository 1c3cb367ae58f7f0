//! The names in a PromQL expression, as far as a look-up needs them.

use std::collections::BTreeSet;

/// The names in an expression.
#[derive(Debug, Default)]
pub(crate) struct PromQuery {
    pub(crate) metrics: BTreeSet<String>,
    /// Labels that are matched or grouped by.
    pub(crate) labels: BTreeSet<String>,
    /// Labels that are grouped by.
    pub(crate) groups: BTreeSet<String>,
    /// Values that labels are compared with.
    pub(crate) values: BTreeSet<String>,
}

/// The kind of the names at some place of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Expression,
    /// Within braces.
    Matchers,
    /// Within the parentheses after `by` and the like.
    Grouping,
}

/// Words that are no names.
const OPERATORS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];
/// Words that a list of labels follows.
const GROUPINGS: [&str; 4] = ["by", "without", "on", "ignoring"];

// === impl PromQuery ===

impl PromQuery {
    pub(crate) fn parse(text: &str) -> Self {
        let (mut query, mut place, mut rest) = (Self::default(), Place::Expression, text);
        while let Some(first) = rest.chars().next() {
            rest = match first {
                '"' => {
                    let (value, after) = rest[1..].split_once('"').unwrap();
                    query.values.extend(value.split('|').map(str::to_owned));
                    after
                }
                '[' => rest.split_once(']').unwrap().1,
                '{' | '}' | ')' => {
                    place = if first == '{' {
                        Place::Matchers
                    } else {
                        Place::Expression
                    };
                    &rest[1..]
                }
                first if first.is_ascii_digit() => rest.trim_start_matches(is_part),
                first if is_part(first) => {
                    let after = rest.trim_start_matches(is_part);
                    let name = &rest[..rest.len() - after.len()];
                    let is_call = after.trim_start().starts_with('(');
                    if GROUPINGS.contains(&name) && is_call {
                        place = Place::Grouping;
                    } else if !OPERATORS.contains(&name) && (place != Place::Expression || !is_call)
                    {
                        // `max by (…) (…)`: the name of an aggregation stands before its grouping.
                        let groups = GROUPINGS
                            .iter()
                            .any(|it| after.trim_start().starts_with(it));
                        if place != Place::Expression || !groups {
                            query.add(place, name);
                        }
                    }
                    after
                }
                other => &rest[other.len_utf8()..],
            };
        }
        query
    }

    fn add(&mut self, place: Place, name: &str) {
        if place == Place::Expression {
            self.metrics.insert(name.to_owned());
            return;
        }
        self.labels.insert(name.to_owned());
        if place == Place::Grouping {
            self.groups.insert(name.to_owned());
        }
    }
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.')
}
