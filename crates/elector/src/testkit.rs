//! What the scenarios are made of: an API server, candidates, electors and their log, all in virtual time.

mod api;
mod http;
mod log;
mod robot;

use std::sync::Arc;
use std::time::Duration;

use elector_protocol::Timestamp;
use elector_runtime::TokioClock;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::session::StepFn;
use crate::{Config, Elector};

pub(crate) use api::{CANDIDATES, FakeApi, LEASES};
pub(crate) use log::Log;
pub(crate) use robot::{Robot, register};

/// An elector that runs until it is stopped.
pub(crate) struct Running {
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

// === impl Running ===

impl Running {
    pub(crate) fn start(api: &FakeApi, config: Config) -> Self {
        Self::stepping(api, config, elector_protocol::elector::Election::step)
    }

    /// With another step.
    pub(crate) fn stepping(api: &FakeApi, config: Config, step: StepFn) -> Self {
        Self::spawn(made(api, config).with_step(step))
    }

    /// Whatever elector was made.
    pub(crate) fn spawn(elector: Elector) -> Self {
        log::start();
        let (shutdown, stopped) = oneshot::channel();
        let task = tokio::spawn(elector.run(async {
            stopped.await.unwrap_or_default();
        }));
        Self {
            shutdown: Some(shutdown),
            task,
        }
    }

    /// Stops it, and says how long that took.
    pub(crate) async fn stop(mut self) -> Duration {
        let start = tokio::time::Instant::now();
        drop(self.shutdown.take());
        (&mut self.task).await.unwrap();
        start.elapsed()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An elector by the virtual clock.
pub(crate) fn made(api: &FakeApi, config: Config) -> Elector {
    let clock = Arc::new(TokioClock::start(wall()));
    let elector = Elector::new(config, api.cluster()).unwrap();
    elector.with_clock(clock).with_seed(0)
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Lets virtual time pass.
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// The time of day at the start of every scenario.
pub(crate) fn wall() -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000).unwrap()
}
