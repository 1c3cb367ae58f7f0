//! A cluster in memory: its server, its clock, and the ways of programs to it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use elector_apiserver::{ApiServer, Config, Faults, OtherKinds, WallClock};
use elector_candidate::{Cluster, surrounded};
use elector_runtime::TokioClock;
use k8s_openapi::jiff;
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use serde::Serialize;
use serde_json::Value;

use crate::program_record::ProgramRecord;
use crate::requests::{RequestLog, SentRequest};
use crate::time::since_start;

/// A cluster in memory: an API server in the test's process, and a clock that follows tokio's timers. Clones are the same
/// cluster.
///
/// It has no elector: candidates take the lease themselves, once it has been free for as long as their configuration says,
/// which on a paused clock takes no time. A candidate in [`Mode::Elected`](elector_candidate::Mode::Elected) leads when the
/// test plays the elector ([`StoredLease::grant`](crate::StoredLease::grant)).
///
/// [`Self::run`] runs work, and [`Self::start`] a whole program, which gets its connections from here: [`Self::cluster`]
/// for its candidates, [`Self::service`] for its clients. Each program has a name, and faults of its own
/// ([`Self::faults`]). A request takes a millisecond.
///
/// The API server stores objects of any kind ([`Self::put`], [`Self::get`]): those that are built in, and custom
/// resources, with their CustomResourceDefinition or without one. Fields of kinds that Elector has no use for are kept as
/// they come: nothing is validated or filled in, and no controller acts. Server-side apply creates or merges, and owns no
/// field. A namespace comes into being with its first object.
///
/// Instants are times since the cluster was made ([`Self::elapsed`]).
#[derive(Clone)]
pub struct TestCluster(Arc<ClusterParts>);

pub(crate) struct ClusterParts {
    pub(crate) server: ApiServer,
    pub(crate) clock: Arc<TokioClock>,
    state: Mutex<ClusterState>,
}

pub(crate) struct ClusterState {
    /// Every program that was ever connected.
    pub(crate) programs: BTreeMap<String, Arc<ProgramRecord>>,
    /// The resource in which candidates register.
    pub(crate) candidates: &'static str,
    /// Which requests go to which other server.
    pub(crate) rerouted: Option<(&'static str, TestCluster)>,
    /// Called just before a request arrives, until it returns true.
    pub(crate) before_requests: Option<RequestHook>,
    pub(crate) log: RequestLog,
}

type RequestHook = Box<dyn FnMut(&TestCluster, &SentRequest) -> bool + Send>;

/// A request's latency where no fault is injected: an answer that takes no time would let no time pass.
pub(crate) const REQUEST_LATENCY: Duration = Duration::from_millis(1);

/// The resource of Leases.
pub const LEASES: &str = "leases";
/// The resource of built-in LeaseCandidates.
pub const CANDIDATES: &str = "leasecandidates";
/// The resource of custom LeaseCandidates.
pub const CUSTOM_CANDIDATES: &str = "leasecandidates.elector.dev";

/// The name of a program that was given none.
pub(crate) const PROGRAM: &str = "program";

/// The time of day at which each cluster starts, in microseconds.
pub(crate) const START: i64 = 1_800_000_000_000_000;

// === impl TestCluster ===

impl TestCluster {
    /// A cluster of Kubernetes 1.36 that serves LeaseCandidates v1beta1, empty. The feature gate of its built-in controller
    /// is off, as by default.
    #[must_use]
    pub fn new() -> Self {
        Self::of(false)
    }

    pub(crate) fn of(gate: bool) -> Self {
        let epoch = jiff::Timestamp::from_microsecond(START).expect("2027 is a year that exists");
        let cluster = Self(Arc::new(ClusterParts {
            server: ApiServer::new(Config {
                gate,
                other_kinds: OtherKinds::Any,
                auto_namespaces: true,
                clock: WallClock::following_timers(epoch),
                ..Config::default()
            }),
            clock: Arc::new(TokioClock::start(Self::start_time())),
            state: Mutex::new(ClusterState {
                programs: BTreeMap::new(),
                candidates: CANDIDATES,
                rerouted: None,
                before_requests: None,
                log: RequestLog::default(),
            }),
        }));
        cluster.record_of(PROGRAM);
        cluster
    }

    /// The time since this cluster was made, by the clock of its programs.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        since_start(self.now())
    }

    /// The connection of the program of that name, for `Candidate::new`. It brings the cluster's clock, a seed that is the
    /// same each time the test runs, and an identity where the configuration names none: the name of the program, with a
    /// number for each further candidate. The namespace is `default`.
    ///
    /// # Panics
    ///
    /// When the name is not visible ASCII, or there is no Tokio runtime.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Cluster {
        Cluster::from(surrounded(self.connect(name), self.record_of(name)))
    }

    /// The faults that befall the requests and the watches of the program of that name, by its candidates and its clients.
    #[must_use]
    pub fn faults(&self, name: &str) -> Faults {
        self.server().faults(name)
    }

    /// Stores an object of any kind, in the place of the one of this name: in no time, and past every rule of the API
    /// server. Programs that watch hear of it at once. The namespace is `default` where a kind with namespaces names none.
    /// A CustomResourceDefinition serves its kind from then on; the kind of a custom resource without one has namespaces
    /// if its first object has.
    ///
    /// ```
    /// use elector_testing::TestCluster;
    /// use serde_json::json;
    ///
    /// let world = TestCluster::new();
    /// world.put(json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "shop"}}));
    /// assert_eq!(world.get("widgets", "shop", "a").unwrap()["kind"], "Widget");
    /// ```
    ///
    /// # Panics
    ///
    /// When it has no apiVersion, no kind or no name, or is of a built-in kind that the server does not know.
    pub fn put(&self, object: impl Serialize) {
        let object = serde_json::to_value(object).expect("an object is what JSON has");
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        let types = TypeMeta {
            api_version: text("apiVersion"),
            kind: text("kind"),
        };
        let Ok(kind) = GroupVersionKind::try_from(&types) else {
            panic!("{:?} is no apiVersion", types.api_version);
        };
        let plural = ApiResource::from_gvk(&kind).plural;
        self.server().store(&object, &plural);
    }

    /// An object as it is stored: by its resource, which is a plural such as `configmaps`, or a plural with its group such
    /// as `widgets.example.com`. The namespace is empty where its kind has none. `None` where there is no such object.
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.server().stored(resource, (namespace, name))
    }

    /// The record of the program of that name, begun where there is none, or where that program is over.
    pub(crate) fn record_of(&self, name: &str) -> Arc<ProgramRecord> {
        let known = self.state().programs.get(name).cloned();
        if let Some(record) = known.filter(|record| !record.is_over()) {
            return record;
        }
        let record = Arc::new(ProgramRecord::new(name, self.clock()));
        let programs = &mut self.state().programs;
        let before = programs.insert(name.to_owned(), Arc::clone(&record));
        if before.is_some() {
            self.heal_program(name);
        }
        self.faults(name).latency(REQUEST_LATENCY, Duration::ZERO);
        record
    }

    pub(crate) fn heal_program(&self, name: &str) {
        let faults = self.faults(name);
        faults.clear();
        faults.latency(REQUEST_LATENCY, Duration::ZERO);
    }

    /// Writes a request down; the server that it goes to.
    pub(crate) fn note(&self, sent: &SentRequest) -> ApiServer {
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

    pub(crate) fn parts(&self) -> &ClusterParts {
        &self.0
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ClusterState> {
        // A poisoned lock holds a valid state: every section changes one thing.
        let state = self.0.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for TestCluster {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TestCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestCluster").field(self.server()).finish()
    }
}
