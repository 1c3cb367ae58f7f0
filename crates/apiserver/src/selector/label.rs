//! Label selectors, with the grammar and the complaints of the API server.

use elector_api::names;
use serde_json::Value;

/// A conjunction of requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Missing,
    In,
    NotIn,
    Above,
    Below,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LabelToken {
    Word(String),
    /// One of `! = == != < > ( ) ,`.
    Sign(&'static str),
    End,
}

struct LabelParser {
    tokens: Vec<LabelToken>,
    next: usize,
}

const SIGNS: [&str; 9] = ["==", "!=", "=", "!", "<", ">", "(", ")", ","];

// === impl LabelSelector ===

impl LabelSelector {
    /// Reads a selector such as `a=b,c in (d,e),!f`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = LabelParser {
            tokens: tokens(text),
            next: 0,
        };
        let mut requirements = Vec::new();
        loop {
            match parser.peek() {
                LabelToken::Word(_) | LabelToken::Sign("!") => {
                    let requirement = parser.requirement();
                    requirements.push(
                        requirement.map_err(|why| format!("unable to parse requirement: {why}"))?,
                    );
                    match parser.take() {
                        LabelToken::End => return Ok(Self(requirements)),
                        LabelToken::Sign(",") => match parser.peek() {
                            LabelToken::Word(_) | LabelToken::Sign("!") => {}
                            other => {
                                return Err(format!(
                                    "found '{}', expected: identifier after ','",
                                    other.text()
                                ));
                            }
                        },
                        other => {
                            return Err(format!(
                                "found '{}', expected: ',' or 'end of string'",
                                other.text()
                            ));
                        }
                    }
                }
                LabelToken::End => return Ok(Self(requirements)),
                other => {
                    return Err(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        other.text()
                    ));
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if these labels, a map or nothing, fulfil it.
    pub(crate) fn matches(&self, labels: &Value) -> bool {
        self.0.iter().all(|requirement| {
            requirement.matches(labels.get(&requirement.key).and_then(Value::as_str))
        })
    }
}

// === impl Requirement ===

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|value| self.values.iter().any(|one| one == value));
        let compared = |holds: fn(&i64, &i64) -> bool| {
            let number = value.and_then(|value| value.parse().ok());
            let bound = self.values.first().and_then(|bound| bound.parse().ok());
            number
                .zip(bound)
                .is_some_and(|(number, bound)| holds(&number, &bound))
        };
        match self.operator {
            Operator::Exists => value.is_some(),
            Operator::Missing => value.is_none(),
            Operator::In => listed(),
            Operator::NotIn => !listed(),
            Operator::Above => compared(i64::gt),
            Operator::Below => compared(i64::lt),
        }
    }

    fn check(self) -> Result<Self, String> {
        for (index, value) in self.values.iter().enumerate() {
            if matches!(self.operator, Operator::Above | Operator::Below)
                && value.parse::<i64>().is_err()
            {
                return Err(format!(
                    "values[{index}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
                ));
            }
            if let Some(rule) = names::label_value(value).first() {
                return Err(format!(
                    "values[{index}][{}]: Invalid value: {value:?}: {rule}",
                    self.key
                ));
            }
        }
        Ok(self)
    }
}

// === impl LabelParser ===

impl LabelParser {
    fn peek(&self) -> LabelToken {
        self.tokens
            .get(self.next)
            .cloned()
            .unwrap_or(LabelToken::End)
    }

    fn take(&mut self) -> LabelToken {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let missing = self.peek() == LabelToken::Sign("!");
        if missing {
            self.take();
        }
        let key = match self.take() {
            LabelToken::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        if let Some(rule) = names::qualified_name(&key).first() {
            return Err(format!("<nil>: Invalid value: {key:?}: {rule}"));
        }
        let exists = matches!(self.peek(), LabelToken::End | LabelToken::Sign(","));
        let (operator, values) = if missing {
            (Operator::Missing, Vec::new())
        } else if exists {
            (Operator::Exists, Vec::new())
        } else {
            self.comparison()?
        };
        Requirement {
            key,
            operator,
            values,
        }
        .check()
    }

    fn comparison(&mut self) -> Result<(Operator, Vec<String>), String> {
        let operator = match self.take() {
            LabelToken::Sign("=" | "==") => Operator::In,
            LabelToken::Sign("!=") => Operator::NotIn,
            LabelToken::Sign(">") => Operator::Above,
            LabelToken::Sign("<") => Operator::Below,
            LabelToken::Word(word) if word == "in" => return Ok((Operator::In, self.values()?)),
            LabelToken::Word(word) if word == "notin" => {
                return Ok((Operator::NotIn, self.values()?));
            }
            other => {
                return Err(format!(
                    "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                    other.text()
                ));
            }
        };
        let value = match self.peek() {
            LabelToken::End | LabelToken::Sign(",") => String::new(),
            LabelToken::Word(word) => {
                self.take();
                word
            }
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        Ok((operator, vec![value]))
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.take() {
            LabelToken::Sign("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = Vec::new();
        let mut expected = true;
        loop {
            match self.take() {
                LabelToken::Word(word) if expected => {
                    values.push(word);
                    expected = false;
                }
                LabelToken::Sign(",") => {
                    if expected {
                        values.push(String::new());
                    }
                    expected = true;
                }
                LabelToken::Sign(")") => {
                    if expected {
                        values.push(String::new());
                    }
                    return Ok(values);
                }
                other => {
                    return Err(format!(
                        "found '{}', expected: ',', ')' or identifier",
                        other.text()
                    ));
                }
            }
        }
    }
}

// === impl LabelToken ===

impl LabelToken {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Sign(sign) => sign,
            Self::End => "",
        }
    }
}

fn tokens(text: &str) -> Vec<LabelToken> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(LabelToken::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            let end = rest
                .find(|one: char| one.is_whitespace() || "!=<>(),".contains(one))
                .unwrap_or(rest.len());
            tokens.push(LabelToken::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    tokens
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Cases that no recorded answer shows.
    #[test]
    fn labels_are_compared_and_nonsense_is_refused_in_the_words_of_the_server() {
        let labels = json!({"y": "b", "empty": ""});
        let matches = |text: &str| Ok(LabelSelector::parse(text)?.matches(&labels));
        let refused = |text: &str| Err(text.to_owned());
        for (text, expected) in [
            ("z notin (1)", Ok(true)),
            ("y>0", Ok(false)),
            ("empty=", Ok(true)),
            ("in=1", Ok(false)),
            (
                "x in (1",
                refused("unable to parse requirement: found '', expected: ',', ')' or identifier"),
            ),
            ("x=1,", refused("found '', expected: identifier after ','")),
            (
                "x=1 y",
                refused("found 'y', expected: ',' or 'end of string'"),
            ),
            (
                "=1",
                refused("found '=', expected: !, identifier, or 'end of string'"),
            ),
        ] {
            assert_eq!(matches(text), expected, "{text}");
        }
    }
}
