//! `kubectl elector bundle`.

use std::collections::BTreeMap;
use std::io::Read as _;

use elector_apiserver::Config;
use flate2::read::GzDecoder;
use http::StatusCode;
use serde_json::{Value, json};

use crate::cluster::{elector_pod, list};
use crate::server::{TestServer, assert_has, failure, text};

/// A cluster with a lease in the namespace `shop`, and an elector that has restarted once.
fn server() -> TestServer {
    let server = TestServer::start(Config::default());
    server.lease(("shop", "web"), &json!({}));
    server.candidate(("shop", "a"), "web", "1.1.0");
    server.lease(("shop", "plain"), &json!({"holderIdentity": "x"}));
    server.api.put("leases", ("shop", "web"), |fields| {
        fields["metadata"]["annotations"] =
            json!({"elector.dev/token": "7", "vault.example/key": "s3cret"});
    });
    let mut pod = elector_pod("elector-0", "node-a", "0.1.0");
    pod["spec"]["containers"] = json!([{
        "name": "elector", "args": ["--leader-elect"], "env": [{"name": "HTTPS_PROXY", "value": "http://u:s3cret@p"}],
    }]);
    pod["status"]["containerStatuses"] = json!([{"restartCount": 1}]);
    server.record("/api/v1/namespaces/elector-system/pods", list(&[pod]));
    let log = "/api/v1/namespaces/elector-system/pods/elector-0/log";
    server.record(log, "{\"msg\":\"granted shop/web\"}\n".into());
    server
}

/// The files of a bundle, without its folder.
fn unpacked(server: &TestServer, arguments: &[&str]) -> (BTreeMap<String, String>, String) {
    let path = server.folder().join("bundle.tar.gz");
    let shown = path.to_str().unwrap();
    let output = server.run(&[&["bundle", "-f", shown], arguments].concat());
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let written = format!("{shown} written, ");
    assert!(stdout.starts_with(&written), "{stdout}");
    let file = std::fs::File::open(&path).unwrap();
    let mut archive = tar::Archive::new(GzDecoder::new(file));
    let files = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let (folder, name) = name.split_once('/').unwrap();
        assert!(folder.starts_with("elector-bundle-20"), "{folder}");
        let name = name.to_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (name, text)
    });
    (files.collect(), stderr)
}

#[test]
fn a_bundle_has_all_that_an_election_depends_on_and_no_secret() {
    let server = server();
    let (files, stderr) = unpacked(&server, &[]);
    let names = "README.txt check.json elections.json electors.json faults.json logs/elector-0.log
        logs/elector-0.previous.log status.json versions.json words.json";
    for name in names.split_whitespace() {
        assert!(files.contains_key(name), "{name}: {:?}", files.keys());
    }
    let log = "{\"msg\":\"granted shop/web\"}\n";
    assert_eq!(files["logs/elector-0.log"], log);
    let elections: Value = serde_json::from_str(&files["elections.json"]).unwrap();
    let objects = elections["items"].as_array().unwrap();
    let name = |each: &Value| format!("{} {}", each["kind"], each["metadata"]["name"]);
    let names: Vec<_> = objects.iter().map(name).collect();
    // A Lease that is not elected is no part of it.
    assert_eq!(names, ["\"LeaseCandidate\" \"a\"", "\"Lease\" \"web\""]);
    let has_secret = |text: &String| text.contains("s3cret");
    assert!(!files.values().any(has_secret), "{files:#?}");
    // The embedded server has no policies.
    for told in [&files["README.txt"], &stderr] {
        assert_has(told, "failed to list validatingadmissionpolicies");
    }
    // It can be explained.
    let path = server.folder().join("elections.json");
    std::fs::write(&path, &files["elections.json"]).unwrap();
    let said = server.says(&["explain", "-A", "-f", path.to_str().unwrap()]);
    assert_has(&said, "web");
    // No file is overwritten.
    let path = server.folder().join("bundle.tar.gz");
    let output = server.run(&["bundle", "-f", path.to_str().unwrap()]);
    assert!(failure(&output).starts_with("error: failed to write "));
}

#[test]
fn names_of_namespaces_are_cut_on_request() {
    let server = server();
    server.answer("/apis/apps/v1/namespaces/elector-system/deployments", |_| {
        let status = json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not in shop"});
        (StatusCode::FORBIDDEN, status)
    });
    let (files, stderr) = unpacked(&server, &["--redact-namespaces"]);
    let word = |text: &str| {
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        words.any(|word| word == "shop")
    };
    for (name, text) in &files {
        assert!(!word(text), "{name}: {text}");
    }
    assert!(!word(&stderr), "{stderr}");
    assert!(files["logs/elector-0.log"].contains("granted namespace-1/web"));
    assert!(files["elections.json"].contains("\"namespace\": \"namespace-1\""));
    assert!(files["electors.json"].contains("elector-system"));
}
