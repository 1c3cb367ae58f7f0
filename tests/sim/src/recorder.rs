//! Records every revision at the moment of its commit.

use elector_api::{Lease, LeaseCandidate};
use elector_apiserver::ApiServer;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, WatchEvent, WatchParams};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;

use crate::context::RunContext;
use crate::names::{NAMESPACE, TENANT};

/// The recorder's name as a client, which no fault ever hits.
pub(crate) const RECORDER: &str = "recorder";

/// Records Leases, and LeaseCandidates where any are served, until it is dropped. Its answers take no time, so it sees a
/// commit before every other client does; of a candidate up to 10 ms later, when these are served anew.
pub(crate) async fn record(server: ApiServer, served: bool, context: RunContext) {
    let client = Client::new(server.service(RECORDER), NAMESPACE);
    // The lock of the built-in controller is in another namespace than the rest.
    let leases = Api::<Lease>::all_with(client.clone(), &());
    let leases = follow(
        || leases.clone(),
        |change, lease: Lease| {
            if lease.metadata.namespace.as_deref() == Some(TENANT) {
                return;
            }
            let now = context.log().now();
            let mut state = context.state();
            if change == RevisionKind::Deleted {
                state.history.record_deletion(now, &lease);
            } else {
                state.history.record_lease(now, lease.clone());
            }
            drop(state);
            log_lease(&context, change, &lease);
        },
    );
    if !served {
        return leases.await;
    }
    let api = || Api::default_namespaced_with(client.clone(), &context.state().api);
    let candidates = follow(api, |change, candidate: LeaseCandidate| {
        let now = context.log().now();
        let name = candidate.metadata.name.as_deref().unwrap_or_default();
        let (ping, renew) = (candidate.spec.ping_time, candidate.spec.renew_time);
        let micros = |time: Option<elector_protocol::Timestamp>| {
            time.map(elector_protocol::Timestamp::as_micros)
        };
        context.log().note(
            "candidates",
            format_args!(
                "{change:?} {name}: ping {:?}, renewed {:?}",
                micros(ping),
                micros(renew)
            ),
        );
        let deleted = change == RevisionKind::Deleted;
        context
            .state()
            .history
            .record_candidate(now, candidate, deleted);
    });
    tokio::join!(biased; leases, candidates);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RevisionKind {
    Written,
    Deleted,
}

/// Follows the objects of an API, which may be another one after each watch.
async fn follow<T>(api: impl Fn() -> Api<T>, mut handle: impl FnMut(RevisionKind, T))
where
    T: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut version = "0".to_owned();
    loop {
        let Ok(events) = api().watch(&WatchParams::default(), &version).await else {
            // They are not served for a while, and nothing becomes of them.
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            continue;
        };
        let mut events = events.boxed();
        while let Ok(Some(event)) = events.try_next().await {
            let (change, object) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    (RevisionKind::Written, object)
                }
                WatchEvent::Deleted(object) => (RevisionKind::Deleted, object),
                WatchEvent::Bookmark(bookmark) => {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(_) => {
                    version = "0".to_owned();
                    break;
                }
            };
            if let Some(newest) = object.meta().resource_version.clone() {
                version = newest;
            }
            handle(change, object);
        }
    }
}

fn log_lease(context: &RunContext, change: RevisionKind, lease: &Lease) {
    let spec = &lease.spec;
    let text = |text: &Option<String>| {
        text.as_deref()
            .map_or("-".to_owned(), |it| format!("{it:?}"))
    };
    let author = {
        let state = context.state();
        let revision = state.history.current(&lease.key().name);
        let attempt = revision.and_then(|revision| state.history.attempts.get(revision.attempt?));
        attempt.map_or("somebody", |it| &it.author.name).to_owned()
    };
    let annotations = lease.metadata.annotations.as_ref();
    let token = annotations.and_then(|all| all.get("elector.dev/token"));
    context.log().note(
        "leases",
        format_args!(
            "{change:?} {} @{} by {author}: holder {}, {} s, term {}, renewed {:?}, preferred {}, token {:?}",
            lease.key().name,
            lease.metadata.resource_version.as_deref().unwrap_or_default(),
            text(&spec.holder_identity),
            spec.lease_duration_seconds.unwrap_or_default(),
            spec.lease_transitions.unwrap_or_default(),
            spec.renew_time.map(elector_protocol::Timestamp::as_micros),
            lease.record().ok().and_then(|it| it.preferred_holder).map_or_else(|| "-".to_owned(), |it| it.to_string()),
            token,
        ),
    );
}
