//! The cluster: its server, the way of the program under test to it, and the log of that way.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use elector_api::CandidateApi;
use elector_apiserver::{ApiServer, Backup, Config, Latency, NativeCandidates, Rule, Switches};
use elector_protocol::{Instant, Timestamp};
use elector_runtime::{Cluster, TokioClock};
use elector_testing::{EmbeddedCluster, REQUEST_LATENCY};
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use tower::{BoxError, ServiceExt as _};

use crate::requests::SentRequest;

/// A cluster in memory. Clones are the same one.
#[derive(Clone)]
pub struct MemoryCluster(Arc<ClusterParts>);

struct ClusterParts {
    embedded: EmbeddedCluster,
    state: Mutex<RequestLog>,
}

struct RequestLog {
    /// The group versions in which candidates are served, the best one first.
    served: Vec<CandidateApi>,
    /// Which requests go to which other server.
    rerouted: Option<(&'static str, EmbeddedCluster)>,
    /// The action of another actor just before the next PUT of this resource arrives.
    before_put: Option<(&'static str, ActorCallback)>,
    requests: Vec<SentRequest>,
    writes: Vec<String>,
}

/// An action of another actor.
type ActorCallback = Box<dyn FnOnce(&MemoryCluster) + Send>;

/// The resource of Leases.
pub const LEASES: &str = "leases";
/// The resource of built-in LeaseCandidates.
pub const CANDIDATES: &str = "leasecandidates";
/// The resource of custom LeaseCandidates.
pub const CUSTOM_CANDIDATES: &str = "leasecandidates.elector.dev";

/// The client that the program under test is to the server.
const CLIENT: &str = "program";

// === impl MemoryCluster ===

impl MemoryCluster {
    /// A cluster that keeps `spec.strategy` and `spec.preferredHolder` of a Lease and serves v1beta1 candidates.
    #[must_use]
    pub fn new() -> Self {
        Self::start(true)
    }

    /// One that drops these fields, as the gate is off by default.
    #[must_use]
    pub fn without_gate() -> Self {
        Self::start(false)
    }

    fn start(gate: bool) -> Self {
        let cluster = Self(Arc::new(ClusterParts {
            embedded: embedded(gate),
            state: Mutex::new(RequestLog {
                served: vec![CandidateApi::V1Beta1],
                rerouted: None,
                before_put: None,
                requests: Vec::new(),
                writes: Vec::new(),
            }),
        }));
        cluster.heal();
        cluster
    }

    /// The clock of every process in this cluster.
    #[must_use]
    pub fn clock(&self) -> Arc<TokioClock> {
        self.0.embedded.clock()
    }

    /// The time by the holder's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.0.embedded.now()
    }

    /// The cluster as the program under test sees it.
    #[must_use]
    pub fn cluster(&self) -> Cluster {
        self.cluster_of(CLIENT)
    }

    /// The cluster as one of several programs under test sees it, with faults of its own.
    #[must_use]
    pub fn cluster_of(&self, client: &'static str) -> Cluster {
        if client != CLIENT {
            self.faults_of(client).latency(Latency {
                request: REQUEST_LATENCY,
                ..Latency::default()
            });
        }
        Cluster::new(self.client(client), "test://", Duration::from_secs(5))
    }

    /// The client of a program under test.
    fn client(&self, client: &'static str) -> Client {
        let cluster = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let cluster = cluster.clone();
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect_bytes().await?;
                let body = serde_json::from_slice(&bytes).unwrap_or_default();
                let sent =
                    SentRequest::new(client, (&parts.method, &parts.uri), cluster.now(), body);
                let server = cluster.note(&parts.method, sent.clone());
                let request = Request::from_parts(parts, Body::from(bytes.to_vec()));
                let answer = server.service(client).oneshot(request).await?;
                if answer.status().is_success()
                    && let Some(write) = sent.write()
                {
                    cluster.state().writes.push(write);
                }
                Ok::<_, BoxError>(answer)
            }
        });
        Client::new(service, "default")
    }

    /// The server.
    #[must_use]
    pub fn server(&self) -> &ApiServer {
        self.0.embedded.server()
    }

    /// The faults that befall the program under test.
    #[must_use]
    pub fn faults(&self) -> Switches {
        self.faults_of(CLIENT)
    }

    /// The faults that befall one of several programs under test.
    #[must_use]
    pub fn faults_of(&self, client: &str) -> Switches {
        self.0.embedded.faults_of(client)
    }

    /// From now on requests fare as this rule says, until [`heal`](Self::heal).
    pub fn inject(&self, rule: Rule) {
        self.faults().inject(rule);
    }

    /// From now on every request and every watch fares well.
    pub fn heal(&self) {
        self.0.embedded.heal(CLIENT);
    }

    /// From now on each way to the server takes so long.
    pub fn slow(&self, request: Duration, answer: Duration) {
        self.faults().latency(Latency {
            request,
            answer,
            ..Latency::default()
        });
    }

    /// From now on candidates are served there, and nothing breaks.
    pub fn serve(&self, apis: &[CandidateApi]) {
        let serves = |api| apis.contains(&api);
        let native = match (
            serves(CandidateApi::V1Beta1),
            serves(CandidateApi::V1Alpha2),
            serves(CandidateApi::V1Alpha1),
        ) {
            (false, false, false) => NativeCandidates::Absent,
            (true, false, false) => NativeCandidates::V1Beta1,
            (true, true, false) => NativeCandidates::V1Beta1AndV1Alpha2,
            (false, true, false) => NativeCandidates::V1Alpha2,
            (false, false, true) => NativeCandidates::V1Alpha1,
            _ => panic!("no release of Kubernetes serves {apis:?}"),
        };
        self.state().served = apis.to_vec();
        let custom = serves(CandidateApi::Elector);
        self.server().serve_candidates(native, custom);
    }

    /// The same by a restart of the API server: every watch breaks.
    pub fn restart_serving(&self, apis: &[CandidateApi]) {
        self.serve(apis);
        self.faults().break_watches();
    }

    /// The best API in which candidates are served; v1beta1 where they are served in none.
    #[must_use]
    pub fn candidate_api(&self) -> CandidateApi {
        let state = self.state();
        state.served.first().copied().unwrap_or_default()
    }

    /// The resource in which candidates register now: that of the best API.
    #[must_use]
    pub fn candidates(&self) -> &'static str {
        match self.candidate_api() {
            CandidateApi::Elector => CUSTOM_CANDIDATES,
            _ => CANDIDATES,
        }
    }

    /// The present contents of the store.
    #[must_use]
    pub fn backup(&self) -> Backup {
        self.server().backup()
    }

    /// Puts the store back. Watches stay open, and hear nothing any more.
    pub fn restore(&self, backup: &Backup) {
        self.server().restore(backup);
    }

    /// From now on requests whose method, path and query contain this go to a store of their own, an empty one.
    pub fn reroute(&self, part: &'static str) {
        let other = embedded(false);
        other.heal(CLIENT);
        self.state().rerouted = Some((part, other));
    }

    /// Forgets all history, so that a watch that breaks off lists anew.
    pub fn compact(&self) {
        self.server().compact();
    }

    /// Has another actor do something just before the next PUT of this resource arrives.
    pub fn before_next_put(&self, plural: &'static str, act: impl FnOnce(&Self) + Send + 'static) {
        self.state().before_put = Some((plural, Box::new(act)));
    }

    /// True while that is still to come.
    #[must_use]
    pub fn awaits_put(&self) -> bool {
        self.state().before_put.is_some()
    }

    /// Every request of the program under test.
    #[must_use]
    pub fn requests(&self) -> Vec<SentRequest> {
        self.state().requests.clone()
    }

    /// The requests whose method, path and query contain each of these.
    #[must_use]
    pub fn requests_with(&self, parts: &[&str]) -> Vec<SentRequest> {
        let state = self.state();
        let like = |request: &&SentRequest| parts.iter().all(|part| request.what.contains(part));
        state.requests.iter().filter(like).cloned().collect()
    }

    /// Those that were sent since then.
    #[must_use]
    pub fn requests_since(&self, then: Instant, parts: &[&str]) -> Vec<SentRequest> {
        let mut requests = self.requests_with(parts);
        requests.retain(|request| request.at >= then);
        requests
    }

    /// The number of requests of this method whose path has that end.
    #[must_use]
    pub fn count_requests(&self, method: &str, end: &str) -> usize {
        let state = self.state();
        let like = |request: &&SentRequest| {
            request.what.starts_with(method) && request.path().ends_with(end)
        };
        state.requests.iter().filter(like).count()
    }

    /// The requests of one of several programs under test.
    #[must_use]
    pub fn requests_of(&self, client: &str) -> Vec<SentRequest> {
        let mut requests = self.requests();
        requests.retain(|request| request.client == client);
        requests
    }

    /// Every write of the program under test that was carried out and confirmed: `POST leases/ns/l`.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        self.state().writes.clone()
    }

    /// Forgets the requests and writes so far.
    pub fn forget_requests(&self) {
        let mut state = self.state();
        state.requests.clear();
        state.writes.clear();
    }

    /// Waits until the store satisfies a condition; virtual time runs on meanwhile.
    ///
    /// # Panics
    ///
    /// When it does not within that time.
    pub async fn wait_for(&self, what: &str, within: Duration, done: impl Fn(&Self) -> bool) {
        let reached = async {
            loop {
                let seen = self.server().revision();
                if done(self) {
                    return;
                }
                self.server().changed(seen).await;
            }
        };
        let reached = tokio::time::timeout(within, reached).await;
        let writes = self.writes();
        assert!(
            reached.is_ok(),
            "not within {within:?}: {what}; writes: {writes:?}"
        );
    }

    /// Writes a request down; the server that it goes to.
    fn note(&self, method: &Method, sent: SentRequest) -> ApiServer {
        let mut state = self.state();
        let server = match &state.rerouted {
            Some((part, other)) if sent.what.contains(part) => other.server().clone(),
            _ => self.server().clone(),
        };
        let plural = sent.path().rsplit('/').nth(1);
        let meant =
            *method == Method::PUT && state.before_put.as_ref().map(|(meant, _)| *meant) == plural;
        state.requests.push(sent);
        let act = state.before_put.take_if(|_| meant);
        drop(state);
        if let Some((_, act)) = act {
            act(self);
        }
        server
    }

    fn state(&self) -> MutexGuard<'_, RequestLog> {
        self.0.state.lock().unwrap()
    }
}

impl Default for MemoryCluster {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryCluster").field(self.server()).finish()
    }
}

/// The time of day at the start of every test.
#[must_use]
pub fn wall() -> Timestamp {
    EmbeddedCluster::start()
}

fn embedded(gate: bool) -> EmbeddedCluster {
    EmbeddedCluster::of(Config {
        gate,
        ..Config::default()
    })
}

#[cfg(test)]
mod tests {
    use elector_api::Lease;
    use elector_apiserver::{Fault, RequestVerb};
    use elector_protocol::LeaseKey;
    use elector_testing::{millis, pass};
    use kube::api::{Api, PostParams};

    use super::*;

    fn leases(cluster: &MemoryCluster) -> Api<Lease> {
        Api::namespaced_with(cluster.client(CLIENT), "ns", &())
    }

    #[tokio::test(start_paused = true)]
    async fn requests_and_confirmed_writes_are_recorded() {
        let cluster = MemoryCluster::new();
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
        assert!(cluster.lease("ns", "other").is_some());
        assert_eq!(cluster.writes(), ["POST leases/ns/l"], "not confirmed");
    }

    #[tokio::test(start_paused = true)]
    async fn an_act_before_a_put_comes_first() {
        let cluster = MemoryCluster::new();
        cluster.renew("ns", "l", "plain");
        let stored = cluster.lease("ns", "l").unwrap();
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

    #[tokio::test(start_paused = true)]
    async fn time_passes_by_the_timers_alone() {
        let cluster = MemoryCluster::new();
        let start = cluster.now();
        pass(Duration::from_secs(3600)).await;
        assert_eq!(cluster.now().since(start), Duration::from_secs(3600));
    }
}
