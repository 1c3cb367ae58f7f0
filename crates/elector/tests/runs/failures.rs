//! Failures: one line each, and the other leases go on.

use elector::{Config, Scope};
use elector_api::CandidateApi;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{
    CANDIDATES, CapturedLog, EmbeddedCluster, LEASES, ScriptedCandidate, millis, pass, seconds,
};
use serde_json::json;

use crate::{RunningElector, refuse};

fn leads(cluster: &EmbeddedCluster, lease: &str, holder: &str) -> bool {
    cluster.holder("ns", lease).as_deref() == Some(holder)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_before_both_first_lists_are_complete() {
    for slow in [CANDIDATES, LEASES] {
        let cluster = EmbeddedCluster::with_gate();
        cluster.put(LEASES, "ns", "l", |object| {
            object["spec"] = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
        });
        let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
        let _other = ScriptedCandidate::start(&cluster, "ns", "b", "missing", "1.0.0");
        let delay = Rule::new(Fault::Delay(seconds(10)));
        cluster.inject(delay.verb(RequestVerb::List).resource(slow));
        let _elector = RunningElector::start(&cluster, Config::default());
        pass(millis(9990)).await;
        assert_eq!(cluster.writes(), [""; 0], "{slow}");
        // A released lease needs no proof, so the grant follows the list at once.
        cluster
            .wait_for("the grant", millis(200), |cluster| leads(cluster, "l", "a"))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_read_and_judged_again() {
    let cluster = EmbeddedCluster::with_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    let renew = |cluster: &EmbeddedCluster, second: u32| {
        cluster.put(LEASES, "ns", "l", |object| {
            object["spec"] = json!({
                "holderIdentity": "plain", "leaseDurationSeconds": 15,
                "renewTime": format!("2026-01-01T00:00:{second:02}.000000Z"),
            });
        });
    };
    renew(&cluster, 0);
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(1)).await;
    // The holder comes back in the very moment in which the elector grants its lease.
    cluster.before_next_put(LEASES, move |cluster| renew(cluster, 1));
    pass(seconds(15)).await;
    assert!(!cluster.awaits_put(), "a grant was tried");
    assert!(leads(&cluster, "l", "plain"));
    pass(millis(13_500)).await;
    assert!(leads(&cluster, "l", "plain"));
    cluster
        .wait_for("the grant after all", seconds(2), |cluster| {
            leads(cluster, "l", "a")
        })
        .await;
    let grants = cluster
        .writes()
        .iter()
        .filter(|write| *write == "PUT leases/ns/l")
        .count();
    assert_eq!(grants, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_may_not_be_written_does_not_stop_the_others() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
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
    cluster
        .wait_for("the other lease", millis(200), |cluster| {
            leads(cluster, "good", "for-good")
        })
        .await;
    pass(seconds(50)).await;
    let lines = log.lines("WARN");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("failed to update leases.coordination.k8s.io ns/bad: RBAC does not grant the verb update"),
        "{lines:?}"
    );
    cluster.heal();
    cluster
        .wait_for("the lease itself", millis(5200), |cluster| {
            leads(cluster, "bad", "for-bad")
        })
        .await;
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
        let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
        let rule = refuse(code).resource(CANDIDATES);
        cluster.inject(rule.verb(RequestVerb::List).verb(RequestVerb::Watch));
        let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
        let _elector = RunningElector::start(&cluster, Config::default());
        pass(seconds(40)).await;
        assert_eq!(log.lines("WARN").len(), 1);
        assert_eq!(log.lines(text).len(), 1);
        assert_eq!(cluster.writes(), [""; 0]);
        cluster.heal();
        cluster
            .wait_for("a leader", seconds(25), |cluster| leads(cluster, "l", "a"))
            .await;
        assert_eq!(log.lines("candidates are watched again").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn one_namespace_that_is_not_listed_yet_holds_back_all() {
    let cluster = EmbeddedCluster::with_gate();
    let _candidate = ScriptedCandidate::start(&cluster, "a", "x", "l", "1.0.0");
    let delay = Rule::new(Fault::Delay(seconds(10))).verb(RequestVerb::List);
    cluster.inject(delay.resource(CANDIDATES).namespace("b"));
    let config = Config {
        scope: Scope::Namespaces(["a".into(), "b".into()].into()),
        ..Config::default()
    };
    let _elector = RunningElector::start(&cluster, config);
    pass(millis(9990)).await;
    assert_eq!(cluster.writes(), [""; 0]);
    cluster
        .wait_for("the Lease", millis(200), |cluster| {
            cluster.lease("a", "l").object().is_some()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_watch_costs_one_conflict_because_the_lease_is_read_at_once() {
    let cluster = EmbeddedCluster::with_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    let renew = |second: u32| {
        cluster.put(LEASES, "ns", "l", |object| {
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
    cluster.faults().freeze_watches_of(LEASES);
    renew(2);
    pass(seconds(10)).await;
    assert!(leads(&cluster, "l", "plain"));
    assert_eq!(cluster.count_requests("PUT", "leases/l"), 1);
    cluster.faults().freeze_watches(false);
}

#[tokio::test(start_paused = true)]
async fn while_the_watch_lags_neither_a_post_nor_a_grant_without_reply_is_repeated() {
    let cluster = EmbeddedCluster::with_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    cluster.faults().freeze_watches_of(LEASES);
    let _first = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(millis(500)).await;
    let _second = ScriptedCandidate::start(&cluster, "ns", "b", "l", "1.0.0");
    pass(millis(500)).await;
    assert_eq!(cluster.count_requests("POST", "leases"), 1);
    cluster.faults().freeze_watches(false);
    cluster
        .wait_for("a leader", millis(100), |cluster| leads(cluster, "l", "a"))
        .await;
    // The write of a grant is carried out, but neither its answer nor its event comes.
    let held_by = |holder: &str| {
        cluster.put(LEASES, "ns", "mute", |object| {
            object["spec"] = json!({"holderIdentity": holder, "leaseDurationSeconds": 1});
        });
    };
    held_by("");
    cluster.inject(
        Rule::new(Fault::HangAfter)
            .verb(RequestVerb::Update)
            .resource(LEASES)
            .named("mute"),
    );
    pass(millis(10)).await;
    cluster.faults().freeze_watches_of(LEASES);
    // It acks each ping, so a grant could be repeated.
    let _candidate = cluster.candidate("ns", "c", "mute", "1.0.0");
    pass(seconds(9)).await;
    assert_eq!(cluster.count_requests("PUT", "leases/mute"), 1);
    // One before the write, since the object was not kept while no candidate named it.
    assert_eq!(cluster.count_requests("GET", "leases/mute"), 2);
    assert!(leads(&cluster, "mute", "c"));
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_read_are_named_and_stop_no_other_lease() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    cluster.put(LEASES, "ns", "bad", |object| {
        object["spec"] = json!({"renewTime": "soon"});
    });
    let _bad = ScriptedCandidate::start(&cluster, "ns", "a", "good", "1.0.0");
    cluster.register("ns", "b", "bad", "1.0.0");
    cluster.put(CANDIDATES, "ns", "c", |object| {
        object["spec"] = json!("nonsense");
    });
    cluster.register("ns", "d", "unversioned", "one");
    cluster
        .wait_for("the other lease", millis(200), |cluster| {
            leads(cluster, "good", "a")
        })
        .await;
    pass(seconds(30)).await;
    let lines = log.lines("WARN");
    for text in [
        "failed to decide about a Lease: Lease ns/bad: spec.renewTime: Invalid value: \"soon\"",
        "failed to read a LeaseCandidate: LeaseCandidate ns/c: spec",
        "nobody can be elected for ns/unversioned: no eligible candidate: d: spec.emulationVersion",
    ] {
        assert_eq!(
            lines.iter().filter(|line| line.contains(text)).count(),
            1,
            "{text}: {lines:?}"
        );
    }
    assert_eq!(lines.len(), 3, "{lines:?}");
    let written = |name: &str| cluster.writes().iter().any(|write| write.ends_with(name));
    assert!(!written("ns/bad"));
    // Repaired, it is elected for.
    cluster.put(LEASES, "ns", "bad", |object| {
        object["spec"] = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
    });
    pass(millis(100)).await;
    assert!(written("ns/bad") || written("ns/b"));
}

/// It was posted every five seconds and printed whole each time.
#[tokio::test(start_paused = true)]
async fn a_lease_name_that_no_lease_can_have_is_refused_once_and_never_posted() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let megabyte = "x".repeat(1 << 20);
    for (name, lease) in [("a", "Not/A.Name "), ("b", &megabyte)] {
        cluster.register("ns", name, lease, "1.0.0");
    }
    let _good = ScriptedCandidate::start(&cluster, "ns", "c", "good", "1.0.0");
    pass(seconds(45)).await;
    assert!(leads(&cluster, "good", "c"));
    let lines = log.lines("WARN");
    assert_eq!(lines.len(), 2, "{lines:?}");
    for (name, line) in ["a", "b"].iter().zip(&lines) {
        let text = format!("LeaseCandidate ns/{name}: spec.leaseName: Invalid value: ");
        assert!(line.contains(&text), "{line}");
        assert!(line.len() < 1000, "{} bytes", line.len());
    }
    assert_eq!(
        cluster.count_requests("POST", "/leases"),
        1,
        "that of the good one"
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_reply_is_read_back_and_holds_up_no_other_lease() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    cluster.inject(
        Rule::new(Fault::HangAfter)
            .verb(RequestVerb::Update)
            .resource(LEASES)
            .named("silent"),
    );
    let _silent = ScriptedCandidate::start(&cluster, "ns", "a", "silent", "1.0.0");
    let _other = ScriptedCandidate::start(&cluster, "ns", "b", "other", "1.0.0");
    cluster
        .wait_for("the other lease", millis(200), |cluster| {
            leads(cluster, "other", "b")
        })
        .await;
    pass(seconds(30)).await;
    let lease = cluster.lease("ns", "silent").object().unwrap();
    assert_eq!(lease.spec.holder_identity.as_deref(), Some("a"));
    assert_eq!(lease.spec.lease_transitions, Some(1), "granted once");
    assert_eq!(cluster.count_requests("GET", "leases/silent"), 1);
    assert_eq!(
        log.lines("no answer from the embedded API server in 5s")
            .len(),
        1
    );
    let told = log.lines("lease=ns/silent holder=\"a\"");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("a is the only candidate"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn discovery_is_repeated_until_a_cluster_serves_candidates() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    cluster.serve(&[]);
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(50)).await;
    let lines = log.lines("WARN");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0]
            .contains("failed to find LeaseCandidates: neither coordination.k8s.io LeaseCandidate"),
        "{lines:?}"
    );
    cluster.serve(&[CandidateApi::V1Beta1]);
    cluster
        .wait_for("a leader", seconds(21), |cluster| leads(cluster, "l", "a"))
        .await;
}

/// It was a line at each change: millions a day of one object.
#[tokio::test(start_paused = true)]
async fn an_object_that_goes_to_and_fro_between_two_faults_has_few_lines_and_a_count() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let faults = [json!(3), json!("a b")];
    let revisions = 50 * 170;
    for fault in faults.iter().cycle().take(revisions) {
        cluster.put(CANDIDATES, "ns", "c", |object| {
            object["spec"] = json!({"leaseName": fault});
        });
        pass(millis(20)).await;
    }
    pass(seconds(60)).await;
    let lines = log.lines("WARN");
    assert!(lines.len() < 10, "{lines:?}");
    let all: usize = lines.iter().map(|line| counted(line)).sum();
    assert_eq!(all, revisions, "each is logged or counted: {lines:?}");
}

/// It was a line for each of them.
#[tokio::test(start_paused = true)]
async fn many_unreadable_candidates_of_a_namespace_have_few_lines_and_those_of_another_their_own() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let objects = 1000;
    for object in 0..objects {
        cluster.put(CANDIDATES, "noisy", &format!("c{object}"), |object| {
            object["spec"] = json!("nonsense");
        });
    }
    cluster.put(CANDIDATES, "quiet", "c", |object| {
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
