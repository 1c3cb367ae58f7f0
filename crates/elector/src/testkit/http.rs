//! The door of the API in memory: paths, lists, watches, compare-and-swap.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, stream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::BoxError;

use super::api::{
    CANDIDATES, CUSTOM_CANDIDATES, CUSTOM_GROUP, FakeApi, LATENCY, LEASES, ObjectKey,
};

type Bytes = <Body as http_body::Body>::Data;
type Answer = UnsyncBoxBody<Bytes, BoxError>;

struct Failure(u16, &'static str, String);

// === impl FakeApi ===

impl FakeApi {
    pub(super) async fn serve(&self, request: Request<Body>) -> Response<Answer> {
        let (parts, body) = request.into_parts();
        let target = parts.uri.to_string();
        let delay = {
            let mut state = self.state();
            state
                .requests
                .push(format!("{} {}", parts.method, parts.uri.path()));
            let slow = |(method, part, _): &&(Method, &str, Duration)| {
                parts.method == *method && target.contains(part) && !target.contains("watch=")
            };
            state.delays.iter().find(slow).map(|(_, _, delay)| *delay)
        };
        tokio::time::sleep(delay.unwrap_or(LATENCY)).await;
        let bytes = body.collect_bytes().await.unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let muted = parts.method != Method::GET
            && self.state().mute.iter().any(|part| target.contains(part));
        let ambush = match parts.method {
            Method::PUT if parts.uri.path().contains("/leases/") => self.state().ambush.take(),
            _ => None,
        };
        if let Some(ambush) = ambush {
            ambush(self);
        }
        let answer = self.handle(
            &parts.method,
            parts.uri.path(),
            parts.uri.query().unwrap_or(""),
            body,
        );
        if muted {
            std::future::pending::<()>().await;
        }
        match answer {
            Ok(body) => Response::new(body),
            Err(Failure(code, reason, message)) => {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "code": code, "reason": reason, "message": message,
                });
                let mut response = Response::new(text(&status));
                *response.status_mut() = code.try_into().unwrap();
                response
            }
        }
    }

    fn handle(
        &self,
        method: &Method,
        path: &str,
        query: &str,
        body: Value,
    ) -> Result<Answer, Failure> {
        let refused = |(refused, part, ..): &&(Method, &str, u16, &'static str)| {
            refused == method && path.contains(part)
        };
        if let Some((_, _, code, reason)) = self.state().refusals.iter().find(refused) {
            let message = format!("User \"tester\" cannot {method} {path}");
            return Err(Failure(*code, reason, message));
        }
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let unknown = || Failure(404, "NotFound", format!("no such path: {path}"));
        let ["apis", group, rest @ ..] = parts.as_slice() else {
            return Err(unknown());
        };
        let Some((version, rest)) = rest.split_first() else {
            return self.group(group).ok_or_else(unknown);
        };
        if rest.is_empty() {
            return self
                .resources(&format!("{group}/{version}"))
                .ok_or_else(unknown);
        }
        let plural = match rest {
            [plural] | ["namespaces", _, plural, ..] => *plural,
            _ => return Err(unknown()),
        };
        let bucket = match *group {
            CUSTOM_GROUP => CUSTOM_CANDIDATES,
            _ => plural,
        };
        if plural == CANDIDATES && !self.serves(&format!("{group}/{version}")) {
            return Err(unknown());
        }
        match rest {
            [_] => self.collection(bucket, None, query),
            ["namespaces", namespace, _] if method == Method::GET => {
                self.collection(bucket, Some(namespace), query)
            }
            ["namespaces", namespace, _] => {
                let name = body["metadata"]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned();
                let key = (bucket.to_owned(), (*namespace).to_owned(), name);
                self.write(method, key, body)
            }
            ["namespaces", namespace, _, name] => {
                let key = (
                    bucket.to_owned(),
                    (*namespace).to_owned(),
                    (*name).to_owned(),
                );
                if method != Method::GET {
                    return self.write(method, key, body);
                }
                let state = self.state();
                state
                    .objects
                    .get(&key)
                    .map(text)
                    .ok_or_else(|| missing(&key))
            }
            _ => Err(unknown()),
        }
    }

    /// `GET /apis/{group}`.
    fn group(&self, group: &str) -> Option<Answer> {
        let state = self.state();
        let candidates = state.served.iter().filter_map(|api| api.split_once('/'));
        let versions: Vec<_> = [("coordination.k8s.io", "v1")]
            .into_iter()
            .chain(candidates)
            .filter(|(served, _)| *served == group)
            .map(|(group, version)| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
            .collect();
        let document =
            json!({"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": versions});
        (!versions.is_empty()).then(|| text(&document))
    }

    /// `GET /apis/{group}/{version}`, for candidates.
    fn resources(&self, api: &str) -> Option<Answer> {
        let document = json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api,
            "resources": [{
                "name": CANDIDATES, "singularName": "", "namespaced": true, "kind": "LeaseCandidate",
                "verbs": ["get"],
            }],
        });
        self.serves(api).then(|| text(&document))
    }

    fn serves(&self, api: &str) -> bool {
        self.state().served.contains(&api)
    }

    fn collection(
        &self,
        plural: &str,
        namespace: Option<&str>,
        query: &str,
    ) -> Result<Answer, Failure> {
        let query: BTreeMap<String, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| {
                (
                    name.to_owned(),
                    value
                        .replace("%21", "!")
                        .replace("%3D", "=")
                        .replace("%2C", ","),
                )
            })
            .collect();
        let selector = query.get("fieldSelector").cloned().unwrap_or_default();
        let (watched, plural) = (plural.to_owned(), plural.to_owned());
        let namespace = namespace.map(str::to_owned);
        let selects = move |key: &ObjectKey| {
            key.0 == plural
                && namespace
                    .as_ref()
                    .is_none_or(|namespace| *namespace == key.1)
                && selector.split(',').all(|term| match term.split_once("!=") {
                    Some((_, other)) => key.1 != other,
                    None => term.split_once('=').is_none_or(|(_, name)| key.2 == name),
                })
        };
        let state = self.state();
        if query
            .get("watch")
            .is_none_or(|watch| watch != "true" && watch != "1")
        {
            let items: Vec<&Value> = state
                .objects
                .iter()
                .filter(|(key, _)| selects(key))
                .map(|(_, object)| object)
                .collect();
            let version = state.version.to_string();
            return Ok(text(
                &json!({"metadata": {"resourceVersion": version}, "items": items}),
            ));
        }
        let from: u64 = query
            .get("resourceVersion")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let seconds: u64 = query
            .get("timeoutSeconds")
            .and_then(|text| text.parse().ok())
            .unwrap_or(300);
        let generation = state.generation;
        drop(state);
        let events = Events {
            api: self.clone(),
            plural: watched,
            generation,
            changes: self.changes(),
            seen: from,
            until: tokio::time::Instant::now() + Duration::from_secs(seconds),
        };
        let frames = stream::unfold(events, |mut events| async move {
            Some((events.next().await?, events))
        });
        let frames = frames.flat_map(stream::iter).filter_map(move |event| {
            let frame = match event {
                Ok((key, event)) => {
                    selects(&key).then(|| Ok(Frame::data(format!("{event}\n").into())))
                }
                Err(error) => Some(Err(error)),
            };
            std::future::ready(frame)
        });
        Ok(StreamBody::new(frames).boxed_unsync())
    }

    fn write(&self, method: &Method, key: ObjectKey, mut object: Value) -> Result<Answer, Failure> {
        let mut state = self.state();
        let known = state.objects.get(&key).cloned();
        let expected = match *method {
            Method::DELETE => &object["preconditions"],
            _ => &object["metadata"],
        };
        let differs = |field: &str, known: &Value| {
            expected[field].is_string() && expected[field] != known["metadata"][field]
        };
        let conflict = known
            .as_ref()
            .is_some_and(|known| differs("resourceVersion", known) || differs("uid", known));
        match (method.as_str(), known) {
            ("POST", Some(_)) => Err(Failure(409, "AlreadyExists", "already exists".to_owned())),
            ("PUT" | "DELETE", None) => Err(missing(&key)),
            ("PUT" | "DELETE", _) if conflict => Err(Failure(
                409,
                "Conflict",
                "the object has been modified".to_owned(),
            )),
            (verb, known) => {
                state
                    .writes
                    .push(format!("{verb} {}/{}/{}", key.0, key.1, key.2));
                if verb == "DELETE" {
                    // What has a finalizer stays until somebody takes that away.
                    if let Some(kept) =
                        known.filter(|known| known["metadata"]["finalizers"].is_array())
                    {
                        let mut kept = kept;
                        if kept["metadata"]["deletionTimestamp"].is_null() {
                            kept["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
                            kept = state.store(key, kept);
                            self.announce(state);
                        }
                        return Ok(text(&kept));
                    }
                    let removed = state.remove(&key);
                    self.announce(state);
                    return Ok(text(&removed));
                }
                if key.0 == LEASES && !state.gate {
                    let spec = object["spec"].as_object_mut().unwrap();
                    spec.remove("strategy");
                    spec.remove("preferredHolder");
                }
                let created = known.map_or(Value::Null, |known| {
                    known["metadata"]["creationTimestamp"].clone()
                });
                object["metadata"]["creationTimestamp"] = created;
                let stored = state.store(key, object);
                self.announce(state);
                Ok(text(&stored))
            }
        }
    }
}

/// One watch.
struct Events {
    api: FakeApi,
    plural: String,
    generation: u64,
    changes: watch::Receiver<u64>,
    seen: u64,
    until: tokio::time::Instant,
}

// === impl Events ===

impl Events {
    /// The events since the last call, as soon as there are any; `None` when the watch has lasted its time.
    async fn next(&mut self) -> Option<Vec<Result<(ObjectKey, Value), BoxError>>> {
        loop {
            self.changes.mark_unchanged();
            let fresh: Vec<_> = {
                let state = self.api.state();
                if state.generation != self.generation {
                    return Some(vec![Err("the connection broke".into())]);
                }
                let stalled = state.stalled.iter().any(|plural| *plural == self.plural);
                let now = if stalled { self.seen } else { state.version };
                let (seen, now) = (std::mem::replace(&mut self.seen, now), now);
                let fresh = |(version, ..): &&(u64, ObjectKey, &str, Value)| {
                    *version > seen && *version <= now
                };
                state
                    .events
                    .iter()
                    .filter(fresh)
                    .map(|(_, key, kind, object)| {
                        Ok((key.clone(), json!({"type": kind, "object": object})))
                    })
                    .collect()
            };
            if !fresh.is_empty() {
                tokio::time::sleep(LATENCY).await;
                return Some(fresh);
            }
            tokio::time::timeout_at(self.until, self.changes.changed())
                .await
                .ok()?
                .ok()?;
        }
    }
}

fn text(value: &Value) -> Answer {
    let body = Full::new(Bytes::from(value.to_string()));
    body.map_err(|never| match never {}).boxed_unsync()
}

fn missing((plural, namespace, name): &ObjectKey) -> Failure {
    Failure(
        404,
        "NotFound",
        format!("{plural} {namespace}/{name} not found"),
    )
}
