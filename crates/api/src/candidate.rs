//! The LeaseCandidate as it travels, in whichever group the cluster serves it.

use std::borrow::Cow;

use elector_protocol::{Identity, LeaseKey, ResourceVersion, Timestamp, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::DynamicResourceScope;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use crate::candidate_api::CandidateApi;
use crate::field::{FieldError, Malformed};
use crate::object::Object;
use crate::time::Rfc3339;

/// A LeaseCandidate, with everything that a PUT must carry and nothing more: managedFields are dropped.
///
/// Decoding never fails. A field that cannot be read is a [fault](Self::faults) of this object; a list or a watch
/// that holds it stays readable.
///
/// ```
/// use elector_api::LeaseCandidate;
///
/// let candidate: LeaseCandidate =
///     serde_json::from_str(r#"{"metadata": {"name": "a"}, "spec": {"leaseName": "l", "pingTime": 7}}"#).unwrap();
/// assert_eq!(candidate.spec.lease_name, "l");
/// assert_eq!(candidate.faults()[0].field, "spec.pingTime");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaseCandidate {
    /// Which API it came from and is written to. Objects in a list do not say, so the caller that lists sets it.
    pub api: CandidateApi,
    /// Name, version, labels, annotations and owners.
    pub metadata: ObjectMeta,
    /// Its offer, and its answers.
    pub spec: LeaseCandidateSpec,
    faults: Vec<FieldError>,
}

/// The spec of a LeaseCandidate, field by field as the wire has it. Texts are empty where they are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeaseCandidateSpec {
    /// The name of the Lease that it wants, in its own namespace.
    pub lease_name: String,
    /// The elector's question.
    pub ping_time: Option<Timestamp>,
    /// The candidate's answer.
    pub renew_time: Option<Timestamp>,
    /// The version of its binary.
    pub binary_version: String,
    /// The version that it behaves as.
    pub emulation_version: String,
    /// The strategy that it wishes for, where the API has one ([`CandidateApi::lists_strategies`]).
    pub strategy: String,
    /// The strategy that it wishes for and those that it supersedes, where the API has a list.
    pub preferred_strategies: Vec<String>,
    /// Fields that this version does not know, or could not read.
    pub other: Map<String, Value>,
}

// === impl LeaseCandidate ===

impl LeaseCandidate {
    /// Its kind, in every group.
    pub const KIND: &str = "LeaseCandidate";

    /// A candidate of that name for the lease `key`, in the namespace of the lease, to be created.
    pub fn named(api: CandidateApi, key: &LeaseKey, name: &Identity) -> Self {
        let metadata = ObjectMeta {
            namespace: Some(key.namespace.as_ref().to_owned()),
            name: Some(name.as_str().to_owned()),
            ..ObjectMeta::default()
        };
        let spec = LeaseCandidateSpec {
            lease_name: key.name.as_ref().to_owned(),
            ..LeaseCandidateSpec::default()
        };
        Self {
            api,
            metadata,
            spec,
            faults: Vec::new(),
        }
    }

    /// The lease that it names.
    pub fn lease_key(&self) -> LeaseKey {
        let namespace = self.metadata.namespace.as_deref().unwrap_or_default();
        LeaseKey::new(namespace, self.spec.lease_name.as_str())
    }

    /// Fields that could not be read. A candidate with faults is not elected.
    pub fn faults(&self) -> &[FieldError] {
        &self.faults
    }

    /// This revision with another question.
    #[must_use]
    pub fn with_ping(&self, ping: Timestamp) -> Self {
        let mut asked = self.clone();
        asked.spec.ping_time = Some(ping);
        asked
    }

    /// The merge patch that pings this very revision and touches nothing else: on any other the server answers 409.
    pub fn ping_patch(uid: &Uid, version: ResourceVersion, ping: Timestamp) -> Value {
        json!({
            "metadata": {"uid": uid.to_string(), "resourceVersion": version.to_string()},
            "spec": {"pingTime": Rfc3339(ping).to_string()},
        })
    }

    /// This revision with another answer.
    #[must_use]
    pub fn with_renewal(&self, renewal: Timestamp) -> Self {
        let mut renewed = self.clone();
        renewed.spec.renew_time = Some(renewal);
        renewed
    }

    /// This revision with another wish, in the field that its API has for it.
    #[must_use]
    pub fn with_strategy(mut self, strategy: &str) -> Self {
        if self.api.lists_strategies() {
            self.spec.preferred_strategies = vec![strategy.to_owned()];
        } else {
            strategy.clone_into(&mut self.spec.strategy);
        }
        self
    }

    /// Reads a decoded JSON or YAML object.
    pub fn from_value(value: Value) -> Self {
        Self::of(Object::of(value))
    }

    fn of(mut object: Object) -> Self {
        let spec = &mut object.spec;
        let lease_name = spec.text("leaseName").unwrap_or_default();
        let (ping_time, renew_time) = (spec.time("pingTime"), spec.time("renewTime"));
        let binary_version = spec.text("binaryVersion").unwrap_or_default();
        let emulation_version = spec.text("emulationVersion").unwrap_or_default();
        let strategy = spec.text("strategy").unwrap_or_default();
        let preferred_strategies = spec.text_list("preferredStrategies");
        let (other, mut faults) = object.spec.rest();
        faults.splice(0..0, object.faults);
        let spec = LeaseCandidateSpec {
            lease_name,
            ping_time,
            renew_time,
            binary_version,
            emulation_version,
            strategy,
            preferred_strategies,
            other,
        };
        Self {
            api: CandidateApi::of_api_version(&object.api_version).unwrap_or_default(),
            metadata: object.metadata,
            spec,
            faults,
        }
    }

    /// An error that names this candidate.
    pub(crate) fn malformed(&self, error: FieldError) -> Malformed {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Malformed {
            kind: Self::KIND,
            namespace: text(&self.metadata.namespace),
            name: text(&self.metadata.name),
            error: Box::new(error),
        }
    }
}

impl Resource for LeaseCandidate {
    type DynamicType = CandidateApi;
    type Scope = DynamicResourceScope;

    fn kind(_: &CandidateApi) -> Cow<'_, str> {
        Self::KIND.into()
    }

    fn group(api: &CandidateApi) -> Cow<'_, str> {
        api.group().into()
    }

    fn version(api: &CandidateApi) -> Cow<'_, str> {
        api.version().into()
    }

    fn plural(_: &CandidateApi) -> Cow<'_, str> {
        CandidateApi::PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<'de> Deserialize<'de> for LeaseCandidate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Object::deserialize(deserializer).map(Self::of)
    }
}

impl Serialize for LeaseCandidate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(4))?;
        object.serialize_entry("apiVersion", self.api.api_version())?;
        object.serialize_entry("kind", Self::KIND)?;
        object.serialize_entry("metadata", &self.metadata)?;
        object.serialize_entry("spec", &self.spec)?;
        object.end()
    }
}

// === impl LeaseCandidateSpec ===

impl Serialize for LeaseCandidateSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut spec = self.other.clone();
        let texts = [
            ("leaseName", &self.lease_name),
            ("binaryVersion", &self.binary_version),
            ("emulationVersion", &self.emulation_version),
            ("strategy", &self.strategy),
        ];
        for (name, text) in texts {
            if !text.is_empty() {
                spec.insert(name.to_owned(), text.as_str().into());
            }
        }
        if !self.preferred_strategies.is_empty() {
            let list = self.preferred_strategies.as_slice();
            spec.insert("preferredStrategies".to_owned(), list.into());
        }
        for (name, time) in [("pingTime", self.ping_time), ("renewTime", self.renew_time)] {
            if let Some(time) = time {
                spec.insert(name.to_owned(), Rfc3339(time).to_string().into());
            }
        }
        spec.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_survives_and_names_its_api() {
        for api in CandidateApi::ALL {
            let wire = json!({
                "apiVersion": api.api_version(),
                "kind": "LeaseCandidate",
                "metadata": {"name": "A.b_c-", "namespace": "ns", "annotations": {"elector.dev/protocol": "1"}},
                "spec": {
                    "leaseName": "l", "pingTime": "2026-01-02T03:04:05.000001Z",
                    "renewTime": "2026-01-02T03:04:05.000000Z", "binaryVersion": "1.2.0",
                    "emulationVersion": "1.1.0", "strategy": "OldestEmulationVersion", "new": 1,
                },
            });
            let read: LeaseCandidate = serde_json::from_value(wire.clone()).unwrap();
            assert_eq!(read.faults(), []);
            let expected = (api, LeaseKey::new("ns", "l"));
            assert_eq!((read.api, read.lease_key()), expected);
            assert_eq!(serde_json::to_value(&read).unwrap(), wire);
        }
    }

    #[test]
    fn a_wish_goes_where_the_api_has_it() {
        let name = Identity::new("a").unwrap();
        for api in CandidateApi::ALL {
            let candidate = LeaseCandidate::named(api, &LeaseKey::new("ns", "l"), &name)
                .with_strategy("a/b")
                .with_strategy("c/d");
            let wire = serde_json::to_value(&candidate).unwrap();
            let expected = if api == CandidateApi::V1Alpha1 {
                json!({"leaseName": "l", "preferredStrategies": ["c/d"]})
            } else {
                json!({"leaseName": "l", "strategy": "c/d"})
            };
            assert_eq!(wire["spec"], expected);
            let read: LeaseCandidate = serde_json::from_value(wire).unwrap();
            assert_eq!(read, candidate);
        }
    }

    #[test]
    fn a_list_with_one_bad_item_stays_readable() {
        let items = json!([
            {"metadata": {"name": "good"}, "spec": {"leaseName": "l"}},
            {"metadata": {"name": "bad"}, "spec": {
                "leaseName": 3, "renewTime": "10000-01-01T00:00:00Z", "preferredStrategies": "a/b",
            }},
            null,
        ]);
        let list: Vec<LeaseCandidate> = serde_json::from_value(items).unwrap();
        assert_eq!(list[0].faults(), []);
        let fields: Vec<_> = list[1]
            .faults()
            .iter()
            .map(|fault| fault.field.as_str())
            .collect();
        assert_eq!(
            fields,
            [
                "spec.leaseName",
                "spec.renewTime",
                "spec.preferredStrategies"
            ]
        );
        assert_eq!(list[2], LeaseCandidate::default());
    }

    #[test]
    fn a_ping_and_an_ack_change_nothing_else() {
        let key = LeaseKey::new("ns", "l");
        let name = Identity::new("a").unwrap();
        let before = LeaseCandidate::named(CandidateApi::Elector, &key, &name);
        let time = Timestamp::from_micros(1).unwrap();
        let mut after = before.with_ping(time).with_renewal(time);
        let expected = (Some(time), Some(time));
        assert_eq!((after.spec.ping_time, after.spec.renew_time), expected);
        after.spec.ping_time = None;
        after.spec.renew_time = None;
        assert_eq!(after, before);
        assert_eq!(
            LeaseCandidate::ping_patch(&Uid::new("u"), ResourceVersion(7), time),
            json!({
                "metadata": {"uid": "u", "resourceVersion": "7"},
                "spec": {"pingTime": "1970-01-01T00:00:00.000001Z"},
            })
        );
    }

    #[test]
    fn its_path_is_that_of_the_api() {
        let path = |api| LeaseCandidate::url_path(&api, Some("ns"));
        let expected = "/apis/coordination.k8s.io/v1beta1/namespaces/ns/leasecandidates";
        assert_eq!(path(CandidateApi::V1Beta1), expected);
        let expected = "/apis/coordination.k8s.io/v1alpha1/namespaces/ns/leasecandidates";
        assert_eq!(path(CandidateApi::V1Alpha1), expected);
        let expected = "/apis/elector.dev/v1alpha1/namespaces/ns/leasecandidates";
        assert_eq!(path(CandidateApi::Elector), expected);
        assert_eq!(
            LeaseCandidate::kind(&CandidateApi::V1Beta1),
            "LeaseCandidate"
        );
    }
}
