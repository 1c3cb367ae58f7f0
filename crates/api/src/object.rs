//! Reading an object field by field, so that one bad field makes one bad object and not an unreadable list.

use std::collections::BTreeMap;

use elector_protocol::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde_json::{Map, Value};

use crate::field::FieldError;
use crate::time::parse_time;

/// An object whose parts have been taken apart.
pub(crate) struct Object {
    /// `apiVersion`, empty where a list left it out.
    pub(crate) api_version: String,
    /// The metadata, without managedFields.
    pub(crate) metadata: ObjectMeta,
    /// What the metadata had of unreadable fields.
    pub(crate) faults: Vec<FieldError>,
    /// The fields of `spec`.
    pub(crate) spec: Fields,
}

/// A map whose fields are taken out one by one. What is not taken, or cannot be read, stays.
pub(crate) struct Fields {
    path: &'static str,
    map: Map<String, Value>,
    faults: Vec<FieldError>,
}

// === impl Object ===

impl Object {
    /// Takes an object apart. Never fails: what cannot be read is a fault.
    pub(crate) fn read(value: Value) -> Self {
        let mut whole = Fields::new("", value);
        let api_version = whole.text("apiVersion").unwrap_or_default();
        let metadata = whole.map.remove("metadata").unwrap_or_default();
        let spec = whole.map.remove("spec").unwrap_or_default();
        let mut faults = whole.faults;
        let metadata = read_metadata(Fields::new("metadata", metadata), &mut faults);
        Self {
            api_version,
            metadata,
            faults,
            spec: Fields::new("spec", spec),
        }
    }
}

// === impl Fields ===

impl Fields {
    fn new(path: &'static str, value: Value) -> Self {
        let mut faults = Vec::new();
        let map = match value {
            Value::Object(map) => map,
            Value::Null => Map::new(),
            other => {
                let path = if path.is_empty() { "object" } else { path };
                faults.push(FieldError::unreadable(path, other, "must be an object"));
                Map::new()
            }
        };
        Self { path, map, faults }
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.take(name, "must be a string", |value| match value {
            Value::String(text) => Some(text.clone()),
            _ => None,
        })
    }

    /// A 32-bit integer.
    pub(crate) fn int32(&mut self, name: &str) -> Option<i32> {
        self.take(name, "must be a 32-bit integer", |value| {
            value.as_i64().and_then(|number| number.try_into().ok())
        })
    }

    /// A MicroTime.
    pub(crate) fn time(&mut self, name: &str) -> Option<Timestamp> {
        self.take(
            name,
            "must be an RFC 3339 time of the years 1 to 9999",
            |value| parse_time(value.as_str()?).ok(),
        )
    }

    /// A list of texts, empty where it is absent.
    pub(crate) fn text_list(&mut self, name: &str) -> Vec<String> {
        let taken = self.take(name, "must be a list of strings", |value| {
            serde_json::from_value(value.clone()).ok()
        });
        taken.unwrap_or_default()
    }

    /// What was not taken, and the faults found.
    pub(crate) fn rest(self) -> (Map<String, Value>, Vec<FieldError>) {
        (self.map, self.faults)
    }

    /// Takes a field out. `null` is absent; an unreadable one stays in place, so that a write would carry it.
    fn take<T>(
        &mut self,
        name: &str,
        rule: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.map.remove(name)?;
        if value.is_null() {
            return None;
        }
        let taken = read(&value);
        if taken.is_none() {
            let path = if self.path.is_empty() {
                name.to_owned()
            } else {
                format!("{}.{name}", self.path)
            };
            self.faults
                .push(FieldError::unreadable(path, value.clone(), rule));
            self.map.insert(name.to_owned(), value);
        }
        taken
    }

    fn int64(&mut self, name: &str) -> Option<i64> {
        self.take(name, "must be a 64-bit integer", Value::as_i64)
    }

    fn texts(&mut self, name: &str) -> Option<BTreeMap<String, String>> {
        self.take(name, "must be a map of strings", |value| {
            serde_json::from_value(value.clone()).ok()
        })
    }

    /// A time of the object's metadata, which the API server writes, in whole seconds.
    fn stamp(&mut self, name: &str) -> Option<Time> {
        let rule = "must be an RFC 3339 time from 0001-01-01 to 9999-12-30";
        self.take(name, rule, |value| {
            let micros = parse_time(value.as_str()?).ok()?.as_micros();
            // What is finer than it can be written would read otherwise the next time.
            let second = micros.div_euclid(1_000_000);
            let stamp = k8s_openapi::jiff::Timestamp::from_second(second).ok()?;
            Some(Time(stamp))
        })
    }
}

/// Everything that a PUT must not lose. managedFields stay out: the server keeps its own where a write has none.
fn read_metadata(mut fields: Fields, faults: &mut Vec<FieldError>) -> ObjectMeta {
    let owner_references = fields.take("ownerReferences", "must be a list of owners", |value| {
        serde_json::from_value::<Vec<OwnerReference>>(value.clone()).ok()
    });
    let finalizers = fields.take("finalizers", "must be a list of strings", |value| {
        serde_json::from_value::<Vec<String>>(value.clone()).ok()
    });
    let metadata = ObjectMeta {
        name: fields.text("name"),
        generate_name: fields.text("generateName"),
        namespace: fields.text("namespace"),
        uid: fields.text("uid"),
        resource_version: fields.text("resourceVersion"),
        generation: fields.int64("generation"),
        creation_timestamp: fields.stamp("creationTimestamp"),
        deletion_timestamp: fields.stamp("deletionTimestamp"),
        deletion_grace_period_seconds: fields.int64("deletionGracePeriodSeconds"),
        labels: fields.texts("labels"),
        annotations: fields.texts("annotations"),
        owner_references,
        finalizers,
        ..ObjectMeta::default()
    };
    faults.append(&mut fields.faults);
    metadata
}
