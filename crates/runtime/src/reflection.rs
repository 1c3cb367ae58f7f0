//! Objects as a reader sees them who decides nothing, by the watcher and the reflector of kube-runtime.
//!
//! The watcher tells neither the version of a list nor that a store was put back, and waits for answers without a bound,
//! so no election rests on it. Here answers begin within the time of a request.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use futures::stream::{BoxStream, StreamExt as _};
use http::Request;
use kube::api::Api;
use kube::client::Body;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Client, ResourceExt as _};
use tokio::time::error::Elapsed;
use tower::service_fn;

use crate::cluster::Cluster;
use crate::request::{Cause, RequestError, Target, Verb};
use crate::watch::WatchedObject;
use crate::writer::resource;

/// The objects of one kind, followed for as long as [`changed`](Self::changed) is awaited. Dropping it closes its
/// connection.
pub struct Reflection<T> {
    events: BoxStream<'static, watcher::Result<Event<T>>>,
    objects: Box<dyn Fn() -> Vec<Arc<T>> + Send + Sync>,
    cluster: Cluster,
    target: Target,
    is_complete: bool,
}

/// The life of one watch request in seconds; with five on top, the time for which a connection that fell silent goes
/// unnoticed.
const WATCH_TIMEOUT: u32 = 30;

/// Follows the Leases of a namespace, or of all but `kube-node-lease`.
pub fn reflect_leases(cluster: &Cluster, namespace: Option<&str>) -> Reflection<Lease> {
    reflect(cluster, (), namespace)
}

/// Follows the LeaseCandidates that this API serves, of a namespace or of all but `kube-node-lease`.
pub fn reflect_candidates(
    cluster: &Cluster,
    api: CandidateApi,
    namespace: Option<&str>,
) -> Reflection<LeaseCandidate> {
    reflect(cluster, api, namespace)
}

// === impl Reflection ===

impl<T> Reflection<T> {
    /// Waits until [`objects`](Self::objects) may have changed. Dropping this future loses nothing.
    ///
    /// # Errors
    ///
    /// When a request failed. The reflection goes on by itself, after a pause: this can be awaited again.
    pub async fn changed(&mut self) -> Result<(), RequestError> {
        loop {
            let Some(event) = self.events.next().await else {
                // The watcher has no end.
                return std::future::pending().await;
            };
            match event {
                Ok(Event::Apply(_) | Event::Delete(_)) => return Ok(()),
                Ok(Event::InitDone) => {
                    self.is_complete = true;
                    return Ok(());
                }
                Ok(Event::Init | Event::InitApply(_)) => {}
                Err(error) => {
                    let error = self.failure(error);
                    // History that was compacted away is no fault: a list follows.
                    if error.code() != Some(410) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Everything that exists, as far as it is known, by namespace and name. During a later list it is what was known
    /// before.
    pub fn objects(&self) -> Vec<Arc<T>> {
        (self.objects)()
    }

    /// True once everything was listed.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn failure(&self, error: watcher::Error) -> RequestError {
        let (verb, cause) = match error {
            watcher::Error::InitialListFailed(error) => (Verb::List, self.cause(error)),
            watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
                (Verb::Watch, self.cause(error))
            }
            watcher::Error::WatchError(status) => (Verb::Watch, Cause::of_status(*status)),
            watcher::Error::NoResourceVersion => {
                let why = "it has no resourceVersion".to_owned();
                (Verb::List, Cause::Unreadable(why))
            }
        };
        let target = Target {
            verb,
            ..self.target.clone()
        };
        self.cluster.error(target, cause)
    }

    fn cause(&self, error: kube::Error) -> Cause {
        match error {
            kube::Error::Service(error) if error.is::<Elapsed>() => {
                Cause::TimedOut(self.cluster.request_timeout())
            }
            error => Cause::of(error),
        }
    }
}

impl<T> fmt::Debug for Reflection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflection")
            .field("target", &self.target)
            .field("is_complete", &self.is_complete)
            .finish_non_exhaustive()
    }
}

fn reflect<T>(cluster: &Cluster, kind: T::DynamicType, namespace: Option<&str>) -> Reflection<T>
where
    T: WatchedObject<DynamicType: Eq + Hash + Send + Sync> + Sync,
{
    let client = bounded(cluster);
    let config = watcher::Config::default().timeout(WATCH_TIMEOUT);
    let (api, config) = match namespace {
        Some(namespace) => (Api::namespaced_with(client, namespace, &kind), config),
        None => (
            Api::all_with(client, &kind),
            config.fields("metadata.namespace!=kube-node-lease"),
        ),
    };
    let target = Target {
        verb: Verb::List,
        resource: resource::<T>(&kind).into(),
        namespace: namespace.map(Arc::from),
        name: None,
    };
    let writer = reflector::store::Writer::<T>::new(kind.clone());
    let store = writer.as_reader();
    let events = watcher(api, config)
        .default_backoff()
        .modify(move |object: &mut T| object.complete(&kind));
    let objects = move || {
        let mut objects = store.state();
        objects.sort_by_cached_key(|object| (object.namespace(), object.name_any()));
        objects
    };
    Reflection {
        events: reflector(writer, events).boxed(),
        objects: Box::new(objects),
        cluster: cluster.clone(),
        target,
        is_complete: false,
    }
}

/// The client of a cluster, whose answers begin within the time of a request or not at all.
fn bounded(cluster: &Cluster) -> Client {
    let (client, limit) = (cluster.client().clone(), cluster.request_timeout());
    let namespace = client.default_namespace().to_owned();
    let send = service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let answer = tokio::time::timeout(limit, client.send(request)).await?;
            answer.map_err(tower::BoxError::from)
        }
    });
    Client::new(send, namespace)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Reply, Script, WatchEnd, failure};

    fn lease(name: &str, version: u64) -> Value {
        json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version.to_string()}})
    }

    fn list(version: &str, items: &[Value]) -> Reply {
        let metadata = json!({"resourceVersion": version});
        Reply::Json(
            200,
            json!({"kind": "LeaseList", "metadata": metadata, "items": items}),
        )
    }

    fn names(reflection: &Reflection<Lease>) -> Vec<String> {
        let objects = reflection.objects();
        objects.iter().map(|lease| lease.name_any()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_listed_and_what_changes_is_shown_in_the_order_of_names() {
        let applied = json!({"type": "ADDED", "object": lease("a", 11)});
        let deleted = json!({"type": "DELETED", "object": lease("b", 12)});
        let pause = Duration::from_secs(1);
        let script = Script::new([
            list("10", &[lease("c", 9), lease("b", 3)]),
            Reply::Lines(vec![(pause, applied), (pause, deleted)], WatchEnd::Silence),
        ]);
        let mut leases = reflect_leases(&script.cluster(), None);
        assert!(!leases.is_complete());
        for expected in [&["b", "c"][..], &["a", "b", "c"], &["a", "c"]] {
            leases.changed().await.unwrap();
            assert!(leases.is_complete());
            assert_eq!(names(&leases), expected);
        }
        let fields = "fieldSelector=metadata.namespace%21%3Dkube-node-lease";
        assert!(script.lines().iter().all(|line| line.contains(fields)));
    }

    /// The watcher of kube-runtime alone would wait for the second answer without an end.
    #[tokio::test(start_paused = true)]
    async fn a_failure_names_the_request_and_what_is_known_stays() {
        let status =
            json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
        let gone = json!({"type": "ERROR", "object": status});
        let script = Script::new([
            list("10", &[lease("a", 9)]),
            Reply::Silence,
            Reply::Lines(vec![(Duration::ZERO, gone)], WatchEnd::Close),
            list("20", &[lease("b", 19)]),
            failure(
                403,
                "Forbidden",
                "User \"u\" cannot watch resource \"leases\"",
            ),
        ]);
        let mut leases = reflect_leases(&script.cluster(), Some("ns"));
        let mut reported = Vec::new();
        for _ in 0..4 {
            let changed = leases.changed().await;
            let text = changed.map_or_else(|error| error.to_string(), |()| "changed".to_owned());
            reported.push((text, names(&leases).join("+")));
        }
        let watch = "watch leases.coordination.k8s.io in namespace ns:";
        let expected = [
            ("changed".to_owned(), "a"),
            (format!("{watch} no answer from https://script in 5s"), "a"),
            ("changed".to_owned(), "b"),
            (
                format!(
                    "{watch} RBAC does not grant the verb watch: User \"u\" cannot watch resource \"leases\""
                ),
                "b",
            ),
        ];
        assert_eq!(
            reported,
            expected.map(|(text, names)| (text, names.to_owned()))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn candidates_are_those_of_their_api_and_a_list_that_fails_is_named() {
        let message = "User \"u\" cannot list resource \"leasecandidates\"";
        let script = Script::new([
            failure(403, "Forbidden", message),
            Reply::Break,
            list("", &[]),
            list("10", &[lease("a", 9)]),
        ]);
        let mut candidates = reflect_candidates(&script.cluster(), CandidateApi::V1Alpha2, None);
        let list = "list leasecandidates.coordination.k8s.io in all namespaces:";
        for why in [
            &format!("RBAC does not grant the verb list: {message}"),
            "https://script is unreachable: connection reset",
            "unreadable answer from https://script: it has no resourceVersion",
        ] {
            let error = candidates.changed().await.unwrap_err();
            assert_eq!(error.to_string(), format!("{list} {why}"));
        }
        candidates.changed().await.unwrap();
        let apis: Vec<_> = candidates.objects().iter().map(|it| it.api).collect();
        assert_eq!(apis, [CandidateApi::V1Alpha2]);
    }
}
