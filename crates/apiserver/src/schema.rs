//! The fields of the served kinds, and decoding by them as Go does: unknown fields dropped and reported, wrong types
//! refused, empty values left out.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::gotime::{GoTime, TimeLayout};
use crate::json::Node;

/// A struct of the API.
#[derive(Debug)]
pub(crate) struct Struct {
    /// Its name in Go, which errors repeat.
    pub(crate) name: &'static str,
    /// The package's short name in Go.
    pub(crate) package: &'static str,
    /// Its fields, in Go's order.
    pub(crate) fields: &'static [Field],
    /// True if other fields are kept as they come.
    pub(crate) open: bool,
}

/// A field of a struct.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Its number in protocol buffers.
    pub(crate) tag: u32,
    pub(crate) kind: Type,
    /// True if an empty value is written all the same.
    pub(crate) keep: bool,
    /// Its description in OpenAPI.
    pub(crate) about: &'static str,
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Type {
    /// A text whose empty value is none.
    Text,
    /// A text whose empty value is one.
    OptionalText,
    /// A number whose zero is none.
    Int32,
    Int64,
    /// A number whose zero is one.
    OptionalInt32,
    OptionalInt64,
    Bool,
    Time(TimeLayout),
    /// A map of texts.
    Texts,
    /// A list of texts, merged as a set.
    TextList,
    Struct(&'static Struct),
    /// A list of structs, merged by this field.
    Structs(&'static Struct, &'static str),
    /// Anything, kept as it comes.
    Any,
    /// Accepted, not kept.
    Dropped,
}

/// A decoded object.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) fields: Map<String, Value>,
    /// The objections of strict decoding: `unknown field "spec.x"`.
    pub(crate) objections: Vec<String>,
}

// === impl Struct ===

impl Struct {
    /// Decodes an object. The error is Go's.
    pub(crate) fn decode(&self, node: &Node) -> Result<Decoded, String> {
        let Node::Map(fields) = node else {
            let (found, package, name) = (node.go_name(), self.package, self.name);
            return Err(format!(
                "json: cannot unmarshal {found} into Go value of type {package}.{name}"
            ));
        };
        let mut objections = Vec::new();
        let fields = self.decode_fields(fields, "", &mut objections)?;
        Ok(Decoded { fields, objections })
    }

    /// The type of the field of that name, if there may be one.
    pub(crate) fn type_of(&self, name: &str) -> Option<Type> {
        let known = self.field(name).map(|field| field.kind);
        known.or(self.open.then_some(Type::Any))
    }

    /// The field of that name.
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// An object as JSON, its fields in Go's order.
    pub(crate) fn in_order(&self, value: &Value) -> String {
        let Value::Object(fields) = value else {
            return value.to_string();
        };
        let known = self.fields.iter().filter_map(|field| {
            let value = fields.get(field.name)?;
            let text = match (field.kind, value) {
                (Type::Struct(inner), value) => inner.in_order(value),
                (Type::Structs(inner, _), Value::Array(items)) => inner.list_in_order(items),
                _ => value.to_string(),
            };
            Some(format!("{:?}:{text}", field.name))
        });
        let unknown = fields.iter().filter(|(name, _)| self.field(name).is_none());
        let unknown =
            unknown.map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())));
        format!("{{{}}}", known.chain(unknown).collect::<Vec<_>>().join(","))
    }

    /// A list of objects as JSON, their fields in Go's order.
    pub(crate) fn list_in_order(&self, items: &[Value]) -> String {
        let items: Vec<_> = items.iter().map(|item| self.in_order(item)).collect();
        format!("[{}]", items.join(","))
    }

    fn decode_fields(
        &self,
        fields: &[(String, Node)],
        path: &str,
        objections: &mut Vec<String>,
    ) -> Result<Map<String, Value>, String> {
        let mut decoded = Map::new();
        let mut seen = BTreeSet::new();
        for (name, node) in fields {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            let Some(field) = self.field(name) else {
                if self.open {
                    if !seen.insert(name) {
                        objections.push(format!("duplicate field {path:?}"));
                    }
                    match node {
                        Node::Null => decoded.remove(name),
                        node => decoded.insert(name.clone(), node.to_value()),
                    };
                    continue;
                }
                objections.push(format!("unknown field {path:?}"));
                continue;
            };
            if !seen.insert(name) {
                objections.push(format!("duplicate field {path:?}"));
            }
            match self.decode_field(field, node, &path, objections)? {
                Some(value) => decoded.insert(name.clone(), value),
                None => decoded.remove(name),
            };
        }
        for field in self.fields.iter().filter(|field| field.keep) {
            decoded
                .entry(field.name)
                .or_insert_with(|| field.kind.zero());
        }
        Ok(decoded)
    }

    fn decode_field(
        &self,
        field: &Field,
        node: &Node,
        path: &str,
        objections: &mut Vec<String>,
    ) -> Result<Option<Value>, String> {
        if matches!(node, Node::Null) {
            return Ok(None);
        }
        let refused = |found: &str, into: &str| {
            // Where in a list it was, Go does not say here.
            let mut path = path.to_owned();
            while let (Some(start), Some(end)) = (path.find('['), path.find(']')) {
                path.replace_range(start..=end, "");
            }
            let name = self.name;
            format!(
                "json: cannot unmarshal {found} into Go struct field {name}.{path} of type {into}"
            )
        };
        let mismatch = || Err(refused(node.go_name(), &field.go_type()));
        let value = match (field.kind, node) {
            (Type::Dropped, _) => None,
            (Type::Any, node) => Some(node.to_value()),
            (Type::Text | Type::OptionalText, Node::Text(text)) => {
                let kept =
                    matches!(field.kind, Type::OptionalText) || field.keep || !text.is_empty();
                kept.then(|| text.as_str().into())
            }
            (kind, Node::Number(number)) if kind.is_number() => {
                let fits = number.as_i64().filter(|number| match field.kind {
                    Type::Int32 | Type::OptionalInt32 => i32::try_from(*number).is_ok(),
                    _ => true,
                });
                let fits =
                    fits.ok_or_else(|| refused(&format!("number {number}"), &field.go_type()))?;
                let none = fits == 0 && matches!(kind, Type::Int32 | Type::Int64);
                (!none).then(|| fits.into())
            }
            (Type::Bool, Node::Bool(truth)) => Some((*truth).into()),
            (Type::Time(layout), Node::Text(text)) => {
                // The zero time is not left out, unlike other empty values.
                let time = GoTime::parse(text, layout)?;
                Some(time.map_or(Value::Null, |time| time.format(layout).into()))
            }
            (Type::Texts, Node::Map(fields)) => {
                let mut texts = Map::new();
                for (name, node) in fields {
                    let text = match node {
                        Node::Text(text) => text.as_str(),
                        Node::Null => "",
                        _ => return Err(refused(node.go_name(), "string")),
                    };
                    if texts.insert(name.clone(), text.into()).is_some() {
                        objections.push(format!("duplicate field {:?}", format!("{path}.{name}")));
                    }
                }
                (!texts.is_empty()).then_some(Value::Object(texts))
            }
            (Type::TextList, Node::List(items)) => {
                let mut texts = Vec::new();
                for node in items {
                    texts.push(match node {
                        Node::Text(text) => Value::from(text.as_str()),
                        Node::Null => "".into(),
                        _ => return Err(refused(node.go_name(), "string")),
                    });
                }
                (!texts.is_empty()).then_some(texts.into())
            }
            (Type::Struct(inner), Node::Map(fields)) => {
                let fields = inner.decode_fields(fields, path, objections)?;
                Some(Value::Object(fields))
            }
            (Type::Structs(inner, _), Node::List(items)) => {
                let mut list = Vec::new();
                for (index, node) in items.iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    let fields = match node {
                        Node::Map(fields) => inner.decode_fields(fields, &path, objections)?,
                        Node::Null => inner.decode_fields(&[], &path, objections)?,
                        _ => return mismatch(),
                    };
                    list.push(Value::Object(fields));
                }
                (!list.is_empty()).then_some(list.into())
            }
            _ => return mismatch(),
        };
        Ok(value)
    }
}

// === impl Field ===

impl Field {
    /// The name of its type in errors of Go.
    fn go_type(&self) -> String {
        match (self.name, self.kind) {
            ("uid", _) => "types.UID".to_owned(),
            ("strategy", _) => "v1.CoordinatedLeaseStrategy".to_owned(),
            ("preferredStrategies", _) => "[]v1.CoordinatedLeaseStrategy".to_owned(),
            (_, kind) => kind.go_name(),
        }
    }
}

// === impl Type ===

impl Type {
    /// Its name in errors of Go.
    fn go_name(self) -> String {
        match self {
            Self::Text | Self::OptionalText | Self::Time(_) => "string".to_owned(),
            Self::Int32 | Self::OptionalInt32 => "int32".to_owned(),
            Self::Int64 | Self::OptionalInt64 => "int64".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Texts => "map[string]string".to_owned(),
            Self::TextList => "[]string".to_owned(),
            Self::Struct(inner) => format!("{}.{}", inner.package, inner.name),
            Self::Structs(inner, _) => format!("[]{}.{}", inner.package, inner.name),
            Self::Any | Self::Dropped => "interface {}".to_owned(),
        }
    }

    fn is_number(self) -> bool {
        matches!(
            self,
            Self::Int32 | Self::Int64 | Self::OptionalInt32 | Self::OptionalInt64
        )
    }

    /// The value of a field that is always written, where none was given.
    fn zero(self) -> Value {
        match self {
            Self::Struct(inner) => {
                let kept = inner.fields.iter().filter(|field| field.keep);
                Value::Object(
                    kept.map(|field| (field.name.to_owned(), field.kind.zero()))
                        .collect(),
                )
            }
            Self::Text | Self::OptionalText => "".into(),
            Self::Int32 | Self::Int64 | Self::OptionalInt32 | Self::OptionalInt64 => 0.into(),
            Self::Bool => false.into(),
            Self::Time(_)
            | Self::Texts
            | Self::TextList
            | Self::Structs(..)
            | Self::Any
            | Self::Dropped => Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fields::LEASE;

    fn decode(text: &str) -> Result<Decoded, String> {
        LEASE.decode(&Node::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn an_object_is_shown_in_the_order_of_go() {
        let owners = json!([{"uid": "u", "name": "n", "controller": true}]);
        let object = json!({"spec": {"a": 1, "strategy": "s", "renewTime": "t"}, "metadata": {"ownerReferences": owners}});
        assert_eq!(
            LEASE.in_order(&object),
            "{\"metadata\":{\"ownerReferences\":[{\"name\":\"n\",\"uid\":\"u\",\"controller\":true}]},\
             \"spec\":{\"renewTime\":\"t\",\"strategy\":\"s\",\"a\":1}}"
        );
    }

    #[test]
    fn objections_come_in_the_order_of_the_text() {
        let text = r#"{"spec": {"z": 1, "leaseTransitions": 1, "leaseTransitions": 2}, "a": 0,
                       "metadata": {"labels": {"x": "1", "x": "2"}, "ownerReferences": [{"b": 1}]}}"#;
        let decoded = decode(text).unwrap();
        assert_eq!(
            decoded.objections,
            [
                r#"unknown field "spec.z""#,
                r#"duplicate field "spec.leaseTransitions""#,
                r#"unknown field "a""#,
                r#"duplicate field "metadata.labels.x""#,
                r#"unknown field "metadata.ownerReferences[0].b""#,
            ]
        );
        assert_eq!(decoded.fields["spec"]["leaseTransitions"], 2);
    }
}
