//! Shell completion, as kubectl asks for it.

use elector_apiserver::Config;
use serde_json::json;

use crate::server::TestServer;

/// The words that are offered for the last of these.
fn offered(server: &TestServer, words: &[&str]) -> Vec<String> {
    let said = server.says(&[&["__complete", "--"], words].concat());
    let choices = said.strip_suffix(":4\n").unwrap();
    let words = choices
        .lines()
        .map(|line| line.split('\t').next().unwrap().to_owned());
    words.collect()
}

#[test]
fn commands_flags_values_and_names_are_offered() {
    let server = TestServer::start(Config::default());
    server.lease(("default", "web"), &json!({}));
    server.candidate(("default", "a-1"), "web", "1.1.0");
    server.candidate(("default", "a-2"), "web", "1.1.0");
    server.candidate(("default", "other"), "till", "1.1.0");
    server.candidate(("shop", "b"), "desk", "1.1.0");
    assert_eq!(offered(&server, &["st"]), ["stand-down", "status"]);
    assert!(offered(&server, &[]).contains(&"explain".to_owned()));
    assert!(
        !offered(&server, &[""]).contains(&"__complete".to_owned()),
        "it is no word for people"
    );
    assert_eq!(offered(&server, &["status", "--na"]), ["--namespace"]);
    assert_eq!(
        offered(&server, &["status", "-o", ""]),
        ["wide", "json", "yaml"]
    );
    assert_eq!(offered(&server, &["status", ""]), ["till", "web"]);
    assert_eq!(offered(&server, &["explain", "w"]), ["web"]);
    assert_eq!(offered(&server, &["check", "--lease", "w"]), ["web"]);
    assert_eq!(
        offered(&server, &["status", "web", ""]),
        [""; 0],
        "there is one lease"
    );
    for flag in [
        &["-n", "shop"][..],
        &["--namespace=shop"],
        &["--context", "shop"],
    ] {
        assert_eq!(
            offered(&server, &[&["status"], flag, &[""]].concat()),
            ["desk"]
        );
    }
    assert_eq!(offered(&server, &["prefer", "web", "a-"]), ["a-1", "a-2"]);
    assert_eq!(
        offered(&server, &["stand-down", ""]),
        ["a-1", "a-2", "other"]
    );
    assert_eq!(
        offered(&server, &["status", "--kubeconfig=/nowhere", ""]),
        [""; 0]
    );
}

#[test]
fn the_executable_that_kubectl_runs_asks_the_plugin() {
    let server = TestServer::start(Config::default());
    let script = server.says(&["completion"]);
    assert!(
        script.starts_with("#!/bin/sh\n")
            && script.contains("kubectl-elector __complete -- \"$@\"")
    );
}
