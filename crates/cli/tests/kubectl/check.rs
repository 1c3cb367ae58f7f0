//! `kubectl elector check`: faults are planted, and what to do about each is read.

use elector_apiserver::{Config, NativeCandidates};
use serde_json::{Value, json};

use crate::server::{TestServer, ago, assert_has, text};

const LOCK: (&str, &str) = ("elector-system", "elector");
const BUILTIN: (&str, &str) = ("kube-system", "leader-election-controller");

/// A cluster in which all is well, as far as the embedded server can tell: it has no policies, rights and Pods.
fn server() -> TestServer {
    let server = TestServer::start(Config::default());
    let lock = json!({"holderIdentity": "elector_elector-0_0123456789abcdef"});
    server.lease(LOCK, &lock);
    server.lease(("default", "web"), &json!({}));
    server.candidate(("default", "a"), "web", "1.1.0");
    server
}

/// The lines about these checks, and the exit code.
fn found(server: &TestServer, checks: &[&str]) -> (Vec<String>, Option<i32>) {
    let output = server.run(&["check"]);
    assert_eq!(text(&output.stderr), "");
    let said = text(&output.stdout);
    let lines = said.lines().map(|line| {
        let (level, rest) = line.split_once(' ').unwrap();
        let (check, result) = rest.trim_start().split_once(' ').unwrap();
        (check.to_owned(), format!("{level} {}", result.trim_start()))
    });
    let lines = lines.filter(|(check, _)| checks.contains(&check.as_str()));
    (lines.map(|(_, line)| line).collect(), output.status.code())
}

/// Expects that the first line about a check starts with one text and holds another.
fn expect(server: &TestServer, check: &str, start: &str, fix: &str, code: i32) {
    let (lines, ended) = found(server, &[check]);
    let line = &lines[0];
    assert!(line.starts_with(start) && line.contains(fix), "{line}");
    assert_eq!(ended, Some(code), "{line}");
}

#[test]
fn where_all_is_well_each_line_says_so() {
    let checks = ["api", "clocks", "builtin", "electors", "leases"];
    let (mut lines, code) = found(&server(), &checks);
    // It has no Pods.
    lines.retain(|line| !line.contains("list pods"));
    let expected = [
        "ok LeaseCandidates are of Kubernetes, coordination.k8s.io/v1beta1",
        "ok the clocks of this machine and of the server agree",
        "ok the controller that is built into kube-apiserver does not run",
        "ok elector_elector-0_0123456789abcdef has been acting for 3h, in term 3",
        "ok every lease has a leader: 1",
    ];
    assert_eq!(lines, expected);
    assert_eq!(code, Some(0));
}

#[test]
fn an_api_that_is_not_served_is_an_error_and_the_rest_is_checked_all_the_same() {
    let server = server();
    server.api.serve_candidates(NativeCandidates::Absent, false);
    let (lines, code) = found(&server, &["api", "electors"]);
    let start = "error no LeaseCandidates can be used: neither coordination.k8s.io ";
    assert!(lines[0].starts_with(start), "{lines:?}");
    for fix in [
        "--runtime-config=coordination.k8s.io/v1beta1=true",
        "; apply the overlay crd, or the chart with mode=crd (docs/clusters.md)",
    ] {
        assert_has(&lines[0], fix);
    }
    assert!(lines[1].starts_with("ok elector_elector-0_"), "{lines:?}");
    assert_eq!(code, Some(1));
    server.api.serve_candidates(NativeCandidates::Absent, true);
    let line = "ok LeaseCandidates are custom resources, elector.dev/v1alpha1";
    assert_eq!(found(&server, &["api"]), (vec![line.to_owned()], Some(0)));
}

#[test]
fn electors_that_do_not_act_are_an_error() {
    let server = server();
    let look = "; investigate: kubectl -n elector-system get pods";
    for (spec, start, fix) in [
        (
            json!({"holderIdentity": "elector_x_1", "renewTime": ago(3610)}),
            "error no elector is active: elector_x_1 has not renewed the lock elector-system/elector for 60m",
            look,
        ),
        (
            json!({"holderIdentity": ""}),
            "error no elector is active: none holds the lock elector-system/elector",
            look,
        ),
        (
            json!({"renewTime": "soon"}),
            "error the lock of the electors cannot be read, so none acts: Lease elector-system/elector: spec.renewTime",
            "; delete it, the electors make a new one: kubectl -n elector-system delete lease elector",
        ),
    ] {
        server.lease(LOCK, &spec);
        expect(&server, "electors", start, fix, 1);
    }
    assert!(server.api.remove("leases", LOCK));
    let start = "warning there is no lock elector-system/elector: ";
    let fix =
        "; apply the overlay native, or the chart with mode=native, or say where the electors are";
    expect(&server, "electors", start, fix, 0);
    // Electors may be elsewhere.
    server.lease(("other", "lock"), &json!({}));
    let arguments = "check --elector-namespace=other --elector-lock=lock -o json";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let lines: Value = serde_json::from_str(&server.says(&arguments)).unwrap();
    let mut lines = lines.as_array().unwrap().iter();
    let lock = lines.find(|line| line["check"] == "electors");
    let result = "a has been acting for 3h, in term 3";
    let expected =
        json!({"level": "ok", "check": "electors", "result": result, "fix": null, "link": null});
    assert_eq!(lock, Some(&expected));
}

#[test]
fn a_built_in_controller_that_lives_is_a_warning_and_one_that_does_not_is_none() {
    let server = server();
    for (spec, start, fix, code) in [
        (
            json!({"holderIdentity": "kube-apiserver_1"}),
            "warning the built-in controller is alive, in kube-apiserver_1, ",
            "; to have them elected by Elector, apply the overlay replace-builtin",
            0,
        ),
        (
            json!({"holderIdentity": "elector_x_1"}),
            "ok the lock of the built-in controller is held by the elector elector_x_1",
            "",
            0,
        ),
        (
            json!({"holderIdentity": "kube-apiserver_1", "renewTime": ago(3610)}),
            "ok the built-in controller has not renewed its lock for 60m",
            "",
            0,
        ),
        (
            json!({"leaseDurationSeconds": "x"}),
            "error the lock of the built-in controller cannot be read: ",
            "kubectl -n kube-system delete lease leader-election-controller",
            1,
        ),
    ] {
        server.lease(BUILTIN, &spec);
        expect(&server, "builtin", start, fix, code);
    }
}

#[test]
fn a_lease_that_is_stuck_is_an_error_and_one_that_is_being_elected_a_warning() {
    let server = server();
    let dead = |seconds: i64| json!({"leaseDurationSeconds": 15, "renewTime": ago(seconds)});
    server.lease(("default", "web"), &dead(3600 + 25));
    let start = "error default/web has had no leader for 60m: ";
    let fix = "; kubectl elector explain web -n default";
    expect(&server, "leases", start, fix, 1);
    server.lease(("default", "web"), &dead(20));
    let start = "warning default/web has had no leader for ";
    expect(&server, "leases", start, "", 0);
    // One that was elected once and has no candidates any more.
    server.lease(("default", "web"), &json!({}));
    let left =
        json!({"holderIdentity": "", "strategy": "OldestEmulationVersion", "renewTime": ago(3610)});
    server.lease(("default", "left"), &left);
    let start = "warning default/left has had no leader for 60m: no candidate";
    expect(&server, "leases", start, "", 0);
    // Many are few lines.
    for number in 0..30 {
        let name = format!("many-{number:02}");
        server.lease(("default", &name), &dead(3600));
        server.candidate(("default", &name), &name, "1.1.0");
    }
    let (lines, code) = found(&server, &["leases"]);
    assert_eq!((lines.len(), code), (21, Some(1)));
    let more = "error 11 more leases have no leader; kubectl elector status -A (docs/operate.md#no-leader-now)";
    assert_eq!(lines[20], more);
}

#[test]
fn a_holder_whose_clock_is_ahead_is_named() {
    let server = server();
    server.lease(("default", "web"), &json!({"renewTime": ago(-3610)}));
    let (lines, _) = found(&server, &["clocks"]);
    let start = "warning the clock of a, which holds default/web, is 60m ahead";
    let line = lines.iter().find(|line| line.starts_with(start));
    assert_has(line.unwrap(), "; synchronize it by NTP");
}

#[test]
fn a_bound_of_the_namespace_that_cannot_be_read_is_a_warning() {
    let server = server();
    for (name, value, good, fault, fix) in [
        (
            "elector.dev/max-lease-duration",
            "long",
            "90",
            "\"long\" must be a duration such as 15s",
            "; kubectl annotate namespace default --overwrite elector.dev/max-lease-duration=2m",
        ),
        (
            "elector.dev/strategies",
            "elector.dev/sticky, mine",
            "OldestEmulationVersion,a.example/b",
            "\"mine\" is neither OldestEmulationVersion nor",
            "; kubectl annotate namespace default --overwrite elector.dev/strategies=elector.dev/sticky",
        ),
    ] {
        let say = |value: &str| {
            server.api.put("namespaces", ("", "default"), |fields| {
                fields["metadata"]["annotations"] = json!({name: value});
            });
            let mut lines = found(&server, &["policies"]).0.into_iter();
            lines.find(|line| line.contains("of Namespace default"))
        };
        let line = say(value).unwrap();
        let start = format!(
            "warning the annotation {name} of Namespace default refuses candidates: {fault}"
        );
        assert!(line.starts_with(&start) && line.contains(fix), "{line}");
        assert_eq!(say(good), None);
    }
}

#[test]
fn an_object_that_cannot_be_read_is_an_error() {
    let server = server();
    server.lease(("default", "web"), &json!({"leaseDurationSeconds": "x"}));
    let start = "error Lease default/web: spec.leaseDurationSeconds: ";
    expect(&server, "leases", start, "; fix the object", 1);
}
