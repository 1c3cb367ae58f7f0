//! A coordination API server of a few lines: Leases and LeaseCandidates with compare-and-swap, watches, and faults.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use elector_protocol::{Identity, LeaseKey, LeaseRecord};
use elector_runtime::Cluster;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;

/// The server, shared by the test and the client.
#[derive(Clone)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<usize>,
}

/// What goes wrong with requests for a Lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// No answer, nothing done.
    Hangs,
    /// Writes are applied; their answers are lost.
    AnswersLost,
    /// Watches show nothing; everything else works.
    WatchesFrozen,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    /// Every change: its path, the event's type, the object.
    log: Vec<(String, &'static str, Value)>,
    version: u64,
    fault: Fault,
    /// The group versions in which candidates are served.
    apis: Vec<&'static str>,
    /// Raised when connections break.
    generation: u64,
}

type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const CANDIDATES: &str = "/apis/coordination.k8s.io/v1beta1/namespaces/default/leasecandidates";

// === impl Server ===

impl Server {
    /// A server that holds the born Lease `web`.
    pub(crate) fn start() -> Self {
        let server = Self {
            state: Arc::default(),
            changed: watch::Sender::new(0),
        };
        server.state.lock().unwrap().apis = vec!["coordination.k8s.io/v1beta1"];
        let born = json!({"metadata": {"name": "web", "namespace": "default"}, "spec": {"holderIdentity": ""}});
        server.create(&format!("{LEASES}/web"), born);
        server
    }

    pub(crate) fn cluster(&self) -> Cluster {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { server.serve(request).await }
        });
        Cluster::new(
            Client::new(service, "default"),
            "test",
            Duration::from_secs(5),
        )
    }

    pub(crate) fn break_by(&self, fault: Fault) {
        self.state.lock().unwrap().fault = fault;
        self.changed.send_modify(|_| {});
    }

    /// From now on candidates are served in these group versions. Every connection breaks, as when the API server is
    /// restarted; custom resources go with their definition.
    pub(crate) fn offer(&self, apis: &[&'static str]) {
        let gone: Vec<String> = {
            let mut state = self.state.lock().unwrap();
            state.apis = apis.to_vec();
            state.generation += 1;
            let custom = apis.iter().any(|api| api.starts_with("elector.dev"));
            let objects = state.objects.keys();
            objects
                .filter(|path| !custom && path.starts_with("/apis/elector.dev"))
                .cloned()
                .collect()
        };
        for path in gone {
            self.delete(&path);
        }
        self.changed.send_modify(|_| {});
    }

    /// The candidate's object in this API as it stands.
    pub(crate) fn candidate_in(&self, api: &str, name: &str) -> Option<Value> {
        let path = format!("/apis/{api}/namespaces/default/leasecandidates/{name}");
        self.state.lock().unwrap().objects.get(&path).cloned()
    }

    /// The Lease as it stands.
    pub(crate) fn lease(&self) -> Option<elector_api::Lease> {
        let state = self.state.lock().unwrap();
        let found = state.objects.get(&format!("{LEASES}/web"))?;
        Some(elector_api::Lease::from_value(found.clone()))
    }

    pub(crate) fn record(&self) -> LeaseRecord {
        self.lease().unwrap().record().unwrap()
    }

    /// The candidate's object as it stands.
    pub(crate) fn candidate(&self, name: &str) -> Option<Value> {
        let state = self.state.lock().unwrap();
        state.objects.get(&format!("{CANDIDATES}/{name}")).cloned()
    }

    /// What happened, oldest first: `grant me`, `accept`, `renew`, `release`, `hand-off b`, `register`, `answer`, ….
    pub(crate) fn story(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let mut before: BTreeMap<&str, &Value> = BTreeMap::new();
        let mut story = Vec::new();
        for (path, kind, object) in &state.log {
            let old = before.insert(path, object);
            let holder = |object: &Value| {
                object["spec"]["holderIdentity"]
                    .as_str()
                    .unwrap_or("")
                    .to_owned()
            };
            let term = |object: &Value| object["spec"]["leaseTransitions"].as_i64().unwrap_or(0);
            let lease = path.starts_with(LEASES);
            let deed = match (lease, *kind, old) {
                (true, "ADDED", _) => continue,
                (true, "DELETED", _) => "delete lease".to_owned(),
                (true, _, Some(old)) if holder(object).is_empty() && !holder(old).is_empty() => {
                    "release".into()
                }
                (true, _, Some(old)) if term(old) != term(object) => {
                    format!("grant {}", holder(object))
                }
                (true, _, Some(old)) if old["spec"]["renewTime"] == object["spec"]["renewTime"] => {
                    "prefer".into()
                }
                (true, _, Some(old)) if old["spec"]["acquireTime"] == old["spec"]["renewTime"] => {
                    "accept".into()
                }
                (true, ..) => "renew".into(),
                (false, "ADDED", _) => "register".into(),
                (false, "DELETED", _) => "withdraw".into(),
                (false, _, Some(old)) if old["spec"]["pingTime"] != object["spec"]["pingTime"] => {
                    "ping".into()
                }
                (false, ..) => "answer".into(),
            };
            story.push(deed);
        }
        story
    }

    /// Writes the Lease as an elector or a stranger would.
    pub(crate) fn edit(&self, change: impl FnOnce(&LeaseRecord) -> LeaseRecord) {
        let lease = self.lease().unwrap();
        let next = lease.with_record(
            &change(&lease.record().unwrap()),
            elector_api::Carrier::Annotations,
        );
        let next = serde_json::to_value(next).unwrap();
        self.store(&format!("{LEASES}/web"), "MODIFIED", next);
    }

    pub(crate) fn grant(&self, to: &str) {
        let window = Duration::from_secs(5);
        let now = elector_protocol::Timestamp::from_micros(1_000_000);
        let to = Identity::new(to).unwrap();
        self.edit(|record| record.granted(to, window, now.unwrap()));
    }

    pub(crate) fn prefer(&self, whom: &str) {
        let whom = Identity::new(whom);
        self.edit(|record| record.preferring(whom, None));
    }

    pub(crate) fn delete_lease(&self) {
        self.delete(&format!("{LEASES}/web"));
    }

    /// Asks the candidate, a microsecond after its newest answer.
    pub(crate) fn ping(&self, name: &str) {
        let path = format!("{CANDIDATES}/{name}");
        let mut object = elector_api::LeaseCandidate::from_value(self.candidate(name).unwrap());
        object.spec.ping_time = object.spec.renew_time.unwrap().next();
        self.store(&path, "MODIFIED", serde_json::to_value(object).unwrap());
    }

    /// Writes something into the spec of a candidate, as a stranger does.
    pub(crate) fn spoil(&self, name: &str, field: &str, value: Value) {
        let mut object = self.candidate(name).unwrap();
        object["spec"][field] = value;
        self.store(&format!("{CANDIDATES}/{name}"), "MODIFIED", object);
    }

    /// The same for the Lease.
    pub(crate) fn spoil_lease(&self, field: &str, value: Value) {
        let path = format!("{LEASES}/web");
        let mut object = self.state.lock().unwrap().objects[&path].clone();
        object["spec"][field] = value;
        self.store(&path, "MODIFIED", object);
    }

    pub(crate) fn key() -> LeaseKey {
        LeaseKey::new("default", "web")
    }

    /// Puts a candidate there that belongs to another lease.
    pub(crate) fn add_candidate(&self, name: &str, lease: &str) {
        let object = json!({
            "apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"leaseName": lease, "binaryVersion": "1.0.0", "strategy": "a/b"},
        });
        self.create(&format!("{CANDIDATES}/{name}"), object);
    }

    fn create(&self, path: &str, mut object: Value) {
        let uid = format!("uid-{}", self.state.lock().unwrap().version + 1);
        object["metadata"]["uid"] = uid.into();
        object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        self.store(path, "ADDED", object);
    }

    fn delete(&self, path: &str) {
        let object = self
            .state
            .lock()
            .unwrap()
            .objects
            .get(path)
            .cloned()
            .unwrap();
        self.store(path, "DELETED", object);
    }

    fn store(&self, path: &str, kind: &'static str, mut object: Value) -> Value {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        object["metadata"]["resourceVersion"] = state.version.to_string().into();
        if kind == "DELETED" {
            state.objects.remove(path);
        } else {
            state.objects.insert(path.to_owned(), object.clone());
        }
        state.log.push((path.to_owned(), kind, object.clone()));
        self.changed.send_replace(state.log.len());
        object
    }

    fn serve(self, request: Request<Body>) -> BoxFuture<'static, Result<Reply, Infallible>> {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let path = parts.uri.path().to_owned();
            let query = parts.uri.query().unwrap_or_default().to_owned();
            let fault = self.state.lock().unwrap().fault;
            let watches = query.contains("watch=");
            if fault == Fault::Hangs && !watches {
                return std::future::pending().await;
            }
            if let Some(reply) = self.discover(&path) {
                return Ok(reply);
            }
            if watches {
                return Ok(self.watch(&path, &query));
            }
            let body = body.collect().await.unwrap().to_bytes();
            let reply = self.answer(&parts.method, &path, &query, &body);
            if fault == Fault::AnswersLost && parts.method == Method::PUT {
                return std::future::pending().await;
            }
            Ok(reply)
        })
    }

    fn answer(&self, method: &Method, path: &str, query: &str, body: &Bytes) -> Reply {
        let sent: Value = serde_json::from_slice(body).unwrap_or_default();
        let stored = self.state.lock().unwrap().objects.get(path).cloned();
        let meta = |object: &Value, field: &str| object["metadata"][field].clone();
        match (method, stored) {
            (&Method::GET, _)
                if path.ends_with("/leases") || path.ends_with("/leasecandidates") =>
            {
                self.list(path, query)
            }
            (&Method::POST, _) => {
                let path = format!("{path}/{}", sent["metadata"]["name"].as_str().unwrap());
                if self.state.lock().unwrap().objects.contains_key(&path) {
                    return status(409, "AlreadyExists");
                }
                self.create(&path, sent);
                let created = self.state.lock().unwrap().objects[&path].clone();
                json_reply(201, &created)
            }
            (_, None) => status(404, "NotFound"),
            (&Method::GET, Some(stored)) => json_reply(200, &stored),
            (&Method::PUT, Some(stored)) => {
                let same = |field| meta(&stored, field) == meta(&sent, field);
                if !same("uid") || !same("resourceVersion") {
                    return status(409, "Conflict");
                }
                json_reply(200, &self.store(path, "MODIFIED", sent))
            }
            (_, Some(stored)) => {
                let wanted = &sent["preconditions"]["resourceVersion"];
                if *wanted != meta(&stored, "resourceVersion") {
                    return status(409, "Conflict");
                }
                self.delete(path);
                json_reply(
                    200,
                    &json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}),
                )
            }
        }
    }

    /// The answer about an API, or about one that is not served.
    fn discover(&self, path: &str) -> Option<Reply> {
        let parts: Vec<&str> = path.trim_start_matches('/').splitn(4, '/').collect();
        let apis = self.state.lock().unwrap().apis.clone();
        match parts[..] {
            ["apis", group] => {
                let versions: Vec<_> = apis
                    .iter()
                    .filter_map(|api| api.strip_prefix(group)?.strip_prefix('/'))
                    .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
                    .collect();
                let body = json!({"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": versions});
                Some(json_reply(200, &body))
            }
            ["apis", group, version] if apis.contains(&&*format!("{group}/{version}")) => {
                let resource = json!({
                    "name": "leasecandidates", "kind": "LeaseCandidate", "namespaced": true, "singularName": "",
                    "verbs": [],
                });
                let api = format!("{group}/{version}");
                Some(json_reply(
                    200,
                    &json!({"groupVersion": api, "resources": [resource]}),
                ))
            }
            ["apis", _, _] => Some(status(404, "NotFound")),
            ["apis", group, version, rest] if rest.contains("/leasecandidates") => {
                let served = apis.contains(&&*format!("{group}/{version}"));
                (!served).then(|| status(404, "NotFound"))
            }
            _ => None,
        }
    }

    fn list(&self, path: &str, query: &str) -> Reply {
        let state = self.state.lock().unwrap();
        let items: Vec<_> = state
            .objects
            .iter()
            .filter(|(key, _)| selects(path, query, key))
            .map(|(_, object)| object)
            .collect();
        let version = state.version.to_string();
        json_reply(
            200,
            &json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": version}, "items": items}),
        )
    }

    fn watch(&self, path: &str, query: &str) -> Reply {
        let from: u64 = parameter(query, "resourceVersion")
            .unwrap()
            .parse()
            .unwrap();
        let (path, query) = (path.to_owned(), query.to_owned());
        let state = Arc::clone(&self.state);
        let generation = state.lock().unwrap().generation;
        let events = stream::unfold(
            (0, self.changed.subscribe()),
            move |(mut next, mut changed)| {
                let (state, path, query) = (Arc::clone(&state), path.clone(), query.clone());
                async move {
                    loop {
                        changed.borrow_and_update();
                        let found = {
                            let state = state.lock().unwrap();
                            if state.generation != generation {
                                return None;
                            }
                            let dead = matches!(state.fault, Fault::Hangs | Fault::WatchesFrozen);
                            let mut found = None;
                            while !dead && found.is_none() && next < state.log.len() {
                                let (key, kind, object) = &state.log[next];
                                next += 1;
                                let version: u64 = object["metadata"]["resourceVersion"]
                                    .as_str()
                                    .unwrap()
                                    .parse()
                                    .unwrap();
                                if version > from && selects(&path, &query, key) {
                                    found = Some(json!({"type": kind, "object": object}));
                                }
                            }
                            found
                        };
                        if let Some(event) = found {
                            let line = format!("{event}\n");
                            return Some((Ok(Frame::data(Bytes::from(line))), (next, changed)));
                        }
                        changed.changed().await.ok()?;
                    }
                }
            },
        );
        Response::new(StreamBody::new(events.boxed()).boxed_unsync())
    }
}

/// Whether a list or watch of `path` includes the object at `key`.
fn selects(path: &str, query: &str, key: &str) -> bool {
    let Some((parent, name)) = key.rsplit_once('/') else {
        return false;
    };
    let wanted = parameter(query, "fieldSelector")
        .and_then(|text| text.strip_prefix("metadata.name%3D").map(str::to_owned));
    parent == path && wanted.is_none_or(|wanted| wanted == name)
}

fn parameter(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key == name).then(|| value.to_owned())
    })
}

fn status(code: u16, reason: &str) -> Reply {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason,
    });
    json_reply(code, &body)
}

fn json_reply(code: u16, body: &Value) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body.to_string())).boxed_unsync());
    *reply.status_mut() = StatusCode::from_u16(code).unwrap();
    reply
}
