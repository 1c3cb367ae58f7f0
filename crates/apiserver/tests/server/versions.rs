//! LeaseCandidates in their other versions and groups.

use elector_apiserver::{ApiServer, Config, NativeCandidates};
use http::{Method, StatusCode};
use kube::Client;
use serde_json::{Value, json};

use crate::common::{ask, client, get, revision, watch_at};

const FIRST: &str = "/apis/coordination.k8s.io/v1alpha1/namespaces/default/leasecandidates";
const CUSTOM: &str = "/apis/elector.dev/v1alpha1/namespaces/default/leasecandidates";

fn custom_server() -> ApiServer {
    ApiServer::new(Config {
        native: NativeCandidates::Absent,
        custom_candidates: true,
        ..Config::default()
    })
}

fn spec(lease: &str) -> Value {
    json!({"leaseName": lease, "binaryVersion": "1.2.0", "emulationVersion": "1.1.0", "strategy": "OldestEmulationVersion"})
}

async fn post(client: &Client, path: &str, name: &str, spec: Value) -> (StatusCode, Value) {
    let body = json!({"metadata": {"name": name}, "spec": spec});
    ask(client, Method::POST, path, Some(body)).await.unwrap()
}

/// The answers are those of a Kubernetes 1.31.1.
#[tokio::test(start_paused = true)]
async fn the_first_version_has_a_list_of_strategies() {
    let config = Config {
        native: NativeCandidates::V1Alpha1,
        minor: 31,
        ..Config::default()
    };
    let client = client(&ApiServer::new(config), "me");
    let built_in = "OldestEmulationVersion";
    for (name, spec) in [
        (
            "a",
            json!({"leaseName": "l", "preferredStrategies": [built_in], "binaryVersion": "1.2.0", "emulationVersion": "1.1.0"}),
        ),
        ("b", json!({"leaseName": "l"})),
        (
            "c",
            json!({"leaseName": "l", "preferredStrategies": [built_in, built_in], "binaryVersion": "1.2.0", "emulationVersion": "1.1.0"}),
        ),
    ] {
        let (status, made) = post(&client, FIRST, name, spec.clone()).await;
        assert_eq!((status, &made["spec"]), (StatusCode::CREATED, &spec));
    }
    let when = "Required value: must be specified when `strategy` is 'OldestEmulationVersion'";
    for (spec, expected) in [
        (json!({}), "spec.leaseName: Required value".to_owned()),
        (
            json!({"leaseName": "l", "preferredStrategies": [built_in]}),
            format!("[spec.binaryVersion: {when}, spec.emulationVersion: {when}]"),
        ),
        (
            json!({"leaseName": "l", "preferredStrategies": ["x", "a/b", "a/b"], "binaryVersion": "1.2"}),
            "[spec.binaryVersion: Invalid value: \"1.2\": must be a valid semantic version, \
             spec.preferredStrategies[0].strategy: Unsupported value: \"x\": supported values: \"OldestEmulationVersion\"]"
                .to_owned(),
        ),
    ] {
        let (status, failure) = post(&client, FIRST, "x", spec).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(failure["message"], format!("LeaseCandidate.coordination.k8s.io \"x\" is invalid: {expected}"));
    }
    let (status, failure) = post(&client, FIRST, "x", json!({"preferredStrategies": "x"})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let end = "Go struct field LeaseCandidateSpec.spec.preferredStrategies of type []v1.CoordinatedLeaseStrategy";
    let holds = failure["message"].as_str().unwrap().ends_with(end);
    assert!(holds, "{failure}");
}

#[tokio::test(start_paused = true)]
async fn custom_candidates_are_custom_resources() {
    let client = client(&custom_server(), "me");
    let (status, made) = post(&client, CUSTOM, "a", spec("l")).await;
    let expected = (StatusCode::CREATED, &json!(1));
    assert_eq!((status, &made["metadata"]["generation"]), expected);

    // The generation counts changes of the spec alone.
    let mut changed = made.clone();
    changed["metadata"]["labels"] = json!({"x": "y"});
    let (_, changed) = ask(&client, Method::PUT, &format!("{CUSTOM}/a"), Some(changed))
        .await
        .unwrap();
    assert_eq!(changed["metadata"]["generation"], 1);
    let answer = json!({"spec": {"renewTime": "2026-01-02T03:04:05.000000Z"}});
    let (_, changed) = ask(&client, Method::PATCH, &format!("{CUSTOM}/a"), Some(answer))
        .await
        .unwrap();
    assert_eq!(changed["metadata"]["generation"], 2);

    // PUT makes nothing.
    let missing = json!({"metadata": {"name": "b"}, "spec": spec("l")});
    let (status, _) = ask(&client, Method::PUT, &format!("{CUSTOM}/b"), Some(missing))
        .await
        .unwrap();
    assert_eq!(status, StatusCode::NOT_FOUND);

    // They can be selected by their lease, and items of a list say what they are.
    post(&client, CUSTOM, "other", spec("m")).await;
    let (_, list) = get(
        &client,
        &format!("{CUSTOM}?fieldSelector=spec.leaseName%3Dm"),
    )
    .await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["items"][0]["kind"], "LeaseCandidate");
    let mut frames = watch_at(
        &client,
        CUSTOM,
        "fieldSelector=spec.leaseName%3Dl&resourceVersion=1",
    )
    .await;
    let expected = ("ADDED".to_owned(), "a".to_owned(), revision(&made));
    assert_eq!(frames.event().await, expected);
}
