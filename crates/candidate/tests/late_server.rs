//! A candidate that starts before its API server does, in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_apiserver::{ApiServer, Config as ServerConfig, NativeCandidates};
use elector_candidate::{
    Candidate, Config, ConfigError, Event, Leadership, Mode, RunError, RunOutcome,
};
use elector_protocol::{Identity, Timestamp};
use elector_runtime::{Cluster, TokioClock};
use elector_testing::CapturedLog;
use kube::Client;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

/// A cluster whose API server is there, and can be away.
fn server(config: ServerConfig) -> (ApiServer, Cluster) {
    let server = ApiServer::new(config);
    let client = Client::new(server.service("candidate"), "default");
    let cluster = Cluster::new(client, "server", Duration::from_secs(5));
    (server, cluster)
}

fn config(identity: &str, mode: Mode) -> Config {
    let identity = Identity::new(identity).unwrap();
    let mut config = Config::new("web", "1.0.0".parse().unwrap()).identified_as(identity);
    config.mode = mode;
    config
}

fn candidate(config: Config, cluster: Cluster) -> Candidate {
    let clock = TokioClock::start(Timestamp::from_micros(1_800_000_000_000_000).unwrap());
    let candidate = Candidate::new(config, cluster).unwrap();
    candidate.with_clock(Arc::new(clock)).with_seed(0)
}

async fn work(leadership: Leadership) -> Result<(), Infallible> {
    leadership.stopped().await;
    Ok(())
}

/// An elected candidate searches for LeaseCandidates first; the others watch the Lease and read it too.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_waited_for_and_its_absence_is_one_line_for_each_way_to_it() {
    for (mode, ways) in [(Mode::Elected, 1), (Mode::Auto, 3)] {
        a_server_that_is_away_is_waited_for(mode, ways).await;
    }
}

async fn a_server_that_is_away_is_waited_for(mode: Mode, ways: usize) {
    let log = CapturedLog::capture();
    let (server, cluster) = server(ServerConfig::default());
    server.switches("candidate").partition(true);
    let registered = Arc::new(Mutex::new(None));
    let told = Arc::clone(&registered);
    let candidate = candidate(config("me", mode), cluster).observed_by(move |event| {
        if *event == Event::Registered {
            *told.lock().unwrap() = Some(Instant::now());
        }
    });
    let run = tokio::spawn(candidate.run(work, std::future::pending::<()>()));
    sleep(Duration::from_secs(45)).await;
    let warnings = log.lines("WARN");
    assert_eq!(warnings.len(), ways, "{warnings:?}");
    assert!(!run.is_finished());
    server.switches("candidate").partition(false);
    let back = Instant::now();
    sleep(Duration::from_secs(30)).await;
    let registered = registered.lock().unwrap().unwrap();
    // The longest pause, and a request that was still under way.
    assert!(registered - back <= Duration::from_secs(8));
    run.abort();
}

#[tokio::test(start_paused = true)]
async fn a_candidate_without_a_server_ends_when_it_is_told_to() {
    for (mode, wait) in [
        (Mode::Elected, Duration::from_millis(1)),
        // Two requests.
        (Mode::Auto, Duration::from_secs(7)),
        (Mode::Plain, Duration::from_secs(7)),
    ] {
        let (server, cluster) = server(ServerConfig::default());
        server.switches("candidate").partition(true);
        let (sender, receiver) = oneshot::channel::<()>();
        // The output of the future does not matter.
        let run = tokio::spawn(candidate(config("me", mode), cluster).run(work, receiver));
        sleep(Duration::from_secs(20)).await;
        drop(sender);
        let ended = timeout(wait, run).await;
        assert_eq!(ended.unwrap().unwrap().unwrap(), RunOutcome::ShutDown(None));
    }
}

/// Custom resources take fewer names than kube-apiserver's own.
#[tokio::test(start_paused = true)]
async fn a_name_that_the_served_api_does_not_take_ends_the_run() {
    for mode in [Mode::Elected, Mode::Auto] {
        let (_server, cluster) = server(ServerConfig {
            custom_candidates: true,
            native: NativeCandidates::Absent,
            ..ServerConfig::default()
        });
        let run = candidate(config("Me_1", mode), cluster).run(work, std::future::pending::<()>());
        let ended = run.await;
        assert!(
            matches!(ended, Err(RunError::Config(ConfigError::Candidate(_)))),
            "{ended:?}"
        );
    }
}
