//! Runs of an elector on the API server in memory and in virtual time, each named by what happens.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod builtin;
mod collecting;
mod elections;
mod events;
mod failures;
mod fairness;
mod groups;
mod health;
mod large;
mod leader_election;
mod lifetime;
mod metrics;
mod migration;
mod namespaces;
mod operators;
mod restless;
mod restored;
mod retries;
mod strangers;
mod unreadable;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector::{BuiltinController, Config, Elector, Event, Metrics};
use elector_apiserver::{Fault, Rule};
use elector_runtime::{Clock, Cluster};
use elector_testing::{CapturedLog, Scrape, TestCluster, pass, seconds};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// An elector that runs until it is stopped; dropping it is a crash.
struct RunningElector {
    events: Arc<Mutex<Vec<Event>>>,
    metrics: Metrics,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

// === impl RunningElector ===

impl RunningElector {
    /// One that has waited for whom it may have followed, on that cluster.
    async fn settled(cluster: TestCluster) -> (TestCluster, Self) {
        let elector = Self::start(&cluster, Config::default());
        pass(seconds(20)).await;
        (cluster, elector)
    }

    fn start(cluster: &TestCluster, config: Config) -> Self {
        Self::start_seeded(cluster, config, 0)
    }

    /// Starts one with a seed of its own, which sets it apart from others beside it.
    fn start_seeded(cluster: &TestCluster, config: Config, seed: u64) -> Self {
        Self::start_by(cluster.clock(), cluster.connected(), config, seed)
    }

    /// Starts one of several, which is a client of the server by its name.
    fn start_client(cluster: &TestCluster, name: &'static str, config: Config) -> Self {
        let client = cluster.connect(name);
        Self::start_by(cluster.clock(), client, config, seed_of(name))
    }

    /// Starts one by that clock.
    fn start_by(clock: Arc<dyn Clock>, cluster: Cluster, config: Config, seed: u64) -> Self {
        CapturedLog::prepare();
        let (events, metrics) = (Arc::new(Mutex::new(Vec::new())), Metrics::default());
        let observed = Arc::clone(&events);
        let elector = Elector::new(config, cluster)
            .unwrap()
            .with_clock(clock)
            .with_seed(seed)
            .with_metrics(metrics.clone())
            .observed_by(move |event| observed.lock().unwrap().push(event.clone()));
        let (shutdown, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(elector.run(async {
            stopped.await.unwrap_or_default();
        }));
        Self {
            events,
            metrics,
            shutdown: Some(shutdown),
            task,
        }
    }

    /// Stops it as a signal does, and says how long that took.
    async fn stop(mut self) -> Duration {
        let start = tokio::time::Instant::now();
        drop(self.shutdown.take());
        (&mut self.task).await.unwrap();
        start.elapsed()
    }

    /// Its events so far.
    fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// Its metrics now.
    fn scrape(&self) -> Scrape {
        Scrape::parse(&self.metrics.encode())
    }

    /// The number of its starts: one for each time that all was listed.
    fn lives(&self) -> usize {
        self.count(|event| matches!(event, Event::Listed { .. }))
    }

    fn count(&self, like: impl Fn(&Event) -> bool) -> usize {
        self.events().iter().filter(|event| like(event)).count()
    }
}

impl Drop for RunningElector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The seed of the elector of that name.
fn seed_of(name: &str) -> u64 {
    name.bytes().map(u64::from).sum()
}

/// One that takes the lock of the built-in controller.
fn replacing() -> Config {
    Config {
        builtin: BuiltinController::Replace { host: "pod".into() },
        ..Config::default()
    }
}

/// A rule by which requests are refused with this status.
fn refuse(code: u16) -> Rule {
    Rule::new(Fault::Refuse(code))
}
