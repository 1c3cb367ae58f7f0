//! Writes as JSON, and what a server says of them.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use elector_api::CandidateApi;
use elector_tests::rig::eventually;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

/// The objects of one kind in a namespace.
pub(super) struct Collection {
    path: String,
    /// The API of LeaseCandidates; none for Leases.
    api: Option<CandidateApi>,
}

/// One write.
#[derive(Clone)]
pub(super) struct ObjectWrite {
    pub(super) method: Method,
    pub(super) object: Value,
}

/// The server's answer to a write.
#[derive(Debug)]
pub(super) enum PolicyAnswer {
    Accepted,
    /// A policy refuses it, in these words.
    Refused(String),
}

/// The time until a change of a policy, of a binding, of a Namespace or of a right is in force.
pub(super) const IN_FORCE: Duration = Duration::from_secs(30);

/// A change of the object that is there.
pub(super) fn put(before: Option<Value>, change: impl FnOnce(&mut Value)) -> ObjectWrite {
    let (method, object) = (Method::PUT, before.unwrap_or_default());
    ObjectWrite { method, object }.with(change)
}

/// The deletion of the object that is there.
pub(super) fn delete(before: Option<Value>) -> ObjectWrite {
    let (method, object) = (Method::DELETE, before.unwrap_or_default());
    ObjectWrite { method, object }
}

// === impl ObjectWrite ===

impl ObjectWrite {
    /// The creation of this object.
    pub(super) fn post(object: Value) -> Self {
        let method = Method::POST;
        Self { method, object }
    }

    /// The same write with this change of its object.
    pub(super) fn with(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.object);
        self
    }

    pub(super) fn name(&self) -> &str {
        let name = self.object["metadata"]["name"].as_str();
        name.unwrap_or_default()
    }
}

// === impl Collection ===

impl Collection {
    /// The LeaseCandidates of that API.
    pub(super) fn candidates(api: CandidateApi, namespace: &str) -> Self {
        Self {
            path: format!("/apis/{api}/namespaces/{namespace}/leasecandidates"),
            api: Some(api),
        }
    }

    /// The Leases.
    pub(super) fn leases(namespace: &str) -> Self {
        Self {
            path: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"),
            api: None,
        }
    }

    /// An object as this API has it.
    fn body(&self, object: &Value) -> Result<Vec<u8>> {
        let mut object = object.clone();
        if let Some(api) = self.api {
            object["apiVersion"] = api.api_version().into();
        }
        // The API of Kubernetes 1.31 has a list.
        if self.api == Some(CandidateApi::V1Alpha1)
            && let Some(spec) = object["spec"].as_object_mut()
            && let Some(strategy) = spec.remove("strategy")
        {
            spec.insert("preferredStrategies".to_owned(), json!([strategy]));
        }
        Ok(serde_json::to_vec(&object)?)
    }

    /// Puts an object in the place of one of its name.
    pub(super) async fn reset(&self, admin: &Client, object: &Value) -> Result<Value> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        self.remove(admin, name).await?;
        let request = Request::post(&self.path).body(self.body(object)?)?;
        Ok(admin.request(request).await?)
    }

    /// Deletes an object, if it is there, whatever finalizer an attack has left on it.
    pub(super) async fn remove(&self, admin: &Client, name: &str) -> Result<()> {
        let path = format!("{}/{name}", self.path);
        let request = Request::patch(&path)
            .header("Content-Type", "application/merge-patch+json")
            .body(br#"{"metadata":{"finalizers":null}}"#.to_vec())?;
        drop(admin.request::<Value>(request).await);
        let request = Request::delete(path).body(Vec::new())?;
        match admin.request::<Value>(request).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            done => Ok(done.map(drop)?),
        }
    }

    /// The revision of an object, `None` where there is none.
    pub(super) async fn revision(&self, admin: &Client, name: &str) -> Result<Option<String>> {
        let request = Request::get(format!("{}/{name}", self.path)).body(Vec::new())?;
        match admin.request::<Value>(request).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => bail!(error),
            Ok(object) => Ok(object["metadata"]["resourceVersion"]
                .as_str()
                .map(str::to_owned)),
        }
    }

    /// Sends a write. `dry` has the server do everything but store it.
    pub(super) async fn send(
        &self,
        by: &Client,
        write: &ObjectWrite,
        dry: bool,
    ) -> Result<PolicyAnswer> {
        let name = write.name();
        let path = match write.method {
            Method::POST => self.path.clone(),
            _ => format!("{}/{name}", self.path),
        };
        let query = if dry { "?dryRun=All" } else { "" };
        let body = match write.method {
            Method::DELETE => Vec::new(),
            _ => self.body(&write.object)?,
        };
        let request = Request::builder()
            .method(write.method.clone())
            .uri(format!("{path}{query}"))
            .body(body)?;
        match by.request::<Value>(request).await {
            Ok(_) => Ok(PolicyAnswer::Accepted),
            Err(kube::Error::Api(status)) => {
                // Neither RBAC nor the validation of the API server is what is tested here.
                let (code, words) = (status.code, status.message.clone());
                let holds = words.contains("ValidatingAdmissionPolicy");
                ensure!(holds, "{name}: {code}: {words}");
                Ok(PolicyAnswer::Refused(words))
            }
            Err(error) => bail!(error),
        }
    }
}

/// Waits until a write is accepted, or is not: policies see Namespaces, and their bindings, by a watch.
pub(super) async fn until(
    by: &Client,
    collection: &Collection,
    write: &ObjectWrite,
    accepted: bool,
) -> Result<()> {
    let ask = || async {
        let answer = collection.send(by, write, true).await?;
        ensure!(answer.is_accepted() == accepted, "{answer:?}");
        Ok(())
    };
    eventually(IN_FORCE, ask).await
}

// === impl PolicyAnswer ===

impl PolicyAnswer {
    pub(super) fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted)
    }
}
