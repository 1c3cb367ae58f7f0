//! A connection to one API server: the client, where it leads, and how long a request may take.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use elector_api::{CandidateApi, NotServed};
use kube::Client;

use crate::request::{Cause, RequestError, Target, Verb};

/// A client with what its errors need to name. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    url: Arc<str>,
    request_timeout: Duration,
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
    /// Wraps a client that somebody else made, an in-process one for instance. It must not retry by itself.
    ///
    /// `url` is for messages only. `request_timeout` bounds each request that names no other, answer included.
    pub fn new(client: Client, url: impl Into<Arc<str>>, request_timeout: Duration) -> Self {
        Self {
            client,
            url: url.into(),
            request_timeout,
        }
    }

    /// The client, for requests that this crate has no word for.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The address of the API server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The namespace of the kubeconfig's context, or that of the service account; `default` where neither says.
    pub fn namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// How long a request may take, answer included.
    pub const fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// Which LeaseCandidates this API server serves.
    ///
    /// # Errors
    ///
    /// When it cannot be asked, or serves none; the text then says how to change that.
    pub async fn candidate_api(&self) -> Result<CandidateApi, DiscoveryError> {
        let mut documents = Vec::new();
        for api in CandidateApi::ALL {
            let target = Target {
                verb: Verb::Get,
                resource: Cow::Borrowed("the API"),
                namespace: None,
                name: Some(api.api_version().into()),
            };
            let request = self.client.list_api_group_resources(api.api_version());
            match self.call(target, self.request_timeout, request).await {
                Ok(document) => documents.push(document),
                Err(error) if error.code() == Some(404) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(CandidateApi::served(&documents)?)
    }

    /// Awaits a request, its body included, for no longer than `timeout`.
    pub(crate) async fn call<T>(
        &self,
        target: Target,
        timeout: Duration,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, RequestError> {
        let cause = match tokio::time::timeout(timeout, request).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => Cause::of(error, timeout),
            Err(_) => Cause::TimedOut(timeout),
        };
        Err(self.error(target, cause))
    }

    pub(crate) fn error(&self, target: Target, cause: Cause) -> RequestError {
        RequestError {
            target: Box::new(target),
            url: self.url.clone(),
            cause,
        }
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
        assert_eq!(
            script.cluster().candidate_api().await.unwrap(),
            CandidateApi::Elector
        );
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
