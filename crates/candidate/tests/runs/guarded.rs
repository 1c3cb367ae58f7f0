//! The guarded client: what passes, what is refused, and how the refusal is found in an error.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_api::Lease;
use elector_candidate::{Candidate, Leadership, NotLeading, kube5};
use elector_protocol::Identity;
use elector_testing::{LEASES, OneLease, eventually};
use futures::FutureExt as _;
use http::{Request, Response};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::client::Body;
use serde_json::json;
use tokio::time::Instant;
use tower::{Layer as _, Service as _, ServiceExt as _, service_fn};

use crate::{RunningCandidate, V1BETA1, config, connected, elected, leader, obedient, pass, start};

/// A lease that the guarded client writes, which is not the one that is led.
const OBJECT: &str = "object";

fn guarded(cluster: &OneLease, running: &RunningCandidate) -> Api<Lease> {
    let client = cluster.connect("guarded").client().clone();
    let guarded = kube5::guarded(&client, &running.handle.leader_only());
    assert_eq!(guarded.default_namespace(), client.default_namespace());
    Api::namespaced_with(guarded, "default", &())
}

fn object() -> Lease {
    Lease::from_value(json!({"metadata": {"name": OBJECT, "namespace": "default"}, "spec": {}}))
}

/// Every kind of write, each with its method.
async fn write_all(api: &Api<Lease>) -> Vec<(&'static str, Result<(), kube::Error>)> {
    let (post, patch) = (PostParams::default(), PatchParams::default());
    let merge = Patch::Merge(json!({"metadata": {"labels": {"by": "me"}}}));
    let created = api.create(&post, &object()).await;
    let replacement = created.as_ref().map_or_else(|_| object(), Clone::clone);
    vec![
        ("POST", created.map(drop)),
        (
            "PUT",
            api.replace(OBJECT, &post, &replacement).await.map(drop),
        ),
        ("PATCH", api.patch(OBJECT, &patch, &merge).await.map(drop)),
        (
            "DELETE",
            api.delete(OBJECT, &DeleteParams::default()).await.map(drop),
        ),
    ]
}

async fn read_all(api: &Api<Lease>) {
    api.get("web").await.unwrap();
    api.list(&ListParams::default()).await.unwrap();
    let _ = api.watch(&WatchParams::default(), "0").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_standby_reads_and_a_leader_writes() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, elected(), obedient);
    running.registered().await;
    cluster.grant("other");
    let other = Identity::new("other");
    eventually(|| running.handle.status().holder() == other.as_ref()).await;
    let api = guarded(&cluster, &running);
    read_all(&api).await;
    for (method, result) in write_all(&api).await {
        let error = result.unwrap_err();
        let refusal = NotLeading::find(&error).unwrap();
        assert!(refusal.request().starts_with(method), "{refusal}");
        assert_eq!(refusal.holder(), other.as_ref());
        assert_eq!(refusal.lease(), &OneLease::key());
        assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
    }
    assert!(cluster.read(LEASES, "default", OBJECT).is_none());
    cluster.grant("me");
    running.leads(1).await;
    read_all(&api).await;
    for (method, result) in write_all(&api).await {
        assert!(result.is_ok(), "{method}: {result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_what_was_refused_and_who_holds_the_lease() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, elected(), obedient).await;
    let api = guarded(&cluster, &running);
    cluster.overwrite_lease("holderIdentity", "other".into());
    eventually(|| !running.handle.is_leader()).await;
    let error = api
        .delete(OBJECT, &DeleteParams::default())
        .await
        .unwrap_err();
    let refusal = NotLeading::find(&error).unwrap();
    assert_eq!(
        refusal.to_string(),
        "DELETE /apis/coordination.k8s.io/v1/namespaces/default/leases/object: this process does not lead \
         default/web, whose holder is other"
    );
    // Also where another error holds it, and not where there is none.
    let wrapped = anyhow::Error::from(error).context("reconcile");
    assert!(NotLeading::find(wrapped.as_ref()).is_some());
    let missing = api.get(OBJECT).await.unwrap_err();
    assert!(NotLeading::find(&missing).is_none());
}

/// P-X-G2: the next write after a foreign overwrite or a deletion is refused as soon as its event is there.
#[tokio::test(start_paused = true)]
async fn an_overwrite_or_a_deletion_of_the_lease_refuses_writes_with_its_event() {
    for delete in [false, true] {
        let cluster = OneLease::new(&[V1BETA1]);
        let running = leader(&cluster, elected(), obedient).await;
        let api = guarded(&cluster, &running);
        pass(1_000).await;
        if delete {
            cluster.delete_lease();
        } else {
            cluster.overwrite_lease("holderIdentity", "other".into());
        }
        let done = Instant::now();
        let error = loop {
            let label =
                json!({"metadata": {"labels": {"at": done.elapsed().as_millis().to_string()}}});
            let patch = Patch::Merge(label);
            match api.patch("web", &PatchParams::default(), &patch).await {
                Err(error) if NotLeading::find(&error).is_some() => break error,
                _ => assert!(done.elapsed() < Duration::from_millis(10)),
            }
        };
        assert!(NotLeading::find(&error).is_some());
    }
}

/// P-X-G1: neither the session nor any timer has to run for a write past the deadline to be refused.
#[tokio::test(start_paused = true)]
async fn a_write_past_the_deadline_is_refused_though_no_timer_has_fired() {
    let cluster = OneLease::new(&[V1BETA1]);
    let candidate = Candidate::new(config(), connected(&cluster)).unwrap();
    let handle = candidate.handle();
    let sent = Arc::new(Mutex::new(0));
    let count = Arc::clone(&sent);
    let send = service_fn(move |_: Request<Body>| {
        *count.lock().unwrap() += 1;
        ready(Ok::<_, Infallible>(Response::new(())))
    });
    let mut service = handle.leader_only().layer(send);
    let write = || {
        Request::delete("/api/v1/pods/x")
            .body(Body::empty())
            .unwrap()
    };
    let mut run = pin!(candidate.run(obedient, pending::<()>()));
    tokio::select! {
        biased;
        _ = &mut run => unreachable!(),
        () = eventually(|| cluster.candidate(V1BETA1).is_some()) => cluster.grant("me"),
    }
    tokio::select! {
        biased;
        _ = &mut run => unreachable!(),
        () = eventually(|| handle.is_leader()) => {}
    }
    // From here on nothing polls the session, and no timer of the test's either.
    let started = service.ready().await.unwrap().call(write());
    let sent_in_time = service.ready().await.unwrap().call(write()).await;
    assert!(sent_in_time.is_ok());
    tokio::time::advance(Duration::from_secs(11)).await;
    let refused = service.ready().await.unwrap().call(write()).await;
    assert!(NotLeading::find(&*refused.unwrap_err()).is_some());
    assert_eq!(*sent.lock().unwrap(), 2, "the refused one was not sent");
    // One that was made in time and is waited for now is refused as well.
    let late = started.await;
    assert!(NotLeading::find(&*late.unwrap_err()).is_some());
}

#[tokio::test(start_paused = true)]
async fn the_guard_of_a_term_refuses_in_the_next_one() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, elected(), obedient).await;
    let first = running.guard();
    let send = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(()))));
    let write = |guard: &Leadership| {
        let request = Request::post("/api/v1/pods").body(()).unwrap();
        let of_term = guard.leader_only().layer(send);
        of_term.oneshot(request).now_or_never().unwrap()
    };
    assert!(write(&first).is_ok());
    cluster.prefer("other");
    eventually(|| cluster.record().holder == Identity::new("other")).await;
    cluster.grant("me");
    running.leads(2).await;
    assert!(write(&running.guard()).is_ok());
    let error = write(&first).unwrap_err();
    let text = error.to_string();
    assert!(
        text.ends_with(&format!(
            "under token {}, whose holder is me",
            first.token()
        )),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_standby_may_ask_and_not_write() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, elected(), obedient);
    let send = service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(()))));
    let guard = running.handle.leader_only();
    let passes = |method: &str, path: &str, upgrades: bool| {
        let mut request = Request::builder().method(method).uri(path);
        if upgrades {
            request = request.header("upgrade", "websocket");
        }
        let request = request.body(()).unwrap();
        let sent = guard.layer(send).oneshot(request).now_or_never();
        sent.unwrap().is_ok()
    };
    let (reads, writes) = ("GET HEAD OPTIONS", "POST PUT PATCH DELETE CONNECT");
    let access = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let tokens = "/apis/authentication.k8s.io/v1/tokenreviews";
    for (methods, path, expected) in [
        (reads, "/api/v1/namespaces/ns/pods/p", true),
        (writes, "/api/v1/namespaces/ns/pods/p", false),
        (writes, "/api/v1/namespaces/ns/pods/p/status", false),
        ("POST", "/api/v1/namespaces/ns/pods/p?dryRun=All", false),
        ("POST", access, true),
        ("POST", tokens, true),
        // Only what is asked: neither another method nor a path that merely holds the words, nor a token that is issued.
        ("DELETE", access, false),
        ("POST", &format!("/api/v1/namespaces{access}"), false),
        (
            "POST",
            "/api/v1/namespaces/ns/serviceaccounts/s/token",
            false,
        ),
    ] {
        for method in methods.split(' ') {
            assert_eq!(passes(method, path, false), expected, "{method} {path}");
        }
    }
    assert!(!passes(
        "GET",
        "/api/v1/namespaces/ns/pods/p/exec?command=rm",
        true
    ));
}
