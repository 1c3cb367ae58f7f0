//! The verdicts of the built-in kind, the custom resource and our own validation on the same object.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use elector_api::{CandidateApi, LeaseCandidate, validate_candidate};
use elector_tests::rig::{Testbed, definition};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

/// The fields of an object that are wrong, none if it is accepted.
type WrongFields = BTreeSet<String>;

/// The three that are compared.
pub(super) struct Validators {
    client: Client,
    namespace: String,
}

// === impl Validators ===

impl Validators {
    pub(super) async fn new(testbed: &Testbed) -> Result<Self> {
        let client = testbed.site().client().clone();
        // The elector of this cluster goes on with the built-in kind, which it prefers.
        definition::install(&client).await?;
        Ok(Self {
            client,
            namespace: testbed.namespace().to_owned(),
        })
    }

    /// All three say the same, about the same fields.
    pub(super) async fn agree(&self, spec: &Value) -> Result<()> {
        let native = self.create(CandidateApi::V1Beta1, spec).await?;
        let custom = self.create(CandidateApi::Elector, spec).await?;
        ensure!(
            native.is_accepted() == custom.is_accepted() && custom.may_mean(&native),
            "{spec}: the built-in kind says {native:?}, the custom resource {custom:?}"
        );
        // Our reader takes more times than a server does: it must read what others wrote.
        let has_time = spec.get("pingTime").or(spec.get("renewTime")).is_some();
        if has_time && !custom.is_accepted() {
            return Ok(());
        }
        let object = self.object(CandidateApi::Elector, spec);
        let ours: WrongFields = validate_candidate(&LeaseCandidate::from_value(object))
            .into_iter()
            .map(|error| plain(&error.field))
            .collect();
        ensure!(
            ours.is_empty() == custom.is_accepted()
                && custom.may_mean(&Validation::Fields(ours.clone())),
            "{spec}: our validation says {ours:?}, the custom resource {custom:?}"
        );
        Ok(())
    }

    /// Where they differ, as the definition says: the length of versions, and names of the candidates themselves.
    pub(super) async fn bounded(&self) -> Result<()> {
        let spec = |version: String| json!({"leaseName": "l", "binaryVersion": version, "strategy": "a/b"});
        let (longest, longer) = (
            spec(format!("1.2.0-{}", "a".repeat(250))),
            spec(format!("1.2.0-{}", "a".repeat(251))),
        );
        self.agree(&longest).await?;
        let answer = self.create(CandidateApi::Elector, &longer).await?;
        ensure!(!answer.is_accepted(), "a version of 257 characters");
        let object = self.object(CandidateApi::Elector, &longer);
        let holds = !validate_candidate(&LeaseCandidate::from_value(object)).is_empty();
        ensure!(holds, "our validation takes a version of 257 characters");
        for (name, custom) in [
            ("a.b-c", true),
            ("A", false),
            ("a_b", false),
            ("a..b", false),
        ] {
            for (api, accepted) in [
                (CandidateApi::V1Beta1, true),
                (CandidateApi::Elector, custom),
            ] {
                let mut object = self.object(api, &longest);
                object["metadata"]["name"] = name.into();
                let ours = validate_candidate(&LeaseCandidate::from_value(object.clone()));
                let answer = self
                    .send(Request::post(self.path(api, "?dryRun=All")), &object)
                    .await?;
                let holds = (answer.is_accepted(), ours.is_empty()) == (accepted, accepted);
                ensure!(holds, "{name} in {api}: {answer:?}, {ours:?}");
            }
        }
        Ok(())
    }

    /// The third difference: the built-in kind takes every lease name that is not empty, the custom resource only the
    /// name of a Lease that can exist. The elector's reader admits neither.
    pub(super) async fn lease_that_can_exist(&self) -> Result<()> {
        let (longer, longest_kept) = ("a".repeat(254), "x".repeat(5000));
        let names = format!("Not/A.Name |A|a_b|a b|-a|a-|a.|a..b|ä|a\n|{longer}|{longest_kept}");
        for name in names.split('|') {
            let spec = json!({"leaseName": name, "binaryVersion": "1.2.0", "strategy": "a/b"});
            for (api, accepted) in [
                (CandidateApi::V1Beta1, true),
                (CandidateApi::Elector, false),
            ] {
                let answer = self.create(api, &spec).await?;
                let mut object = self.object(api, &spec);
                let ours = validate_candidate(&LeaseCandidate::from_value(object.clone()));
                let holds = (answer.is_accepted(), ours.is_empty()) == (accepted, accepted);
                ensure!(holds, "lease name {name:?} in {api}: {answer:?}, {ours:?}");
                if !accepted {
                    let named = Validation::Fields(BTreeSet::from(["spec.leaseName".to_owned()]));
                    ensure!(answer.may_mean(&named), "{name:?} in {api}: {answer:?}");
                }
                object["metadata"]["uid"] = "u".into();
                object["metadata"]["resourceVersion"] = "1".into();
                let holds = LeaseCandidate::from_value(object).candidate().is_err();
                ensure!(holds, "a candidate of {api} for {name:?} is admitted");
            }
        }
        Ok(())
    }

    /// On an update everything may change, in any direction, but the lease.
    pub(super) async fn only_the_lease_name_stays(&self) -> Result<()> {
        let spec = json!({
            "leaseName": "not-this-one", "binaryVersion": "1.2.0", "emulationVersion": "1.1.0", "strategy": "a/b",
            "pingTime": "2026-01-02T03:04:05.000006Z", "renewTime": "2026-01-02T03:04:05.000006Z",
        });
        for api in [CandidateApi::V1Beta1, CandidateApi::Elector] {
            let object = self.object(api, &spec);
            let request = Request::post(self.path(api, "")).body(serde_json::to_vec(&object)?)?;
            let mut stored: Value = self.client.request(request).await?;
            for (field, value, accepted) in [
                ("binaryVersion", json!("1.1.5"), true),
                ("emulationVersion", json!("1.0.0"), true),
                ("strategy", json!("OldestEmulationVersion"), true),
                ("pingTime", json!("2020-01-02T03:04:05.000006Z"), true),
                ("renewTime", json!("2020-01-02T03:04:05.000006Z"), true),
                ("leaseName", json!("another"), false),
            ] {
                let before = std::mem::replace(&mut stored["spec"][field], value);
                let path = self.path(api, "/c?dryRun=All");
                let answer = self.send(Request::put(path), &stored).await?;
                let holds = answer.is_accepted() == accepted;
                ensure!(holds, "{field} in {api}: {answer:?}");
                if !accepted {
                    let named = Validation::Fields(BTreeSet::from([format!("spec.{field}")]));
                    ensure!(answer.may_mean(&named), "{field} in {api}: {answer:?}");
                    stored["spec"][field] = before;
                }
            }
        }
        Ok(())
    }

    async fn create(&self, api: CandidateApi, spec: &Value) -> Result<Validation> {
        let request = Request::post(self.path(api, "?dryRun=All"));
        self.send(request, &self.object(api, spec)).await
    }

    async fn send(&self, request: http::request::Builder, object: &Value) -> Result<Validation> {
        let request = request.body(serde_json::to_vec(object)?)?;
        match self.client.request::<Value>(request).await {
            Ok(_) => Ok(Validation::Accepted),
            // A failure to decode names no field.
            Err(kube::Error::Api(status)) if status.code == 400 => Ok(Validation::Unreadable),
            Err(kube::Error::Api(status)) if status.code == 422 => {
                let causes = status
                    .details
                    .map(|details| details.causes)
                    .unwrap_or_default();
                let fields: WrongFields = causes.iter().map(|cause| plain(&cause.field)).collect();
                // Where a field has the wrong type or is missing, the rules are not even looked at.
                let (rest, fields): (WrongFields, WrongFields) =
                    fields.into_iter().partition(|field| field == "<nil>");
                Ok(if rest.is_empty() {
                    Validation::Fields(fields)
                } else {
                    Validation::SomeFields(fields)
                })
            }
            Err(error) => bail!(error),
        }
    }

    fn object(&self, api: CandidateApi, spec: &Value) -> Value {
        json!({
            "apiVersion": api.api_version(), "kind": LeaseCandidate::KIND,
            "metadata": {"name": "c", "namespace": self.namespace}, "spec": spec,
        })
    }

    fn path(&self, api: CandidateApi, rest: &str) -> String {
        let namespace = &self.namespace;
        format!("/apis/{api}/namespaces/{namespace}/leasecandidates{rest}")
    }
}

/// A server's answer to an object.
#[derive(Debug)]
enum Validation {
    Accepted,
    /// It cannot be decoded.
    Unreadable,
    /// These fields are wrong.
    Fields(WrongFields),
    /// These are, and others may be.
    SomeFields(WrongFields),
}

// === impl Validation ===

impl Validation {
    fn is_accepted(&self) -> bool {
        match self {
            Self::Accepted => true,
            Self::Fields(fields) => fields.is_empty(),
            Self::Unreadable | Self::SomeFields(_) => false,
        }
    }

    /// True if this can be said of an object of which the other server says `other`.
    fn may_mean(&self, other: &Self) -> bool {
        let nothing = WrongFields::new();
        match (self, other) {
            (_, Self::Unreadable) => !self.is_accepted(),
            (Self::SomeFields(some), Self::Fields(all)) => !some.is_empty() && some.is_subset(all),
            (Self::Fields(fields), Self::Fields(others)) => fields == others,
            (Self::Accepted, Self::Fields(others)) => *others == nothing,
            (Self::Accepted, Self::Accepted) => true,
            _ => false,
        }
    }
}

/// The path of a field, without the last word that the built-in kind says twice.
fn plain(field: &str) -> String {
    field.replace(".strategy.strategy", ".strategy")
}
