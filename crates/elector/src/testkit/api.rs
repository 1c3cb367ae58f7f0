//! A coordination API in memory: its store, the switches for faults, and the hands of other actors.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use elector_api::Lease;
use elector_runtime::Cluster;
use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::BoxError;

/// The server. Clones are the same server.
#[derive(Clone)]
pub(crate) struct FakeApi(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Raised with every change, for watches and for tests that wait.
    version: watch::Sender<u64>,
}

/// What the server holds; tests reach in as other actors of the cluster do.
#[derive(Default)]
pub(crate) struct State {
    pub(super) version: u64,
    pub(super) objects: BTreeMap<ObjectKey, Value>,
    pub(super) events: Vec<(u64, ObjectKey, &'static str, Value)>,
    /// Every write that was carried out: verb, kind/namespace/name.
    pub(crate) writes: Vec<String>,
    /// Every request: verb and path, query cut off.
    pub(crate) requests: Vec<String>,
    /// The group versions in which candidates are served.
    pub(super) served: Vec<&'static str>,
    /// Whether `spec.strategy` and `spec.preferredHolder` of a Lease are kept.
    pub(crate) gate: bool,
    /// Requests to refuse: method, part of the path, status, reason.
    pub(crate) refusals: Vec<(Method, &'static str, u16, &'static str)>,
    /// Requests to answer late, other than watches: method, part of the path, by how much.
    pub(crate) delays: Vec<(Method, &'static str, Duration)>,
    /// Writes to carry out without an answer: part of the path.
    pub(crate) mute: Vec<&'static str>,
    /// Plurals whose watches deliver nothing for now.
    pub(super) stalled: Vec<&'static str>,
    /// What somebody else does just before the next PUT of a Lease arrives.
    pub(crate) ambush: Option<Ambush>,
    /// Raised when the store is restored; every watch breaks off then.
    pub(super) generation: u64,
}

/// An act of somebody else.
pub(crate) type Ambush = Box<dyn FnOnce(&FakeApi) + Send>;

/// What a backup holds.
pub(crate) struct Backup {
    version: u64,
    objects: BTreeMap<ObjectKey, Value>,
}

/// Plural, namespace, name.
pub(super) type ObjectKey = (String, String, String);

pub(crate) const LEASES: &str = "leases";
pub(crate) const CANDIDATES: &str = "leasecandidates";
/// Those that are custom resources are kept apart.
pub(super) const CUSTOM_CANDIDATES: &str = "leasecandidates.elector.dev";
pub(super) const CUSTOM_GROUP: &str = "elector.dev";

/// No request is answered in no time: a loop without a pause would never let virtual time pass.
pub(super) const LATENCY: Duration = Duration::from_millis(1);

// === impl FakeApi ===

impl FakeApi {
    pub(crate) fn new() -> Self {
        let state = State {
            gate: true,
            served: vec!["coordination.k8s.io/v1beta1"],
            version: 100,
            ..State::default()
        };
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            version: watch::Sender::new(100),
        }))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    pub(crate) fn cluster(&self) -> Cluster {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move {
                tokio::time::sleep(LATENCY).await;
                // A caller that gives up does not undo what it asked for.
                let served = tokio::spawn(async move { api.serve(request).await });
                let response = served.await?;
                Ok::<_, BoxError>(response)
            }
        });
        let client = kube::Client::new(service, "default");
        Cluster::new(client, "fake://", Duration::from_secs(5))
    }

    /// Creates or replaces an object, as somebody else.
    pub(crate) fn put(
        &self,
        plural: &str,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) {
        let mut state = self.state();
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        let mut object = state.objects.get(&key).cloned().unwrap_or_else(
            || json!({"metadata": {"namespace": namespace, "name": name}, "spec": {}}),
        );
        change(&mut object);
        state.store(key, object);
        self.announce(state);
    }

    pub(crate) fn delete(&self, plural: &str, namespace: &str, name: &str) {
        let mut state = self.state();
        state.remove(&(plural.to_owned(), namespace.to_owned(), name.to_owned()));
        self.announce(state);
    }

    pub(crate) fn read(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        self.state().objects.get(&key).cloned()
    }

    pub(crate) fn lease(&self, namespace: &str, name: &str) -> Option<Lease> {
        self.read(LEASES, namespace, name).map(Lease::from_value)
    }

    pub(crate) fn holder(&self, namespace: &str, name: &str) -> Option<String> {
        self.lease(namespace, name)?.spec.holder_identity
    }

    /// From now on candidates are served in these group versions, the best one first. Every connection breaks, as
    /// when the API server is restarted; custom resources go with their definition.
    pub(crate) fn offer(&self, apis: &[&'static str]) {
        let mut state = self.state();
        state.served = apis.to_vec();
        if !apis.iter().any(|api| api.starts_with(CUSTOM_GROUP)) {
            let custom = |key: &&ObjectKey| key.0 == CUSTOM_CANDIDATES;
            let gone: Vec<_> = state.objects.keys().filter(custom).cloned().collect();
            for key in gone {
                state.remove(&key);
            }
        }
        state.generation += 1;
        self.announce(state);
    }

    /// Where candidates register now: in the best API.
    pub(crate) fn candidates(&self) -> &'static str {
        match self.state().served.first() {
            Some(api) if api.starts_with(CUSTOM_GROUP) => CUSTOM_CANDIDATES,
            _ => CANDIDATES,
        }
    }

    /// From now on, watches of this plural deliver nothing.
    pub(crate) fn stall(&self, plural: &'static str) {
        self.state().stalled.push(plural);
    }

    /// Lets all watches deliver again.
    pub(crate) fn resume(&self) {
        let mut state = self.state();
        state.stalled.clear();
        self.announce(state);
    }

    /// How many requests with that verb and end of the path have come.
    pub(crate) fn asked(&self, verb: &str, end: &str) -> usize {
        let state = self.state();
        let like = |request: &&String| request.starts_with(verb) && request.ends_with(end);
        state.requests.iter().filter(like).count()
    }

    pub(crate) fn backup(&self) -> Backup {
        let state = self.state();
        Backup {
            version: state.version,
            objects: state.objects.clone(),
        }
    }

    pub(crate) fn restore(&self, backup: Backup) {
        let mut state = self.state();
        state.version = backup.version;
        state.objects = backup.objects;
        state
            .events
            .retain(|(version, ..)| *version <= backup.version);
        state.generation += 1;
        self.announce(state);
    }

    /// Waits until the store satisfies a condition; virtual time runs on meanwhile.
    pub(crate) async fn wait_for(
        &self,
        what: &str,
        within: Duration,
        done: impl Fn(&Self) -> bool,
    ) {
        let mut changes = self.0.version.subscribe();
        let reached = async {
            while !done(self) {
                changes.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(within, reached).await.is_err() {
            panic!(
                "not within {within:?}: {what}; writes: {:?}",
                self.state().writes
            );
        }
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    pub(super) fn announce(&self, state: MutexGuard<'_, State>) {
        let version = state.version;
        drop(state);
        self.0.version.send_replace(version);
    }
}

// === impl State ===

impl State {
    pub(super) fn store(&mut self, key: ObjectKey, mut object: Value) -> Value {
        self.version += 1;
        let known = self.objects.get(&key);
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = self.version.to_string().into();
        metadata["namespace"] = key.1.clone().into();
        metadata["uid"] = match known {
            Some(known) => known["metadata"]["uid"].clone(),
            None => format!("uid-{}", self.version).into(),
        };
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        self.events
            .push((self.version, key.clone(), kind, object.clone()));
        self.objects.insert(key, object.clone());
        object
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Value {
        self.version += 1;
        let mut object = self.objects.remove(key).unwrap();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.events
            .push((self.version, key.clone(), "DELETED", object.clone()));
        object
    }
}
