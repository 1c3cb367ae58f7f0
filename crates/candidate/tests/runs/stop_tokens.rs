//! Stop tokens: what parts of the work hold, and what ends servers and controllers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use elector_candidate::{Leadership, StopToken};
use elector_protocol::Identity;
use elector_protocol::holder::{Loss, StopReason};
use elector_testing::{OneLease, eventually};
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::watcher::Config as WatcherConfig;
use tokio::sync::oneshot;

use crate::{V1BETA1, config, leader, pass};

/// A term whose work keeps its token, and returns when told to.
async fn term_with_token(cluster: &OneLease) -> (crate::RunningCandidate, StopToken) {
    let (tell, token) = oneshot::channel();
    let mut tell = Some(tell);
    let running = leader(cluster, config(), move |leadership: Leadership| {
        if let Some(tell) = tell.take() {
            tell.send(leadership.stop_token()).unwrap();
        }
        crate::obedient(leadership)
    });
    let running = running.await;
    (running, token.await.unwrap())
}

/// Fails a wait that has no end.
async fn soon<T>(wait: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(Duration::from_secs(60), wait).await;
    ended.expect("still waits after a minute")
}

#[tokio::test(start_paused = true)]
async fn a_token_says_when_and_why_the_work_is_to_stop() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (_running, token) = term_with_token(&cluster).await;
    let waiting = tokio::spawn(token.stopped());
    pass(60_000).await;
    assert!(!token.is_stopped() && !waiting.is_finished());
    assert_eq!(token.reason(), None);
    cluster.prefer("better");
    soon(waiting).await.unwrap();
    assert!(token.is_stopped());
    let to = Identity::new("better").unwrap();
    assert_eq!(token.reason(), Some(StopReason::HandOver { to }));
    // One that is asked for afterwards is done at once.
    soon(token.clone().stopped()).await;
}

/// The clock alone ends it, also where the candidate has not come round to say so.
#[tokio::test(start_paused = true)]
async fn a_token_is_stopped_by_the_clock_and_by_the_end_of_the_candidate() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (running, token) = term_with_token(&cluster).await;
    // Nothing else runs in between.
    tokio::time::advance(Duration::from_secs(60)).await;
    let lost = StopReason::Lost(Loss::DeadlinePassed);
    assert_eq!(token.reason(), Some(lost));
    drop(running);

    let cluster = OneLease::new(&[V1BETA1]);
    let (running, token) = term_with_token(&cluster).await;
    running.run.abort();
    soon(token.stopped()).await;
    assert_eq!(token.reason(), Some(StopReason::ShutDown));
}

/// A controller takes the token as it is, and the lease is handed over after the reconcile that is under way.
#[tokio::test(start_paused = true)]
async fn a_token_ends_a_controller() {
    let cluster = OneLease::new(&[V1BETA1]);
    let client = cluster.cluster().client().clone();
    let begun = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicBool::new(false));
    let flags = Arc::new((Arc::clone(&begun), Arc::clone(&done)));
    let work = move |leadership: Leadership| {
        let leases: Api<Lease> = Api::namespaced(client.clone(), &leadership.lease().namespace);
        let controller = Controller::new(leases, WatcherConfig::default())
            .graceful_shutdown_on(leadership.stop_token().stopped());
        let reconcile = |_: Arc<Lease>, flags: Arc<(Arc<AtomicBool>, Arc<AtomicBool>)>| async move {
            flags.0.store(true, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(2)).await;
            flags.1.store(true, Ordering::SeqCst);
            Ok::<_, Infallible>(Action::await_change())
        };
        let error_policy = |_, _: &Infallible, _| Action::await_change();
        let running = controller.run(reconcile, error_policy, Arc::clone(&flags));
        async move {
            running.for_each(|_| std::future::ready(())).await;
            Ok(0)
        }
    };
    let running = leader(&cluster, config(), work).await;
    eventually(|| begun.load(Ordering::SeqCst)).await;
    let preferred = cluster.now();
    cluster.prefer("better");
    eventually(|| cluster.record().holder == Identity::new("better")).await;
    // Work that does not stop by itself is dropped after the grace, which is 10 s.
    assert!(cluster.now().since(preferred) < Duration::from_secs(5));
    assert!(done.load(Ordering::SeqCst), "handed over in mid-reconcile");
    drop(running);
}
