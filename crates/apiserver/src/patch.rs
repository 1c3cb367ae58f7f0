//! Patches: merge, JSON, strategic merge, and server-side apply.

mod merge;
mod operations;
mod strategic;

use http::HeaderMap;
use serde_json::Value;

use crate::body;
use crate::events;
use crate::failure::Failure;
use crate::json::Node;
use crate::kind::Kind;
use crate::media_type::media_type;
use crate::options::FieldValidation;
use crate::reply::Warnings;
use crate::store::ObjectFields;

use operations::PatchOperation;

/// A patch, decoded as far as that goes without the object.
#[derive(Debug)]
pub(crate) struct Patch<'a> {
    form: PatchFormat,
    body: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatchFormat {
    Merge,
    Operations,
    Strategic,
    Apply,
}

// === impl Patch ===

impl<'a> Patch<'a> {
    /// Takes a patch by its media type. Custom resources know no strategic merge.
    pub(crate) fn of(kind: &Kind, headers: &HeaderMap, body: &'a [u8]) -> Result<Self, Failure> {
        let form = match media_type(headers) {
            "application/merge-patch+json" => PatchFormat::Merge,
            "application/json-patch+json" => PatchFormat::Operations,
            "application/strategic-merge-patch+json" if !kind.custom => PatchFormat::Strategic,
            "application/apply-patch+yaml" => PatchFormat::Apply,
            _ => return Err(Failure::unsupported_patch(kind)),
        };
        Ok(Self { form, body })
    }

    /// True if it is a server-side apply, which makes an object that is absent.
    pub(crate) fn is_apply(&self) -> bool {
        self.form == PatchFormat::Apply
    }

    /// Its result on an object, as it is to be stored. The object is empty where there is none.
    pub(crate) fn apply(
        &self,
        kind: &Kind,
        object: &ObjectFields,
        validation: FieldValidation,
        warnings: &mut Warnings,
    ) -> Result<ObjectFields, Failure> {
        let mut shown = events::shown(kind, object).into_owned();
        shown.insert("kind".to_owned(), kind.kind.into());
        shown.insert("apiVersion".to_owned(), kind.api_version().into());
        let mut value = Value::Object(shown);
        let undecodable = |why: &str| match self.form {
            PatchFormat::Strategic => Failure::bad_request(why),
            PatchFormat::Apply => Failure::bad_request(format!("error decoding YAML: {why}")),
            PatchFormat::Merge | PatchFormat::Operations => {
                Failure::bad_request(format!("error decoding patch: {why}"))
            }
        };
        let node = match (Node::parse(self.body), self.form) {
            (Ok(node), _) => node,
            // JSON is YAML, and read as such where it is none.
            (Err(_), PatchFormat::Apply) => {
                body::yaml(self.body).map_err(|error| undecodable(&error))?
            }
            (Err(error), _) => return Err(undecodable(&error.0)),
        };
        let wrong = |into: &str| {
            let reader = match self.form {
                PatchFormat::Apply => "error unmarshaling JSON: while decoding JSON: ",
                _ => "",
            };
            Err(undecodable(&format!(
                "{reader}json: cannot unmarshal {} into Go value of type {into}",
                node.go_name()
            )))
        };
        match (self.form, &node) {
            (PatchFormat::Operations, Node::List(items)) => {
                for item in items {
                    let operation =
                        PatchOperation::of(&item.to_value()).ok_or_else(Failure::unprocessable)?;
                    operation
                        .apply(&mut value)
                        .ok_or_else(Failure::unprocessable)?;
                }
            }
            (PatchFormat::Operations, _) => return wrong("[]handlers.jsonPatchOp"),
            (PatchFormat::Merge, Node::Map(_)) => merge::apply(&mut value, &node.to_value()),
            (PatchFormat::Strategic, Node::Map(_)) => {
                strategic::apply(kind.schema, &mut value, &node.to_value());
            }
            (PatchFormat::Apply, Node::Map(_)) => {
                check_applied(kind, &node)?;
                let applied = in_stored_order(&value, node.to_value());
                strategic::apply(kind.schema, &mut value, &applied);
            }
            (PatchFormat::Merge | PatchFormat::Strategic | PatchFormat::Apply, _) => {
                return wrong("map[string]interface {}");
            }
        }
        body::patched(kind, &value, validation, warnings)
            .map_err(|why| Failure::invalid_patch(kind, &value, &why))
    }
}

/// The object of a server-side apply, which leaves the order of the lists in the metadata as it is stored.
fn in_stored_order(stored: &Value, mut applied: Value) -> Value {
    for list in ["finalizers", "ownerReferences"] {
        let both = [&stored["metadata"][list], &applied["metadata"][list]];
        if let [Value::Array(stored), Value::Array(given)] = both {
            let order: Vec<_> = stored.iter().chain(given).cloned().collect();
            applied["metadata"][format!("$setElementOrder/{list}")] = order.into();
        }
    }
    applied
}

/// Checks the object of a server-side apply: it says which version it is of, and holds nothing that the kind has not.
fn check_applied(kind: &Kind, node: &Node) -> Result<(), Failure> {
    let (version, named) = (node.text("apiVersion"), node.text("kind"));
    if (version, named) != (kind.api_version().as_str(), kind.kind) {
        let slash = if version.contains('/') { "" } else { "/" };
        return Err(Failure::bad_request(format!(
            "invalid object type: {slash}{version}, Kind={named}"
        )));
    }
    let metadata = node.field("metadata").unwrap_or(&Node::Null);
    if !matches!(metadata.field("managedFields"), None | Some(Node::Null)) {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    let place = (metadata.text("namespace"), metadata.text("name"));
    let untyped = |why: &str| Failure::untyped_apply(kind, place, why);
    let decoded = kind.schema.decode(node).map_err(|why| untyped(&why))?;
    let unknown = decoded.objections.iter().filter_map(|objection| {
        let field = objection
            .strip_prefix("unknown field \"")?
            .strip_suffix('"')?;
        Some(format!(".{field}: field not declared in schema"))
    });
    match unknown.collect::<Vec<_>>().as_slice() {
        [] => Ok(()),
        [one] => Err(untyped(one)),
        several => Err(untyped(&format!("errors:\n  {}", several.join("\n  ")))),
    }
}
