//! A cluster in memory: its server, its clock, and the ways of programs to it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use elector_api::CandidateApi;
use elector_apiserver::{
    ApiServer, Backup, Config, Latency, NativeCandidates, Rule, Switches, WallClock,
};
use elector_protocol::{Instant, Timestamp};
use elector_runtime::{Clock as _, Cluster, TokioClock};
use http::Request;
use k8s_openapi::jiff;
use kube::Client;
use kube::client::Body;
use tower::{BoxError, ServiceExt as _};

use crate::requests::{RequestLog, SentRequest};

/// A cluster in memory: an API server that is embedded in the test, and a clock that follows tokio's timers. Clones are
/// the same cluster.
///
/// It has no elector: candidates take the lease themselves, once it has been free for as long as their configuration says,
/// which on a paused clock takes no time. A candidate in [`Mode::Elected`](elector_candidate::Mode::Elected) leads when the
/// test plays the elector ([`StoredLease::grant`](crate::StoredLease::grant)).
///
/// [`Self::run`] runs a program with its work. What has a main function of its own can be given a client instead:
///
/// ```
/// use elector_candidate::{Candidate, Cluster, Config};
/// use elector_testing::EmbeddedCluster;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = EmbeddedCluster::new();
/// let connected = Cluster::from(cluster.connect("web-0")).with_clock(cluster.clock());
/// let candidate = Candidate::new(Config::plain("web"), connected)?;
/// # let _ = candidate;
/// # Ok(())
/// # }
/// ```
///
/// Each request of a program is [written down](Self::requests). What other actors of the cluster do is written to the
/// store directly, in no time and past every rule of the API server; programs that watch hear of it at once.
#[derive(Clone)]
pub struct EmbeddedCluster(Arc<ClusterParts>);

struct ClusterParts {
    server: ApiServer,
    clock: Arc<TokioClock>,
    state: Mutex<ClusterState>,
}

pub(crate) struct ClusterState {
    /// Every program that was ever connected.
    programs: Vec<String>,
    /// The resource in which candidates register.
    candidates: &'static str,
    /// Which requests go to which other server.
    rerouted: Option<(&'static str, EmbeddedCluster)>,
    /// Called just before a request arrives, until it returns true.
    before_requests: Option<RequestHook>,
    pub(crate) log: RequestLog,
}

type RequestHook = Box<dyn FnMut(&EmbeddedCluster, &SentRequest) -> bool + Send>;

/// A request's latency: an answer that takes no time would let no time pass.
pub const REQUEST_LATENCY: Duration = Duration::from_millis(1);

/// The latency where no fault is injected.
const USUAL: Latency = Latency {
    request: REQUEST_LATENCY,
    answer: Duration::ZERO,
    watch: Duration::ZERO,
};

/// The resource of Leases.
pub const LEASES: &str = "leases";
/// The resource of built-in LeaseCandidates.
pub const CANDIDATES: &str = "leasecandidates";
/// The resource of custom LeaseCandidates.
pub const CUSTOM_CANDIDATES: &str = "leasecandidates.elector.dev";

/// The name of a program that was given none.
pub(crate) const PROGRAM: &str = "program";

/// The time of day at which each such cluster starts, in microseconds.
const START: i64 = 1_800_000_000_000_000;

// === impl EmbeddedCluster ===

impl EmbeddedCluster {
    /// A cluster of Kubernetes 1.36 that serves LeaseCandidates v1beta1, empty. The feature gate is off, as by default.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Config::default())
    }

    /// One that keeps `spec.strategy` and `spec.preferredHolder` of a Lease.
    #[must_use]
    pub fn with_gate() -> Self {
        Self::of(Config {
            gate: true,
            ..Config::default()
        })
    }

    /// A cluster whose API server is of that kind. Its clock is that of the cluster, and a namespace comes into being with
    /// its first object.
    #[must_use]
    pub fn of(config: Config) -> Self {
        let epoch = jiff::Timestamp::from_microsecond(START).expect("2027 is a year that exists");
        let builtin = config.native != NativeCandidates::Absent || !config.custom_candidates;
        let cluster = Self(Arc::new(ClusterParts {
            server: ApiServer::new(Config {
                auto_namespaces: true,
                clock: WallClock::following_timers(epoch),
                ..config
            }),
            clock: Arc::new(TokioClock::start(Self::start())),
            state: Mutex::new(ClusterState {
                programs: Vec::new(),
                candidates: if builtin {
                    CANDIDATES
                } else {
                    CUSTOM_CANDIDATES
                },
                rerouted: None,
                before_requests: None,
                log: RequestLog::default(),
            }),
        }));
        cluster.add_program(PROGRAM);
        cluster
    }

    /// The time of day at which each such cluster starts.
    #[must_use]
    pub fn start() -> Timestamp {
        Timestamp::from_micros(START).expect("2027 is a year that exists")
    }

    /// The clock of every process in this cluster, for `elector_candidate::Cluster::with_clock`.
    #[must_use]
    pub fn clock(&self) -> Arc<TokioClock> {
        Arc::clone(&self.0.clock)
    }

    /// The time by the clock of holders, which deadlines are instants of.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.0.clock.holder()
    }

    /// The cluster as the one program of a test is connected to it.
    #[must_use]
    pub fn cluster(&self) -> Cluster {
        self.connect(PROGRAM)
    }

    /// The cluster as a program of that name is connected to it, with faults of its own ([`Self::faults_of`]). Each request
    /// takes [`REQUEST_LATENCY`], and is given up after 5 s.
    ///
    /// # Panics
    ///
    /// When the name is not visible ASCII, or there is no Tokio runtime.
    #[must_use]
    pub fn connect(&self, program: &str) -> Cluster {
        self.add_program(program);
        let (cluster, program): (_, Arc<str>) = (self.clone(), program.into());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (cluster, program) = (cluster.clone(), Arc::clone(&program));
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect_bytes().await?;
                let body = serde_json::from_slice(&bytes).unwrap_or_default();
                let place = (&parts.method, &parts.uri);
                let sent = SentRequest::new(&program, place, cluster.now(), body);
                let server = cluster.note(&sent);
                let request = Request::from_parts(parts, Body::from(bytes.to_vec()));
                let answer = server.service(&program).oneshot(request).await?;
                if answer.status().is_success() {
                    cluster.state().log.writes.extend(sent.write());
                }
                Ok::<_, BoxError>(answer)
            }
        });
        Cluster::from(Client::new(service, "default")).with_url("the embedded API server")
    }

    /// The faults that befall the requests and the watches of the one program of a test.
    #[must_use]
    pub fn faults(&self) -> Switches {
        self.faults_of(PROGRAM)
    }

    /// The faults that befall the requests and the watches of that program.
    #[must_use]
    pub fn faults_of(&self, program: &str) -> Switches {
        self.0.server.switches(program)
    }

    /// From now on requests of the one program fare as this rule says, until [`heal`](Self::heal).
    pub fn inject(&self, rule: Rule) {
        self.faults().inject(rule);
    }

    /// From now on each way of the one program to the server, and each way back, takes so long.
    pub fn slow(&self, request: Duration, answer: Duration) {
        self.faults().latency(Latency {
            request,
            answer,
            ..Latency::default()
        });
    }

    /// From now on every request and every watch of every program fares well.
    pub fn heal(&self) {
        let programs = self.state().programs.clone();
        programs
            .iter()
            .for_each(|program| self.heal_program(program));
    }

    pub(crate) fn heal_program(&self, program: &str) {
        let faults = self.faults_of(program);
        faults.clear();
        faults.latency(USUAL);
    }

    fn add_program(&self, program: &str) {
        let programs = &mut self.state().programs;
        if !programs.iter().any(|known| known == program) {
            programs.push(program.to_owned());
            self.faults_of(program).latency(USUAL);
        }
    }

    /// From now on candidates are served there, and nothing breaks.
    ///
    /// # Panics
    ///
    /// When no release of Kubernetes serves these together.
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
        self.state().candidates = match apis {
            [CandidateApi::Elector] => CUSTOM_CANDIDATES,
            _ => CANDIDATES,
        };
        let custom = serves(CandidateApi::Elector);
        self.server().serve_candidates(native, custom);
    }

    /// The same by a restart of the API server: every watch breaks.
    pub fn restart_serving(&self, apis: &[CandidateApi]) {
        self.serve(apis);
        for program in &self.state().programs {
            self.faults_of(program).break_watches();
        }
    }

    /// The resource in which candidates register now: that of the best API.
    #[must_use]
    pub fn candidates(&self) -> &'static str {
        self.state().candidates
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
        self.state().rerouted = Some((part, Self::new()));
    }

    /// Forgets all history, so that a watch that breaks off lists anew.
    pub fn compact(&self) {
        self.server().compact();
    }

    /// Has something happen just before each request arrives, until it returns true.
    pub fn before_requests(&self, act: impl FnMut(&Self, &SentRequest) -> bool + Send + 'static) {
        self.state().before_requests = Some(Box::new(act));
    }

    /// Has another actor do something just before the next PUT of this resource arrives.
    pub fn before_next_put(&self, plural: &'static str, act: impl FnOnce(&Self) + Send + 'static) {
        let mut act = Some(act);
        self.before_requests(move |cluster, sent| {
            let of = sent.path().rsplit('/').nth(1);
            let act = act.take_if(|_| sent.what.starts_with("PUT ") && of == Some(plural));
            act.map(|act| act(cluster)).is_some()
        });
    }

    /// True while that is still to come.
    #[must_use]
    pub fn awaits_put(&self) -> bool {
        self.state().before_requests.is_some()
    }

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

    /// The API server: its objects past every rule, backups and restores, other LeaseCandidates.
    #[must_use]
    pub fn server(&self) -> &ApiServer {
        &self.0.server
    }

    /// Writes a request down; the server that it goes to.
    fn note(&self, sent: &SentRequest) -> ApiServer {
        let mut state = self.state();
        let server = match &state.rerouted {
            Some((part, other)) if sent.what.contains(part) => other.server().clone(),
            _ => self.server().clone(),
        };
        state.log.requests.push(sent.clone());
        let hook = state.before_requests.take();
        drop(state);
        if let Some(mut act) = hook
            && !act(self, sent)
        {
            self.state().before_requests.get_or_insert(act);
        }
        server
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ClusterState> {
        // A poisoned lock holds a valid state: every section changes one thing.
        let state = self.0.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for EmbeddedCluster {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EmbeddedCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EmbeddedCluster")
            .field(self.server())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use elector_api::Lease;
    use elector_apiserver::{Fault, RequestVerb};
    use elector_protocol::LeaseKey;
    use kube::api::{Api, PostParams};

    use super::*;
    use crate::time::millis;

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
