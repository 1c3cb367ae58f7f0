//! A Lease in little room, for those who keep thousands and write few of them.

use elector_protocol::{Identity, LeaseKey, LeaseRecord, LeaseSnapshot};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use crate::lease::{Lease, LeaseSpec};

/// The rest that a PUT of a Lease must carry over, besides its key and its snapshot.
///
/// An object takes several times the room of its text, in maps that are mostly empty. So this is a text: JSON, without
/// the fields that the snapshot repeats.
///
/// ```
/// use elector_api::{Lease, PackedLease};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let lease: Lease = serde_json::from_str(
///     r#"{"metadata": {"name": "l", "uid": "u", "resourceVersion": "7", "labels": {"team": "a"}}}"#,
/// )?;
/// let (key, snapshot) = (lease.key(), lease.snapshot()?);
/// let packed = PackedLease::new(lease.clone(), &snapshot).ok_or("no JSON")?;
/// assert_eq!(packed.lease(&key, &snapshot), Some(lease));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedLease {
    text: Box<str>,
    /// True if the text has a spec, which the snapshot does not tell then.
    has_spec: bool,
}

/// The fields beside the snapshot.
#[derive(Serialize)]
struct Rest<'a> {
    metadata: &'a ObjectMeta,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a LeaseSpec>,
}

// === impl PackedLease ===

impl PackedLease {
    /// Packs the object that this snapshot is of; its name and namespace are to be known when it is unpacked. `None`
    /// where it has no JSON, as no object has that was read from any.
    pub fn new(mut lease: Lease, snapshot: &LeaseSnapshot) -> Option<Self> {
        let metadata = &mut lease.metadata;
        (metadata.name, metadata.namespace) = (None, None);
        let (uid, version) = (snapshot.uid.to_string(), snapshot.version.to_string());
        metadata.uid.take_if(|text| *text == uid);
        metadata.resource_version.take_if(|text| *text == version);
        let spec = Some(&lease.spec).filter(|spec| **spec != told_spec(&snapshot.record));
        let has_spec = spec.is_some();
        let text = serde_json::to_string(&Rest { metadata, spec }).ok()?;
        Some(Self {
            text: text.into(),
            has_spec,
        })
    }

    /// The object again, by the key and the snapshot that it was packed with. `None` where it was not packed by
    /// [`Self::new`].
    pub fn lease(&self, key: &LeaseKey, snapshot: &LeaseSnapshot) -> Option<Lease> {
        let mut lease: Lease = serde_json::from_str(&self.text).ok()?;
        let told = told(key, snapshot);
        if !self.has_spec {
            lease.spec = told.spec;
        }
        let metadata = &mut lease.metadata;
        metadata.name = metadata.name.take().or(told.metadata.name);
        metadata.namespace = metadata.namespace.take().or(told.metadata.namespace);
        metadata.uid = metadata.uid.take().or(told.metadata.uid);
        let version = told.metadata.resource_version;
        metadata.resource_version = metadata.resource_version.take().or(version);
        Some(lease)
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }
}

/// The Lease as far as its key and its snapshot tell.
fn told(key: &LeaseKey, snapshot: &LeaseSnapshot) -> Lease {
    let mut lease = Lease::named(key);
    let metadata = &mut lease.metadata;
    // An object without a name has the same key as one with an empty name, which no server serves.
    metadata.name.take_if(|text| text.is_empty());
    metadata.namespace.take_if(|text| text.is_empty());
    metadata.uid = Some(snapshot.uid.to_string());
    metadata.resource_version = Some(snapshot.version.to_string());
    lease.spec = told_spec(&snapshot.record);
    lease
}

/// The spec of most Leases with this record.
fn told_spec(record: &LeaseRecord) -> LeaseSpec {
    let holder = record.holder.as_ref().map_or("", Identity::as_str);
    LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: record.duration_seconds,
        acquire_time: record.acquire_time,
        renew_time: record.renew_time,
        lease_transitions: Some(record.term.0),
        ..LeaseSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn packed(object: Value) -> (Lease, PackedLease) {
        let lease = Lease::from_value(object);
        let (key, snapshot) = (lease.key(), lease.snapshot().unwrap());
        let packed = PackedLease::new(lease.clone(), &snapshot).unwrap();
        assert_eq!(packed.lease(&key, &snapshot), Some(lease.clone()));
        (lease, packed)
    }

    #[test]
    fn an_object_comes_out_as_it_went_in() {
        packed(json!({"metadata": {"uid": "u", "resourceVersion": "007"}}));
        packed(json!({
            "metadata": {
                "name": "l", "namespace": "ns", "uid": "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
                "resourceVersion": "7", "generation": 3, "creationTimestamp": "2026-01-02T03:04:05Z",
                "labels": {"a": "b"}, "annotations": {"c": "d", "elector.dev/token": "x"}, "finalizers": ["e/f"],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-2"}],
            },
            "spec": {
                "holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000001Z",
                "strategy": "OldestEmulationVersion", "preferredHolder": "", "ofTheFuture": {"x": [1, 0.1]},
            },
        }));
        for spec in [
            json!({}),
            json!({"holderIdentity": "", "leaseTransitions": 0}),
            json!({"holderIdentity": "a", "leaseTransitions": 1, "acquireTime": "2026-01-02T03:04:05Z"}),
            json!({"leaseTransitions": 1}),
        ] {
            packed(
                json!({"metadata": {"name": "l", "uid": "u", "resourceVersion": "1"}, "spec": spec}),
            );
        }
    }

    #[test]
    fn numbers_of_unknown_fields_keep_every_digit() {
        for number in (1..2000).map(|n| f64::from(n).sqrt() * 1e-5) {
            let (lease, _) = packed(json!({
                "metadata": {"name": "l", "uid": "u", "resourceVersion": "1"}, "spec": {"ofTheFuture": number},
            }));
            assert_eq!(lease.spec.other["ofTheFuture"], json!(number));
        }
    }

    #[test]
    fn what_the_snapshot_tells_takes_no_room() {
        let (lease, packed) = packed(json!({
            "metadata": {
                "name": "l", "namespace": "ns", "uid": "u", "resourceVersion": "7", "annotations": {"c": "d"},
            },
            "spec": {
                "holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 2,
                "acquireTime": "2026-01-02T03:04:05.000000Z", "renewTime": "2026-01-02T03:04:06.000000Z",
            },
        }));
        let metadata = json!({"metadata": {"annotations": {"c": "d"}}});
        assert_eq!(packed.bytes(), metadata.to_string().len());
        assert!(serde_json::to_string(&lease).unwrap().len() > 5 * packed.bytes());
    }
}
