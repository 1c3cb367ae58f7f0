//! A step that panics stops its own lease alone.

use std::time::Duration;

use elector_protocol::elector::{Decision, Election, Settings};
use elector_protocol::{Instant, Timestamp};
use elector_testing::{
    BackgroundTask, CANDIDATES, CapturedLog, ScriptedCandidate, TestCluster, millis, pass, seconds,
};

use crate::{Config, Elector};

fn leads(cluster: &TestCluster, lease: &str, holder: &str) -> bool {
    cluster.holder("ns", lease).as_deref() == Some(holder)
}

async fn is_led(cluster: &TestCluster, (lease, holder): (&str, &str), within: Duration) {
    let is_led = |cluster: &TestCluster| leads(cluster, lease, holder);
    cluster.wait_for(lease, within, is_led).await;
}

fn failing_step(
    election: &Election,
    now: Instant,
    wall: Timestamp,
    settings: &Settings,
) -> Decision {
    let fails = election
        .candidates()
        .any(|candidate| candidate.name.as_str() == "cause");
    assert!(!fails, "failed on purpose");
    election.step(now, wall, settings)
}

#[tokio::test(start_paused = true)]
async fn a_panic_stops_one_lease_for_as_long_as_it_lasts() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    let elector = Elector::new(Config::default(), cluster.connected()).unwrap();
    let elector = elector.with_clock(cluster.clock()).with_step(failing_step);
    let _elector = BackgroundTask::spawn(elector.run(std::future::pending::<()>()));
    pass(seconds(20)).await;
    let _bad = ScriptedCandidate::start(&cluster, "ns", "a", "bad", "1.0.0");
    cluster.register("ns", "cause", "bad", "1.0.0");
    let _good = ScriptedCandidate::start(&cluster, "ns", "b", "good", "1.0.0");
    is_led(&cluster, ("good", "b"), millis(200)).await;
    pass(seconds(10)).await;
    assert!(
        !log.lines("lease=ns/bad panic=\"failed on purpose\"")
            .is_empty()
    );
    let holds = log.lines("failed on purpose").len() < 20;
    assert!(holds, "the backoff grows");
    cluster.delete(CANDIDATES, "ns", "cause");
    is_led(&cluster, ("bad", "a"), seconds(20)).await;
}
