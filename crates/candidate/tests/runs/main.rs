//! Runs of a candidate on the API server in memory and in virtual time, each named by what happens.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod alongside;
mod become_leader;
#[cfg(feature = "metrics")]
mod causes;
#[cfg(feature = "kube5")]
mod controller;
mod disabled;
mod ends;
#[cfg(feature = "events")]
mod events;
mod first_start;
#[cfg(feature = "kube5")]
mod guarded;
mod handle;
mod health;
mod lease_metadata;
mod leaving;
mod left_api;
#[cfg(feature = "metrics")]
mod metrics;
mod migration;
mod modes;
mod news;
mod outages;
mod races;
mod registering;
mod replies;
mod restored;
mod retrying;
#[cfg(feature = "kube5")]
mod sharded;
mod shutdown;
mod stopping;
mod strangers;
mod tasks;
mod terms;
mod unwell;

use std::fmt::Debug;
use std::future::pending;
use std::sync::{Arc, Mutex};

use elector_api::CandidateApi;
use elector_candidate::{
    Candidate, CandidateHandle, Cluster, Config, Error, Event, Leadership, Mode, Outcome, TermEnd,
};
use elector_protocol::Instant;
use elector_runtime::Clock as _;
use elector_testing::{OneLease, eventually, seconds};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const V1BETA1: CandidateApi = CandidateApi::V1Beta1;
const V1ALPHA1: CandidateApi = CandidateApi::V1Alpha1;
const CUSTOM: CandidateApi = CandidateApi::Elector;

/// The result of the work in these tests.
type Result = std::result::Result<u32, &'static str>;

/// A candidate `me` that runs.
struct RunningCandidate {
    events: Arc<Mutex<Vec<(Event, Instant)>>>,
    guards: Arc<Mutex<Vec<Leadership>>>,
    handle: CandidateHandle,
    shutdown: Option<oneshot::Sender<()>>,
    run: JoinHandle<std::result::Result<Outcome<u32>, Error>>,
}

/// The end of a run as tests compare it: what the work, a shutdown or a term ended.
#[derive(Debug, PartialEq, Eq)]
enum RunOutcome<T = u32> {
    ShutDown(Option<TermEnd>),
    WorkEnded { value: T, term: TermEnd },
    WorkFailed { error: String, term: TermEnd },
    WorkPanicked { message: String, term: TermEnd },
    Unwell { error: String, term: TermEnd },
    TermEnded(TermEnd),
}

fn config() -> Config {
    let lease = OneLease::key();
    Config::new(&*lease.name, "1.0.0")
        .namespace(&*lease.namespace)
        .identity("me")
}

/// The connection of a candidate, with the clock of the cluster.
fn connected(cluster: &OneLease) -> Cluster {
    let connected = Cluster::from(cluster.cluster());
    connected.with_clock(cluster.clock()).with_seed(0)
}

/// A candidate that leads only when an elector says so, where a test asserts that it writes nothing by itself.
fn elected() -> Config {
    config().mode(Mode::Elected)
}

fn start<F>(
    cluster: &OneLease,
    config: Config,
    work: impl FnMut(Leadership) -> F + Send + 'static,
) -> RunningCandidate
where
    F: Future<Output = Result> + Send + 'static,
{
    start_changed(cluster, config, work, |candidate| candidate)
}

/// The same with something changed about the candidate.
fn start_changed<F>(
    cluster: &OneLease,
    config: Config,
    mut work: impl FnMut(Leadership) -> F + Send + 'static,
    change: impl FnOnce(Candidate) -> Candidate,
) -> RunningCandidate
where
    F: Future<Output = Result> + Send + 'static,
{
    let events = Arc::new(Mutex::new(Vec::new()));
    let guards = Arc::new(Mutex::new(Vec::new()));
    let (told, made) = (Arc::clone(&events), Arc::clone(&guards));
    let clock = cluster.clock();
    let candidate = Candidate::new(config, connected(cluster)).unwrap();
    let candidate = change(candidate)
        .observed_by(move |_, event| told.lock().unwrap().push((event.clone(), clock.holder())));
    let handle = candidate.handle();
    let (shutdown, stopped) = oneshot::channel::<()>();
    let work = move |leadership: Leadership| {
        made.lock().unwrap().push(leadership.clone());
        work(leadership)
    };
    let run = tokio::spawn(candidate.run(work, async move {
        let _ = stopped.await;
    }));
    RunningCandidate {
        events,
        guards,
        handle,
        shutdown: Some(shutdown),
        run,
    }
}

/// A candidate that leads.
async fn leader<F>(
    cluster: &OneLease,
    config: Config,
    work: impl FnMut(Leadership) -> F + Send + 'static,
) -> RunningCandidate
where
    F: Future<Output = Result> + Send + 'static,
{
    let name = config.given_identity().unwrap().to_owned();
    let running = start(cluster, config, work);
    running.registered().await;
    cluster.grant(&name);
    running.leads(1).await;
    running
}

/// A run that leads, with the handle of its candidate. Nothing polls it any more: its session stands still.
async fn leader_that_stands_still(
    cluster: &OneLease,
) -> (impl Future<Output: Debug> + Unpin, CandidateHandle) {
    let candidate = Candidate::new(config(), connected(cluster)).unwrap();
    let handle = candidate.handle();
    let mut run = Box::pin(candidate.run(obedient, pending::<()>()));
    let leads = async {
        eventually(|| cluster.candidate(V1BETA1).is_some()).await;
        cluster.grant("me");
        eventually(|| handle.is_leader()).await;
    };
    tokio::select! {
        biased;
        ended = &mut run => panic!("{ended:?}"),
        () = leads => {}
    }
    (run, handle)
}

/// Work that returns as soon as it is asked to.
async fn obedient(leadership: Leadership) -> Result {
    leadership.stopped().await;
    Ok(0)
}

// === impl RunningCandidate ===

impl RunningCandidate {
    /// Waits until the candidate has reported that number of terms to begin.
    async fn leads(&self, terms: usize) {
        let leading = |event: &Event| matches!(event, Event::Leading { .. });
        eventually(|| self.count(leading) >= terms).await;
    }

    /// It registers, is granted the lease as `me`, and leads.
    async fn is_granted(&self, cluster: &OneLease) {
        self.registered().await;
        cluster.grant("me");
        self.leads(1).await;
    }

    async fn registered(&self) {
        eventually(|| self.count(|event| *event == Event::Registered) > 0).await;
    }

    fn count(&self, like: impl Fn(&Event) -> bool) -> usize {
        let events = self.events.lock().unwrap();
        events.iter().filter(|(event, _)| like(event)).count()
    }

    /// True if a term was stopped or ended.
    fn is_disturbed(&self) -> bool {
        self.count(|event| matches!(event, Event::Stopping { .. } | Event::Ended { .. })) > 0
    }

    /// The end of the first term, once it has ended.
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

    /// Shuts it down, which has to release the lease.
    async fn releases(mut self) {
        self.shut_down();
        let released = RunOutcome::ShutDown(Some(TermEnd::Released));
        assert_eq!(self.outcome().await, released);
    }

    async fn outcome(self) -> RunOutcome {
        self.result().await.into()
    }

    /// The result of the run, within two minutes of its own time.
    async fn result(self) -> std::result::Result<Outcome<u32>, Error> {
        let ended = tokio::time::timeout(seconds(120), self.run).await;
        ended.unwrap().unwrap()
    }
}

// === impl RunOutcome ===

impl<T> From<std::result::Result<Outcome<T>, Error>> for RunOutcome<T> {
    fn from(ended: std::result::Result<Outcome<T>, Error>) -> Self {
        match ended {
            Ok(Outcome {
                value: Some(value),
                term,
                ..
            }) => Self::WorkEnded {
                value,
                term: term.unwrap(),
            },
            Ok(outcome) => Self::ShutDown(outcome.term),
            Err(Error::Work { error, term }) => Self::WorkFailed {
                error: error.to_string(),
                term,
            },
            Err(Error::Panicked { message, term }) => Self::WorkPanicked { message, term },
            Err(Error::Unwell { reason, term }) => Self::Unwell {
                error: reason,
                term,
            },
            Err(Error::TermEnded(end)) => Self::TermEnded(end),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Lets so many milliseconds pass.
async fn pass(millis: u64) {
    elector_testing::pass(elector_testing::millis(millis)).await;
}
