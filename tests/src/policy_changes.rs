//! Changes of the expressions of admission policies, which are CEL: each says something else then, or nothing.

/// A word of an expression, and the one in its place.
const CHANGES: [(&str, &str); 9] = [
    ("&&", "||"),
    ("||", "&&"),
    ("==", "!="),
    ("!=", "=="),
    ("<=", "<"),
    (">=", ">"),
    ("!", ""),
    (".all(", ".exists("),
    (".exists(", ".all("),
];

/// An expression with each change that fits, and the words around it.
#[must_use]
pub fn changed(expression: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (from, to) in CHANGES {
        for (at, _) in expression.match_indices(from) {
            let (before, after) = (&expression[..at], &expression[at + from.len()..]);
            let is_part = from == "!" && after.starts_with('=');
            if is_part || is_quoted(before) {
                continue;
            }
            let near: String = after.chars().take(40).collect();
            let near = near.split_whitespace().collect::<Vec<_>>().join(" ");
            let becomes = if to.is_empty() { "nothing" } else { to };
            all.push((
                format!("{before}{to}{after}"),
                format!("{from} to {becomes} before {near}"),
            ));
        }
    }
    all
}

/// True if what comes after this text stands between quotes, of which none is escaped.
fn is_quoted(before: &str) -> bool {
    let quote = before.chars().fold(None, |open, letter| match open {
        None if matches!(letter, '\'' | '"') => Some(letter),
        Some(quote) if quote == letter => None,
        open => open,
    });
    quote.is_some()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use elector_cluster::paths;

    use super::*;

    #[test]
    fn each_negation_is_left_out_and_what_is_quoted_stays() {
        let expression =
            "!has(a.b) && (!(c in d) || ![e].exists(f, !f.g)) && !variables.h && i != '! && \"!'";
        let changes = changed(expression).into_iter();
        let negations = changes.filter(|(_, words)| words.starts_with("! "));
        let words: Vec<_> = negations.map(|(_, words)| words).collect();
        assert_eq!(
            words,
            [
                "! to nothing before has(a.b) && (!(c in d) || ![e].exists(f,",
                "! to nothing before (c in d) || ![e].exists(f, !f.g)) && !va",
                "! to nothing before [e].exists(f, !f.g)) && !variables.h &&",
                "! to nothing before f.g)) && !variables.h && i != '! && \"!'",
                "! to nothing before variables.h && i != '! && \"!'",
            ]
        );
        let all: Vec<_> = changed(expression).into_iter().map(|it| it.0).collect();
        assert_eq!(all.len(), 3 + 1 + 1 + 5 + 1);
        assert!(all.iter().all(|it| it.ends_with("'! && \"!'")));
    }

    /// The API server would refuse another one, which tells nothing of the tests.
    #[test]
    fn each_change_of_a_policy_is_an_expression() {
        let mut count = 0;
        for file in [
            "manifests/components/policies/candidates.yaml",
            "manifests/components/policies/electors.yaml",
            "manifests/components/policies/leases.yaml",
        ] {
            let text = fs::read_to_string(paths::workspace().join(file)).unwrap();
            for expression in expressions(&text) {
                assert!(is_expression(&expression), "{expression}");
                for (mutant, words) in changed(&expression) {
                    assert!(is_expression(&mutant), "{words}: {mutant}");
                    assert_ne!(mutant, expression);
                    count += 1;
                }
            }
        }
        assert!(count > 300, "{count}");
        for broken in [
            "a =b",
            "a && || b",
            "(a",
            "a b",
            "a.all(",
            "!",
            "(a &&)",
            "a)",
        ] {
            assert!(!is_expression(broken), "{broken}");
        }
    }

    /// The expressions of policies: on the line of their key, or on the deeper ones that follow it.
    fn expressions(text: &str) -> Vec<String> {
        let depth = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
        let lines: Vec<&str> = text.lines().collect();
        let of = |(number, line): (usize, &&str)| {
            let (_, here) = line
                .split_once("xpression: ")
                .filter(|_| !line.contains("messageE"))?;
            let below = lines[number + 1..].iter();
            let below = below.take_while(|it| it.trim().is_empty() || depth(it) > depth(line));
            Some(match here {
                "|-" => below.map(|it| format!("{it}\n")).collect(),
                here => here
                    .trim_matches(['"', '\''].map(|it| it).as_slice())
                    .to_owned(),
            })
        };
        lines.iter().enumerate().filter_map(of).collect()
    }

    /// True if operands and operators take turns, and brackets are closed.
    fn is_expression(text: &str) -> bool {
        let (mut rest, mut open, mut has_operand) = (text.trim(), Vec::new(), false);
        let mut before = "";
        while let Some(first) = rest.chars().next() {
            let word = rest.len()
                - rest
                    .trim_start_matches(|it: char| it == '_' || it.is_alphanumeric())
                    .len();
            let operators = [
                "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "?", ":", ",", ".",
            ];
            let operator = operators.iter().find(|it| rest.starts_with(**it));
            let length = match first {
                _ if word > 0 => word,
                '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
                _ => operator.map_or(1, |it| it.len()),
            };
            let token = &rest[..length];
            has_operand = match (first, has_operand) {
                ('(' | '[' | '{', _) => {
                    open.push(first);
                    false
                }
                (')' | ']' | '}', _) if has_operand || ["(", "[", "{"].contains(&before) => {
                    let pair = open.pop().map(|open| (open, first));
                    matches!(pair, Some(('(', ')') | ('[', ']') | ('{', '}')))
                }
                // An optional key or field.
                ('?', false) => false,
                _ if token == "in" && has_operand => false,
                _ if operator.is_some() && has_operand => false,
                ('!' | '-', false) if operator.is_none() => false,
                _ if (word > 0 || "'\"".contains(first)) && !has_operand => true,
                _ => return false,
            };
            (before, rest) = (token, rest[length..].trim_start());
        }
        has_operand && open.is_empty()
    }
}
