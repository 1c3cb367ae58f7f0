//! Failures: one line each, and the other leases go on.

use std::time::Duration;

use elector::Config;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{
    CANDIDATES, CapturedLog, LEASES, ScriptedCandidate, TestCluster, millis, pass, seconds,
};
use serde_json::json;

use crate::{RunningElector, refuse};

fn leads(cluster: &TestCluster, lease: &str, holder: &str) -> bool {
    cluster.holder("ns", lease).as_deref() == Some(holder)
}

async fn is_led(cluster: &TestCluster, (lease, holder): (&str, &str), within: Duration) {
    let is_led = |cluster: &TestCluster| leads(cluster, lease, holder);
    cluster.wait_for(lease, within, is_led).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_may_not_be_written_does_not_stop_the_others() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    cluster.inject(
        refuse(403)
            .verb(RequestVerb::Update)
            .resource(LEASES)
            .named("bad"),
    );
    let config = Config {
        concurrent_elections: 1.try_into().unwrap(),
        ..Config::default()
    };
    let _elector = RunningElector::start(&cluster, config);
    pass(seconds(20)).await;
    let _candidates = ["bad", "good"].map(|lease| {
        ScriptedCandidate::start(&cluster, "ns", &format!("for-{lease}"), lease, "1.0.0")
    });
    is_led(&cluster, ("good", "for-good"), millis(200)).await;
    pass(seconds(50)).await;
    let lines = log.lines("WARN");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("failed to update leases.coordination.k8s.io ns/bad: RBAC does not grant the verb update"),
        "{lines:?}"
    );
    cluster.heal();
    is_led(&cluster, ("bad", "for-bad"), millis(5200)).await;
    // The failures left out are reported with the end, and not a minute later.
    pass(seconds(120)).await;
    assert_eq!(log.lines("WARN").len(), 1);
    let ended = log.lines("no more failures: writes of ns/bad left_out=");
    assert_eq!(ended.len(), 1, "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_forbidden_or_unauthorized_is_one_line_and_heals() {
    for (code, text) in [
        (
            403,
            "failed to list leasecandidates.coordination.k8s.io in all namespaces: RBAC",
        ),
        (401, "refused the credentials (401 Unauthorized)"),
    ] {
        let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
        let rule = refuse(code).resource(CANDIDATES);
        cluster.inject(rule.verb(RequestVerb::List).verb(RequestVerb::Watch));
        let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
        let _elector = RunningElector::start(&cluster, Config::default());
        pass(seconds(40)).await;
        assert_eq!(log.lines("WARN").len(), 1);
        assert_eq!(log.lines(text).len(), 1);
        assert_eq!(cluster.writes(), [""; 0]);
        cluster.heal();
        is_led(&cluster, ("l", "a"), seconds(25)).await;
        assert_eq!(log.lines("candidates are watched again").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_watch_costs_one_conflict_because_the_lease_is_read_at_once() {
    let cluster = TestCluster::with_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    let renew = |second: u32| {
        cluster.edit(LEASES, "ns", "l", |object| {
            object["spec"] = json!({
                "holderIdentity": "plain", "leaseDurationSeconds": 15,
                "renewTime": format!("2026-01-01T00:00:{second:02}.000000Z"),
            });
        });
    };
    renew(0);
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(5)).await;
    renew(1);
    pass(seconds(10)).await;
    cluster.faults("program").freeze_watches_of(LEASES);
    renew(2);
    pass(seconds(10)).await;
    assert!(leads(&cluster, "l", "plain"));
    assert_eq!(cluster.count_requests("PUT", "leases/l"), 1);
    cluster.faults("program").freeze_watches(false);
}

#[tokio::test(start_paused = true)]
async fn while_the_watch_lags_no_post_is_repeated() {
    let (cluster, _elector) = RunningElector::settled(TestCluster::with_gate()).await;
    cluster.faults("program").freeze_watches_of(LEASES);
    let _first = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(millis(500)).await;
    let _second = ScriptedCandidate::start(&cluster, "ns", "b", "l", "1.0.0");
    pass(millis(500)).await;
    assert_eq!(cluster.count_requests("POST", "leases"), 1);
    cluster.faults("program").freeze_watches(false);
    is_led(&cluster, ("l", "a"), millis(100)).await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_read_are_named_and_stop_no_other_lease() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    cluster.edit(LEASES, "ns", "bad", |object| {
        object["spec"] = json!({"renewTime": "soon"});
    });
    let _bad = ScriptedCandidate::start(&cluster, "ns", "a", "good", "1.0.0");
    cluster.register("ns", "b", "bad", "1.0.0");
    cluster.edit(CANDIDATES, "ns", "c", |object| {
        object["spec"] = json!("nonsense");
    });
    cluster.register("ns", "d", "unversioned", "one");
    cluster.register("ns", "e", &"X".repeat(1 << 20), "1.0.0");
    is_led(&cluster, ("good", "a"), millis(200)).await;
    pass(seconds(30)).await;
    let lines = log.lines("WARN");
    for text in [
        "failed to decide about a Lease: Lease ns/bad: spec.renewTime: Invalid value: \"soon\"",
        "failed to read a LeaseCandidate: LeaseCandidate ns/c: spec",
        "no leader can be elected for ns/unversioned: no eligible candidate: d: spec.emulationVersion",
        "failed to read a LeaseCandidate: LeaseCandidate ns/e: spec.leaseName: Invalid value: ",
    ] {
        assert_eq!(
            lines.iter().filter(|line| line.contains(text)).count(),
            1,
            "{text}: {lines:?}"
        );
    }
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines.iter().all(|line| line.len() < 1000), "{lines:?}");
    let written = |name: &str| cluster.writes().iter().any(|write| write.ends_with(name));
    assert!(!written("ns/bad"));
    // Repaired, it is elected for.
    cluster.edit(LEASES, "ns", "bad", |object| {
        object["spec"] = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
    });
    pass(millis(100)).await;
    assert!(written("ns/bad") || written("ns/b"));
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_reply_is_read_back_and_holds_up_no_other_lease() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    for name in ["silent", "unread"] {
        let silent = Rule::new(Fault::HangAfter).verb(RequestVerb::Update);
        cluster.inject(silent.resource(LEASES).named(name));
    }
    cluster.inject(refuse(403).verb(RequestVerb::Get).named("unread"));
    let _silent = ScriptedCandidate::start(&cluster, "ns", "a", "silent", "1.0.0");
    let _unread = ScriptedCandidate::start(&cluster, "ns", "c", "unread", "1.0.0");
    let _other = ScriptedCandidate::start(&cluster, "ns", "b", "other", "1.0.0");
    is_led(&cluster, ("other", "b"), millis(200)).await;
    pass(seconds(30)).await;
    let lease = cluster.lease("ns", "silent").object().unwrap();
    assert_eq!(lease.spec.holder_identity.as_deref(), Some("a"));
    assert_eq!(lease.spec.lease_transitions, Some(1), "granted once");
    assert_eq!(cluster.count_requests("GET", "leases/silent"), 1);
    for (failure, lines) in [
        ("no answer from the embedded API server in 5s", 2),
        (
            "failed to get leases.coordination.k8s.io ns/unread: RBAC",
            1,
        ),
    ] {
        assert_eq!(log.lines(failure).len(), lines, "{failure}");
    }
    let lines = log.lines("lease=ns/silent holder=\"a\"");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("a is the only candidate"), "{lines:?}");
}

/// It was a line for each of them.
#[tokio::test(start_paused = true)]
async fn many_unreadable_candidates_of_a_namespace_have_few_lines_and_those_of_another_their_own() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let objects = 1000;
    for object in 0..objects {
        cluster.edit(CANDIDATES, "noisy", &format!("c{object}"), |object| {
            object["spec"] = json!("nonsense");
        });
    }
    cluster.edit(CANDIDATES, "quiet", "c", |object| {
        object["spec"] = json!("nonsense");
    });
    pass(seconds(61)).await;
    let lines = log.lines("WARN");
    let (quiet, noisy): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.contains("quiet/c"));
    assert_eq!(quiet.len(), 1, "{quiet:?}");
    // 20 objects and what they share have a line at first, or five, and one when the minute is over.
    assert!(noisy.len() <= 2 * 20 + 5 + 1, "{noisy:?}");
    let all: usize = noisy.iter().map(|line| counted(line)).sum();
    // A revision when it is created, and one when it is filled.
    assert_eq!(all, 2 * objects, "each is logged or counted: {noisy:?}");
}

/// The number of failures in a line.
fn counted(line: &str) -> usize {
    match line.split_once("left_out=") {
        Some((_, count)) => count.parse().unwrap(),
        None => 1,
    }
}
