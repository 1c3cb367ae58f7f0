//! Beside the built-in controller, and in its place: its lock, respected, taken, kept, lost and let go (decision 9).

use elector::{Config, Scope};
use elector_api::CandidateApi;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{
    CapturedLog, LEASES, ScriptedCandidate, TestCluster, eventually, millis, pass, seconds,
};
use serde_json::json;
use tokio::time::Instant;

use crate::events::{recording, reported};
use crate::{RunningElector, refuse, replacing};

pub(crate) const BUILTIN: &str = "node-1_4f0c7f1e";
pub(crate) const LOCK: &str = "leader-election-controller";
const FOREIGN: &str = "example.com/mine";

fn lock_holder(cluster: &TestCluster) -> String {
    cluster.holder("kube-system", LOCK).unwrap_or_default()
}

/// True if an elector has the lock.
fn is_taken(cluster: &TestCluster) -> bool {
    lock_holder(cluster).starts_with("elector_pod_")
}

/// The rule for requests for the lock alone.
fn of_lock(rule: Rule) -> Rule {
    rule.resource(LEASES).namespace("kube-system")
}

/// Leases of its strategy and those whose candidates disagree are left to it, which an Event says once.
#[tokio::test(start_paused = true)]
async fn while_it_is_alive_its_leases_are_left_to_it_and_others_are_not() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    let lock = cluster.keep("kube-system", LOCK, BUILTIN);
    let _elector = RunningElector::start(&cluster, recording("pod"));
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    cluster.register_for("ns", "b", "foreign", "1.0.0", FOREIGN);
    cluster.register_for("ns", "c", "disputed", "1.0.0", "OldestEmulationVersion");
    cluster.register_for("ns", "d", "disputed", "1.0.0", FOREIGN);
    pass(seconds(59)).await;
    assert!(cluster.lease("ns", "l").object().is_none());
    assert_eq!(cluster.holder("ns", "foreign").as_deref(), Some(""));
    let writes = cluster.writes();
    assert!(!writes.iter().any(|write| write.starts_with("PATCH")));
    let said = log.lines("the built-in controller is electing");
    assert_eq!(said.len(), 1);
    assert!(said[0].contains(BUILTIN), "{said:?}");
    let event = format!(
        "Normal BuiltinController x1: the built-in controller is electing: this lease is left to it while {BUILTIN} \
         renews its lock"
    );
    assert!(reported(&cluster).await.contains(&event));
    // Its API server stops.
    cluster.renew("kube-system", LOCK, BUILTIN);
    drop(lock);
    pass(millis(14_900)).await;
    assert!(cluster.lease("ns", "l").object().is_none());
    assert!(cluster.held_by("ns", "l", "a").await < seconds(1));
    assert_eq!(log.lines("the built-in controller is gone").len(), 1);
    // It comes back: the leader stays, and nothing is written any more.
    cluster.renew("kube-system", LOCK, BUILTIN);
    pass(millis(100)).await;
    let writes = cluster.writes().len();
    pass(seconds(14)).await;
    assert_eq!(cluster.writes().len(), writes);
    assert_eq!(log.lines("the built-in controller is electing").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn its_lock_is_taken_kept_and_let_go() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    cluster.renew("kube-system", LOCK, BUILTIN);
    let elector = RunningElector::start_seeded(&cluster, replacing(), 7);
    let _candidate = ScriptedCandidate::start(&cluster, "kube-system", "a", "l", "1.0.0");
    pass(millis(100)).await;
    assert!(is_taken(&cluster));
    pass(millis(14_850)).await;
    let early = cluster.lease("kube-system", "l").object();
    assert!(early.is_none(), "the built-in one may not have stopped");
    assert!(cluster.held_by("kube-system", "l", "a").await < millis(500));
    pass(seconds(60)).await;
    let renewals = cluster.requests_with(&["PUT", LOCK]).len();
    assert!((20..30).contains(&renewals), "{renewals}");
    assert_eq!(log.lines("the built-in controller is replaced").len(), 1);
    elector.stop().await;
    assert_eq!(lock_holder(&cluster), "");
}

/// A write under way when the lock was lost, to the controller or by its deletion, is given up; its lease is judged again
/// once the lock has been taken again, and the controller has certainly stopped.
#[tokio::test(start_paused = true)]
async fn losing_the_lock_stops_decisions_at_once() {
    for deleted in [false, true] {
        let (log, cluster) = (CapturedLog::capture(), TestCluster::new());
        let _elector = RunningElector::start_seeded(&cluster, replacing(), 1);
        pass(seconds(20)).await;
        // Without the gate there is no controller to wait for.
        assert_eq!(log.lines("the built-in controller is replaced").len(), 1);
        cluster.inject(Rule::new(Fault::HangBefore).verb(RequestVerb::Create));
        let _candidate = cluster.candidate("ns", "a", "l", "1.0.0");
        let start = cluster.now();
        let posts = || cluster.requests_since(start, &["POST", "/ns/leases"]).len();
        pass(millis(100)).await;
        assert_eq!(posts(), 1);
        match deleted {
            true => cluster.delete_lease("kube-system", LOCK),
            false => cluster.renew("kube-system", LOCK, BUILTIN),
        }
        pass(seconds(9)).await;
        assert_eq!(posts(), 1, "given up");
        let lost = "the built-in controller holds its lock: deciding nothing in its place until";
        assert_eq!(log.lines(lost).len(), usize::from(!deleted));
        assert_eq!(is_taken(&cluster), !deleted);
        cluster.heal();
        pass(seconds(5)).await;
        assert_eq!(cluster.lease("ns", "l").object().is_some(), deleted);
        assert!(cluster.held_by("ns", "l", "a").await < seconds(3));
    }
}

/// It took the lock of an elector that died while our request hung and the watch was silent.
#[tokio::test(start_paused = true)]
async fn a_controller_that_a_read_alone_has_shown_is_waited_out_when_it_is_replaced() {
    let cluster = TestCluster::with_gate();
    let dead = cluster.keep("kube-system", LOCK, "elector_a_0000000000000001");
    let _elector = RunningElector::start(&cluster, replacing());
    pass(seconds(20)).await;
    cluster.faults("program").freeze_watches_of(LEASES);
    let hang = of_lock(Rule::new(Fault::HangBefore)).verb(RequestVerb::Update);
    cluster.inject(hang.times(1));
    drop(dead);
    pass(seconds(6)).await;
    cluster.renew("kube-system", LOCK, BUILTIN);
    eventually(|| is_taken(&cluster)).await;
    cluster.faults("program").freeze_watches(false);
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(millis(14_800)).await;
    assert!(cluster.lease("ns", "l").object().is_none());
    assert!(cluster.held_by("ns", "l", "a").await < seconds(1));
}

/// A server that refuses the lock is not asked for it without a pause, and nothing is decided meanwhile.
#[tokio::test(start_paused = true)]
async fn writes_of_a_lock_that_are_refused_are_repeated_ever_less_often() {
    for code in [403, 409, 500] {
        let cluster = TestCluster::new();
        cluster.renew("kube-system", LOCK, BUILTIN);
        cluster.inject(of_lock(refuse(code)).verb(RequestVerb::Update));
        let _elector = RunningElector::start_seeded(&cluster, replacing(), 1);
        let _candidate = cluster.candidate("default", "a", "l", "1.0.0");
        let start = cluster.now();
        pass(seconds(20)).await;
        let writes = cluster.requests_since(start, &["PUT", LOCK]).len();
        // 250 ms, doubling to 2 s.
        assert!((8..=16).contains(&writes), "{code}: {writes}");
        assert!(cluster.lease("default", "l").object().is_none());
        cluster.heal();
        pass(seconds(3)).await;
        assert!(is_taken(&cluster), "{code}");
    }
}

/// From another elector that misses a renewal the lock is taken over after 5 s; no other process can have taken it since, so
/// leases that were decided by the one are decided by the other at once.
#[tokio::test(start_paused = true)]
async fn the_lock_of_an_elector_that_died_is_taken_over_after_five_seconds() {
    let cluster = TestCluster::new();
    let first = RunningElector::start_seeded(&cluster, replacing(), 1);
    pass(seconds(5)).await;
    let held = lock_holder(&cluster);
    let second = RunningElector::start_seeded(&cluster, replacing(), 2);
    pass(seconds(30)).await;
    assert_eq!(lock_holder(&cluster), held, "they do not fight");
    drop(first);
    let died = Instant::now();
    eventually(|| lock_holder(&cluster) != held).await;
    let took = died.elapsed();
    assert!(took > millis(1_600) && took < millis(5_100), "{took:?}");
    let _candidate = cluster.candidate("default", "a", "l", "1.0.0");
    assert!(cluster.held_by("default", "l", "a").await < millis(200));
    pass(seconds(11)).await;
    second.stop().await;
    assert_eq!(lock_holder(&cluster), "");
}

fn one_namespace(config: Config) -> Config {
    Config {
        scope: Scope::Namespaces(["ns".into()].into()),
        ..config
    }
}

/// The lock cannot be read: nothing is decided, and one line says what follows from that. Where the server refuses it for
/// lack of rights, the line names the Role that is missing, and its coming is enough.
#[tokio::test(start_paused = true)]
async fn a_lock_that_cannot_be_read_has_one_line_with_the_remedy_and_leaves_no_lease_to_us() {
    let list = "failed to list leases.coordination.k8s.io kube-system/leader-election-controller";
    let role = "a Role in the namespace kube-system grants list and watch of leases.coordination.k8s.io with the \
                resourceName leader-election-controller";
    let wait = "; leases of the built-in strategy wait until it can be read";
    let ignored = "ignored the lock of the built-in controller, which cannot be read: ";
    for (refused, parts) in [
        (Some(403), [list, role]),
        (Some(500), [list, wait]),
        (None, [ignored, "spec.renewTime"]),
    ] {
        let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
        match refused {
            Some(code) => cluster.inject(of_lock(refuse(code))),
            None => cluster.edit(LEASES, "kube-system", LOCK, |lock| {
                lock["spec"] = json!({"renewTime": "soon"});
            }),
        }
        let _elector = RunningElector::start(&cluster, one_namespace(Config::default()));
        let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
        pass(seconds(50)).await;
        assert!(cluster.lease("ns", "l").object().is_none());
        let lines = log.lines("WARN");
        assert_eq!(lines.len(), 1, "{lines:?}");
        let is_told = parts.iter().all(|part| lines[0].contains(part));
        assert!(is_told, "{lines:?}");
        match refused {
            Some(_) => cluster.heal(),
            None => cluster.delete_lease("kube-system", LOCK),
        }
        assert!(cluster.held_by("ns", "l", "a").await < seconds(20));
    }
}

/// The built-in controller does not see custom resources, so its lock is of no matter there.
#[tokio::test(start_paused = true)]
async fn with_custom_candidates_the_lock_is_not_requested() {
    for config in [Config::default(), replacing()] {
        let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
        cluster.restart_serving(&[CandidateApi::Elector]);
        cluster.renew("kube-system", LOCK, BUILTIN);
        cluster.inject(of_lock(refuse(403)));
        let _elector = RunningElector::start(&cluster, one_namespace(config));
        let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
        assert!(cluster.held_by("ns", "l", "a").await < seconds(20));
        assert_eq!(cluster.requests_with(&["kube-system"]), []);
        assert_eq!(log.lines("WARN"), [""; 0]);
    }
}
