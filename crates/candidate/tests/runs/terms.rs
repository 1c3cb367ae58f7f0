//! Terms: how they begin, how they are handed over, and that one follows the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use elector_candidate::{Event, Leadership};
use elector_protocol::{Identity, LeaseRecord, Token};
use elector_testing::{OneLease, eventually};

use crate::{V1BETA1, config, leader, obedient, start};

#[tokio::test(start_paused = true)]
async fn a_term_has_a_guard_with_its_number_and_token() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (tell, told) = std::sync::mpsc::channel();
    let running = start(&cluster, config(), move |leadership: Leadership| {
        tell.send(leadership.clone()).unwrap();
        obedient(leadership)
    });
    running.registered().await;
    cluster.grant("me");
    let replaced = cluster.lease().unwrap().snapshot().unwrap().version;
    running.leads(1).await;
    let guard = told.try_recv().unwrap();
    assert_eq!((guard.term(), guard.token()), (1, replaced.0));
    assert_eq!(cluster.record().token, Some(Token(replaced)));
    assert_eq!(guard.lease(), &OneLease::key());
    assert!(guard.remaining() > Duration::from_millis(9_900));
    assert!(guard.remaining() <= Duration::from_secs(10));
    // Renewals prolong it.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(guard.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_preference_hands_over_and_the_next_term_begins_afresh() {
    let cluster = OneLease::new(&[V1BETA1]);
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let running = leader(&cluster, config(), move |leadership: Leadership| {
        count.fetch_add(1, Ordering::SeqCst);
        obedient(leadership)
    })
    .await;
    let first = running.guard();
    cluster.prefer("better");
    eventually(|| cluster.record().holder == Identity::new("better")).await;
    let expected = ["register", "grant me", "accept", "prefer", "grant better"];
    assert_eq!(cluster.history(), expected);
    assert!(cluster.record().is_unaccepted_grant());
    cluster.grant("me");
    running.leads(2).await;
    assert_eq!(made.load(Ordering::SeqCst), 2);
    assert!(running.guard().is_leader() && !first.is_leader());
    assert!(first.time_to_stop().is_zero() && first.stop_reason().is_some());
}

#[tokio::test(start_paused = true)]
async fn the_next_term_waits_for_the_work_of_the_last() {
    let cluster = OneLease::new(&[V1BETA1]);
    let working = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&working);
    let running = leader(&cluster, config(), move |leadership: Leadership| {
        let count = Arc::clone(&count);
        async move {
            assert_eq!(count.fetch_add(1, Ordering::SeqCst), 0, "two terms at work");
            leadership.stopped().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            count.fetch_sub(1, Ordering::SeqCst);
            Ok(0)
        }
    })
    .await;
    // A stranger empties the Lease: a loss that leaves the work some time.
    cluster.write(|record| LeaseRecord {
        holder: None,
        ..record.clone()
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    // It could be won again at once, and an elector asks.
    cluster.grant("me");
    cluster.ping(V1BETA1, "me");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let history = cluster.history();
    let expected = ["release", "grant me", "ping"];
    assert_eq!(history[3..], expected, "neither accepted nor answered yet");
    running.leads(2).await;
    assert_eq!(working.load(Ordering::SeqCst), 1);
}

/// A name outlives processes: a container that restarts comes back under it, and so does a Pod that was made anew. What a
/// store writes grows over all of that, a deletion of the Lease included.
#[tokio::test(start_paused = true)]
async fn each_life_begins_a_term_of_its_own_with_a_larger_token_whatever_ended_the_last() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (mut terms, mut tokens) = (Vec::new(), Vec::new());
    for (name, end) in [
        ("me", "release"),
        ("me", "crash"),
        ("me", "crash"),
        ("other", "crash"),
        ("me", "deletion"),
        ("me", "release"),
    ] {
        let config = config().identity(name);
        let mut running = start(&cluster, config, obedient);
        running.leads(1).await;
        let guard = running.guard();
        terms.push(guard.term());
        tokens.push(guard.token());
        if end == "release" {
            running.shut_down();
            let _released = running.outcome().await;
            continue;
        }
        running.run.abort();
        if end == "deletion" {
            cluster.delete_lease();
        }
    }
    assert_eq!(terms, [1, 2, 3, 4, 5, 1]);
    assert!(tokens.is_sorted_by(|last, next| last < next), "{tokens:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_terms_leave_no_more_behind_than_one() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config(), obedient);
    running.registered().await;
    let runtime = tokio::runtime::Handle::current();
    let mut tasks = Vec::new();
    for term in 1..=100 {
        cluster.grant("me");
        running.leads(term).await;
        cluster.prefer("other");
        eventually(|| cluster.record().holder == Identity::new("other")).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        tasks.push(runtime.metrics().num_alive_tasks());
    }
    assert_eq!(tasks.first(), tasks.last(), "{tasks:?}");
    let ended = |event: &Event| matches!(event, Event::Ended { .. });
    assert_eq!(running.count(ended), 100);
}
