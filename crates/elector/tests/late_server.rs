//! An elector that starts before its API server does, in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector::{Config, Elector, Event};
use elector_apiserver::{ApiServer, Config as ServerConfig};
use elector_protocol::Timestamp;
use elector_runtime::{Cluster, TokioClock};
use elector_testing::CapturedLog;
use kube::Client;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

/// A server that is away for the elector.
fn server() -> (ApiServer, Cluster) {
    let server = ApiServer::new(ServerConfig::default());
    server.switches("elector").partition(true);
    let client = Client::new(server.service("elector"), "default");
    let cluster = Cluster::new(client, "server", Duration::from_secs(5));
    (server, cluster)
}

fn elector(cluster: Cluster) -> Elector {
    let clock = TokioClock::start(Timestamp::from_micros(1_800_000_000_000_000).unwrap());
    let elector = Elector::new(Config::default(), cluster).unwrap();
    elector.with_clock(Arc::new(clock)).with_seed(0)
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_waited_for_and_its_absence_is_one_line() {
    let log = CapturedLog::capture();
    let (server, cluster) = server();
    let listed = Arc::new(Mutex::new(None));
    let told = Arc::clone(&listed);
    let elector = elector(cluster).observed_by(move |event| {
        if matches!(event, Event::Listed { .. }) {
            *told.lock().unwrap() = Some(Instant::now());
        }
    });
    let run = tokio::spawn(elector.run(std::future::pending::<()>()));
    sleep(Duration::from_secs(45)).await;
    let warnings = log.lines("WARN");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(!run.is_finished());
    server.switches("elector").partition(false);
    let back = Instant::now();
    sleep(Duration::from_secs(30)).await;
    let listed = listed.lock().unwrap().unwrap();
    // The longest pause, and a request that was still under way.
    assert!(listed - back <= Duration::from_secs(8));
    run.abort();
}

#[tokio::test(start_paused = true)]
async fn an_elector_without_a_server_ends_when_it_is_told_to() {
    let (_server, cluster) = server();
    let (sender, receiver) = oneshot::channel::<()>();
    // The output of the future does not matter.
    let run = tokio::spawn(elector(cluster).run(receiver));
    sleep(Duration::from_secs(20)).await;
    drop(sender);
    timeout(Duration::from_millis(1), run)
        .await
        .unwrap()
        .unwrap();
}
