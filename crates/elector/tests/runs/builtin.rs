//! Beside the built-in controller, and in its place.

use elector::{Config, Scope};
use elector_api::CandidateApi;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{
    CANDIDATES, CapturedLog, EmbeddedCluster, LEASES, ScriptedCandidate, millis, pass, seconds,
};
use serde_json::json;

use crate::{RunningElector, refuse, replacing};

const APISERVER: &str = "node-1_4f0c7f1e";

fn renew_lock(cluster: &EmbeddedCluster, second: u32) {
    cluster.put(
        LEASES,
        "kube-system",
        "leader-election-controller",
        |object| {
            object["spec"] = json!({
                "holderIdentity": APISERVER, "leaseDurationSeconds": 15, "leaseTransitions": 2,
                "renewTime": format!("2026-01-01T00:00:{second:02}.000000Z"),
            });
        },
    );
}

fn lock_holder(cluster: &EmbeddedCluster) -> Option<String> {
    cluster.holder("kube-system", "leader-election-controller")
}

#[tokio::test(start_paused = true)]
async fn while_it_is_alive_its_leases_are_left_to_it_and_others_are_not() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    renew_lock(&cluster, 0);
    let _elector = RunningElector::start(&cluster, Config::default());
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    let _foreign = ScriptedCandidate::start(&cluster, "ns", "b", "foreign", "1.0.0");
    cluster.put("leasecandidates", "ns", "b", |object| {
        object["spec"]["strategy"] = json!("example.com/mine");
    });
    for second in 1..30 {
        pass(seconds(2)).await;
        renew_lock(&cluster, second);
    }
    assert!(cluster.lease("ns", "l").object().is_none());
    assert_eq!(cluster.holder("ns", "foreign").as_deref(), Some(""));
    let said = log.lines("the built-in controller is electing");
    assert_eq!(said.len(), 1);
    assert!(said[0].contains(APISERVER), "{said:?}");
    // Its API server stops.
    pass(millis(14_900)).await;
    assert!(cluster.lease("ns", "l").object().is_none());
    cluster
        .wait_for("a leader", seconds(1), |cluster| {
            cluster.holder("ns", "l").as_deref() == Some("a")
        })
        .await;
    assert_eq!(log.lines("the built-in controller is gone").len(), 1);
    // It comes back: the leader stays, and nothing is written any more.
    renew_lock(&cluster, 59);
    pass(millis(100)).await;
    let writes = cluster.writes().len();
    pass(seconds(14)).await;
    assert_eq!(cluster.writes().len(), writes);
    assert_eq!(log.lines("the built-in controller is electing").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn its_lock_is_taken_kept_and_let_go() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    renew_lock(&cluster, 0);
    let elector = RunningElector::start_seeded(&cluster, replacing(), 7);
    let _candidate = ScriptedCandidate::start(&cluster, "kube-system", "a", "l", "1.0.0");
    cluster
        .wait_for("the lock", millis(100), |cluster| {
            lock_holder(cluster).is_some_and(|holder| holder.starts_with("elector_pod_"))
        })
        .await;
    pass(millis(14_900)).await;
    assert!(
        cluster.lease("kube-system", "l").object().is_none(),
        "not before the built-in one has certainly stopped"
    );
    cluster
        .wait_for("the lease", millis(500), |cluster| {
            cluster.lease("kube-system", "l").object().is_some()
        })
        .await;
    pass(seconds(60)).await;
    assert_eq!(cluster.holder("kube-system", "l").as_deref(), Some("a"));
    let renewals = cluster
        .writes()
        .iter()
        .filter(|write| write.ends_with("leader-election-controller"))
        .count();
    assert!((20..30).contains(&renewals), "{renewals}");
    assert_eq!(log.lines("the built-in controller is replaced").len(), 1);
    elector.stop().await;
    assert_eq!(lock_holder(&cluster).as_deref(), Some(""));
}

#[tokio::test(start_paused = true)]
async fn losing_the_lock_stops_decisions_at_once() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    let _elector = RunningElector::start_seeded(&cluster, replacing(), 7);
    pass(seconds(20)).await;
    assert_eq!(
        log.lines("the built-in controller is replaced").len(),
        1,
        "without the gate there is nobody to wait for"
    );
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(1)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("a"));
    renew_lock(&cluster, 0);
    pass(millis(10)).await;
    let _other = ScriptedCandidate::start(&cluster, "ns", "b", "other", "1.0.0");
    pass(seconds(14)).await;
    assert!(cluster.lease("ns", "other").object().is_none());
    assert!(
        lock_holder(&cluster).unwrap().starts_with("elector_pod_"),
        "taken again"
    );
    pass(seconds(17)).await;
    assert!(cluster.lease("ns", "other").object().is_some());
}

#[tokio::test(start_paused = true)]
async fn losing_the_lock_gives_up_what_is_under_way() {
    let cluster = EmbeddedCluster::with_gate();
    for index in 0..60 {
        cluster.register("ns", &format!("dead-{index}"), "l", "1.0.0");
    }
    cluster.inject(
        Rule::new(Fault::Delay(seconds(1)))
            .verb(RequestVerb::Patch)
            .resource(CANDIDATES),
    );
    let _elector = RunningElector::start_seeded(&cluster, replacing(), 7);
    let pings =
        |cluster: &EmbeddedCluster| cluster.requests_with(&["PATCH", "/leasecandidates/"]).len();
    while pings(&cluster) < 10 {
        pass(millis(10)).await;
    }
    renew_lock(&cluster, 0);
    pass(millis(10)).await;
    let at_once = pings(&cluster);
    assert!(
        at_once < 30,
        "only so many are pinged side by side: {at_once}"
    );
    pass(seconds(10)).await;
    assert_eq!(pings(&cluster), at_once);
}

#[tokio::test(start_paused = true)]
async fn no_leader_is_elected_for_the_lock_itself() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    let _elector = RunningElector::start_seeded(&cluster, replacing(), 7);
    let _candidate = ScriptedCandidate::start(
        &cluster,
        "kube-system",
        "a",
        "leader-election-controller",
        "1.0.0",
    );
    pass(seconds(60)).await;
    assert!(lock_holder(&cluster).unwrap().starts_with("elector_pod_"));
    assert_eq!(log.lines("is the lock of the built-in controller").len(), 1);
}

fn forbid_reading_the_lock(cluster: &EmbeddedCluster) {
    let rule = refuse(403).resource(LEASES).namespace("kube-system");
    cluster.inject(
        rule.verb(RequestVerb::Get)
            .verb(RequestVerb::List)
            .verb(RequestVerb::Watch),
    );
}

fn one_namespace() -> Config {
    Config {
        scope: Scope::Namespaces(["ns".into()].into()),
        ..Config::default()
    }
}

/// The lock may not be read: one line names the Role that is missing, and its coming is enough.
#[tokio::test(start_paused = true)]
async fn the_role_that_the_lock_needs_is_named_once_and_its_coming_heals() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    forbid_reading_the_lock(&cluster);
    let _elector = RunningElector::start(&cluster, one_namespace());
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(50)).await;
    assert!(cluster.lease("ns", "l").object().is_none());
    let lines = log.lines("WARN");
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in [
        "failed to list leases.coordination.k8s.io kube-system/leader-election-controller",
        "a Role in the namespace kube-system grants list and watch of leases.coordination.k8s.io with the \
         resourceName leader-election-controller",
    ] {
        assert!(lines[0].contains(part), "{lines:?}");
    }
    cluster.heal();
    cluster
        .wait_for("a leader", seconds(20), |cluster| {
            cluster.holder("ns", "l").as_deref() == Some("a")
        })
        .await;
}

/// The built-in controller does not see custom resources: whether its lock can be read is all the same.
#[tokio::test(start_paused = true)]
async fn with_custom_candidates_the_lock_is_not_requested() {
    for config in [
        one_namespace(),
        Config {
            scope: Scope::Namespaces(["ns".into()].into()),
            ..replacing()
        },
    ] {
        let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
        cluster.restart_serving(&[CandidateApi::Elector]);
        renew_lock(&cluster, 0);
        forbid_reading_the_lock(&cluster);
        let _elector = RunningElector::start(&cluster, config);
        let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
        cluster
            .wait_for("a leader", seconds(20), |cluster| {
                cluster.holder("ns", "l").as_deref() == Some("a")
            })
            .await;
        let requests = cluster.requests_with(&["kube-system"]);
        assert_eq!(requests, []);
        assert_eq!(log.lines("WARN"), [""; 0]);
    }
}
