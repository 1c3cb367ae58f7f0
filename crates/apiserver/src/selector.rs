//! Which objects of a list or a watch are wanted.

mod label;
mod shard;

use serde_json::{Map, Value};

use crate::kind::{Bucket, Kind};
use crate::store::Scope;

pub(crate) use label::LabelSelector;
pub(crate) use shard::RangeSelector;

/// Label, field and shard selector together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selector {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    pub(crate) shards: RangeSelector,
}

/// A conjunction of comparisons of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<FieldComparison>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldComparison {
    field: String,
    value: String,
    equal: bool,
}

// === impl Selector ===

impl Selector {
    /// True if neither labels nor fields are selected by. Ranges do not count: upstream counts what is left beyond a page
    /// without them too.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.0.is_empty()
    }

    /// True if it selects this object.
    pub(crate) fn matches(&self, object: &Map<String, Value>) -> bool {
        self.labels.matches(&object["metadata"]["labels"])
            && self.fields.matches(object)
            && self.shards.matches(object)
    }

    /// The narrowest scope that holds everything it wants.
    pub(crate) fn scope(&self, namespace: Option<&str>) -> Scope {
        Scope {
            namespace: namespace
                .or(self.fields.exactly("metadata.namespace"))
                .map(str::to_owned),
            name: self.fields.exactly("metadata.name").map(str::to_owned),
        }
    }
}

// === impl FieldSelector ===

impl FieldSelector {
    /// Reads a selector such as `metadata.name=a,metadata.namespace!=b`; the errors are those of the API server.
    pub(crate) fn parse(text: &str, kind: &Kind) -> Result<Self, String> {
        let terms = text.split(',').filter(|term| !term.is_empty());
        let terms = terms.map(|term| {
            let cut = |operator| term.split_once(operator);
            let (field, value, equal) = match (cut("!="), cut("=="), cut("=")) {
                (Some((field, value)), _, _) => (field, value, false),
                (_, Some((field, value)), _) | (_, _, Some((field, value))) => (field, value, true),
                _ => {
                    return Err(format!(
                        "invalid selector: '{text}'; can't understand '{term}'"
                    ));
                }
            };
            if !selectable(kind).contains(&field) {
                return Err(match kind.bucket {
                    Bucket::Leases | Bucket::Candidates | Bucket::Other(_) if !kind.custom => {
                        let known = format!("{:?}", selectable(kind));
                        let known = known.trim_matches(['[', ']']);
                        format!("{field:?} is not a known field selector: only {known}")
                    }
                    _ => format!("field label not supported: {field}"),
                });
            }
            Ok(FieldComparison {
                field: field.to_owned(),
                value: value.to_owned(),
                equal,
            })
        });
        terms.collect::<Result<_, _>>().map(Self)
    }

    /// That one field must have this value.
    pub(crate) fn and(mut self, field: &str, value: &str) -> Self {
        self.0.push(FieldComparison {
            field: field.to_owned(),
            value: value.to_owned(),
            equal: true,
        });
        self
    }

    fn matches(&self, object: &Map<String, Value>) -> bool {
        self.0
            .iter()
            .all(|term| (field(object, &term.field) == term.value) == term.equal)
    }

    fn exactly(&self, field: &str) -> Option<&str> {
        let mut terms = self
            .0
            .iter()
            .filter(|term| term.equal && term.field == field);
        terms.next().map(|term| term.value.as_str())
    }
}

/// The fields that a kind can be selected by.
fn selectable(kind: &Kind) -> &'static [&'static str] {
    match kind.bucket {
        Bucket::Other("pods") => &[
            "metadata.name",
            "metadata.namespace",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        Bucket::Other("secrets") => &["metadata.name", "metadata.namespace", "type"],
        Bucket::Leases | Bucket::Candidates | Bucket::Other(_) => {
            &["metadata.name", "metadata.namespace"]
        }
        Bucket::CustomCandidates => &["metadata.name", "metadata.namespace", "spec.leaseName"],
        Bucket::Namespaces => &["metadata.name", "name", "status.phase"],
        Bucket::Events => &[
            "metadata.name",
            "metadata.namespace",
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    }
}

/// The text of a field, empty where it is absent. Events are in their old form here.
fn field<'a>(object: &'a Map<String, Value>, path: &str) -> &'a str {
    let path = match path {
        "name" => "metadata.name",
        "source" => "source.component",
        path => path,
    };
    let mut parts = path.split('.');
    let first = parts.next().and_then(|part| object.get(part));
    let value = parts.fold(first, |value, part| value.and_then(|value| value.get(part)));
    value.and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_name_narrows_the_objects_that_are_looked_at() {
        let kinds = Kind::served(&Config::default());
        let lease = kinds.into_iter().find(|kind| kind.kind == "Lease").unwrap();
        let narrow = Selector {
            fields: FieldSelector::parse("metadata.name=a", lease).unwrap(),
            ..Selector::default()
        };
        let scope = Scope {
            namespace: Some("ns".to_owned()),
            name: Some("a".to_owned()),
        };
        assert_eq!(narrow.scope(Some("ns")), scope);
        assert_eq!(Selector::default().scope(None), Scope::default());
    }
}
