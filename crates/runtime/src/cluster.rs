//! A connection to one API server: the client, where it leads, and how long a request may take.

mod over;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use elector_api::{CandidateApi, NotServed};
use kube::Client;

use crate::request::{Cause, RequestError, Target, Verb};
use crate::server_contact::ServerContact;

/// A client with what its errors need to name. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    url: Arc<str>,
    namespace: Arc<str>,
    request_timeout: Duration,
    contact: ServerContact,
    carried: Option<Arc<dyn Any + Send + Sync>>,
}

/// The answer to `GET /apis/{group}`, as far as it matters here.
#[derive(Clone, Debug, Default, serde::Deserialize)]
struct Group {
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Clone, Debug, serde::Deserialize)]
struct GroupVersion {
    version: String,
}

/// No LeaseCandidates can be used.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The API server was not asked successfully.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// It serves none. The text says how to change that.
    #[error("find LeaseCandidates: {0}")]
    NotServed(#[from] NotServed),
}

// === impl Cluster ===

impl Cluster {
    /// The timeout of a request where nothing else is said, answer included: 5 s, half of the usual renew deadline.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

    /// Wraps a client that was made elsewhere.
    ///
    /// `url` is for messages only. `request_timeout` bounds each request that names no other, answer included.
    pub fn new(client: Client, url: impl Into<Arc<str>>, request_timeout: Duration) -> Self {
        Self {
            namespace: client.default_namespace().into(),
            client,
            url: url.into(),
            request_timeout,
            contact: ServerContact::new(),
            carried: None,
        }
    }

    /// The same with a contact that its client keeps too.
    #[cfg(feature = "connect")]
    pub(crate) fn with_contact(self, contact: ServerContact) -> Self {
        Self { contact, ..self }
    }

    /// The same with another namespace as the one that [`namespace`](Self::namespace) tells.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<Arc<str>>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The same with an address of the API server, for messages only.
    #[must_use]
    pub fn with_url(mut self, url: impl Into<Arc<str>>) -> Self {
        self.url = url.into();
        self
    }

    /// The same with another bound for each request that names no other, answer included.
    #[must_use]
    pub const fn with_request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = request_timeout;
        self
    }

    /// The same with something of a test, for the crate that runs on it.
    #[doc(hidden)]
    #[must_use]
    pub fn carrying(mut self, carried: Arc<dyn Any + Send + Sync>) -> Self {
        self.carried = Some(carried);
        self
    }

    /// The thing that a test has put in.
    #[doc(hidden)]
    pub fn carried(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.carried.as_deref()
    }

    /// The client, for requests that this crate has no word for. It waits for an answer without a bound.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// When the API server last answered, and until when the credentials are good.
    pub const fn contact(&self) -> &ServerContact {
        &self.contact
    }

    /// The address of the API server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The namespace of the kubeconfig's context, or that of the service account; `default` where neither says.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The timeout of a request, answer included.
    pub const fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// Which LeaseCandidates this API server serves.
    ///
    /// # Errors
    ///
    /// When it cannot be asked, or serves none; the text then says how to change that.
    pub async fn candidate_api(&self) -> Result<CandidateApi, DiscoveryError> {
        for api in CandidateApi::ALL {
            if self.serves(api).await? {
                return Ok(api);
            }
        }
        Err(NotServed.into())
    }

    /// The best of those LeaseCandidates that are preferred to these, `None` where none of them is served. One request
    /// where the answer is no.
    pub(crate) async fn better_candidate_api(
        &self,
        current: CandidateApi,
    ) -> Result<Option<CandidateApi>, RequestError> {
        let Some(best) = current.better().next() else {
            return Ok(None);
        };
        // All that are preferred to another one are of one group, that of Leases.
        let (target, path) = (the_api(best.group()), format!("/apis/{}", best.group()));
        let group: Group = self.request(target, &path, None).await?;
        for api in current.better() {
            let mut versions = group.versions.iter();
            let is_listed = versions.any(|it| it.version == api.version());
            if is_listed && self.serves(api).await? {
                return Ok(Some(api));
            }
        }
        Ok(None)
    }

    /// True if LeaseCandidates of that group and version are served.
    async fn serves(&self, api: CandidateApi) -> Result<bool, RequestError> {
        let target = the_api(api.api_version());
        let request = self.client.list_api_group_resources(api.api_version());
        match self.call(target, self.request_timeout, request).await {
            Ok(document) => Ok(api.is_served_by(&document)),
            Err(error) if error.code() == Some(404) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Awaits a request, its body included, for no longer than `timeout`.
    pub(crate) async fn call<T>(
        &self,
        target: Target,
        timeout: Duration,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, RequestError> {
        let answer = match tokio::time::timeout(timeout, request).await {
            Ok(answer) => answer.map_err(Cause::of),
            Err(_) => Err(Cause::TimedOut(timeout)),
        };
        self.contact.note(&answer);
        answer.map_err(|cause| self.error(target, cause))
    }

    pub(crate) fn error(&self, target: Target, cause: Cause) -> RequestError {
        RequestError {
            target: Box::new(target),
            url: self.url.clone(),
            cause,
        }
    }
}

/// A part of the API as the target of a request.
fn the_api(name: &str) -> Target {
    Target {
        verb: Verb::Get,
        resource: Cow::Borrowed("the API"),
        namespace: None,
        name: Some(name.into()),
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("url", &self.url)
            .field("request_timeout", &self.request_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Reply, Script, failure};

    fn document(api: CandidateApi) -> Reply {
        let resource = json!({
            "name": "leasecandidates", "kind": "LeaseCandidate", "namespaced": true, "singularName": "", "verbs": [],
        });
        Reply::Json(
            200,
            json!({"groupVersion": api.api_version(), "resources": [resource]}),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn the_served_candidates_are_found() {
        let script = Script::new([
            Reply::Text(404, "404 page not found"),
            Reply::Text(404, "404 page not found"),
            Reply::Text(404, "404 page not found"),
            document(CandidateApi::Elector),
        ]);
        let expected = CandidateApi::Elector;
        assert_eq!(script.cluster().candidate_api().await.unwrap(), expected);
        assert_eq!(
            script.lines(),
            [
                "GET /apis/coordination.k8s.io/v1beta1",
                "GET /apis/coordination.k8s.io/v1alpha2",
                "GET /apis/coordination.k8s.io/v1alpha1",
                "GET /apis/elector.dev/v1alpha1"
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_best_one_is_taken_and_no_other_asked_for() {
        // The group version may be served for another resource.
        let other = json!({"groupVersion": "coordination.k8s.io/v1beta1", "resources": []});
        let script = Script::new([Reply::Json(200, other), document(CandidateApi::V1Alpha2)]);
        let expected = CandidateApi::V1Alpha2;
        assert_eq!(script.cluster().candidate_api().await.unwrap(), expected);
        assert_eq!(script.lines().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_served_says_what_to_do() {
        let script = Script::new(CandidateApi::ALL.map(|_| failure(404, "NotFound", "no")));
        let error = script.cluster().candidate_api().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "find LeaseCandidates: neither coordination.k8s.io LeaseCandidate (v1beta1, v1alpha2, v1alpha1) nor \
             elector.dev/v1alpha1 LeaseCandidate is served; enable the first with \
             --runtime-config=coordination.k8s.io/v1beta1=true on kube-apiserver (v1alpha2 in Kubernetes 1.32, \
             v1alpha1 in 1.31), or install the CRD leasecandidates.elector.dev"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_is_an_error_and_not_nothing_served() {
        let error = Script::new([]).cluster().candidate_api().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "get the API coordination.k8s.io/v1beta1: no answer from https://script in 5s"
        );
    }
}
