//! The requests of programs.

use std::sync::Arc;

use elector_protocol::Instant;
use http::{Method, Uri};
use serde_json::Value;

use crate::embedded_cluster::EmbeddedCluster;

/// A request of a program, at the moment at which it was sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SentRequest {
    /// The name of the program that sent it.
    pub client: Arc<str>,
    /// The method, and the path with its query: `PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/web`.
    pub what: String,
    /// The method and the end of the path where it is for one object: `PUT leases/web`.
    pub object: Option<String>,
    /// When it was sent, by the holder's clock.
    pub at: Instant,
    /// The object in its body, null without one.
    pub body: Value,
}

/// Every request so far, and every write that was carried out and confirmed.
#[derive(Default)]
pub(crate) struct RequestLog {
    pub(crate) requests: Vec<SentRequest>,
    pub(crate) writes: Vec<String>,
}

// === impl EmbeddedCluster ===

impl EmbeddedCluster {
    /// Every request.
    #[must_use]
    pub fn requests(&self) -> Vec<SentRequest> {
        self.state().log.requests.clone()
    }

    /// The requests whose method, path and query contain each of these.
    #[must_use]
    pub fn requests_with(&self, parts: &[&str]) -> Vec<SentRequest> {
        let mut requests = self.requests();
        requests.retain(|request| parts.iter().all(|part| request.what.contains(part)));
        requests
    }

    /// Those that were sent since then.
    #[must_use]
    pub fn requests_since(&self, then: Instant, parts: &[&str]) -> Vec<SentRequest> {
        let mut requests = self.requests_with(parts);
        requests.retain(|request| request.at >= then);
        requests
    }

    /// The requests of that program.
    #[must_use]
    pub fn requests_of(&self, program: &str) -> Vec<SentRequest> {
        let mut requests = self.requests();
        requests.retain(|request| *request.client == *program);
        requests
    }

    /// The number of requests of this method whose path has that end.
    #[must_use]
    pub fn count_requests(&self, method: &str, end: &str) -> usize {
        let requests = self.requests_with(&[method]).into_iter();
        let like = |it: &SentRequest| it.what.starts_with(method) && it.path().ends_with(end);
        requests.filter(like).count()
    }

    /// Every write that was carried out and confirmed: `POST leases/ns/l`.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        self.state().log.writes.clone()
    }

    /// Forgets the requests and writes so far.
    pub fn forget_requests(&self) {
        self.state().log = RequestLog::default();
    }
}

// === impl SentRequest ===

impl SentRequest {
    pub(crate) fn new(
        client: &Arc<str>,
        (method, uri): (&Method, &Uri),
        at: Instant,
        body: Value,
    ) -> Self {
        let end: Vec<_> = uri.path().rsplit('/').take(2).collect();
        let object = match end[..] {
            [name, plural @ ("leases" | "leasecandidates")] => {
                Some(format!("{method} {plural}/{name}"))
            }
            _ => None,
        };
        Self {
            client: Arc::clone(client),
            what: format!("{method} {uri}"),
            object,
            at,
            body,
        }
    }

    /// True if it reads.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.what.starts_with("GET ")
    }

    /// The path, without the query.
    #[must_use]
    pub fn path(&self) -> &str {
        let path = self.what.split_once(' ').map_or("", |(_, target)| target);
        path.split_once('?').map_or(path, |(path, _)| path)
    }

    /// Its write, once it is carried out: `POST leases/ns/l`.
    pub(crate) fn write(&self) -> Option<String> {
        let (method, _) = self.what.split_once(' ')?;
        let mut parts = self.path().split("/namespaces/").nth(1)?.split('/');
        let (namespace, plural) = (parts.next()?, parts.next()?);
        let name = parts
            .next()
            .or_else(|| self.body["metadata"]["name"].as_str())?;
        (method != "GET").then(|| format!("{method} {plural}/{namespace}/{name}"))
    }
}

#[cfg(test)]
mod tests {
    use elector_api::Lease;
    use elector_apiserver::{Fault, RequestVerb, Rule};
    use elector_protocol::LeaseKey;
    use kube::api::{Api, PostParams};

    use super::*;
    use crate::{LEASES, REQUEST_LATENCY, millis};

    fn leases(cluster: &EmbeddedCluster) -> Api<Lease> {
        Api::namespaced_with(cluster.cluster().client().clone(), "ns", &())
    }

    #[tokio::test(start_paused = true)]
    async fn requests_and_confirmed_writes_are_recorded() {
        let cluster = EmbeddedCluster::new();
        let (start, leases) = (cluster.now(), leases(&cluster));
        let lease = |name: &str| Lease::named(&LeaseKey::new("ns", name));
        let parameters = PostParams::default();
        leases.create(&parameters, &lease("l")).await.unwrap();
        assert!(cluster.now().since(start) >= REQUEST_LATENCY);
        assert_eq!(cluster.writes(), ["POST leases/ns/l"]);
        assert_eq!(cluster.requests_since(start, &["POST", "/leases"]).len(), 1);
        cluster.inject(Rule::new(Fault::HangAfter).verb(RequestVerb::Create));
        let other = lease("other");
        let hangs = leases.create(&parameters, &other);
        assert!(tokio::time::timeout(millis(100), hangs).await.is_err());
        assert!(cluster.lease("ns", "other").object().is_some());
        assert_eq!(cluster.writes(), ["POST leases/ns/l"], "not confirmed");
    }

    #[tokio::test(start_paused = true)]
    async fn an_act_before_a_put_comes_first() {
        let cluster = EmbeddedCluster::new();
        cluster.renew("ns", "l", "plain");
        let stored = cluster.lease("ns", "l").object().unwrap();
        cluster.before_next_put(LEASES, |cluster| cluster.renew("ns", "l", "other"));
        let parameters = PostParams::default();
        let outcome = leases(&cluster).replace("l", &parameters, &stored).await;
        let Err(kube::Error::Api(status)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(status.code, 409);
        assert!(!cluster.awaits_put());
        assert_eq!(cluster.holder("ns", "l").as_deref(), Some("other"));
    }
}
