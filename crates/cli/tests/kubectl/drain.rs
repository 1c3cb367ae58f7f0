//! `kubectl elector drain`.

use elector_apiserver::Config;
use http::StatusCode;
use serde_json::{Value, json};

use crate::cluster::{list, pod};
use crate::server::{TestServer, failure};

const NODE: &str = "/api/v1/nodes/node-a";

/// Two nodes and two namespaces. On node-a are `default/web-0`, which leads, `shop/till-0`, which stands by, and a Pod
/// that has ended.
fn server() -> TestServer {
    let server = TestServer::start(Config::default());
    server.record(NODE, json!({"metadata": {"name": "node-a"}}));
    let mut ended = pod(("default", "web-9"), "node-a");
    ended["status"]["phase"] = "Succeeded".into();
    let [web, till] = [("default", "web-0"), ("shop", "till-0")].map(|key| pod(key, "node-a"));
    server.record("/api/v1/pods", list(&[web.clone(), ended, till]));
    server.record("/api/v1/namespaces/default/pods", list(&[web]));
    let web = "web-0-0123456789abcdef";
    server.lease(("default", "web"), &json!({"holderIdentity": web}));
    server.candidate(("default", web), "web", "1.1.0");
    server.candidate(("default", "web-1"), "web", "1.2.0");
    server.candidate(("default", "web-9"), "web", "1.2.0");
    server.lease(("shop", "till"), &json!({"holderIdentity": "till-1"}));
    server.candidate(("shop", "till-0"), "till", "1.1.0");
    server.candidate(("shop", "till-1"), "till", "1.1.0");
    server
}

fn stands_down(server: &TestServer, namespace: &str, name: &str) -> bool {
    let candidate = server.api.object("leasecandidates", (namespace, name));
    let annotations = &candidate.unwrap()["metadata"]["annotations"];
    annotations["elector.dev/stand-down"].is_string()
}

#[test]
fn the_candidates_of_a_node_stand_down_and_no_others() {
    let server = server();
    let said = server.says(&["drain", "node-a", "--dry-run=server"]);
    assert_eq!(said.lines().count(), 2, "{said}");
    let all_end = |said: &str, end: &str| said.lines().all(|line| line.ends_with(end));
    assert!(all_end(&said, " (server dry run)"), "{said}");
    assert!(!stands_down(&server, "shop", "till-0"), "a dry run wrote");

    let mut draining = server.start_plugin(&["drain", "node-a", "--for=30m"]);
    let first = draining.line();
    let web = "default/web-0-0123456789abcdef";
    let start = format!("{web} stands down until ");
    assert!(first.starts_with(&start), "{first}");
    let second = draining.line();
    assert!(second.starts_with("shop/till-0 stands down until "));
    for (namespace, name, expected) in [
        ("default", "web-0-0123456789abcdef", true),
        ("default", "web-1", false),
        ("default", "web-9", false),
        ("shop", "till-0", true),
        ("shop", "till-1", false),
    ] {
        assert_eq!(stands_down(&server, namespace, name), expected, "{name}");
    }
    // Another takes over, as an elector has it.
    server.lease(("default", "web"), &json!({"holderIdentity": "web-1"}));
    let mut line = draining.line();
    // Where the plugin was quick it saw the leader before.
    if line.contains("is led by") {
        assert_eq!(line, "default/web is led by web-0-0123456789abcdef no more");
        line = draining.line();
    }
    assert_eq!(line, "node/node-a drained: its candidates, 2, lead nothing");

    let said = server.says(&["drain", "node-a", "--undo"]);
    assert!(all_end(&said, " may be elected again"), "{said}");
    assert!(!stands_down(&server, "shop", "till-0"));
}

#[test]
fn a_leader_that_stays_is_named_when_the_time_is_over() {
    let server = server();
    server.api.remove("leasecandidates", ("default", "web-1"));
    server.api.remove("leasecandidates", ("default", "web-9"));
    let output = server.run(&["drain", "node-a", "-n", "default", "--timeout=1s"]);
    let stderr = failure(&output);
    let start =
        "error: failed to drain node node-a in 1s: default/web is led by web-0-0123456789abcdef (";
    assert!(stderr.starts_with(start), "{stderr}");
    assert!(!stands_down(&server, "shop", "till-0"), "another namespace");
}

#[test]
fn a_holder_that_has_died_leads_nothing() {
    let server = server();
    let dead = json!({
        "holderIdentity": "web-0-0123456789abcdef", "leaseDurationSeconds": 15,
        "renewTime": crate::server::ago(60),
    });
    server.lease(("default", "web"), &dead);
    let said = server.says(&["drain", "node-a"]);
    let end = "node/node-a drained: its candidates, 2, lead nothing\n";
    assert!(said.ends_with(end), "{said}");
}

#[test]
fn a_node_that_does_not_exist_is_an_error_and_an_empty_one_is_none() {
    let server = server();
    let refuse = |code: StatusCode| {
        let status =
            json!({"kind": "Status", "code": code.as_u16(), "message": "no", "reason": "x"});
        server.answer(NODE, move |_: &Value| (code, status.clone()));
    };
    refuse(StatusCode::NOT_FOUND);
    let output = server.run(&["drain", "node-a"]);
    assert_eq!(failure(&output), "error: failed to find node node-a\n");
    // An account that may not read nodes.
    refuse(StatusCode::FORBIDDEN);
    server.record("/api/v1/pods", list(&[]));
    let said = server.says(&["drain", "node-a"]);
    assert_eq!(said, "node/node-a has no candidate\n");
    let output = server.run(&["drain", "a/b"]);
    let line = "error: failed to use \"a/b\": no node can have that name\n";
    assert_eq!(failure(&output), line);
}
