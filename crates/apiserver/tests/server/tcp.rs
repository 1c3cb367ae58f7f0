//! The server behind a socket, on real time.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use elector_apiserver::{ApiServer, Config, Fault, RequestVerb, Rule};
use http::{Method, StatusCode};
use kube::Client;
use secrecy::SecretString;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::common::{LEASES, ask, create, holder, watch};

/// Much more than anything here takes.
const DEADLINE: Duration = Duration::from_secs(20);

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

fn connect(url: &str, token: Option<&str>) -> Client {
    let mut config = kube::Config::new(url.parse().unwrap());
    config.default_retry = false;
    config.auth_info.token = token.map(SecretString::from);
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn it_serves_and_breaks_connections_and_ends() {
    let server = ApiServer::new(Config::default());
    let (listener, url) = listen().await;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn({
        let server = server.clone();
        async move {
            let stopped = async { drop(stopped.await) };
            server.serve(listener, stopped).await
        }
    });
    let client = connect(&url, None);
    let mut frames = watch(&client, "").await;
    let a = create(&client, "a").await;
    assert_eq!(timeout(DEADLINE, frames.event()).await.unwrap().2, a);

    server.faults("system:anonymous").inject(
        Rule::new(Fault::DropAfter)
            .verb(RequestVerb::Create)
            .times(1),
    );
    let lost = ask(
        &client,
        Method::POST,
        LEASES,
        Some(json!({"metadata": {"name": "b"}})),
    )
    .await;
    assert!(lost.is_err());
    assert!(holder(&client, "b").await.is_some());

    // The open watch does not keep it.
    stop.send(()).unwrap();
    timeout(DEADLINE, serving).await.unwrap().unwrap().unwrap();
    assert!(ask(&client, Method::GET, "/readyz", None).await.is_err());
    drop(frames);
    assert_eq!(server.watches(), 0);
}

#[tokio::test]
async fn clients_are_told_apart_by_token_and_by_path() {
    let tokens = BTreeMap::from([
        ("t-alice".to_owned(), "alice".to_owned()),
        ("t-bob".to_owned(), "bob".to_owned()),
    ]);
    let server = ApiServer::new(Config {
        tokens,
        anonymous: false,
        ..Config::default()
    });
    let (listener, url) = listen().await;
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(listener, pending()).await }
    });
    let refused = Rule::new(Fault::Refuse(503));
    server.faults("alice").inject(refused.clone().times(1));
    let get = async |url: &str, token| {
        let (status, _) = ask(&connect(url, token), Method::GET, LEASES, None)
            .await
            .unwrap();
        status
    };
    assert_eq!(get(&url, None).await, StatusCode::UNAUTHORIZED);
    assert_eq!(get(&url, Some("nonsense")).await, StatusCode::UNAUTHORIZED);
    assert_eq!(get(&url, Some("t-bob")).await, StatusCode::OK);
    let expected = StatusCode::SERVICE_UNAVAILABLE;
    assert_eq!(get(&url, Some("t-alice")).await, expected);
    assert_eq!(get(&url, Some("t-alice")).await, StatusCode::OK);
    // The path says more than the token.
    server.faults("carol").inject(refused);
    assert_eq!(
        get(&format!("{url}/as/carol"), Some("t-bob")).await,
        StatusCode::SERVICE_UNAVAILABLE
    );
    serving.abort();
}
