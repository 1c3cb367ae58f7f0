//! `kubectl elector check` of what the embedded server has no kinds for: rights, Pods, what is installed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use elector_apiserver::{Config, NativeCandidates};
use http::StatusCode;
use serde_json::{Value, json};

use crate::cluster::{authorize, elector_pod, list, pod};
use crate::server::{TestServer, assert_has, failure, text};

const ELECTORS: &str = "/api/v1/namespaces/elector-system/pods";
const FLOW_SCHEMA: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/elector";
const BUDGET: &str = "/apis/policy/v1/namespaces/elector-system/poddisruptionbudgets/elector";
const PODS: &str = "/api/v1/namespaces/default/pods";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A cluster with an installation, in which one lease is led by a Pod.
fn server() -> TestServer {
    let server = TestServer::start(Config::default());
    let lock = json!({"holderIdentity": "elector_elector-0_0123456789abcdef"});
    server.lease(("elector-system", "elector"), &lock);
    server.lease(("default", "web"), &json!({"holderIdentity": "web-0"}));
    server.candidate(("default", "web-0"), "web", "1.1.0");
    server.record(PODS, list(&[pod(("default", "web-0"), "node-a")]));
    let pods = [("elector-0", "node-a"), ("elector-1", "node-b")];
    electors(&server, &pods, VERSION);
    let flow_schema = json!({"spec": {}, "status": {"conditions": []}});
    server.record(FLOW_SCHEMA, flow_schema);
    let status = json!({"disruptionsAllowed": 1, "expectedPods": 2});
    server.record(BUDGET, json!({"status": status}));
    authorize(&server, |_, _| false);
    server
}

fn electors(server: &TestServer, pods: &[(&str, &str)], version: &str) {
    let pod = |(name, node): &(&str, &str)| elector_pod(name, node, version);
    let pods: Vec<_> = pods.iter().map(pod).collect();
    server.record(ELECTORS, list(&pods));
}

/// The lines about a check: level, result and fix.
fn lines(server: &TestServer, check: &str, arguments: &[&str]) -> Vec<[String; 3]> {
    let output = server.run(&[&["check", "-o", "json"], arguments].concat());
    let lines: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let of_check = lines.iter().filter(|line| line["check"] == check);
    let fields = ["level", "result", "fix"];
    of_check
        .map(|line| fields.map(|name| line[name].as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// Expects one line about a check that is not ok, by its beginning and a part of what to do.
fn expect(server: &TestServer, check: &str, level: &str, start: &str, fix: &str) {
    let lines = lines(server, check, &[]);
    let found = lines.iter().any(|[found, result, what]| {
        found == level && result.starts_with(start) && what.contains(fix)
    });
    assert!(found, "{start}: {lines:#?}");
}

#[test]
fn an_installation_without_faults_has_a_line_for_each_check() {
    let server = server();
    let said = |check| lines(&server, check, &[]);
    let [availability] = &said("availability")[..] else {
        panic!("{:?}", said("availability"));
    };
    assert_eq!(availability[0], "ok");
    let electors = said("electors");
    assert_eq!(electors.len(), 3, "{electors:?}");
    assert!(electors.iter().all(|line| line[0] == "ok"), "{electors:?}");
    let permissions = "the accounts of candidates, 1, have the permissions they need";
    assert_eq!(said("candidates"), [["ok", permissions, ""]]);
    let of_lease = lines(&server, "candidates", &["--lease=api"]);
    assert!(of_lease.is_empty(), "it has none: {of_lease:?}");
    assert_eq!(said("words")[0][0], "ok");
    assert_eq!(said("finalizers").len(), 0);
    // The embedded server is of 1.36.
    let start = "the server is of Kubernetes 1.36, and LeaseCandidates of coordination.k8s.io/v1beta1 are not served from 1.39";
    expect(&server, "kubernetes", "warning", start, "the overlay crd");
}

#[test]
fn a_candidate_whose_account_may_not_renew_is_an_error() {
    let server = server();
    let account = "system:serviceaccount:default:web";
    authorize(&server, move |user, right| {
        user == account && right["verb"] == "update" && right["resource"] == "leases"
    });
    let start = "candidates for default/web lack the permission to update leases.coordination.k8s.io default/web, as \
                 system:serviceaccount:default:web";
    let remedy = "bind the Role for candidates";
    expect(&server, "candidates", "error", start, remedy);
    // One that cannot make a missing Lease leads all the same.
    authorize(&server, move |user, right| {
        user == account && right["verb"] == "create" && right["resource"] == "leases"
    });
    let start = "candidates for default/web lack the permission to create leases.coordination.k8s.io in default";
    expect(&server, "candidates", "warning", start, remedy);
    // A candidate that may not even register has no object.
    let asked = [
        "--lease=api",
        "--candidate-user=system:serviceaccount:default:api",
    ];
    authorize(&server, |user, right| {
        user == "system:serviceaccount:default:api" && right["resource"] == "leasecandidates"
    });
    let lines = lines(&server, "candidates", &asked);
    let [level, result, _] = &lines[0];
    assert_eq!(level, "error");
    let lack = "create leasecandidates.coordination.k8s.io in default";
    assert_has(result, lack);
}

#[test]
fn a_candidate_without_a_pod_is_counted() {
    let server = server();
    server.candidate(("default", "2b1f-outside"), "web", "1.1.0");
    let lines = lines(&server, "candidates", &[]);
    let expected = "the accounts of candidates, 1, have the permissions they need; of 1 candidates no Pod tells the account";
    assert_eq!(lines, [["ok", expected, ""]]);
}

#[test]
fn the_writers_of_a_lease_are_listed() {
    let server = server();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rule =
        json!({"verbs": ["update"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]});
    let role = json!({"metadata": {"name": "web"}, "rules": [rule]});
    server.record(&format!("{rbac}/namespaces/default/roles"), list(&[role]));
    let subjects = json!([
        {"kind": "ServiceAccount", "name": "web", "namespace": "default"},
        {"kind": "Group", "name": "system:serviceaccounts"},
    ]);
    let binding = json!({
        "metadata": {"name": "web"}, "roleRef": {"kind": "Role", "name": "web"}, "subjects": subjects,
    });
    let bindings = format!("{rbac}/namespaces/default/rolebindings");
    server.record(&bindings, list(&[binding]));
    for kind in ["clusterroles", "clusterrolebindings"] {
        server.record(&format!("{rbac}/{kind}"), list(&[]));
    }
    let lines = lines(&server, "writers", &["--lease=web"]);
    let by = "by RoleBinding web of Role web";
    let everybody = format!("Group system:serviceaccounts may update default/web, {by}");
    let web = format!("ServiceAccount default/web may update default/web, {by}");
    let said = lines.iter().map(|[level, result, _]| [level, result]);
    let expected = [["warning", everybody.as_str()], ["ok", &web]];
    assert_eq!(said.collect::<Vec<_>>(), expected);
}

#[test]
fn what_keeps_electors_there_is_looked_at() {
    let server = server();
    let dangling = json!([{"type": "Dangling", "status": "True"}]);
    let spec = json!({"priorityLevelConfiguration": {"name": "leader-election"}});
    let flow_schema = json!({"spec": spec, "status": {"conditions": dangling}});
    server.record(FLOW_SCHEMA, flow_schema);
    let start =
        "the FlowSchema elector is without effect: there is no priority level leader-election";
    let remedy = "kubectl get prioritylevelconfigurations";
    expect(&server, "availability", "warning", start, remedy);
    let status = json!({"disruptionsAllowed": 0, "expectedPods": 2});
    server.record(BUDGET, json!({"status": status}));
    let start = "the PodDisruptionBudget elector-system/elector lets none of 2 electors be evicted";
    let remedy = "a drain waits for it";
    expect(&server, "availability", "warning", start, remedy);

    let pods = [("elector-0", "node-a"), ("elector-1", "node-a")];
    electors(&server, &pods, "0.0.7");
    let start = "all electors that are ready run on node node-a";
    let remedy = "kubectl -n elector-system delete pod elector-0";
    expect(&server, "electors", "warning", start, remedy);
    let start = format!("this plugin is of version {VERSION}, and electors are of 0.0.7");
    let remedy = "use the plugin of their version";
    expect(&server, "electors", "warning", &start, remedy);
    electors(&server, &[("elector-0", "node-a")], VERSION);
    let start = "one elector is ready, and none stands by";
    expect(&server, "electors", "warning", start, "--replicas=2");
}

#[test]
fn an_object_that_does_not_go_away_is_named_with_its_finalizers() {
    let server = server();
    server.api.put("leases", ("default", "web"), |fields| {
        fields["metadata"]["finalizers"] = json!(["example.com/stay"]);
        fields["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    let start = "Lease default/web is being deleted for ";
    let fix =
        "kubectl -n default patch lease web --type=merge -p '{\"metadata\":{\"finalizers\":null}}'";
    expect(&server, "finalizers", "warning", start, fix);
}

#[test]
fn before_an_installation_the_cluster_is_asked_whether_it_lets_one_in() {
    let server = TestServer::start(Config {
        native: NativeCandidates::Absent,
        ..Config::default()
    });
    authorize(&server, |_, right| right["resource"] == "clusterroles");
    let served = json!({"resources": [{"name": "validatingadmissionpolicies"}]});
    server.record("/apis/admissionregistration.k8s.io/v1", served);
    let refuse = |message: &'static str| {
        server.answer(PODS, move |body| {
            assert_eq!(body["spec"]["priorityClassName"], "system-cluster-critical");
            let status =
                json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": message});
            (StatusCode::FORBIDDEN, status)
        });
    };
    refuse(
        "pods \"elector-check\" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [x]}]",
    );
    let said = |check| lines(&server, check, &["--pre"]);
    let not_yet = "no LeaseCandidates are served yet: the overlay crd fits, and brings them along";
    assert_eq!(said("api")[0][1], not_yet);
    assert_eq!(said("policies")[0][0], "ok");
    let [level, result, _] = &said("availability")[0];
    assert_eq!(level, "warning");
    let missing = "the server has no priority level leader-election";
    assert!(result.starts_with(missing), "{result}");
    let [level, result, fix] = &said("installer")[0];
    assert_eq!(level, "error");
    let lack = "you lack the permission to create clusterroles.rbac.authorization.k8s.io in all namespaces";
    assert_eq!(result, lack);
    assert!(fix.contains("an administrator"));
    let [level, result, fix] = &said("pods")[0];
    assert_eq!(level, "error");
    assert_has(result, "insufficient quota");
    let quota = "a ResourceQuota in default with the scopeSelector PriorityClass";
    assert_has(fix, quota);
    server.record(PODS, json!({"kind": "Pod"}));
    assert_eq!(said("pods")[0][0], "ok");
}

#[test]
fn check_waits_until_the_electors_are_up_and_not_for_ever() {
    let server = server();
    let asked = Arc::new(AtomicUsize::new(0));
    let times = Arc::clone(&asked);
    server.answer(ELECTORS, move |_| {
        let mut pods = [("elector-0", "a"), ("elector-1", "b")]
            .map(|(name, node)| elector_pod(name, node, VERSION));
        if times.fetch_add(1, Ordering::SeqCst) < 2 {
            pods[0]["status"]["conditions"] = json!([]);
        }
        (StatusCode::OK, list(&pods))
    });
    let output = server.run(&["check", "--wait=1m"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    electors(&server, &[("elector-0", "node-a")], VERSION);
    let output = server.run(&["check", "--wait=1s"]);
    let stderr = failure(&output);
    let end = "error: failed to pass the check in 1s\n";
    assert!(stderr.ends_with(end), "{stderr}");
    assert!(text(&output.stdout).contains("none stands by"));
}
