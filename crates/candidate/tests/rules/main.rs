//! The rules that the shell of a candidate has to keep, on the API server in memory and in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

mod farewell;
mod moves;
mod news;
mod registering;
mod replies;
mod restored;
mod stage;
mod stopping;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_api::CandidateApi;
use elector_candidate::{Candidate, Config, Event, Leadership, RunError, RunOutcome, TermEnd};
use elector_protocol::{Identity, Instant, LeaseKey};
use elector_runtime::Clock as _;
use stage::Stage;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What the work returns in these tests.
type Result = std::result::Result<u32, &'static str>;

/// A running candidate `me`.
struct Running {
    events: Arc<Mutex<Vec<(Event, Instant)>>>,
    guards: Arc<Mutex<Vec<Leadership>>>,
    shutdown: Option<oneshot::Sender<()>>,
    run: JoinHandle<std::result::Result<RunOutcome<u32, &'static str>, RunError>>,
}

fn config() -> Config {
    Config::new(
        LeaseKey::new("default", "web"),
        Identity::new("me").unwrap(),
        "1.0.0",
    )
}

fn start<F>(
    stage: &Stage,
    api: CandidateApi,
    config: Config,
    mut work: impl FnMut(Leadership) -> F + Send + 'static,
) -> Running
where
    F: Future<Output = Result> + Send + 'static,
{
    let events = Arc::new(Mutex::new(Vec::new()));
    let guards = Arc::new(Mutex::new(Vec::new()));
    let (told, made) = (Arc::clone(&events), Arc::clone(&guards));
    let clock = stage.clock();
    let candidate = Candidate::new(stage.cluster(), api, config)
        .unwrap()
        .with_clock(stage.clock())
        .with_seed(0)
        .observed_by(move |event| told.lock().unwrap().push((event.clone(), clock.holder())));
    let (shutdown, asked) = oneshot::channel::<()>();
    let work = move |leadership: Leadership| {
        made.lock().unwrap().push(leadership.clone());
        work(leadership)
    };
    let run = tokio::spawn(candidate.run(work, async move {
        let _ = asked.await;
    }));
    Running {
        events,
        guards,
        shutdown: Some(shutdown),
        run,
    }
}

/// A candidate that is registered in that API and leads.
async fn leader<F>(
    stage: &Stage,
    api: CandidateApi,
    config: Config,
    work: impl FnMut(Leadership) -> F + Send + 'static,
) -> Running
where
    F: Future<Output = Result> + Send + 'static,
{
    let running = start(stage, api, config, work);
    running.registered().await;
    stage.grant("me").await;
    running.leads(1).await;
    running
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
        let leading = |event: &Event| matches!(event, Event::Leading { .. });
        eventually(|| self.count(leading) >= terms).await;
    }

    async fn registered(&self) {
        eventually(|| self.count(|event| *event == Event::Registered) > 0).await;
    }

    fn count(&self, like: impl Fn(&Event) -> bool) -> usize {
        let events = self.events.lock().unwrap();
        events.iter().filter(|(event, _)| like(event)).count()
    }

    /// Whether a term was stopped or ended.
    fn is_disturbed(&self) -> bool {
        self.count(|event| matches!(event, Event::Stopping { .. } | Event::Ended { .. })) > 0
    }

    /// How the first term ended, once it has.
    async fn end(&self) -> (TermEnd, Instant) {
        eventually(|| self.count(|event| matches!(event, Event::Ended { .. })) > 0).await;
        let events = self.events.lock().unwrap();
        let mut ends = events.iter().filter_map(|(event, at)| match event {
            Event::Ended { end, .. } => Some((end.clone(), *at)),
            _ => None,
        });
        ends.next().unwrap()
    }

    /// The guard of the newest term.
    fn guard(&self) -> Leadership {
        self.guards.lock().unwrap().last().unwrap().clone()
    }

    fn shut_down(&mut self) {
        drop(self.shutdown.take());
    }

    async fn outcome(self) -> RunOutcome<u32, &'static str> {
        self.result().await.unwrap()
    }

    /// How the run ends, within two minutes of its own time.
    async fn result(self) -> std::result::Result<RunOutcome<u32, &'static str>, RunError> {
        let patience = Duration::from_secs(120);
        let ended = tokio::time::timeout(patience, self.run).await;
        ended.unwrap().unwrap()
    }
}

/// Waits, in virtual time and for two minutes of it at most, until something is so.
async fn eventually(condition: impl Fn() -> bool) {
    for _ in 0..120_000 {
        if condition() {
            return;
        }
        pass(1).await;
    }
    panic!("waited for two minutes");
}

async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
