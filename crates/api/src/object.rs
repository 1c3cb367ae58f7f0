//! Reading an object field by field, so that one bad field makes one bad object and not an unreadable list.

use std::collections::BTreeMap;
use std::fmt;

use elector_protocol::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
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

/// Reads JSON as a [`Value`], but for managedFields, which are skipped as they come in.
///
/// Not only because nothing needs them: a client that may write one object may nest them a thousand levels deep, which
/// API servers store and serve, and JSON readers refuse, the whole list of objects with them. What is skipped may be as
/// deep as it likes.
#[derive(Clone, Copy)]
enum Level {
    /// The whole object.
    Object,
    /// Its metadata.
    Metadata,
}

// === impl Object ===

impl Object {
    /// The JSON of an object without its managedFields.
    pub(crate) fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        Level::Object.deserialize(deserializer)
    }

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

// === impl Level ===

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let value = match (self, name.as_str()) {
                (Self::Object, "metadata") => access.next_value_seed(Self::Metadata)?,
                (Self::Metadata, "managedFields") => {
                    let IgnoredAny = access.next_value()?;
                    continue;
                }
                _ => access.next_value()?,
            };
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<Value, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(access))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
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

#[cfg(test)]
mod tests {
    use kube::core::{ObjectList, WatchEvent};
    use serde_json::json;

    use crate::{Lease, LeaseCandidate};

    /// An object whose managedFields lie a thousand levels deep, as API servers store and serve them.
    fn deep(kind: &str, name: &str) -> String {
        let (open, close) = ("{\"f:x\":".repeat(1000), "}".repeat(1000));
        let managed = format!("[{{\"manager\":\"x\",\"fieldsV1\":{open}{{}}{close}}}]");
        format!(
            "{{\"kind\":{kind:?},\"metadata\":{{\"name\":{name:?},\"managedFields\":{managed},\"uid\":\"u\"}},\
             \"spec\":{{\"leaseName\":\"l\"}}}}"
        )
    }

    #[test]
    fn deep_managed_fields_of_one_object_leave_the_others_readable() {
        let (lease, candidate) = (deep("Lease", "a"), deep("LeaseCandidate", "b"));
        let list =
            format!(r#"{{"kind":"LeaseList","metadata":{{}},"items":[{lease},{{}},{lease}]}}"#);
        let list: ObjectList<Lease> = serde_json::from_str(&list).unwrap();
        let names = list
            .items
            .iter()
            .map(|lease| lease.metadata.name.as_deref());
        assert_eq!(names.collect::<Vec<_>>(), [Some("a"), None, Some("a")]);
        assert_eq!(list.items[0].metadata.uid.as_deref(), Some("u"));
        let frame = format!(r#"{{"type":"MODIFIED","object":{candidate}}}"#);
        let frame: WatchEvent<LeaseCandidate> = serde_json::from_str(&frame).unwrap();
        let WatchEvent::Modified(candidate) = frame else {
            panic!("{frame:?}");
        };
        assert_eq!(candidate.lease_key().name.as_ref(), "l");
        assert_eq!(candidate.faults(), []);
    }

    #[test]
    fn every_kind_of_value_is_read() {
        for value in [
            json!(null),
            json!(true),
            json!(-7),
            json!(u64::MAX),
            json!(1.5),
            json!("x"),
            json!([1, [2]]),
            json!({"a": {"managedFields": 1}, "managedFields": 2, "metadata": [{"b": null}]}),
        ] {
            let read = super::Object::value(&value).unwrap();
            assert_eq!(read, value);
            let text = value.to_string();
            let mut json = serde_json::Deserializer::from_str(&text);
            assert_eq!(super::Object::value(&mut json).unwrap(), value);
        }
        let wire =
            json!({"metadata": {"name": "a", "managedFields": [1]}, "spec": {"managedFields": 2}});
        let read = super::Object::value(wire).unwrap();
        assert_eq!(
            read,
            json!({"metadata": {"name": "a"}, "spec": {"managedFields": 2}})
        );
    }
}
