//! The lock of the built-in controller, as the shell takes it, keeps it and loses it (decision 9).

use elector::{Config, Event};
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_protocol::ElectorTiming;
use elector_testing::{EmbeddedCluster, LEASES, millis, pass, seconds};
use serde_json::json;
use tokio::time::Instant;

use crate::{RunningElector, refuse, replacing};

const BUILTIN: &str = "node-1_4f0c7f1e";
const LOCK: &str = "leader-election-controller";
/// A part of the path of requests for the lock.
const LOCK_PATH: &str = "leases/leader-election-controller";

async fn lock_holder(cluster: &EmbeddedCluster) -> String {
    let holder = cluster.holder("kube-system", LOCK);
    holder.unwrap_or_default()
}

/// The rule for requests for the lock alone.
fn of_lock(rule: Rule) -> Rule {
    rule.resource(LEASES).namespace("kube-system")
}

/// True if the elector has the lock.
async fn is_taken(cluster: &EmbeddedCluster) -> bool {
    lock_holder(cluster).await.starts_with("elector_pod_")
}

/// While the lock cannot be read, the elector does not know whether it may decide, and writes nothing.
#[tokio::test(start_paused = true)]
async fn nothing_is_decided_before_the_lock_was_read() {
    let cluster = EmbeddedCluster::new();
    cluster.inject(of_lock(refuse(403)));
    let elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _candidate = cluster.candidate("default", "a", "l", "1.0.0");
    pass(seconds(60)).await;
    assert_eq!(elector.lives(), 1);
    assert!(cluster.lease("default", "l").object().is_none());
    cluster.heal();
    assert!(cluster.held_by("default", "l", "a").await < seconds(3));
}

/// A record without a duration counts for the longest one that is in use (R4).
#[tokio::test(start_paused = true)]
async fn a_lock_without_a_duration_is_respected_for_the_longest_duration_in_use() {
    for (longest, spec) in [
        (15, json!({"holderIdentity": BUILTIN})),
        (30, json!({"holderIdentity": BUILTIN})),
        (
            30,
            json!({"holderIdentity": BUILTIN, "leaseDurationSeconds": 0}),
        ),
    ] {
        let cluster = EmbeddedCluster::new();
        let timing = ElectorTiming {
            max_lease_duration: seconds(longest),
            ..ElectorTiming::default()
        };
        let _elector = RunningElector::start(
            &cluster,
            Config {
                timing,
                ..Config::default()
            },
        );
        pass(seconds(40)).await;
        // A server would not take it without a duration, but may have kept it.
        cluster.renew("kube-system", LOCK, BUILTIN);
        cluster.put(LEASES, "kube-system", LOCK, |fields| {
            fields["spec"] = spec.clone();
        });
        let seen = Instant::now();
        pass(millis(10)).await;
        let _candidate = cluster.candidate("default", "a", "l", "1.0.0");
        cluster.held_by("default", "l", "a").await;
        let waited = seen.elapsed();
        assert!(
            waited >= seconds(longest) && waited < seconds(longest + 1),
            "{spec}: {waited:?}"
        );
    }
}

/// Losing the lock stops us at once, also by its deletion; it is made and taken again.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_deleted_stops_decisions_until_it_is_taken_again() {
    let cluster = EmbeddedCluster::new();
    let _elector = RunningElector::start_seeded(&cluster, replacing(), 1);
    pass(seconds(20)).await;
    assert!(is_taken(&cluster).await);
    // From now on its own writes of the lock are refused.
    cluster.inject(of_lock(refuse(403)).verb(RequestVerb::Create));
    cluster.delete_lease("kube-system", LOCK);
    pass(millis(10)).await;
    let _candidate = cluster.candidate("default", "a", "l", "1.0.0");
    pass(seconds(9)).await;
    assert!(cluster.lease("default", "l").object().is_none());
    cluster.heal();
    assert!(cluster.held_by("default", "l", "a").await < seconds(3));
    assert!(is_taken(&cluster).await);
}

/// A write under way when the lock was lost is given up, and its lease is judged again once we are in charge.
#[tokio::test(start_paused = true)]
async fn a_lease_that_was_written_when_the_lock_was_lost_is_judged_again_afterwards() {
    let cluster = EmbeddedCluster::new();
    let _elector = RunningElector::start_seeded(&cluster, replacing(), 1);
    pass(seconds(20)).await;
    cluster.inject(Rule::new(Fault::HangBefore).verb(RequestVerb::Create));
    let _candidate = cluster.candidate("default", "a", "l", "1.0.0");
    let start = cluster.now();
    pass(millis(100)).await;
    assert_eq!(cluster.requests_since(start, &["POST"]).len(), 1);
    cluster.renew("kube-system", LOCK, BUILTIN);
    pass(seconds(14)).await;
    assert_eq!(
        cluster.requests_since(start, &["POST"]).len(),
        1,
        "given up"
    );
    cluster.heal();
    assert!(cluster.lease("default", "l").object().is_none());
    assert!(cluster.held_by("default", "l", "a").await < seconds(3));
}

/// A server that refuses the lock is not asked for it without a pause, and nothing is decided meanwhile.
#[tokio::test(start_paused = true)]
async fn writes_of_a_lock_that_are_refused_are_repeated_ever_less_often() {
    for code in [403, 409, 500] {
        let cluster = EmbeddedCluster::new();
        cluster.renew("kube-system", LOCK, BUILTIN);
        cluster.inject(of_lock(refuse(code)).verb(RequestVerb::Update));
        let _elector = RunningElector::start_seeded(&cluster, replacing(), 1);
        let _candidate = cluster.candidate("default", "a", "l", "1.0.0");
        let start = cluster.now();
        pass(seconds(20)).await;
        let writes = cluster.requests_since(start, &["PUT", LOCK_PATH]).len();
        // 250 ms, doubling to 2 s.
        assert!((8..=16).contains(&writes), "{code}: {writes}");
        assert!(cluster.lease("default", "l").object().is_none());
        cluster.heal();
        pass(seconds(3)).await;
        assert!(is_taken(&cluster).await, "{code}");
    }
}

/// From another elector that misses a renewal the lock is taken over after 5 s; no other process can have taken it since, so
/// leases that were decided by the one are decided by the other at once.
#[tokio::test(start_paused = true)]
async fn the_lock_of_an_elector_that_died_is_taken_over_after_five_seconds() {
    let cluster = EmbeddedCluster::new();
    let first = RunningElector::start_seeded(&cluster, replacing(), 1);
    pass(seconds(5)).await;
    let held = lock_holder(&cluster).await;
    let second = RunningElector::start_seeded(&cluster, replacing(), 2);
    pass(seconds(30)).await;
    assert_eq!(lock_holder(&cluster).await, held, "they do not fight");
    drop(first);
    let died = Instant::now();
    while lock_holder(&cluster).await == held {
        assert!(died.elapsed() < millis(5_100), "{:?}", died.elapsed());
        pass(millis(1)).await;
    }
    assert!(died.elapsed() > millis(1_600), "a renewal may be late");
    let _candidate = cluster.candidate("default", "a", "l", "1.0.0");
    assert!(cluster.held_by("default", "l", "a").await < millis(200));
    pass(seconds(11)).await;
    second.stop().await;
    assert_eq!(lock_holder(&cluster).await, "");
}

/// An elector that took the lock from another one lets nobody else in before that one's record would have expired: that one
/// may have been slow, and believe yet.
#[tokio::test(start_paused = true)]
async fn a_lock_that_was_taken_early_is_not_released_at_once() {
    let cluster = EmbeddedCluster::new();
    let first = RunningElector::start_seeded(&cluster, replacing(), 1);
    pass(seconds(5)).await;
    let held = lock_holder(&cluster).await;
    let second = RunningElector::start_seeded(&cluster, replacing(), 2);
    pass(seconds(1)).await;
    drop(first);
    while lock_holder(&cluster).await == held {
        pass(millis(100)).await;
    }
    let taken = lock_holder(&cluster).await;
    second.stop().await;
    assert_eq!(lock_holder(&cluster).await, taken);
}

/// The record of the built-in controller is overwritten by compare-and-swap, with a term of its own, and our renewals
/// change its renewTime alone.
#[tokio::test(start_paused = true)]
async fn the_lock_is_taken_as_a_term_and_renewed_as_one() {
    let cluster = EmbeddedCluster::new();
    cluster.renew("kube-system", LOCK, BUILTIN);
    let before = cluster.lease("kube-system", LOCK).object().unwrap();
    let elector = RunningElector::start_seeded(&cluster, replacing(), 1);
    pass(millis(100)).await;
    let taken = cluster.lease("kube-system", LOCK).object().unwrap();
    assert!(is_taken(&cluster).await);
    assert_eq!(taken.metadata.uid, before.metadata.uid);
    assert_eq!(taken.spec.lease_transitions, Some(4));
    assert_eq!(taken.spec.lease_duration_seconds, Some(15));
    assert_eq!(taken.spec.acquire_time, taken.spec.renew_time);
    pass(seconds(60)).await;
    let renewed = cluster.lease("kube-system", LOCK).object().unwrap();
    assert_ne!(renewed.spec.renew_time, taken.spec.renew_time);
    let mut expected = taken.spec.clone();
    expected.renew_time = renewed.spec.renew_time;
    assert_eq!(renewed.spec, expected);
    let changes = elector.count(|event| matches!(event, Event::LeadershipChanged(_)));
    assert_eq!(changes, 0, "nobody is told of the lock as of a lease");
}
