//! JSON whose fields keep their order and their doubles, which strict decoding reports.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// A decoded JSON text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// Why a body is no JSON, in the words of Go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError(pub(crate) String);

// === impl Node ===

impl Node {
    /// Reads one JSON text.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, SyntaxError> {
        serde_json::from_slice(bytes).map_err(|error| SyntaxError::of(&error, bytes))
    }

    /// The name of this kind of value in errors of Go.
    pub(crate) fn go_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) => "object",
        }
    }

    /// The last of the fields of that name: a later double wins.
    pub(crate) fn field(&self, name: &str) -> Option<&Node> {
        match self {
            Self::Map(fields) => fields
                .iter()
                .rfind(|(key, _)| key == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// A text field, empty where it is absent or something else.
    pub(crate) fn text(&self, name: &str) -> &str {
        match self.field(name) {
            Some(Self::Text(text)) => text,
            _ => "",
        }
    }

    /// Without order and doubles.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone()),
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Map(fields) => Value::Object(
                fields
                    .iter()
                    .map(|(name, value)| (name.clone(), value.to_value()))
                    .collect(),
            ),
        }
    }
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(fields) => Self::Map(
                fields
                    .iter()
                    .map(|(name, value)| (name.clone(), value.into()))
                    .collect(),
            ),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Node, E> {
        Ok(Node::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        // JSON has no other numbers than finite ones.
        Ok(Number::from_f64(number).map_or(Node::Null, Node::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Node, E> {
        Ok(Node::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Node::Map(fields))
    }
}

// === impl SyntaxError ===

impl SyntaxError {
    fn of(error: &serde_json::Error, bytes: &[u8]) -> Self {
        if error.is_eof() {
            return Self("unexpected end of JSON input".to_owned());
        }
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let before = lines.take(error.line().saturating_sub(1));
        let offset = before.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
        let found = &bytes[offset.min(bytes.len())..];
        let said = error.to_string();
        let place = [
            ("trailing characters", "after top-level value"),
            ("expected `:`", "after object key"),
            ("expected `,` or `}`", "after object key:value pair"),
            ("expected `,` or `]`", "after array element"),
            (
                "key must be a string",
                "looking for beginning of object key string",
            ),
            (
                "trailing comma",
                "looking for beginning of object key string",
            ),
        ]
        .into_iter()
        .find(|(start, _)| said.starts_with(start))
        .map_or("looking for beginning of value", |(_, place)| place);
        match found.first() {
            Some(byte) => Self(format!("invalid character '{}' {place}", char::from(*byte))),
            None => Self("invalid JSON input".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn order_and_doubles_survive() {
        let node = Node::parse(br#"{"b": 1, "a": [null, true, "x", -1, 1.5], "b": {}}"#).unwrap();
        let Node::Map(fields) = &node else {
            panic!("no map")
        };
        let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "a", "b"]);
        assert_eq!(node.field("b"), Some(&Node::Map(Vec::new())));
        let expected = json!({"a": [null, true, "x", -1, 1.5], "b": {}});
        assert_eq!(node.to_value(), expected);
        let expected = Node::parse(br#"{"a": [1]}"#).unwrap();
        assert_eq!(Node::from(&json!({"a": [1]})), expected);
    }
}
