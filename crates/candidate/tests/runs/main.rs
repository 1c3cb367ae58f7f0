//! Runs of a candidate against a server in this process, in virtual time, each named by what happens.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

mod ends;
mod log;
mod moves;
mod server;
mod terms;
mod troubles;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_api::CandidateApi;
use elector_candidate::{Candidate, Config, Event, Leadership, RunError, RunOutcome};
use elector_protocol::{Identity, Timestamp};
use elector_runtime::{Clock, TokioClock};
use server::Server;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What the work returns in these tests.
type Result = std::result::Result<u32, &'static str>;

/// A running candidate `me`.
struct Running {
    server: Server,
    events: Arc<Mutex<Vec<Event>>>,
    shutdown: Option<oneshot::Sender<()>>,
    run: JoinHandle<std::result::Result<RunOutcome<u32, &'static str>, RunError>>,
}

fn config() -> Config {
    Config::new(Server::key(), Identity::new("me").unwrap(), "1.0.0")
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(TokioClock::start(
        Timestamp::from_micros(1_800_000_000_000_000).unwrap(),
    ))
}

fn start<F>(
    server: &Server,
    config: Config,
    work: impl FnMut(Leadership) -> F + Send + 'static,
) -> Running
where
    F: Future<Output = Result> + Send + 'static,
{
    start_in(CandidateApi::V1Beta1, server, config, work)
}

/// The same for a candidate that registers in another API at first.
fn start_in<F>(
    api: CandidateApi,
    server: &Server,
    config: Config,
    work: impl FnMut(Leadership) -> F + Send + 'static,
) -> Running
where
    F: Future<Output = Result> + Send + 'static,
{
    let events = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&events);
    let candidate = Candidate::new(server.cluster(), api, config)
        .unwrap()
        .with_clock(clock())
        .observed_by(move |event| told.lock().unwrap().push(event.clone()));
    let (shutdown, asked) = oneshot::channel::<()>();
    let run = tokio::spawn(candidate.run(work, async move {
        let _ = asked.await;
    }));
    Running {
        server: server.clone(),
        events,
        shutdown: Some(shutdown),
        run,
    }
}

/// Work that returns as soon as it is told to.
async fn obedient(leadership: Leadership) -> Result {
    leadership.stopped().await;
    Ok(0)
}

// === impl Running ===

impl Running {
    /// Waits until the candidate has told so many terms to begin.
    async fn leads(&self, terms: usize) {
        let leading = |event: &&Event| matches!(event, Event::Leading { .. });
        eventually(|| self.events.lock().unwrap().iter().filter(leading).count() >= terms).await;
    }

    async fn registered(&self) {
        eventually(|| self.events.lock().unwrap().contains(&Event::Registered)).await;
    }

    fn shut_down(&mut self) {
        drop(self.shutdown.take());
    }

    async fn outcome(self) -> RunOutcome<u32, &'static str> {
        self.result().await.unwrap()
    }

    /// How the run ends, within a minute of its own time.
    async fn result(self) -> std::result::Result<RunOutcome<u32, &'static str>, RunError> {
        let minute = Duration::from_secs(60);
        tokio::time::timeout(minute, self.run)
            .await
            .unwrap()
            .unwrap()
    }

    fn story(&self) -> Vec<String> {
        self.server.story()
    }
}

/// Waits, in virtual time and for a minute of it at most, until something is so.
async fn eventually(condition: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("waited for a minute");
}
