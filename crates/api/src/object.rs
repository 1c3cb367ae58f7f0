//! Reading an object field by field, so that one bad field makes one bad object and not an unreadable list.

use std::borrow::Cow;
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
    /// The faults of the metadata's fields.
    pub(crate) faults: Vec<FieldError>,
    /// The fields of `spec`.
    pub(crate) spec: Fields,
}

/// Fields that are taken out one by one. What is not taken, or cannot be read, stays.
pub(crate) struct Fields {
    path: &'static str,
    /// A dozen at most in most objects, which a list holds in less room and time than a map.
    values: Vec<(FieldName, Value)>,
    faults: Vec<FieldError>,
}

/// Those that every object has are not kept in texts of their own.
type FieldName = Cow<'static, str>;

/// Reads the name of a field.
struct FieldNameSeed;

/// Reads a JSON object member by member. Anything else is reported and no error: one bad object leaves a list readable.
struct MembersSeed<M>(M);

/// A target for the members of a JSON object.
trait Members {
    /// Reads the value of a member.
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: FieldName,
        access: &mut A,
    ) -> Result<(), A::Error>;

    /// There is another value in the place of an object.
    fn reject(&mut self, value: Value);
}

/// The parts of an object.
struct ObjectParts {
    whole: Fields,
    metadata: Fields,
    spec: Fields,
}

// === impl Object ===

impl Object {
    /// Takes a decoded object apart. What cannot be read is a fault.
    pub(crate) fn of(value: Value) -> Self {
        Self::deserialize(value).unwrap_or_else(|error| {
            let mut parts = ObjectParts::default();
            let fault = FieldError::unreadable("object", Value::Null, error.to_string());
            parts.whole.faults.push(fault);
            parts.object()
        })
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parts = MembersSeed(ObjectParts::default()).deserialize(deserializer)?;
        Ok(parts.object())
    }
}

// === impl ObjectParts ===

impl ObjectParts {
    fn object(self) -> Object {
        let mut whole = self.whole;
        let api_version = whole.text("apiVersion").unwrap_or_default();
        let mut faults = whole.faults;
        let metadata = read_metadata(self.metadata, &mut faults);
        Object {
            api_version,
            metadata,
            faults,
            spec: self.spec,
        }
    }
}

impl Default for ObjectParts {
    fn default() -> Self {
        Self {
            whole: Fields::new(""),
            metadata: Fields::new("metadata"),
            spec: Fields::new("spec"),
        }
    }
}

impl Members for ObjectParts {
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: FieldName,
        access: &mut A,
    ) -> Result<(), A::Error> {
        match &*name {
            "metadata" => {
                self.metadata = access.next_value_seed(MembersSeed(Fields::roomy("metadata")))?;
            }
            "spec" => self.spec = access.next_value_seed(MembersSeed(Fields::roomy("spec")))?,
            "apiVersion" => self.whole.put(name, access.next_value()?),
            _ => {
                let IgnoredAny = access.next_value()?;
            }
        }
        Ok(())
    }

    fn reject(&mut self, value: Value) {
        self.whole.reject(value);
    }
}

// === impl FieldNameSeed ===

impl<'de> DeserializeSeed<'de> for FieldNameSeed {
    type Value = FieldName;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<FieldName, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldNameSeed {
    type Value = FieldName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<FieldName, E> {
        let usual = USUAL_NAMES.into_iter().find(|usual| *usual == text);
        Ok(usual.map_or_else(|| Cow::Owned(text.to_owned()), Cow::Borrowed))
    }
}

// === impl MembersSeed ===

impl<M: Members> MembersSeed<M> {
    fn rejecting(mut self, value: impl Into<Value>) -> M {
        self.0.reject(value.into());
        self.0
    }
}

impl<'de, M: Members> DeserializeSeed<'de> for MembersSeed<M> {
    type Value = M;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<M, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, M: Members> Visitor<'de> for MembersSeed<M> {
    type Value = M;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<M, A::Error> {
        while let Some(name) = access.next_key_seed(FieldNameSeed)? {
            self.0.read(name, &mut access)?;
        }
        Ok(self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<M, A::Error> {
        let value = Value::deserialize(SeqAccessDeserializer::new(access))?;
        Ok(self.rejecting(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<M, E> {
        Ok(self.rejecting(text))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<M, E> {
        Ok(self.rejecting(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<M, E> {
        Ok(self.rejecting(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<M, E> {
        Ok(self.rejecting(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<M, E> {
        Ok(self.rejecting(number))
    }

    fn visit_unit<E: Error>(self) -> Result<M, E> {
        Ok(self.0)
    }
}

// === impl Fields ===

impl Members for Fields {
    /// managedFields are skipped as they come in.
    ///
    /// Not only because nothing needs them: a client that may write one object may nest them a thousand levels deep,
    /// which API servers store and serve, and JSON readers refuse, the whole list of objects with them. What is skipped
    /// may be as deep as it likes.
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: FieldName,
        access: &mut A,
    ) -> Result<(), A::Error> {
        if (self.path, &*name) == ("metadata", "managedFields") {
            let IgnoredAny = access.next_value()?;
        } else {
            self.put(name, access.next_value()?);
        }
        Ok(())
    }

    fn reject(&mut self, value: Value) {
        let path = match self.path {
            "" => "object",
            path => path,
        };
        let fault = FieldError::unreadable(path, value, "must be an object");
        self.faults.push(fault);
    }
}

impl Fields {
    fn new(path: &'static str) -> Self {
        Self {
            path,
            values: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// The same with room for the fields that most objects have.
    fn roomy(path: &'static str) -> Self {
        Self {
            values: Vec::with_capacity(USUAL_FIELDS),
            ..Self::new(path)
        }
    }

    /// Of a field that comes twice the last value counts.
    fn put(&mut self, name: FieldName, value: Value) {
        match self.values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.values.push((name, value)),
        }
    }

    /// A text.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.take(name, "must be a string", |value| match value {
            Value::String(text) => Some(std::mem::take(text)),
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
            Vec::deserialize(&*value).ok()
        });
        taken.unwrap_or_default()
    }

    /// The members left, and the faults found.
    pub(crate) fn rest(self) -> (Map<String, Value>, Vec<FieldError>) {
        let values = self.values.into_iter();
        let map = values.map(|(name, value)| (name.into_owned(), value));
        (map.collect(), self.faults)
    }

    /// Takes a field out. `null` is absent; an unreadable one stays in place, so that a write would carry it: `read`
    /// changes none of those.
    fn take<T>(
        &mut self,
        name: &str,
        rule: &str,
        read: impl FnOnce(&mut Value) -> Option<T>,
    ) -> Option<T> {
        let at = self.values.iter().position(|(known, _)| known == name)?;
        let (_, value) = self.values.get_mut(at)?;
        let taken = match value {
            Value::Null => None,
            value => match read(value) {
                Some(taken) => Some(taken),
                None => {
                    let path = match self.path {
                        "" => name.to_owned(),
                        path => format!("{path}.{name}"),
                    };
                    let fault = FieldError::unreadable(path, value.clone(), rule);
                    self.faults.push(fault);
                    return None;
                }
            },
        };
        self.values.swap_remove(at);
        taken
    }

    fn int64(&mut self, name: &str) -> Option<i64> {
        self.take(name, "must be a 64-bit integer", |value| value.as_i64())
    }

    fn texts(&mut self, name: &str) -> Option<BTreeMap<String, String>> {
        self.take(name, "must be a map of strings", |value| {
            let map = value.as_object_mut()?;
            if !map.values().all(Value::is_string) {
                return None;
            }
            let texts = std::mem::take(map).into_iter();
            let texts = texts.filter_map(|(name, value)| match value {
                Value::String(text) => Some((name, text)),
                _ => None,
            });
            Some(texts.collect())
        })
    }

    /// A time of the object's metadata, which the API server writes, in whole seconds.
    fn stamp(&mut self, name: &str) -> Option<Time> {
        let rule = "must be an RFC 3339 time from 0001-01-01 to 9999-12-30";
        self.take(name, rule, |value| {
            let micros = parse_time(value.as_str()?).ok()?.as_micros();
            // A finer time than can be written would read otherwise the next time.
            let second = micros.div_euclid(1_000_000);
            let stamp = k8s_openapi::jiff::Timestamp::from_second(second).ok()?;
            Some(Time(stamp))
        })
    }
}

/// The number of fields that the metadata and the spec of most objects have, at most.
const USUAL_FIELDS: usize = 10;

/// The names of fields that nearly every object has.
const USUAL_NAMES: [&str; 24] = [
    "acquireTime",
    "annotations",
    "apiVersion",
    "binaryVersion",
    "creationTimestamp",
    "emulationVersion",
    "generation",
    "holderIdentity",
    "kind",
    "labels",
    "leaseDurationSeconds",
    "leaseName",
    "leaseTransitions",
    "managedFields",
    "metadata",
    "name",
    "namespace",
    "pingTime",
    "preferredHolder",
    "renewTime",
    "resourceVersion",
    "spec",
    "strategy",
    "uid",
];

/// Everything that a PUT must not lose. managedFields stay out: the server keeps its own where a write has none.
fn read_metadata(mut fields: Fields, faults: &mut Vec<FieldError>) -> ObjectMeta {
    let owner_references = fields.take("ownerReferences", "must be a list of owners", |value| {
        Vec::<OwnerReference>::deserialize(&*value).ok()
    });
    let finalizers = fields.take("finalizers", "must be a list of strings", |value| {
        Vec::<String>::deserialize(&*value).ok()
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
    fn every_kind_of_value_is_read_in_the_place_of_an_object() {
        for value in [
            json!(null),
            json!({"a": {"managedFields": 1}, "managedFields": 2}),
            json!(true),
            json!(-7),
            json!(u64::MAX),
            json!(1.5),
            json!("x"),
            json!([1, [2]]),
        ] {
            let bad = !value.is_null() && !value.is_object();
            for (wire, path) in [
                (value.clone(), "object"),
                (json!({"metadata": value}), "metadata"),
                (json!({"spec": value}), "spec"),
            ] {
                let read = Lease::from_value(wire.clone());
                let again: Lease = serde_json::from_str(&wire.to_string()).unwrap();
                assert_eq!(read, again);
                let faults = read.faults().iter().map(|fault| fault.field.as_str());
                assert_eq!(Vec::from_iter(faults), Vec::from_iter(bad.then_some(path)));
            }
        }
    }

    /// A PUT would lose what is not read.
    #[test]
    fn all_metadata_but_managed_fields_are_read() {
        let owner =
            json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "2", "controller": true});
        let mut wire = json!({
            "name": "a",
            "generateName": "a-",
            "namespace": "n",
            "uid": "1",
            "resourceVersion": "9",
            "generation": 3,
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "deletionTimestamp": "2026-01-02T03:04:06Z",
            "deletionGracePeriodSeconds": 30,
            "labels": {"l": "1"},
            "annotations": {"b": "2"},
            "ownerReferences": [owner],
            "finalizers": ["f"],
        });
        let expected = wire.clone();
        wire["managedFields"] = json!([1]);
        let read = Lease::from_value(json!({"metadata": wire, "spec": {"managedFields": 2}}));
        assert_eq!(serde_json::to_value(&read.metadata).unwrap(), expected);
        assert_eq!(read.spec.other["managedFields"], json!(2));
        assert_eq!(read.faults(), []);
    }

    #[test]
    fn of_a_field_that_comes_twice_the_last_value_counts() {
        let text =
            r#"{"spec": {"strategy": "a/b", "x": 1, "strategy": 2, "x": 3, "strategy": "c/d"}}"#;
        let read: Lease = serde_json::from_str(text).unwrap();
        assert_eq!(read.spec.strategy.as_deref(), Some("c/d"));
        assert_eq!(read.spec.other["x"], json!(3));
    }
}
