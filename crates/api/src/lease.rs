//! The Lease of `coordination.k8s.io/v1` as it travels.

use std::borrow::Cow;

use elector_protocol::{LeaseKey, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicResourceScope;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::field::{FieldError, Malformed};
use crate::object::Object;
use crate::time::Rfc3339;

/// A Lease, with everything that a PUT must carry and nothing more: managedFields are dropped.
///
/// Decoding never fails. A field that cannot be read is a [fault](Self::faults) of this object; a list or a watch
/// that holds it stays readable.
///
/// ```
/// use elector_api::Lease;
///
/// let lease: Lease = serde_json::from_str(r#"{"metadata": {}, "spec": {"renewTime": "soon"}}"#).unwrap();
/// assert_eq!(
///     lease.faults()[0].to_string(),
///     r#"spec.renewTime: Invalid value: "soon": must be an RFC 3339 time of the years 1 to 9999"#
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lease {
    /// Name, version, labels, annotations and owners.
    pub metadata: ObjectMeta,
    /// The fields of leader election.
    pub spec: LeaseSpec,
    faults: Vec<FieldError>,
}

/// The spec of a Lease, field by field as the wire has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaseSpec {
    /// The holder. Empty and absent both mean none; empty is what is written.
    pub holder_identity: Option<String>,
    /// The validity of a record of the holder, in seconds.
    pub lease_duration_seconds: Option<i32>,
    /// When the grant was written.
    pub acquire_time: Option<Timestamp>,
    /// When the holder last wrote.
    pub renew_time: Option<Timestamp>,
    /// The term.
    pub lease_transitions: Option<i32>,
    /// The strategy, where the server keeps this field.
    pub strategy: Option<String>,
    /// The candidate that the holder is asked to make room for, where the server keeps this field.
    pub preferred_holder: Option<String>,
    /// Fields that this version does not know, or could not read.
    pub other: Map<String, Value>,
}

// === impl Lease ===

impl Lease {
    /// The API version of a Lease, the only one that is served.
    pub const API_VERSION: &str = "coordination.k8s.io/v1";
    /// Its kind.
    pub const KIND: &str = "Lease";

    /// A Lease of that name and nothing else.
    pub fn named(key: &LeaseKey) -> Self {
        let metadata = ObjectMeta {
            namespace: Some(key.namespace.as_ref().to_owned()),
            name: Some(key.name.as_ref().to_owned()),
            ..ObjectMeta::default()
        };
        Self {
            metadata,
            ..Self::default()
        }
    }

    /// Namespace and name.
    pub fn key(&self) -> LeaseKey {
        let ObjectMeta {
            namespace, name, ..
        } = &self.metadata;
        let [namespace, name] = [namespace, name].map(|text| text.as_deref().unwrap_or_default());
        LeaseKey::new(namespace, name)
    }

    /// Fields that could not be read. No elector decides about a Lease with faults.
    pub fn faults(&self) -> &[FieldError] {
        &self.faults
    }

    /// Reads a decoded JSON or YAML object.
    pub fn from_value(value: Value) -> Self {
        Self::of(Object::of(value))
    }

    fn of(mut object: Object) -> Self {
        let spec = &mut object.spec;
        let (holder_identity, lease_duration_seconds) = (
            spec.text("holderIdentity"),
            spec.int32("leaseDurationSeconds"),
        );
        let (acquire_time, renew_time) = (spec.time("acquireTime"), spec.time("renewTime"));
        let lease_transitions = spec.int32("leaseTransitions");
        let (strategy, preferred_holder) = (spec.text("strategy"), spec.text("preferredHolder"));
        let (other, mut faults) = object.spec.rest();
        faults.splice(0..0, object.faults);
        let spec = LeaseSpec {
            holder_identity,
            lease_duration_seconds,
            acquire_time,
            renew_time,
            lease_transitions,
            strategy,
            preferred_holder,
            other,
        };
        Self {
            metadata: object.metadata,
            spec,
            faults,
        }
    }

    /// An error that names this Lease.
    pub(crate) fn malformed(&self, error: FieldError) -> Malformed {
        let key = self.key();
        Malformed {
            kind: Self::KIND,
            namespace: key.namespace.as_ref().to_owned(),
            name: key.name.as_ref().to_owned(),
            error: Box::new(error),
        }
    }
}

impl Resource for Lease {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Self::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "coordination.k8s.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "leases".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<'de> Deserialize<'de> for Lease {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::deserialize(deserializer).map(Self::of)
    }
}

impl Serialize for Lease {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(4))?;
        object.serialize_entry("apiVersion", Self::API_VERSION)?;
        object.serialize_entry("kind", Self::KIND)?;
        object.serialize_entry("metadata", &self.metadata)?;
        object.serialize_entry("spec", &self.spec)?;
        object.end()
    }
}

// === impl LeaseSpec ===

impl Serialize for LeaseSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut spec = self.other.clone();
        let time = |time: Timestamp| Value::from(Rfc3339(time).to_string());
        let fields = [
            (
                "holderIdentity",
                self.holder_identity.clone().map(Value::from),
            ),
            (
                "leaseDurationSeconds",
                self.lease_duration_seconds.map(Value::from),
            ),
            ("acquireTime", self.acquire_time.map(time)),
            ("renewTime", self.renew_time.map(time)),
            ("leaseTransitions", self.lease_transitions.map(Value::from)),
            ("strategy", self.strategy.clone().map(Value::from)),
            (
                "preferredHolder",
                self.preferred_holder.clone().map(Value::from),
            ),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                spec.insert(name.to_owned(), value);
            }
        }
        spec.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(value: Value) -> Lease {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn everything_but_managed_fields_survives() {
        let mut wire = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": "scheduler", "namespace": "kube-system", "uid": "u-1", "resourceVersion": "42",
                "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
                "deletionTimestamp": "2026-01-02T03:04:06Z", "deletionGracePeriodSeconds": 0,
                "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e/f"],
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-2", "controller": true}
                ],
                "managedFields": [{"manager": "kubectl", "operation": "Update", "time": "not even a time"}],
            },
            "spec": {
                "holderIdentity": "", "leaseDurationSeconds": 15, "acquireTime": "9999-12-31T23:59:59.999999Z",
                "renewTime": "2026-01-02T03:04:05.000000Z", "leaseTransitions": 7,
                "strategy": "OldestEmulationVersion", "preferredHolder": "b", "ofTheFuture": {"x": [1]},
            },
        });
        let read = lease(wire.clone());
        assert_eq!(read.faults(), []);
        assert_eq!(read.key(), LeaseKey::new("kube-system", "scheduler"));
        wire["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        assert_eq!(serde_json::to_value(&read).unwrap(), wire);
    }

    #[test]
    fn a_creation_time_reads_as_it_is_written() {
        for text in ["1969-12-31T23:59:59.999999Z", "2026-01-02T03:04:05.000001Z"] {
            let read = lease(json!({"metadata": {"creationTimestamp": text}}));
            let again = lease(serde_json::to_value(&read).unwrap());
            assert_eq!(again.metadata, read.metadata, "{text}");
        }
    }

    #[test]
    fn null_is_absent() {
        let read =
            lease(json!({"metadata": null, "spec": {"renewTime": null, "holderIdentity": null}}));
        assert_eq!(read, Lease::default());
        assert_eq!(lease(json!({})), Lease::default());
    }

    #[test]
    fn each_bad_field_is_one_fault_of_one_object() {
        for (object, text) in [
            (json!(7), "object: Invalid value: 7: must be an object"),
            (
                json!({"metadata": []}),
                "metadata: Invalid value: []: must be an object",
            ),
            (
                json!({"spec": "x"}),
                "spec: Invalid value: \"x\": must be an object",
            ),
            (
                json!({"metadata": {"labels": {"a": 1}}}),
                "metadata.labels: Invalid value: {\"a\":1}: must be a map of strings",
            ),
            (
                json!({"metadata": {"creationTimestamp": "9999-12-31T00:00:00Z"}}),
                "metadata.creationTimestamp: Invalid value: \"9999-12-31T00:00:00Z\": \
                 must be an RFC 3339 time from 0001-01-01 to 9999-12-30",
            ),
            (
                json!({"metadata": {"ownerReferences": [{"name": 1}]}}),
                "metadata.ownerReferences: Invalid value: [{\"name\":1}]: must be a list of owners",
            ),
            (
                json!({"spec": {"leaseDurationSeconds": 4_294_967_296i64}}),
                "spec.leaseDurationSeconds: Invalid value: 4294967296: must be a 32-bit integer",
            ),
            (
                json!({"spec": {"leaseTransitions": 1.5}}),
                "spec.leaseTransitions: Invalid value: 1.5: must be a 32-bit integer",
            ),
            (
                json!({"spec": {"acquireTime": 12}}),
                "spec.acquireTime: Invalid value: 12: must be an RFC 3339 time of the years 1 to 9999",
            ),
            (
                json!({"spec": {"holderIdentity": {}}}),
                "spec.holderIdentity: Invalid value: {}: must be a string",
            ),
        ] {
            let faults = lease(object).faults;
            assert_eq!(
                faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
                [text]
            );
        }
    }

    #[test]
    fn an_unreadable_field_is_written_back_as_it_was() {
        let wire = json!({"renewTime": "soon", "leaseTransitions": 1});
        let read = lease(json!({"spec": wire}));
        assert_eq!(serde_json::to_value(&read.spec).unwrap(), wire);
    }

    #[test]
    fn its_path_is_that_of_the_api() {
        let expected = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
        assert_eq!(Lease::url_path(&(), Some("ns")), expected);
        assert_eq!(Lease::kind(&()), "Lease");
        let mut lease = Lease::default();
        lease.meta_mut().name = Some("l".to_owned());
        assert_eq!(lease.key(), LeaseKey::new("", "l"));
    }
}
