//! A stored object.

use std::sync::OnceLock;

use axum::body::Bytes;
use serde_json::{Map, Value};

/// Namespace and name; the namespace is empty for what has none. They sort as the API server lists them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoreKey {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// The fields of an object as they are stored.
pub(crate) type ObjectFields = Map<String, Value>;

/// One revision of an object, without apiVersion and kind, which depend on the version in which it is shown.
#[derive(Debug)]
pub(crate) struct Stored {
    key: StoreKey,
    revision: u64,
    fields: ObjectFields,
    /// The form for most watchers, encoded once for all of them.
    encoded: OnceLock<Bytes>,
}

/// A text of the metadata, empty where there is none.
pub(crate) fn metadata_text<'a>(object: &'a ObjectFields, name: &str) -> &'a str {
    object["metadata"][name].as_str().unwrap_or_default()
}

// === impl StoreKey ===

impl StoreKey {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

// === impl Stored ===

impl Stored {
    pub(crate) fn new(key: StoreKey, mut fields: ObjectFields, revision: u64) -> Self {
        let metadata = fields
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        metadata["resourceVersion"] = revision.to_string().into();
        Self {
            key,
            revision,
            fields,
            encoded: OnceLock::new(),
        }
    }

    pub(crate) fn key(&self) -> &StoreKey {
        &self.key
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn fields(&self) -> &ObjectFields {
        &self.fields
    }

    /// A text of the metadata, empty where it is absent.
    pub(crate) fn meta(&self, name: &str) -> &str {
        self.fields["metadata"][name].as_str().unwrap_or_default()
    }

    /// True if its deletion has been asked for.
    pub(crate) fn is_deleting(&self) -> bool {
        !self.meta("deletionTimestamp").is_empty()
    }

    /// The encoded form, made the first time it is asked for.
    pub(crate) fn encoded(&self, encode: impl FnOnce(&Self) -> Bytes) -> Bytes {
        self.encoded.get_or_init(|| encode(self)).clone()
    }
}
