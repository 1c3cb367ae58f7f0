//! `kubectl elector stand-down`, `freeze`, `unfreeze` and `prefer`.

use elector_api::{parse_freeze, parse_prefer, parse_time};
use elector_apiserver::{Config, Fault, NativeCandidates, RequestVerb, Rule};
use serde_json::{Value, json};

use crate::server::{TestServer, ago, assert_has, failure, text};

/// The Lease as the plugin names it.
const WEB: &str = "lease.coordination.k8s.io/web";

fn server() -> TestServer {
    let server = TestServer::start(Config::default());
    server.lease(("default", "web"), &json!({}));
    server.candidate(("default", "a"), "web", "1.1.0");
    server.candidate(("default", "other"), "till", "1.1.0");
    server
}

fn annotation(server: &TestServer, resource: &str, name: &str, annotation: &str) -> Value {
    let object = server.api.object(resource, ("default", name)).unwrap();
    object["metadata"]["annotations"][annotation].clone()
}

/// That a time lies so many seconds ahead, give or take a minute.
fn is_ahead(text: &str, seconds: i64) -> bool {
    let [time, expected] = [text, &ago(-seconds)].map(|text| parse_time(text).unwrap());
    (time.as_micros() - expected.as_micros()).abs() < 60_000_000
}

#[test]
fn a_candidate_stands_down_and_may_be_elected_again() {
    let server = server();
    let word = |arguments: &[&str]| server.says(&[&["stand-down", "a"], arguments].concat());
    let value = || annotation(&server, "leasecandidates", "a", "elector.dev/stand-down");
    let object = || server.api.object("leasecandidates", ("default", "a"));
    let before = object().unwrap();
    let shown = "leasecandidate.coordination.k8s.io/a";
    let said = word(&["--dry-run=server"]);
    let until = said.strip_prefix(&format!("{shown} stands down until "));
    assert!(until.unwrap().ends_with(" (server dry run)\n"), "{said}");
    assert_eq!(value(), Value::Null);
    let said = word(&["--for=24h"]);
    let until = value().as_str().unwrap().to_owned();
    assert_eq!(said, format!("{shown} stands down until {until}\n"));
    assert!(is_ahead(&until, 86_400), "{until}");
    word(&["--dry-run=none"]);
    // The last word counts.
    assert!(is_ahead(value().as_str().unwrap(), 3600));
    assert_eq!(word(&["--undo"]), format!("{shown} may be elected again\n"));
    let already = format!("{shown} may be elected already\n");
    assert_eq!(word(&["--undo"]), already);
    let mut after = object().unwrap();
    after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
    assert_eq!(after, before, "nothing else has changed");
}

#[test]
fn a_custom_candidate_stands_down_too() {
    let server = TestServer::start(Config {
        native: NativeCandidates::Absent,
        custom_candidates: true,
        ..Config::default()
    });
    let missing = server.run(&["stand-down", "a"]);
    let line = "error: failed to find leasecandidate.elector.dev/a in namespace default\n";
    assert_eq!(failure(&missing), line);
}

#[test]
fn a_lease_is_frozen_until_a_time_and_thawed() {
    let server = server();
    let value = || annotation(&server, "leases", "web", "elector.dev/freeze");
    let said = server.says(&["freeze", "web"]);
    let until = value().as_str().unwrap().to_owned();
    assert_eq!(said, format!("{WEB} frozen until {until}\n"));
    parse_freeze(&until).unwrap();
    assert!(is_ahead(&until, 3600), "{until}");
    server.says(&["freeze", "web", "--for", "15m"]);
    // The last word counts.
    assert!(is_ahead(value().as_str().unwrap(), 900));
    let thaw = || server.says(&["unfreeze", "web"]);
    assert_eq!(thaw(), format!("{WEB} not frozen any more\n"));
    assert_eq!(value(), Value::Null);
    assert_eq!(thaw(), format!("{WEB} not frozen\n"));
    let lease = server.api.object("leases", ("default", "web")).unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "a");
}

#[test]
fn a_candidate_of_the_lease_is_preferred_and_no_other() {
    let server = server();
    let value = || annotation(&server, "leases", "web", "elector.dev/prefer");
    let said = server.says(&["prefer", "web", "a"]);
    let preference = parse_prefer(value().as_str().unwrap()).unwrap();
    assert_eq!(preference.candidate.as_str(), "a");
    let until = elector_api::Rfc3339(preference.until).to_string();
    assert!(is_ahead(&until, 600), "{until}");
    assert_eq!(said, format!("{WEB} prefers a until {until}\n"));
    let refused = "\
prefer web other => prefer other: it is a candidate for lease till, not for web
prefer web nope => find leasecandidate.coordination.k8s.io/nope in namespace default
prefer nope other => prefer other: it is a candidate for lease till, not for nope
prefer web a/b => use \"a/b\": no object can have that name
freeze nope --for=1h => find lease.coordination.k8s.io/nope in namespace default";
    for refusal in refused.lines() {
        let (arguments, line) = refusal.split_once(" => ").unwrap();
        let output = server.run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(text(&output.stderr), format!("error: failed to {line}\n"));
        assert_eq!(text(&output.stdout), "");
    }
    assert_eq!(parse_prefer(value().as_str().unwrap()).unwrap(), preference);
    let said = server.says(&["prefer", "web", "--undo"]);
    assert_eq!(said, format!("{WEB} prefers no candidate any more\n"));
    assert_eq!(value(), Value::Null);
    for arguments in [
        &["prefer", "web"][..],
        &["prefer", "web", "a", "--undo"],
        &["freeze", "web", "--for=0s"],
        &["freeze", "web", "--for=25h"],
        &["prefer", "web", "a", "--for=24h1s"],
        &["stand-down", "a", "--for=48h"],
    ] {
        let output = server.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

#[test]
fn a_change_that_others_got_ahead_of_is_tried_again_and_not_for_ever() {
    let server = server();
    let conflict = || Rule::new(Fault::Refuse(409)).verb(RequestVerb::Patch);
    let faults = server.api.faults("system:anonymous");
    faults.inject(conflict().times(4));
    server.says(&["stand-down", "a"]);
    faults.inject(conflict());
    let output = server.run(&["stand-down", "a", "--undo"]);
    let stderr = failure(&output);
    let start = "error: failed to patch leasecandidates.coordination.k8s.io default/a: ";
    assert_has(stderr.strip_prefix(start).unwrap(), " answered 409");
}
