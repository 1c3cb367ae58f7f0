//! A cluster in memory, in virtual time: the API server, what the candidate asks of it, and the hands of everybody else.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use elector_api::{CandidateApi, Carrier, Lease, LeaseCandidate};
use elector_apiserver::{ApiServer, Config, Latency, Switches};
use elector_protocol::{Identity, Instant, LeaseKey, LeaseRecord, Timestamp};
use elector_runtime::{Clock as _, Cluster, TokioClock};
use http::Request;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use kube::client::Body;
use tower::ServiceExt as _;

/// The cluster. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Stage(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    clock: Arc<TokioClock>,
}

struct State {
    server: ApiServer,
    /// Where candidates are served.
    served: Vec<CandidateApi>,
    asked: Vec<Asked>,
}

/// A request of the candidate, at the moment at which it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The verb and the end of the path, such as `PUT leases/web`.
    pub(crate) what: String,
    /// By the holder's clock.
    pub(crate) at: Instant,
}

pub(crate) const V1BETA1: CandidateApi = CandidateApi::V1Beta1;
pub(crate) const CUSTOM: CandidateApi = CandidateApi::Elector;

/// The client that the candidate is to the server.
const CANDIDATE: &str = "candidate";

/// What a request takes: an answer that takes no time would let no time pass.
const WAY: Duration = Duration::from_millis(1);

// === impl Stage ===

impl Stage {
    /// A cluster with the born Lease `web`, whose candidates are served there.
    pub(crate) async fn new(served: &[CandidateApi]) -> Self {
        let wall = Timestamp::from_micros(1_800_000_000_000_000).unwrap();
        let stage = Self(Arc::new(Shared {
            state: Mutex::new(State {
                server: server(),
                served: served.to_vec(),
                asked: Vec::new(),
            }),
            clock: Arc::new(TokioClock::start(wall)),
        }));
        stage.create_lease().await;
        stage
    }

    pub(crate) fn clock(&self) -> Arc<TokioClock> {
        Arc::clone(&self.0.clock)
    }

    pub(crate) fn now(&self) -> Instant {
        self.0.clock.holder()
    }

    /// The cluster as the candidate sees it: what is not served is asked for under a group that does not exist.
    pub(crate) fn cluster(&self) -> Cluster {
        let stage = self.clone();
        let service = tower::service_fn(move |mut request: Request<Body>| {
            let server = stage.write_down(&mut request);
            async move { server.service(CANDIDATE).oneshot(request).await }
        });
        Cluster::new(
            Client::new(service, "default"),
            "stage",
            Duration::from_secs(5),
        )
    }

    /// The faults that befall the candidate.
    pub(crate) fn faults(&self) -> Switches {
        self.state().server.switches(CANDIDATE)
    }

    /// From now on each way to the server takes so long.
    pub(crate) fn slow(&self, request: Duration, answer: Duration) {
        self.faults().latency(Latency {
            request,
            answer,
            ..Latency::default()
        });
    }

    /// From now on candidates are served there as well, and nothing breaks.
    pub(crate) fn serve(&self, apis: &[CandidateApi]) {
        self.state().served = apis.to_vec();
    }

    /// Puts a store in the place of this one, in which the Lease stands as it does now, and nothing else: fewer
    /// revisions have been made in it. Watches stay open, and hear nothing any more.
    pub(crate) async fn restore(&self) {
        let last = self.lease().await.unwrap();
        self.state().server = server();
        let born = self.create_lease().await;
        // The same seed gives the same uids.
        assert_eq!(born.metadata.uid, last.metadata.uid);
        self.write(|_| last.record().unwrap()).await;
    }

    /// Makes so many revisions of something else.
    pub(crate) async fn make_revisions(&self, count: usize) {
        let leases = self.leases();
        let other = Lease::named(&LeaseKey::new("default", "other"));
        for _ in 0..count / 2 {
            leases.create(&PostParams::default(), &other).await.unwrap();
            leases
                .delete("other", &DeleteParams::default())
                .await
                .unwrap();
        }
    }

    /// Forgets all history, so that a watch that breaks off lists anew.
    pub(crate) fn compact(&self) {
        self.state().server.compact();
    }

    /// What the candidate has asked for since then, but for watches, lists and discovery.
    pub(crate) fn asked_since(&self, then: Instant) -> Vec<Asked> {
        let state = self.state();
        let asked = state.asked.iter();
        asked.filter(|asked| asked.at >= then).cloned().collect()
    }

    /// When the candidate last asked for that.
    pub(crate) fn last(&self, what: &str) -> Instant {
        let state = self.state();
        let mut asked = state.asked.iter().rev();
        asked.find(|asked| asked.what == what).unwrap().at
    }

    pub(crate) async fn lease(&self) -> Option<Lease> {
        self.leases().get_opt("web").await.unwrap()
    }

    pub(crate) async fn record(&self) -> LeaseRecord {
        self.lease().await.unwrap().record().unwrap()
    }

    /// Writes the Lease as an elector or a stranger does.
    pub(crate) async fn write(&self, change: impl FnOnce(&LeaseRecord) -> LeaseRecord) {
        let lease = self.lease().await.unwrap();
        let next = change(&lease.record().unwrap());
        let next = lease.with_record(&next, Carrier::Annotations);
        let leases = self.leases();
        leases
            .replace("web", &PostParams::default(), &next)
            .await
            .unwrap();
    }

    pub(crate) async fn grant(&self, to: &str) {
        let (to, now) = (Identity::new(to).unwrap(), self.0.clock.wall());
        self.write(|record| record.granted(to, Duration::from_secs(5), now))
            .await;
    }

    pub(crate) async fn prefer(&self, whom: &str) {
        let whom = Identity::new(whom);
        self.write(|record| record.preferring(whom, None)).await;
    }

    /// Changes nothing that anybody judges.
    pub(crate) async fn label(&self) {
        let mut lease = self.lease().await.unwrap();
        let label = ("seen".to_owned(), "yes".to_owned());
        lease
            .metadata
            .labels
            .get_or_insert_default()
            .extend([label]);
        let leases = self.leases();
        leases
            .replace("web", &PostParams::default(), &lease)
            .await
            .unwrap();
    }

    /// Makes the Lease unreadable.
    pub(crate) fn spoil(&self) {
        let server = self.state().server.clone();
        let spoilt = server.corrupt("leases", ("default", "web"), |fields| {
            fields["spec"]["renewTime"] = "soon".into();
        });
        assert!(spoilt);
    }

    pub(crate) async fn delete_lease(&self) {
        let leases = self.leases();
        leases
            .delete("web", &DeleteParams::default())
            .await
            .unwrap();
    }

    pub(crate) async fn candidate(&self, api: CandidateApi) -> Option<LeaseCandidate> {
        self.candidates(api).get_opt("me").await.unwrap()
    }

    /// Registers `me` as an earlier or another life of that name does.
    pub(crate) async fn register(&self, api: CandidateApi, config: &elector_candidate::Config) {
        let mut object = LeaseCandidate::named(api, &config.lease, &config.identity);
        object
            .spec
            .binary_version
            .clone_from(&config.binary_version);
        object
            .spec
            .emulation_version
            .clone_from(&config.emulation_version);
        let object = object
            .wishing_for(&config.strategy)
            .with_renewal(self.0.clock.wall());
        self.candidates(api)
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    pub(crate) async fn delete_candidate(&self, api: CandidateApi) {
        let candidates = self.candidates(api);
        candidates
            .delete("me", &DeleteParams::default())
            .await
            .unwrap();
    }

    /// Asks the candidate whether it lives.
    pub(crate) async fn ping(&self, api: CandidateApi) {
        let object = self.candidate(api).await.unwrap();
        let ping = object.spec.renew_time.unwrap().next().unwrap();
        self.candidates(api)
            .replace("me", &PostParams::default(), &object.with_ping(ping))
            .await
            .unwrap();
    }

    async fn create_lease(&self) -> Lease {
        self.slow(WAY, Duration::ZERO);
        let key = LeaseKey::new("default", "web");
        let born = Lease::born(&key, None, Carrier::Annotations);
        let leases = self.leases();
        leases.create(&PostParams::default(), &born).await.unwrap()
    }

    fn leases(&self) -> Api<Lease> {
        Api::default_namespaced_with(self.client(), &())
    }

    fn candidates(&self, api: CandidateApi) -> Api<LeaseCandidate> {
        Api::default_namespaced_with(self.client(), &api)
    }

    /// Everybody else's way to the present store, on which nothing goes wrong.
    fn client(&self) -> Client {
        let service = self.state().server.service("others");
        Client::new(service, "default")
    }

    fn write_down(&self, request: &mut Request<Body>) -> ApiServer {
        let path = request.uri().path().to_owned();
        let mut state = self.state();
        let hidden = CandidateApi::ALL.into_iter().any(|api| {
            let rest = path.strip_prefix(&format!("/apis/{api}"));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                && !state.served.contains(&api)
        });
        if hidden {
            *request.uri_mut() = "/apis/nobody.example/v1".parse().unwrap();
        }
        let parts: Vec<_> = path.rsplit('/').take(3).collect();
        if let [name, plural @ ("leases" | "leasecandidates"), _] = parts[..] {
            let what = format!("{} {plural}/{name}", request.method());
            let at = self.now();
            state.asked.push(Asked { what, at });
        }
        state.server.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
}

fn server() -> ApiServer {
    ApiServer::new(Config {
        custom_candidates: true,
        ..Config::default()
    })
}
