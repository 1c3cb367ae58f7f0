//! The cost of one namespace, and the rest for the others (L7).

use elector::{Config, Event};
use elector_api::CandidateApi;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{
    CANDIDATES, CapturedLog, ScriptedCandidate, TestCluster, millis, pass, seconds,
};
use serde_json::json;

use crate::RunningElector;
use crate::events::{recording, reported};

/// Registers this number of candidates in a namespace, each for a lease of its own, which do nothing more.
fn fill(cluster: &TestCluster, namespace: &str, leases: usize) {
    for index in 0..leases {
        let name = format!("c{index:05}");
        cluster.register(namespace, &name, &format!("l{index:05}"), "1.0.0");
    }
}

/// First in, first out, the last would have waited for more than four seconds.
#[tokio::test(start_paused = true)]
async fn namespaces_are_served_in_turn() {
    let (cluster, _elector) = RunningElector::settled(TestCluster::with_gate()).await;
    cluster.slow(millis(50), millis(50));
    fill(&cluster, "noisy", 400);
    let _quiet = ScriptedCandidate::start(&cluster, "quiet", "q", "l", "1.0.0");
    assert!(cluster.held_by("quiet", "l", "q").await < millis(600));
    let served = cluster.writes().len();
    assert!(served < 100, "{served} writes of 800 came before");
}

/// A server that hangs with what one namespace wrote is a way to take all the turns.
#[tokio::test(start_paused = true)]
async fn requests_of_one_namespace_leave_room_for_another() {
    let (cluster, _elector) = RunningElector::settled(TestCluster::with_gate()).await;
    cluster.slow(millis(1500), millis(0));
    fill(&cluster, "noisy", 400);
    pass(millis(1600)).await;
    cluster.slow(millis(1), millis(1));
    let _quiet = ScriptedCandidate::start(&cluster, "quiet", "q", "l", "1.0.0");
    assert!(cluster.held_by("quiet", "l", "q").await < millis(100));
}

#[tokio::test(start_paused = true)]
async fn no_more_leases_have_requests_at_the_same_time_than_may() {
    let cluster = TestCluster::with_gate();
    let config = Config {
        concurrent_elections: 2.try_into().unwrap(),
        ..Config::default()
    };
    let _elector = RunningElector::start(&cluster, config);
    pass(seconds(20)).await;
    cluster.inject(Rule::new(Fault::HangBefore).verb(RequestVerb::Create));
    for namespace in ["a", "b", "c", "d"] {
        cluster.register(namespace, "x", "l", "1.0.0");
    }
    pass(seconds(1)).await;
    assert_eq!(cluster.requests_with(&["POST", "/leases"]).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_costs_too_many_requests_waits_alone_and_that_is_told_once() {
    let cluster = TestCluster::with_gate();
    let log = CapturedLog::capture();
    let elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    fill(&cluster, "noisy", 12_000);
    let start = cluster.now();
    pass(seconds(60)).await;
    let requests = cluster.requests_since(start, &["noisy/lease"]).len();
    let holds = (20_000..=20_000 + 61 * 200).contains(&requests);
    assert!(holds, "{requests}");
    assert_eq!(log.lines("request limit of the namespace reached").len(), 1);
    let held_up = |event: &Event| matches!(event, Event::NamespaceHeldUp { lease } if lease.namespace.as_ref() == "noisy");
    let reported = |events: &[Event]| events.iter().filter(|event| held_up(event)).count();
    assert_eq!(reported(&elector.events.lock().unwrap()), 1);
    let limits = elector.scrape().by("elector_limits_hit_total", "limit");
    assert_eq!(limits, [("requests_of_namespace".to_owned(), 1.0)]);
    let _quiet = ScriptedCandidate::start(&cluster, "quiet", "q", "l", "1.0.0");
    assert!(cluster.held_by("quiet", "l", "q").await < millis(100));
    let lines = log.lines("leadership changed");
    assert!(
        (1000..=1000 + 82).contains(&lines.len()),
        "{} lines",
        lines.len()
    );
}

/// A candidate of v1alpha1 may list strategies, with which 16 MiB are full before 30 000 candidates are.
#[tokio::test(start_paused = true)]
async fn a_full_namespace_is_reported_in_the_log_in_an_event_and_in_the_figures() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    cluster.serve(&[CandidateApi::V1Alpha1]);
    let elector = RunningElector::start(&cluster, recording("pod"));
    pass(seconds(20)).await;
    let strategies = vec![format!("example.com/{}", "x".repeat(50)); 200];
    for index in 0..1100 {
        let lease = format!("l{}", index / 50);
        cluster.edit(CANDIDATES, "ns", &format!("c{index:05}"), |object| {
            object["spec"] = json!({
                "leaseName": lease, "renewTime": "2026-01-02T03:04:05.000000Z", "preferredStrategies": strategies,
            });
        });
    }
    pass(seconds(20)).await;
    let mut events = elector.events();
    events.retain(|event| matches!(event, Event::NamespaceFull { .. }));
    let [
        Event::NamespaceFull {
            candidates, bytes, ..
        },
    ] = &events[..]
    else {
        panic!("it is reported once: {events:?}");
    };
    assert!((1000..1100).contains(candidates), "{candidates}");
    assert!((16_000_000..=16 << 20).contains(bytes), "{bytes}");
    let line = format!(
        "WARN too many candidates in the namespace: those that came last are not kept namespace=ns candidates={candidates} \
         bytes={bytes}"
    );
    assert_eq!(log.lines("too many candidates"), [line]);
    let event = format!(
        "Warning NamespaceFull x1: namespace ns has too many candidates: {candidates} are kept, and those that came last, \
         one of this lease among them, are not"
    );
    assert!(reported(&cluster).await.contains(&event));
    let limits = elector.scrape().by("elector_limits_hit_total", "limit");
    assert_eq!(limits, [("candidates_of_namespace".to_owned(), 1.0)]);
    // An elector that starts then lists as many.
    let _next = RunningElector::start_client(&cluster, "next", recording("next"));
    pass(seconds(20)).await;
    let found = reported(&cluster).await;
    let full = found.iter().filter(|it| it.contains("NamespaceFull x1"));
    assert_eq!(full.count(), 2, "{found:?}");
}
