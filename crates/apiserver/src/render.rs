//! The form of objects in answers: whole, as rows, or by their metadata, in the version that was asked for.

use axum::body::Bytes;
use serde_json::{Value, json};

use crate::clock::WallClock;
use crate::columns;
use crate::events;
use crate::failure::Failure;
use crate::kind::{Bucket, Kind};
use crate::query::Query;
use crate::reply::{ReplyForm, encode, headed};
use crate::store::{ObjectFields, Stored};

/// The view of one client.
#[derive(Clone, Debug)]
pub(crate) struct ObjectRenderer {
    pub(crate) kind: &'static Kind,
    pub(crate) form: ReplyForm,
    /// The contents of a table's rows: `Metadata`, `Object` or `None`.
    include: String,
    clock: WallClock,
}

// === impl ObjectRenderer ===

impl ObjectRenderer {
    pub(crate) fn new(
        kind: &'static Kind,
        form: ReplyForm,
        query: &Query,
        clock: &WallClock,
    ) -> Result<Self, Failure> {
        let include = query.text("includeObject").unwrap_or("Metadata").to_owned();
        if form == ReplyForm::Table && !matches!(include.as_str(), "Metadata" | "Object" | "None") {
            return Err(Failure::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {include:?}: must be \
                 'Metadata', 'Object', 'None', or empty"
            )));
        }
        Ok(Self {
            kind,
            form,
            include,
            clock: clock.clone(),
        })
    }

    /// True if a list says which ranges it holds. Lists of custom resources and those of another form do not, although
    /// they hold no others.
    pub(crate) fn tells_shards(&self) -> bool {
        self.form == ReplyForm::Whole && !self.kind.custom
    }

    /// One object.
    pub(crate) fn object(&self, fields: &ObjectFields) -> Value {
        match self.form {
            ReplyForm::Table => {
                let meta = json!({"resourceVersion": fields["metadata"]["resourceVersion"]});
                self.table(meta, [fields], true)
            }
            ReplyForm::Metadata => metadata_only(fields),
            ReplyForm::Whole | ReplyForm::Discovery => self.whole(fields),
        }
    }

    /// A list with the metadata of the list.
    pub(crate) fn list<'a>(
        &self,
        mut meta: Value,
        items: impl IntoIterator<Item = &'a ObjectFields>,
    ) -> Value {
        if self.kind.custom && self.form == ReplyForm::Whole {
            // Lists of custom resources say so where they are complete.
            let fields = meta.as_object_mut();
            if let Some(fields) = fields {
                fields.entry("continue").or_insert_with(|| "".into());
            }
        }
        match self.form {
            ReplyForm::Table => self.table(meta, items, true),
            ReplyForm::Metadata => {
                let items: Vec<_> = items.into_iter().map(metadata_only).collect();
                let fields = [("metadata", meta), ("items", items.into())];
                headed("meta.k8s.io/v1", "PartialObjectMetadataList", fields)
            }
            ReplyForm::Whole | ReplyForm::Discovery => {
                let items: Vec<_> = items.into_iter().map(|fields| self.item(fields)).collect();
                let kind = format!("{}List", self.kind.kind);
                headed(
                    &self.kind.api_version(),
                    &kind,
                    [("metadata", meta), ("items", items.into())],
                )
            }
        }
    }

    /// One line of a watch. The first table of a stream explains its columns.
    pub(crate) fn frame(&self, happened: &str, object: &Stored, first: bool) -> Bytes {
        let object = match self.form {
            // The form for most watchers, encoded once for all of them.
            ReplyForm::Whole if self.is_common() => {
                object.encoded(|object| encode(&self.whole(object.fields())))
            }
            ReplyForm::Table => {
                let fields = object.fields();
                let meta = json!({"resourceVersion": fields["metadata"]["resourceVersion"]});
                encode(&self.table(meta, [fields], first))
            }
            _ => encode(&self.object(object.fields())),
        };
        line(happened, &object)
    }

    /// A line of a watch that carries nothing but a revision.
    pub(crate) fn bookmark(&self, revision: u64, ends_initial_events: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if ends_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let mut fields = ObjectFields::new();
        fields.insert("metadata".to_owned(), metadata.clone());
        if !self.kind.custom && !self.kind.schema.open {
            fields.insert("spec".to_owned(), json!({}));
        }
        let object = match self.form {
            ReplyForm::Table => self.table(
                json!({"resourceVersion": revision.to_string()}),
                [&fields],
                false,
            ),
            _ => self.object(&fields),
        };
        line("BOOKMARK", &encode(&object))
    }

    /// A line of a watch that ends it.
    pub(crate) fn error(failure: &Failure) -> Bytes {
        line("ERROR", &encode(&failure.to_value()))
    }

    fn whole(&self, fields: &ObjectFields) -> Value {
        let mut shown = events::shown(self.kind, fields).into_owned();
        shown.insert("kind".to_owned(), self.kind.kind.into());
        shown.insert("apiVersion".to_owned(), self.kind.api_version().into());
        Value::Object(shown)
    }

    /// An item of a list, which names its kind only if it is a custom resource.
    fn item(&self, fields: &ObjectFields) -> Value {
        if self.kind.custom {
            return self.whole(fields);
        }
        Value::Object(events::shown(self.kind, fields).into_owned())
    }

    fn table<'a>(
        &self,
        meta: Value,
        items: impl IntoIterator<Item = &'a ObjectFields>,
        columns: bool,
    ) -> Value {
        let now = self.clock.now();
        let rows: Vec<_> = items
            .into_iter()
            .map(|fields| {
                let object = match self.include.as_str() {
                    "None" => Value::Null,
                    "Object" => self.whole(fields),
                    _ => metadata_only(fields),
                };
                json!({"cells": columns::cells(self.kind, fields, now), "object": object})
            })
            .collect();
        let columns = if columns {
            columns::definitions(self.kind)
        } else {
            Value::Null
        };
        let fields = [
            ("metadata", meta),
            ("columnDefinitions", columns),
            ("rows", rows.into()),
        ];
        headed("meta.k8s.io/v1", "Table", fields)
    }

    fn is_common(&self) -> bool {
        match self.kind.bucket {
            Bucket::Events => self.kind.group.is_empty(),
            Bucket::Candidates => self.kind.version == "v1beta1",
            Bucket::Leases | Bucket::CustomCandidates | Bucket::Namespaces => true,
            Bucket::Other(_) => false,
        }
    }
}

fn metadata_only(fields: &ObjectFields) -> Value {
    headed(
        "meta.k8s.io/v1",
        "PartialObjectMetadata",
        [("metadata", fields["metadata"].clone())],
    )
}

fn line(happened: &str, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + 32);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(happened.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.into()
}
