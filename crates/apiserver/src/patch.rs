//! Patches: merge, JSON and strategic merge.

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
}

// === impl Patch ===

impl<'a> Patch<'a> {
    /// Takes a patch by its media type. Custom resources know no strategic merge.
    pub(crate) fn of(kind: &Kind, headers: &HeaderMap, body: &'a [u8]) -> Result<Self, Failure> {
        let form = match media_type(headers) {
            "application/merge-patch+json" => PatchFormat::Merge,
            "application/json-patch+json" => PatchFormat::Operations,
            "application/strategic-merge-patch+json" if !kind.custom => PatchFormat::Strategic,
            _ => return Err(Failure::unsupported_patch()),
        };
        Ok(Self { form, body })
    }

    /// Its result on an object, as it is to be stored.
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
            PatchFormat::Merge | PatchFormat::Operations => {
                Failure::bad_request(format!("error decoding patch: {why}"))
            }
        };
        let node = Node::parse(self.body).map_err(|error| undecodable(&error.0))?;
        let wrong = |into: &str| {
            Err(undecodable(&format!(
                "json: cannot unmarshal {} into Go value of type {into}",
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
            (PatchFormat::Merge | PatchFormat::Strategic, _) => {
                return wrong("map[string]interface {}");
            }
        }
        body::patched(kind, &value, validation, warnings)
            .map_err(|why| Failure::invalid_patch(kind, &value, &why))
    }
}
