//! Starting, stopping, and a store that goes back in time.

use elector::{BuiltinController, Config};
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{
    CapturedLog, EmbeddedCluster, LEASES, ScriptedCandidate, SentRequest, millis, pass, seconds,
};
use tokio::runtime::Handle;

use crate::RunningElector;

#[tokio::test(start_paused = true)]
async fn a_stop_takes_no_time_with_requests_under_way() {
    let cluster = EmbeddedCluster::with_gate();
    let elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    cluster.inject(
        Rule::new(Fault::HangAfter)
            .verb(RequestVerb::Update)
            .resource(LEASES)
            .named("l"),
    );
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(millis(100)).await;
    assert!(cluster.count_requests("PUT", "leases/l") > 0);
    assert_eq!(elector.stop().await, millis(0));
}

#[tokio::test(start_paused = true)]
async fn a_stop_takes_less_than_two_seconds_even_if_the_lock_cannot_be_released() {
    let cluster = EmbeddedCluster::with_gate();
    let config = Config {
        builtin: BuiltinController::Replace { host: "pod".into() },
        ..Config::default()
    };
    let elector = RunningElector::start(&cluster, config);
    pass(seconds(20)).await;
    let delay = Rule::new(Fault::Delay(seconds(100))).verb(RequestVerb::Update);
    cluster.inject(delay.resource(LEASES).namespace("kube-system"));
    pass(seconds(1)).await;
    let stopped = elector.stop().await;
    assert!(stopped > seconds(1) && stopped < seconds(2), "{stopped:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_starts_and_stops_leave_nothing_behind() {
    let cluster = EmbeddedCluster::with_gate();
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(1)).await;
    let before = Handle::current().metrics().num_alive_tasks();
    for turn in 0..100 {
        let elector = RunningElector::start(&cluster, Config::default());
        pass(millis(turn * 5)).await;
        elector.stop().await;
    }
    // The server finishes requests that were given up.
    pass(seconds(1)).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), before);
    let requests = cluster.requests().len();
    pass(seconds(60)).await;
    assert_eq!(cluster.requests().len(), requests);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_elector_does_not_change_the_leader() {
    let cluster = EmbeddedCluster::with_gate();
    let elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _candidates =
        ["a", "b"].map(|name| ScriptedCandidate::start(&cluster, "ns", name, "l", "1.0.0"));
    pass(seconds(20)).await;
    let term = cluster
        .lease("ns", "l")
        .object()
        .unwrap()
        .spec
        .lease_transitions;
    elector.stop().await;
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(120)).await;
    assert_eq!(
        cluster
            .lease("ns", "l")
            .object()
            .unwrap()
            .spec
            .lease_transitions,
        term
    );
}

#[tokio::test(start_paused = true)]
async fn a_restored_store_makes_it_start_anew() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let backup = cluster.backup();
    let candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(30)).await;
    drop(candidate);
    pass(millis(10)).await;
    cluster.restore(&backup);
    cluster.faults().break_watches();
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "b", "l", "1.0.0");
    pass(seconds(3)).await;
    assert_eq!(
        log.lines("the store went back to an older version").len(),
        1
    );
    assert_eq!(
        cluster.holder("ns", "l").as_deref(),
        Some(""),
        "absence is not proven any more"
    );
    cluster
        .wait_for("a leader", seconds(20), |cluster| {
            cluster.holder("ns", "l").as_deref() == Some("b")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_elector_sends_no_requests_but_its_watches() {
    let cluster = EmbeddedCluster::with_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(10)).await;
    cluster.forget_requests();
    pass(seconds(600)).await;
    let requests = cluster.requests();
    // Three watches, opened every 30 s.
    assert!(requests.iter().all(SentRequest::is_read), "{requests:?}");
    assert!((57..=63).contains(&requests.len()), "{}", requests.len());
}
