//! Kinds that the server was not made for. Recorded answers say how definitions and built-in kinds are served; here is
//! what no real server does.

use elector_apiserver::{ApiServer, Config, OtherKinds};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::common::{ask, client, get, watch_at};

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn server(other_kinds: OtherKinds) -> (ApiServer, Client) {
    let server = ApiServer::new(Config {
        other_kinds,
        ..Config::default()
    });
    let me = client(&server, "me");
    (server, me)
}

async fn status(client: &Client, path: &str) -> StatusCode {
    get(client, path).await.0
}

/// The kinds of a group, as discovery has them.
async fn discovered(client: &Client) -> Vec<(String, String, bool)> {
    let (_, list) = get(client, "/apis/example.com/v1").await;
    let resources = list["resources"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let shown = resources.iter().map(|resource| {
        let namespaced = resource["namespaced"].as_bool().unwrap();
        (text(&resource["name"]), text(&resource["kind"]), namespaced)
    });
    shown.collect()
}

#[tokio::test(start_paused = true)]
async fn other_kinds_are_served_as_configured() {
    use OtherKinds::{Any, Defined, Refused};
    for (kinds, maps, widgets) in [
        (Refused, StatusCode::NOT_FOUND, StatusCode::NOT_FOUND),
        (Defined, StatusCode::OK, StatusCode::NOT_FOUND),
        (Any, StatusCode::OK, StatusCode::OK),
    ] {
        let (_server, me) = server(kinds);
        assert_eq!(status(&me, "/api/v1/configmaps").await, maps, "{kinds:?}");
        assert_eq!(status(&me, WIDGETS).await, widgets, "{kinds:?}");
        // These are what they are, whatever else is served.
        let absent = "/apis/elector.dev/v1alpha1/leasecandidates";
        let expected = StatusCode::NOT_FOUND;
        assert_eq!(status(&me, absent).await, expected, "{kinds:?}");
    }
}

/// A watch that was opened before anything was known of the kind reports its first object under the right name.
#[tokio::test(start_paused = true)]
async fn a_kind_is_learned_from_paths_and_its_first_object() {
    let (_server, me) = server(OtherKinds::Any);
    let oxen = "/apis/example.com/v1/oxen";
    let mut frames = watch_at(&me, oxen, "").await;
    let known = |kind: &str, namespaced| vec![("oxen".to_owned(), kind.to_owned(), namespaced)];
    assert_eq!(discovered(&me).await, known("Oxen", true));
    let ox = json!({"apiVersion": "example.com/v1", "kind": "Ox", "metadata": {"name": "a"}, "spec": {"legs": 4}});
    let (code, created) = ask(&me, Method::POST, oxen, Some(ox)).await.unwrap();
    let expected = (StatusCode::CREATED, &json!("Ox"));
    assert_eq!((code, &created["kind"]), expected);
    assert_eq!(created["metadata"]["namespace"], Value::Null);
    let frame = frames.next().await.unwrap().unwrap();
    let expected = (&json!("ADDED"), &created);
    assert_eq!((&frame["type"], &frame["object"]), expected);
    assert_eq!(discovered(&me).await, known("Ox", false));
    // It has a status from the first request for one on.
    let path = format!("{oxen}/a/status");
    let patch = json!({"status": {"ready": true}, "spec": {"legs": 5}});
    let (code, patched) = ask(&me, Method::PATCH, &path, Some(patch)).await.unwrap();
    assert_eq!(code, StatusCode::OK);
    assert_eq!(patched["status"]["ready"], true);
    assert_eq!(
        (&patched["spec"]["legs"], &patched["metadata"]["generation"]),
        (&json!(4), &json!(1))
    );
}

#[tokio::test(start_paused = true)]
async fn an_apply_takes_yaml_of_several_lines_and_says_what_is_none() {
    let (_server, me) = server(OtherKinds::Any);
    let apply = async |body: &str| {
        let request = Request::patch(format!("{WIDGETS}/a?fieldManager=m"));
        let request = request.header("content-type", "application/apply-patch+yaml");
        let body = Body::from(body.as_bytes().to_vec());
        let answer = me.send(request.body(body).unwrap()).await.unwrap();
        let status = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    let body = "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: a\n  labels: {x: \"1\"}\nspec:\n  sizes:\n  - 1\n  - 2\n";
    let (code, made) = apply(body).await;
    let expected = (StatusCode::CREATED, &json!("Widget"));
    assert_eq!((code, &made["kind"]), expected);
    assert_eq!(made["spec"], json!({"sizes": [1, 2]}));
    assert_eq!(made["metadata"]["labels"], json!({"x": "1"}));
    let (code, refusal) = apply("apiVersion: [\n").await;
    let message = refusal["message"].as_str().unwrap();
    assert_eq!(code, StatusCode::BAD_REQUEST);
    assert!(message.starts_with("error decoding YAML: "), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_goes_takes_its_objects_along() {
    let (server, me) = server(OtherKinds::Defined);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": true}],
        },
    });
    let (_, made) = ask(&me, Method::POST, definitions, Some(definition))
        .await
        .unwrap();
    let established = made["status"]["conditions"].as_array().unwrap().iter();
    assert!(
        established
            .filter(|it| it["status"] == "True")
            .any(|it| it["type"] == "Established")
    );
    let widget =
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    ask(&me, Method::POST, WIDGETS, Some(widget)).await.unwrap();
    // The versions of a kind are of the same objects.
    let newer = WIDGETS.replace("/v1/", "/v2/");
    let (_, shown) = get(&me, &format!("{newer}/a")).await;
    assert_eq!(shown["apiVersion"], "example.com/v2");
    let mut frames = watch_at(&me, WIDGETS, "").await;
    assert_eq!(frames.next().await.unwrap().unwrap()["type"], "ADDED");
    let path = format!("{definitions}/widgets.example.com");
    ask(&me, Method::DELETE, &path, None).await.unwrap();
    assert_eq!(frames.next().await.unwrap().unwrap()["type"], "DELETED");
    let holds = frames.next().await.is_none();
    assert!(holds, "the watch ends with its kind");
    assert_eq!(status(&me, WIDGETS).await, StatusCode::NOT_FOUND);
    assert_eq!(server.object("widgets", ("default", "a")), None);
}
