//! Operations on a server from outside of its API: a restore, other LeaseCandidates, changes past every rule.

use std::time::Duration;

use elector_apiserver::{ApiServer, ChangeKind, Config, NativeCandidates};
use http::{Method, StatusCode};
use serde_json::json;
use tokio::time::timeout;

use crate::common::{LEASES, ask, client, create, get, hold, holder, revision, watch, watch_at};

const NATIVE: &str = "/apis/coordination.k8s.io/v1beta1";
const OLDER: &str = "/apis/coordination.k8s.io/v1alpha2";
const CUSTOM: &str = "/apis/elector.dev/v1alpha1";

#[tokio::test(start_paused = true)]
async fn a_restore_brings_back_objects_revision_and_history() {
    let server = ApiServer::new(Config::default());
    let client = client(&server, "me");
    let first = create(&client, "kept").await;
    hold(&client, "kept", "before").await;
    let backup = server.backup();
    hold(&client, "kept", "after").await;
    create(&client, "later").await;
    server.restore(&backup);
    assert_eq!(server.revision(), backup.revision());
    assert_eq!(holder(&client, "kept").await.as_deref(), Some("before"));
    assert_eq!(holder(&client, "later").await, None);
    let mut events = watch(&client, &format!("resourceVersion={first}")).await;
    let (happened, name, held) = events.event().await;
    assert_eq!((happened.as_str(), name.as_str()), ("MODIFIED", "kept"));
    assert_eq!(held, backup.revision());
    let again = hold(&client, "kept", "again").await;
    assert_eq!(again, backup.revision() + 1);
    assert_eq!(events.event().await.2, again);
}

#[tokio::test(start_paused = true)]
async fn a_bumped_restore_keeps_the_revisions_of_objects_and_counts_on_above_all() {
    let server = ApiServer::new(Config::default());
    let client = client(&server, "me");
    let kept = create(&client, "kept").await;
    let backup = server.backup();
    let lost = hold(&client, "kept", "after").await;
    server.restore_and_bump(&backup, 1000);
    let (_, list) = get(&client, LEASES).await;
    assert_eq!(revision(&list["items"][0]), kept);
    assert_eq!(revision(&list), backup.revision() + 1000);
    let lost = format!("{LEASES}?resourceVersion={lost}&resourceVersionMatch=Exact");
    assert_eq!(get(&client, &lost).await.0, StatusCode::GONE);
    assert_eq!(
        hold(&client, "kept", "again").await,
        backup.revision() + 1001
    );
}

#[tokio::test(start_paused = true)]
async fn a_uid_is_not_given_out_again_after_a_restore() {
    let server = ApiServer::new(Config::default());
    let client = client(&server, "me");
    let backup = server.backup();
    let uid = || server.object("leases", ("default", "a")).unwrap()["metadata"]["uid"].clone();
    create(&client, "a").await;
    let before = uid();
    server.restore(&backup);
    create(&client, "a").await;
    assert_ne!(uid(), before);
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_before_a_restore_hears_nothing_until_it_breaks() {
    let server = ApiServer::new(Config::default());
    let client = client(&server, "me");
    let backup = server.backup();
    create(&client, "a").await;
    let mut open = watch(&client, "allowWatchBookmarks=true&timeoutSeconds=600").await;
    open.event().await;
    server.restore(&backup);
    create(&client, "b").await;
    let silence = timeout(Duration::from_secs(300), open.next()).await;
    assert!(silence.is_err(), "{silence:?}");
    server.faults("me").break_watches();
    assert!(open.next().await.unwrap().is_err());
    drop(open);
    assert_eq!(server.watches(), 0);
}

/// Discovery and the paths of objects follow.
#[tokio::test(start_paused = true)]
async fn candidates_come_and_go_with_their_versions() {
    let server = ApiServer::new(Config::default());
    let client = client(&server, "me");
    let spec = json!({"leaseName": "l", "binaryVersion": "1.0.0", "emulationVersion": "1.0.0", "strategy": "OldestEmulationVersion"});
    let body = json!({"metadata": {"name": "a"}, "spec": spec});
    let collection = |api: &str| format!("{api}/namespaces/default/leasecandidates");
    for (native, custom, served) in [
        (NativeCandidates::V1Beta1, false, [true, false, false]),
        (
            NativeCandidates::V1Beta1AndV1Alpha2,
            true,
            [true, true, true],
        ),
        (NativeCandidates::V1Alpha2, true, [false, true, true]),
        (NativeCandidates::Absent, false, [false; 3]),
        (NativeCandidates::Absent, true, [false, false, true]),
    ] {
        server.serve_candidates(native, custom);
        for (api, served) in [NATIVE, OLDER, CUSTOM].into_iter().zip(served) {
            let expected = if served {
                StatusCode::OK
            } else {
                StatusCode::NOT_FOUND
            };
            for path in [api.to_owned(), collection(api)] {
                let (status, _) = get(&client, &path).await;
                assert_eq!(status, expected, "{native:?} {custom} {path}");
            }
            if served {
                let path = collection(api);
                let made = ask(&client, Method::POST, &path, Some(body.clone())).await;
                let code = made.unwrap().0;
                assert!([StatusCode::CREATED, StatusCode::CONFLICT].contains(&code));
            }
        }
    }
    // Objects of built-in versions were there all the time; custom ones went with their definition and came anew.
    let native = server.object("leasecandidates", ("default", "a"));
    assert!(native.is_some());
    let custom = server
        .object("leasecandidates.elector.dev", ("default", "a"))
        .unwrap();
    assert!(revision(&custom) > revision(&native.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_what_goes_is_told_of_the_deletions_and_ends() {
    let server = ApiServer::new(Config {
        custom_candidates: true,
        ..Config::default()
    });
    let client = client(&server, "me");
    let resource = "leasecandidates.elector.dev";
    for name in ["a", "b"] {
        server.put(resource, ("default", name), |_| {});
    }
    let path = format!("{CUSTOM}/leasecandidates");
    let custom = watch_at(&client, &path, "").await;
    let mut leases = watch(&client, "").await;
    server.serve_candidates(NativeCandidates::V1Beta1, false);
    let frames = custom.rest().await;
    let happened: Vec<_> = frames.iter().map(|frame| &frame["type"]).collect();
    assert_eq!(happened, ["ADDED", "ADDED", "DELETED", "DELETED"]);
    assert!(leases.is_silent().await, "others go on");
}

#[tokio::test(start_paused = true)]
async fn objects_can_be_made_that_no_rule_lets_in() {
    let server = ApiServer::new(Config::default());
    let client = client(&server, "me");
    let mut events = watch(&client, "").await;
    let name = ("default", "a");
    server.put("leases", name, |fields| {
        fields["spec"]["renewTime"] = "soon".into();
    });
    assert_eq!(events.event().await.0, "ADDED");
    let (status, lease) = get(&client, &format!("{LEASES}/a")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(lease["spec"]["renewTime"], "soon");
    assert!(lease["metadata"]["uid"].is_string());
    let changed = server.corrupt("leases", name, |fields| {
        fields["metadata"]["finalizers"] = json!(["example.com/keep"]);
    });
    assert!(changed && server.remove("leases", name));
    assert!(!server.corrupt("leases", name, |_| {}) && !server.remove("leases", name));
    let kinds: Vec<_> = server.changes().iter().map(|change| change.kind).collect();
    assert!(kinds.ends_with(&[ChangeKind::Added, ChangeKind::Modified, ChangeKind::Deleted]));
    let expected = "leases.coordination.k8s.io";
    assert_eq!(server.changes().last().unwrap().resource, expected);
}

#[tokio::test(start_paused = true)]
async fn a_change_can_be_waited_for() {
    let server = ApiServer::new(Config::default());
    let seen = server.revision();
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.changed(seen).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    server.put("leases", ("default", "a"), |_| {});
    waiting.await.unwrap();
}
