//! The webhook of the example answers before its API server has ever been reached, on a standby, and while it leads.

#![cfg(feature = "connect")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[expect(dead_code, reason = "the test calls what the program's main does")]
#[path = "../examples/webhook.rs"]
mod webhook;

use std::net::SocketAddr;
use std::time::Duration;

use elector_api::CandidateApi;
use elector_candidate::{Candidate, Config};
use elector_testing::{OneLease, eventually};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// The body of the answer to one request.
async fn ask(address: SocketAddr, request: &str, body: &str) -> String {
    let asking = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let head =
            format!("{request} HTTP/1.0\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 OK"), "{answer}");
        body.to_owned()
    };
    timeout(Duration::from_secs(10), asking).await.unwrap()
}

/// True if an object with such labels is let in.
async fn admits(address: SocketAddr, labels: Value) -> bool {
    let request = json!({"uid": "1", "object": {"metadata": {"labels": labels}}});
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    let answer = ask(address, "POST /validate", &review.to_string()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["response"]["uid"], "1");
    answer["response"]["allowed"].as_bool().unwrap()
}

async fn leader(address: SocketAddr) -> (Option<String>, bool, bool) {
    let answer: Value = serde_json::from_str(&ask(address, "GET /leader", "").await).unwrap();
    let holder = answer["holder"].as_str().map(str::to_owned);
    let is = |field: &str| answer[field].as_bool().unwrap();
    (holder, is("here"), is("stale"))
}

async fn answers(address: SocketAddr) {
    assert_eq!(ask(address, "GET /readyz", "").await, "ok");
    assert_eq!(ask(address, "GET /livez", "").await, "ok");
    assert!(admits(address, json!({})).await);
    assert!(!admits(address, json!({"forbidden": "yes"})).await);
}

#[tokio::test]
async fn a_webhook_answers_without_an_api_server_on_a_standby_and_while_it_leads() {
    let cluster = OneLease::new(&[CandidateApi::V1Beta1]);
    cluster.faults().partition(true);
    let lease = OneLease::key();
    let config = Config::new(&*lease.name, "1.0.0")
        .namespace(&*lease.namespace)
        .identity("me");
    let candidate = Candidate::new(config, cluster.cluster().into()).unwrap();
    let handle = candidate.handle();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let run = tokio::spawn(webhook::serve(
        listener,
        candidate,
        std::future::pending::<()>(),
    ));
    answers(address).await;
    assert_eq!(leader(address).await, (None, false, true));

    cluster.heal();
    let registered = eventually(|| cluster.candidate(CandidateApi::V1Beta1).is_some());
    timeout(Duration::from_secs(60), registered).await.unwrap();
    cluster.grant("other");
    let other = Some("other".to_owned());
    let known = async { while leader(address).await != (other.clone(), false, false) {} };
    timeout(Duration::from_secs(60), known).await.unwrap();
    answers(address).await;

    cluster.grant("me");
    let mut changes = handle.changes();
    let leads = async { while !changes.next().await.unwrap().is_leader() {} };
    timeout(Duration::from_secs(60), leads).await.unwrap();
    answers(address).await;
    assert_eq!(leader(address).await, (Some("me".to_owned()), true, false));
    run.abort();
}
