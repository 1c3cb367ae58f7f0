//! Leaders that cannot be asked to yield, with and without permission to reserve their lease.

use elector::{Config, Event};
use elector_testkit::{CapturedLog, MemoryCluster, ScriptedCandidate, millis, pass, seconds};

use crate::RunningElector;

const PLACEHOLDER: &str = "elector.dev:reserved-from:old";

fn reserving() -> Config {
    Config {
        reserve: true,
        ..Config::default()
    }
}

fn holder(cluster: &MemoryCluster) -> String {
    cluster.holder("ns", "l").unwrap_or_default()
}

fn term(cluster: &MemoryCluster) -> Option<i32> {
    cluster.lease("ns", "l")?.spec.lease_transitions
}

/// A client-go candidate of a newer version that leads.
async fn led(cluster: &MemoryCluster) -> ScriptedCandidate {
    pass(seconds(20)).await;
    let old = ScriptedCandidate::start_unmarked(cluster, "ns", "old", "l", "1.1.0");
    cluster
        .wait_for("a leader", seconds(5), |cluster| holder(cluster) == "old")
        .await;
    pass(seconds(10)).await;
    old
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_leader_that_cannot_yield_is_reserved_for_its_duration() {
    let (log, cluster) = (CapturedLog::capture(), MemoryCluster::without_gate());
    let _elector = RunningElector::start(&cluster, reserving());
    let _old = led(&cluster).await;
    let _best = ScriptedCandidate::start_unmarked(&cluster, "ns", "best", "l", "1.0.0");
    cluster
        .wait_for("the reservation", millis(100), |cluster| {
            holder(cluster) == PLACEHOLDER
        })
        .await;
    pass(millis(14_900)).await;
    assert_eq!(
        (holder(&cluster).as_str(), term(&cluster)),
        (PLACEHOLDER, Some(2))
    );
    cluster
        .wait_for("the best one", millis(150), |cluster| {
            holder(cluster) == "best"
        })
        .await;
    pass(seconds(60)).await;
    assert_eq!(
        (holder(&cluster).as_str(), term(&cluster)),
        ("best", Some(3))
    );
    assert_eq!(
        log.lines("leadership changed")[1..],
        [
            "INFO leadership changed lease=ns/l holder=\"\" term=2 previous=\"old\" reason=\"old cannot be asked to \
          yield, so the lease is reserved for 15s, until it must have stopped: best has the older emulation version \
          1.0.0 (not 1.1.0)\"",
            "INFO leadership changed lease=ns/l holder=\"best\" term=3 previous=\"old\" reason=\"the lease was \
          reserved for 15s, and old cannot lead any more; best has the older emulation version 1.0.0 (not 1.1.0)\""
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn without_leave_to_reserve_such_a_leader_stays() {
    let cluster = MemoryCluster::without_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    let _old = led(&cluster).await;
    let _best = ScriptedCandidate::start_unmarked(&cluster, "ns", "best", "l", "1.0.0");
    for _ in 0..60 {
        pass(seconds(1)).await;
        assert_eq!(
            (holder(&cluster).as_str(), term(&cluster)),
            ("old", Some(1))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_server_keeps_the_preference_nothing_is_reserved() {
    let cluster = MemoryCluster::new();
    let _elector = RunningElector::start(&cluster, reserving());
    let _old = led(&cluster).await;
    let _best = ScriptedCandidate::start_unmarked(&cluster, "ns", "best", "l", "1.0.0");
    let preferred = |cluster: &MemoryCluster| {
        let lease = cluster.lease("ns", "l").unwrap();
        lease.record().unwrap().preferred_holder.is_some()
    };
    cluster
        .wait_for("the preference", seconds(1), preferred)
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_elector_that_starts_over_a_placeholder_waits_for_all_of_it() {
    let cluster = MemoryCluster::without_gate();
    let first = RunningElector::start(&cluster, reserving());
    let _old = led(&cluster).await;
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    cluster
        .wait_for("the reservation", seconds(1), |cluster| {
            holder(cluster) == PLACEHOLDER
        })
        .await;
    pass(seconds(5)).await;
    first.stop().await;
    let _second = RunningElector::start(&cluster, Config::default());
    pass(millis(14_900)).await;
    assert_eq!(holder(&cluster), PLACEHOLDER);
    cluster
        .wait_for("the best one", millis(200), |cluster| {
            holder(cluster) == "best"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_told_as_a_time_without_leader() {
    let cluster = MemoryCluster::without_gate();
    let elector = RunningElector::start(&cluster, reserving());
    let _old = led(&cluster).await;
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    pass(seconds(20)).await;
    let changes = elector
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::LeadershipChanged(change) => Some((
                change.holder.as_ref().map(ToString::to_string),
                change.term.0,
            )),
            _ => None,
        });
    let told: Vec<_> = changes.collect();
    let expected = [(Some("old"), 1), (None, 2), (Some("best"), 3)];
    assert_eq!(
        told,
        expected.map(|(holder, term)| (holder.map(str::to_owned), term))
    );
}
