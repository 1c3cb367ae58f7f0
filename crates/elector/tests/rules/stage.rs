//! A cluster in memory, in virtual time: the API server, the elector's way to it, and the hands of everybody else.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_apiserver::{ApiServer, Config, Fault, Rule, Switches};
use elector_protocol::{Identity, LeaseKey, Timestamp};
use elector_runtime::{Clock as _, Cluster, TokioClock};
use http::{Request, StatusCode};
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use kube::client::Body;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
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
    /// Which requests go to which other server.
    rerouted: Option<(&'static str, ApiServer)>,
    asked: Vec<Asked>,
    bends: Vec<(&'static str, Bend)>,
}

/// A request of an elector: its method, path and query, and when it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) what: String,
    pub(crate) at: Instant,
}

/// What becomes of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bend {
    /// They arrive so much later.
    Late(Duration),
    /// They are refused with this status.
    Refused(u16),
}

/// Something that somebody does all the time, until this is dropped.
pub(crate) struct Deed(JoinHandle<()>);

/// The client that electors are to the server.
const ELECTOR: &str = "elector";

/// What a request takes: an answer that takes no time would let no time pass.
const WAY: Duration = Duration::from_millis(1);

// === impl Stage ===

impl Stage {
    pub(crate) fn new() -> Self {
        let wall = Timestamp::from_micros(1_800_000_000_000_000).unwrap();
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                server: server(),
                rerouted: None,
                asked: Vec::new(),
                bends: Vec::new(),
            }),
            clock: Arc::new(TokioClock::start(wall)),
        }))
    }

    pub(crate) fn clock(&self) -> Arc<TokioClock> {
        Arc::clone(&self.0.clock)
    }

    /// The cluster as an elector sees it.
    pub(crate) fn cluster(&self) -> Cluster {
        let stage = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let stage = stage.clone();
            async move {
                let what = format!("{} {}", request.method(), request.uri());
                let (server, bend) = stage.write_down(&what);
                let mut client = ELECTOR.to_owned();
                match bend {
                    Some(Bend::Late(delay)) => tokio::time::sleep(delay).await,
                    Some(Bend::Refused(code)) => client = format!("refused-{code}"),
                    None => {}
                }
                tokio::time::sleep(WAY).await;
                server.service(&client).oneshot(request).await
            }
        });
        Cluster::new(
            Client::new(service, "default"),
            "stage",
            Duration::from_secs(5),
        )
    }

    /// The faults that befall electors.
    pub(crate) fn faults(&self) -> Switches {
        self.state().server.switches(ELECTOR)
    }

    /// From now on that becomes of requests whose method, path and query contain this.
    pub(crate) fn bend(&self, part: &'static str, bend: Bend) {
        let mut state = self.state();
        if let Bend::Refused(code) = bend {
            let fault = Fault::Refuse(StatusCode::from_u16(code).unwrap());
            let switches = state.server.switches(&format!("refused-{code}"));
            switches.clear();
            switches.inject(Rule::new(fault));
        }
        state.bends.push((part, bend));
    }

    /// From now on every request fares well.
    pub(crate) fn straighten(&self) {
        self.state().bends.clear();
    }

    /// Puts an empty store in the place of this one; fewer revisions have been made in it. Watches stay open, and hear
    /// nothing any more. Returns the switches of the store of before.
    pub(crate) fn empty(&self) -> Switches {
        let before = self.faults();
        self.state().server = server();
        before
    }

    /// From now on requests that contain this go to a store of their own, an empty one.
    pub(crate) fn reroute(&self, part: &'static str) {
        self.state().rerouted = Some((part, server()));
    }

    /// How many requests since then contain each of these.
    pub(crate) fn asked_since(&self, then: Instant, parts: &[&str]) -> Vec<Asked> {
        let state = self.state();
        let like =
            |asked: &&Asked| asked.at >= then && parts.iter().all(|part| asked.what.contains(part));
        state.asked.iter().filter(like).cloned().collect()
    }

    /// Forgets all history, so that a watch that breaks off lists anew.
    pub(crate) fn compact(&self) {
        self.state().server.compact();
    }

    /// Makes so many revisions of something else.
    pub(crate) async fn make_revisions(&self, count: usize) {
        for _ in 0..count / 2 {
            self.put_lease("default", "other", json!({})).await;
            self.delete_lease("default", "other").await;
        }
    }

    pub(crate) async fn lease(&self, namespace: &str, name: &str) -> Option<Lease> {
        self.leases(namespace).get_opt(name).await.unwrap()
    }

    /// The holder of a lease: nothing where there is no Lease, an empty text where it is unheld.
    pub(crate) async fn holder(&self, namespace: &str, name: &str) -> Option<String> {
        let lease = self.lease(namespace, name).await?;
        Some(lease.spec.holder_identity.unwrap_or_default())
    }

    /// Waits until somebody holds a lease, and says how long that took.
    pub(crate) async fn held_by(&self, namespace: &str, name: &str, holder: &str) -> Duration {
        let start = Instant::now();
        while self.holder(namespace, name).await.as_deref() != Some(holder) {
            assert!(
                start.elapsed() < Duration::from_secs(120),
                "{holder} never holds it"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        start.elapsed()
    }

    /// Creates or replaces a Lease with this spec.
    pub(crate) async fn put_lease(&self, namespace: &str, name: &str, spec: Value) {
        let leases = self.leases(namespace);
        let mut lease = Lease::from_value(json!({"spec": spec}));
        let parameters = PostParams::default();
        match leases.get_opt(name).await.unwrap() {
            Some(known) => {
                lease.metadata = known.metadata;
                leases.replace(name, &parameters, &lease).await.unwrap();
            }
            None => {
                lease.metadata.name = Some(name.to_owned());
                leases.create(&parameters, &lease).await.unwrap();
            }
        }
    }

    /// Creates a Lease as it was elsewhere, its uid included.
    pub(crate) async fn copy(&self, lease: &Lease) {
        let key = lease.key();
        let mut copy = Lease::named(&key);
        copy.spec = lease.spec.clone();
        let leases = self.leases(&key.namespace);
        leases.create(&PostParams::default(), &copy).await.unwrap();
        let uid = lease.metadata.uid.clone().unwrap();
        self.corrupt("leases", (&key.namespace, &key.name), |fields| {
            fields["metadata"]["uid"] = uid.into();
        });
    }

    /// Renews a Lease for a holder that is no candidate of ours, for the usual duration.
    pub(crate) async fn renew(&self, namespace: &str, name: &str, holder: &str) {
        self.put_lease(namespace, name, self.held(holder)).await;
    }

    /// Renews a Lease every two seconds.
    pub(crate) fn keep(
        &self,
        namespace: &'static str,
        name: &'static str,
        holder: &'static str,
    ) -> Deed {
        let stage = self.clone();
        Deed(tokio::spawn(async move {
            loop {
                stage.renew(namespace, name, holder).await;
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
        }))
    }

    pub(crate) async fn delete_lease(&self, namespace: &str, name: &str) {
        let leases = self.leases(namespace);
        leases.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Registers a marked candidate that wishes for this strategy, and does nothing more.
    pub(crate) async fn register(
        &self,
        (namespace, name): (&str, &str),
        lease: &str,
        version: &str,
        strategy: &str,
    ) {
        let key = LeaseKey::new(namespace, lease);
        let name = Identity::new(name).unwrap();
        let mut object = LeaseCandidate::named(CandidateApi::V1Beta1, &key, &name);
        object.spec.binary_version = version.to_owned();
        object.spec.emulation_version = version.to_owned();
        let object = object
            .wishing_for(strategy)
            .marked(Duration::from_secs(15))
            .with_renewal(self.0.clock.wall());
        let candidates = self.candidates(namespace);
        candidates
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    /// Registers a candidate of the usual strategy that answers every question.
    pub(crate) async fn candidate(
        &self,
        namespace: &'static str,
        name: &'static str,
        lease: &str,
        version: &str,
    ) -> Deed {
        self.register((namespace, name), lease, version, OLDEST)
            .await;
        self.answers(namespace, name)
    }

    /// Answers every question to a candidate.
    pub(crate) fn answers(&self, namespace: &'static str, name: &'static str) -> Deed {
        let stage = self.clone();
        Deed(tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(200)).await;
                stage.answer(namespace, name).await;
            }
        }))
    }

    pub(crate) async fn read_candidate(
        &self,
        namespace: &str,
        name: &str,
    ) -> Option<LeaseCandidate> {
        self.candidates(namespace).get_opt(name).await.unwrap()
    }

    pub(crate) async fn delete_candidate(&self, namespace: &str, name: &str) {
        let candidates = self.candidates(namespace);
        candidates
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    /// Changes an object past every rule.
    pub(crate) fn corrupt(
        &self,
        plural: &str,
        place: (&str, &str),
        change: impl FnOnce(&mut Map<String, Value>),
    ) {
        let server = self.state().server.clone();
        assert!(server.corrupt(plural, place, change));
    }

    async fn answer(&self, namespace: &str, name: &str) {
        let Some(object) = self.read_candidate(namespace, name).await else {
            return;
        };
        let (ping, renew) = (object.spec.ping_time, object.spec.renew_time);
        if let Some(ping) = ping
            && Some(ping) > renew
            && object.faults().is_empty()
        {
            let answer = object.with_renewal(ping.max(self.0.clock.wall()));
            // An elector may have asked again in the meantime.
            let _ = self
                .candidates(namespace)
                .replace(name, &PostParams::default(), &answer)
                .await;
        }
    }

    fn held(&self, holder: &str) -> Value {
        let now = k8s_openapi::jiff::Timestamp::from_microsecond(self.0.clock.wall().as_micros());
        json!({
            "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "renewTime": format!("{:.6}", now.unwrap()),
        })
    }

    fn write_down(&self, what: &str) -> (ApiServer, Option<Bend>) {
        let mut state = self.state();
        state.asked.push(Asked {
            what: what.to_owned(),
            at: Instant::now(),
        });
        let server = match &state.rerouted {
            Some((part, other)) if what.contains(part) => other.clone(),
            _ => state.server.clone(),
        };
        let bend = state.bends.iter().find(|(part, _)| what.contains(part));
        (server, bend.map(|(_, bend)| *bend))
    }

    fn leases(&self, namespace: &str) -> Api<Lease> {
        Api::namespaced_with(self.client(), namespace, &())
    }

    fn candidates(&self, namespace: &str) -> Api<LeaseCandidate> {
        Api::namespaced_with(self.client(), namespace, &CandidateApi::V1Beta1)
    }

    /// Everybody else's way to the present store, on which nothing goes wrong.
    fn client(&self) -> Client {
        let service = self.state().server.service("others");
        Client::new(service, "default")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }
}

/// The strategy of the built-in controller.
pub(crate) const OLDEST: &str = "OldestEmulationVersion";

// === impl Deed ===

impl Drop for Deed {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn server() -> ApiServer {
    ApiServer::new(Config {
        auto_namespaces: true,
        ..Config::default()
    })
}
