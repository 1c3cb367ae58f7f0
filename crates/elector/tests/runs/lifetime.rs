//! Starting, stopping, and being idle.

use elector::Config;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{
    CapturedLog, LEASES, ScriptedCandidate, SentRequest, TestCluster, millis, pass, seconds,
};
use tokio::runtime::Handle;

use crate::RunningElector;
use crate::leader_election::replacing_and_electing;

/// The longest pause between requests is 3 s, and one may be under way.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_waited_for_and_its_absence_is_one_line() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    cluster.faults("program").partition(true);
    let elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(45)).await;
    let warnings = log.lines("WARN");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    cluster.faults("program").partition(false);
    pass(seconds(8)).await;
    assert_eq!(elector.lives(), 1);
    let without = TestCluster::with_gate();
    without.faults("program").partition(true);
    let elector = RunningElector::start(&without, Config::default());
    pass(seconds(20)).await;
    assert_eq!(elector.stop().await, millis(0));
}

#[tokio::test(start_paused = true)]
async fn a_stop_takes_no_time_with_requests_under_way() {
    let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
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

/// A release that is refused, as when the rights went first, is not waited for.
#[tokio::test(start_paused = true)]
async fn a_stop_takes_less_than_two_seconds_even_if_no_lock_can_be_released() {
    for (fault, times) in [
        (Fault::Delay(seconds(100)), millis(1_800)..seconds(2)),
        (Fault::Refuse(403), millis(0)..millis(100)),
    ] {
        let cluster = TestCluster::with_gate();
        let elector = RunningElector::start(&cluster, replacing_and_electing());
        pass(seconds(40)).await;
        let rule = Rule::new(fault).verb(RequestVerb::Update);
        cluster.inject(rule.resource(LEASES));
        let stopped = elector.stop().await;
        assert!(times.contains(&stopped), "{fault:?}: {stopped:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_starts_and_stops_leave_nothing_behind() {
    let cluster = TestCluster::with_gate();
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
async fn an_idle_elector_sends_no_requests_but_its_watches() {
    let (cluster, _elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(10)).await;
    cluster.forget_requests();
    pass(seconds(600)).await;
    let requests = cluster.requests();
    // Three watches, opened every 30 s.
    assert!(requests.iter().all(SentRequest::is_read), "{requests:?}");
    assert!((57..=63).contains(&requests.len()), "{}", requests.len());
}
