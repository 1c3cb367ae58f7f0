//! Failures: one line each, and the other leases go on.

use elector_protocol::elector::{Decision, Election, Settings};
use elector_protocol::{Instant, Timestamp};
use http::Method;
use serde_json::json;

use crate::testkit::{
    CANDIDATES, FakeApi, LEASES, Log, Robot, Running, millis, pass, register, seconds,
};
use crate::{Config, Scope};

fn leads(api: &FakeApi, lease: &str, holder: &str) -> bool {
    api.holder("ns", lease).as_deref() == Some(holder)
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_before_both_first_lists_are_complete() {
    for slow in ["leasecandidates", "/leases"] {
        let api = FakeApi::new();
        api.put(LEASES, "ns", "l", |object| {
            object["spec"] = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
        });
        let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
        let _other = Robot::start(&api, "ns", "b", "missing", "1.0.0");
        api.state().delays.push((Method::GET, slow, seconds(10)));
        let _elector = Running::start(&api, Config::default());
        pass(millis(9990)).await;
        assert_eq!(api.state().writes, [""; 0], "{slow}");
        // A released lease needs no proof, so the grant follows the list at once.
        api.wait_for("the grant", millis(200), |api| leads(api, "l", "a"))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_read_and_judged_again() {
    let api = FakeApi::new();
    let _elector = Running::start(&api, Config::default());
    let renew = |api: &FakeApi, second: u32| {
        api.put(LEASES, "ns", "l", |object| {
            object["spec"] = json!({
                "holderIdentity": "plain", "leaseDurationSeconds": 15,
                "renewTime": format!("2026-01-01T00:00:{second:02}.000000Z"),
            });
        });
    };
    renew(&api, 0);
    let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
    pass(seconds(1)).await;
    // The holder comes back in the very moment in which the elector grants its lease.
    api.state().ambush = Some(Box::new(move |api| renew(api, 1)));
    pass(seconds(15)).await;
    assert!(api.state().ambush.is_none(), "a grant was tried");
    assert!(leads(&api, "l", "plain"));
    pass(millis(13_500)).await;
    assert!(leads(&api, "l", "plain"));
    api.wait_for("the grant after all", seconds(2), |api| {
        leads(api, "l", "a")
    })
    .await;
    let grants = api
        .state()
        .writes
        .iter()
        .filter(|write| *write == "PUT leases/ns/l")
        .count();
    assert_eq!(grants, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_may_not_be_written_does_not_stop_the_others() {
    let (log, api) = (Log::capture(), FakeApi::new());
    api.state()
        .refusals
        .push((Method::PUT, "leases/bad", 403, "Forbidden"));
    let config = Config {
        concurrent_elections: 1.try_into().unwrap(),
        ..Config::default()
    };
    let _elector = Running::start(&api, config);
    pass(seconds(20)).await;
    let _robots = ["bad", "good"]
        .map(|lease| Robot::start(&api, "ns", &format!("for-{lease}"), lease, "1.0.0"));
    api.wait_for("the other lease", millis(200), |api| {
        leads(api, "good", "for-good")
    })
    .await;
    pass(seconds(50)).await;
    let lines = log.lines("WARN");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains("failed to update leases.coordination.k8s.io ns/bad: RBAC does not grant the verb update"),
        "{lines:?}"
    );
    api.state().refusals.clear();
    api.wait_for("the lease itself", millis(5200), |api| {
        leads(api, "bad", "for-bad")
    })
    .await;
    // What was left out is told with the end, and not as a failure a minute later.
    pass(seconds(120)).await;
    assert_eq!(log.lines("WARN").len(), 1);
    let ended = log.lines("no more failures: writes of ns/bad left_out=");
    assert_eq!(ended.len(), 1, "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_forbidden_or_unauthorized_is_one_line_and_heals() {
    for (code, reason, text) in [
        (
            403,
            "Forbidden",
            "failed to list leasecandidates.coordination.k8s.io in all namespaces: RBAC",
        ),
        (
            401,
            "Unauthorized",
            "refused the credentials (401 Unauthorized)",
        ),
    ] {
        let (log, api) = (Log::capture(), FakeApi::new());
        api.state()
            .refusals
            .push((Method::GET, "v1beta1/leasecandidates", code, reason));
        let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
        let _elector = Running::start(&api, Config::default());
        pass(seconds(40)).await;
        assert_eq!(log.lines("WARN").len(), 1);
        assert_eq!(log.lines(text).len(), 1);
        assert_eq!(api.state().writes, [""; 0]);
        api.state().refusals.clear();
        api.wait_for("a leader", seconds(25), |api| leads(api, "l", "a"))
            .await;
        assert_eq!(log.lines("candidates are watched again").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn one_namespace_that_is_not_listed_yet_holds_back_all() {
    let api = FakeApi::new();
    let _robot = Robot::start(&api, "a", "x", "l", "1.0.0");
    api.state()
        .delays
        .push((Method::GET, "namespaces/b/leasecandidates", seconds(10)));
    let config = Config {
        scope: Scope::Namespaces(["a".into(), "b".into()].into()),
        ..Config::default()
    };
    let _elector = Running::start(&api, config);
    pass(millis(9990)).await;
    assert_eq!(api.state().writes, [""; 0]);
    api.wait_for("the Lease", millis(200), |api| {
        api.lease("a", "l").is_some()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_watch_costs_one_conflict_because_the_lease_is_read_at_once() {
    let api = FakeApi::new();
    let _elector = Running::start(&api, Config::default());
    let renew = |second: u32| {
        api.put(LEASES, "ns", "l", |object| {
            object["spec"] = json!({
                "holderIdentity": "plain", "leaseDurationSeconds": 15,
                "renewTime": format!("2026-01-01T00:00:{second:02}.000000Z"),
            });
        });
    };
    renew(0);
    let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
    pass(seconds(5)).await;
    renew(1);
    pass(seconds(10)).await;
    api.stall(LEASES);
    renew(2);
    pass(seconds(10)).await;
    assert!(leads(&api, "l", "plain"));
    assert_eq!(api.asked("PUT", "leases/l"), 1);
    api.resume();
}

#[tokio::test(start_paused = true)]
async fn while_the_watch_lags_neither_a_post_nor_a_lost_answer_is_repeated() {
    let api = FakeApi::new();
    let _elector = Running::start(&api, Config::default());
    pass(seconds(20)).await;
    api.stall(LEASES);
    let _first = Robot::start(&api, "ns", "a", "l", "1.0.0");
    pass(millis(500)).await;
    let _second = Robot::start(&api, "ns", "b", "l", "1.0.0");
    pass(millis(500)).await;
    assert_eq!(api.asked("POST", "leases"), 1);
    api.resume();
    api.wait_for("a leader", millis(100), |api| leads(api, "l", "a"))
        .await;
    // The write of a grant is carried out, but neither its answer nor its event comes.
    let held_by = |holder: &str| {
        api.put(LEASES, "ns", "mute", |object| {
            object["spec"] = json!({"holderIdentity": holder, "leaseDurationSeconds": 1});
        });
    };
    held_by("");
    api.state().mute.push("leases/mute");
    pass(millis(10)).await;
    api.stall(LEASES);
    register(&api, "ns", "c", "mute", "1.0.0");
    pass(seconds(12)).await;
    assert_eq!(api.asked("PUT", "leases/mute"), 1);
    assert!(leads(&api, "mute", "c"));
}

fn stumble(election: &Election, now: Instant, wall: Timestamp, settings: &Settings) -> Decision {
    let stumbles = election
        .candidates()
        .any(|candidate| candidate.name.as_str() == "stone");
    assert!(!stumbles, "stumbled over a stone");
    election.step(now, wall, settings)
}

#[tokio::test(start_paused = true)]
async fn a_panic_stops_one_lease_for_as_long_as_it_lasts() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let _elector = Running::stepping(&api, Config::default(), stumble);
    pass(seconds(20)).await;
    let _bad = Robot::start(&api, "ns", "a", "bad", "1.0.0");
    register(&api, "ns", "stone", "bad", "1.0.0");
    let _good = Robot::start(&api, "ns", "b", "good", "1.0.0");
    api.wait_for("the other lease", millis(200), |api| {
        leads(api, "good", "b")
    })
    .await;
    pass(seconds(10)).await;
    assert!(
        !log.lines("lease=ns/bad panic=\"stumbled over a stone\"")
            .is_empty()
    );
    assert!(log.lines("stumbled").len() < 20, "the backoff grows");
    api.delete(CANDIDATES, "ns", "stone");
    api.wait_for("the lease itself", seconds(20), |api| {
        leads(api, "bad", "a")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_read_are_named_and_stop_nobody() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let _elector = Running::start(&api, Config::default());
    pass(seconds(20)).await;
    api.put(LEASES, "ns", "bad", |object| {
        object["spec"] = json!({"renewTime": "soon"});
    });
    let _bad = Robot::start(&api, "ns", "a", "good", "1.0.0");
    register(&api, "ns", "b", "bad", "1.0.0");
    api.put(CANDIDATES, "ns", "c", |object| {
        object["spec"] = json!("nonsense");
    });
    register(&api, "ns", "d", "unversioned", "one");
    api.wait_for("the other lease", millis(200), |api| {
        leads(api, "good", "a")
    })
    .await;
    pass(seconds(30)).await;
    let lines = log.lines("WARN");
    for text in [
        "failed to judge a Lease: Lease ns/bad: spec.renewTime: Invalid value: \"soon\"",
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
    let written = |name: &str| api.state().writes.iter().any(|write| write.ends_with(name));
    assert!(!written("ns/bad"));
    // Repaired, it is elected for.
    api.put(LEASES, "ns", "bad", |object| {
        object["spec"] = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
    });
    pass(millis(100)).await;
    assert!(written("ns/bad") || written("ns/b"));
}

/// It was posted every five seconds and printed whole each time.
#[tokio::test(start_paused = true)]
async fn a_lease_name_that_no_lease_can_have_is_refused_once_and_never_posted() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let _elector = Running::start(&api, Config::default());
    pass(seconds(20)).await;
    let megabyte = "x".repeat(1 << 20);
    for (name, lease) in [("a", "Not/A.Name "), ("b", &megabyte)] {
        register(&api, "ns", name, lease, "1.0.0");
    }
    let _good = Robot::start(&api, "ns", "c", "good", "1.0.0");
    pass(seconds(45)).await;
    assert!(leads(&api, "good", "c"));
    let lines = log.lines("WARN");
    assert_eq!(lines.len(), 2, "{lines:?}");
    for (name, line) in ["a", "b"].iter().zip(&lines) {
        let text = format!("LeaseCandidate ns/{name}: spec.leaseName: Invalid value: ");
        assert!(line.contains(&text), "{line}");
        assert!(line.len() < 1000, "{} bytes", line.len());
    }
    assert_eq!(api.asked("POST", "/leases"), 1, "that of the good one");
}

#[tokio::test(start_paused = true)]
async fn a_write_without_an_answer_is_looked_up_and_holds_up_nobody_else() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let _elector = Running::start(&api, Config::default());
    pass(seconds(20)).await;
    api.state().mute.push("leases/silent");
    let _silent = Robot::start(&api, "ns", "a", "silent", "1.0.0");
    let _other = Robot::start(&api, "ns", "b", "other", "1.0.0");
    api.wait_for("the other lease", millis(200), |api| {
        leads(api, "other", "b")
    })
    .await;
    pass(seconds(30)).await;
    let lease = api.lease("ns", "silent").unwrap();
    assert_eq!(lease.spec.holder_identity.as_deref(), Some("a"));
    assert_eq!(lease.spec.lease_transitions, Some(1), "granted once");
    assert_eq!(log.lines("no answer from fake:// in 5s").len(), 1);
    let told = log.lines("lease=ns/silent holder=\"a\"");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("a is the only candidate"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_candidates_is_asked_again_until_it_serves_them() {
    let (log, api) = (Log::capture(), FakeApi::new());
    api.state().refusals.push((
        Method::GET,
        "/apis/coordination.k8s.io/v1beta1",
        404,
        "NotFound",
    ));
    let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
    let _elector = Running::start(&api, Config::default());
    pass(seconds(50)).await;
    let lines = log.lines("WARN");
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0]
            .contains("failed to find LeaseCandidates: neither coordination.k8s.io LeaseCandidate"),
        "{lines:?}"
    );
    api.state().refusals.clear();
    api.wait_for("a leader", seconds(21), |api| leads(api, "l", "a"))
        .await;
}

/// It was a line at each change: millions a day of one object.
#[tokio::test(start_paused = true)]
async fn an_object_that_goes_to_and_fro_between_two_faults_has_few_lines_and_a_count() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let _elector = Running::start(&api, Config::default());
    pass(seconds(20)).await;
    let faults = [json!(3), json!("a b")];
    let revisions = 50 * 170;
    for fault in faults.iter().cycle().take(revisions) {
        api.put(CANDIDATES, "ns", "c", |object| {
            object["spec"] = json!({"leaseName": fault});
        });
        pass(millis(20)).await;
    }
    pass(seconds(60)).await;
    let lines = log.lines("WARN");
    assert!(lines.len() < 10, "{lines:?}");
    let counted = |line: &String| match line.split_once("left_out=") {
        Some((_, count)) => count.parse().unwrap(),
        None => 1,
    };
    let all: usize = lines.iter().map(counted).sum();
    assert_eq!(all, revisions, "each is logged or counted: {lines:?}");
}
