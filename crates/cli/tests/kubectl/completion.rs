//! Shell completion, as kubectl asks for it.

use elector_apiserver::Config;
use serde_json::json;

use crate::server::{TestServer, assert_has};

/// The words that are offered for the last of these.
fn completed(server: &TestServer, words: &[&str]) -> Vec<String> {
    let said = server.says(&[&["__complete", "--"], words].concat());
    let choices = said.strip_suffix(":4\n").unwrap();
    let word = |line: &str| line.split('\t').next().unwrap().to_owned();
    choices.lines().map(word).collect()
}

#[test]
fn commands_flags_values_and_names_are_offered() {
    let server = TestServer::start(Config::default());
    server.lease(("default", "web"), &json!({}));
    server.candidate(("default", "a-1"), "web", "1.1.0");
    server.candidate(("default", "a-2"), "web", "1.1.0");
    server.candidate(("default", "other"), "till", "1.1.0");
    server.candidate(("shop", "b"), "desk", "1.1.0");
    let offered = |words: &[&str]| completed(&server, words);
    assert_eq!(offered(&["st"]), ["stand-down", "status"]);
    assert!(offered(&[]).contains(&"explain".to_owned()));
    // It is no word for people.
    assert!(!offered(&[""]).contains(&"__complete".to_owned()));
    assert_eq!(offered(&["status", "--na"]), ["--namespace"]);
    assert_eq!(offered(&["status", "-o", ""]), ["wide", "json", "yaml"]);
    assert_eq!(offered(&["status", ""]), ["till", "web"]);
    assert_eq!(offered(&["explain", "w"]), ["web"]);
    assert_eq!(offered(&["check", "--lease", "w"]), ["web"]);
    // There is one lease.
    assert_eq!(offered(&["status", "web", ""]), [""; 0]);
    for flag in [
        &["-n", "shop"][..],
        &["--namespace=shop"],
        &["--context", "shop"],
    ] {
        let words = [&["status"], flag, &[""]].concat();
        assert_eq!(offered(&words), ["desk"]);
    }
    assert_eq!(offered(&["prefer", "web", "a-"]), ["a-1", "a-2"]);
    assert_eq!(offered(&["stand-down", ""]), ["a-1", "a-2", "other"]);
    let nowhere = ["status", "--kubeconfig=/nowhere", ""];
    assert_eq!(offered(&nowhere), [""; 0]);
}

#[test]
fn the_executable_that_kubectl_runs_asks_the_plugin() {
    let server = TestServer::start(Config::default());
    let script = server.says(&["completion"]);
    let script = script.strip_prefix("#!/bin/sh\n").unwrap();
    assert_has(script, "kubectl-elector __complete -- \"$@\"");
}
