//! A step that panics stops its own lease alone.

use elector_protocol::elector::{Decision, Election, Settings};
use elector_protocol::{Instant, Timestamp};
use elector_testing::{
    BackgroundTask, CANDIDATES, CapturedLog, EmbeddedCluster, ScriptedCandidate, millis, pass,
    seconds,
};

use crate::{Config, Elector};

fn leads(cluster: &EmbeddedCluster, lease: &str, holder: &str) -> bool {
    cluster.holder("ns", lease).as_deref() == Some(holder)
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
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    let elector = Elector::new(Config::default(), cluster.cluster()).unwrap();
    let elector = elector.with_clock(cluster.clock()).with_step(stumble);
    let _elector = BackgroundTask::spawn(elector.run(std::future::pending::<()>()));
    pass(seconds(20)).await;
    let _bad = ScriptedCandidate::start(&cluster, "ns", "a", "bad", "1.0.0");
    cluster.register("ns", "stone", "bad", "1.0.0");
    let _good = ScriptedCandidate::start(&cluster, "ns", "b", "good", "1.0.0");
    cluster
        .wait_for("the other lease", millis(200), |cluster| {
            leads(cluster, "good", "b")
        })
        .await;
    pass(seconds(10)).await;
    assert!(
        !log.lines("lease=ns/bad panic=\"stumbled over a stone\"")
            .is_empty()
    );
    assert!(log.lines("stumbled").len() < 20, "the backoff grows");
    cluster.delete(CANDIDATES, "ns", "stone");
    cluster
        .wait_for("the lease itself", seconds(20), |cluster| {
            leads(cluster, "bad", "a")
        })
        .await;
}
