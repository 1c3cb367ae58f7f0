//! Candidates as tasks of the test's own process, where more are needed than there can be processes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_candidate::{Candidate, Config, Event as CandidateEvent, Leadership};
use elector_protocol::{LeaseKey, Timestamp};
use elector_runtime::{ClientArgs, Cluster, connect};
use elector_tests::rig::{
    EntryContent, Event, EventKind, HistoryEntry, Implementation, Journal, JournalMark, OwnThreads,
    Testbed, between, events, now,
};
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Candidates of this process with what they share: a handful of clients of the cluster, and threads that are not those
/// of the test, which must not see late what happens.
pub(crate) struct Host<'w> {
    testbed: &'w Testbed,
    clusters: Vec<Cluster>,
    next: AtomicUsize,
    threads: OwnThreads,
    candidates: Mutex<BTreeMap<String, Hosted>>,
}

/// A candidate that is a task. Dropping it is a crash: its work and its requests end where they are.
pub(crate) struct Hosted {
    name: String,
    lease: LeaseKey,
    journal: Arc<Journal>,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// The number of clients.
const CLIENTS: usize = 8;

// === impl Host ===

impl<'w> Host<'w> {
    /// Connects to the cluster of the testbed, for candidates of these leases.
    pub(crate) async fn connect(testbed: &'w Testbed, leases: &[String]) -> Result<Self> {
        testbed.admit(leases).await?;
        // Each candidate has two watches open.
        let mut files = getrlimit(Resource::Nofile);
        files.current = files.maximum;
        setrlimit(Resource::Nofile, files).context("failed to allow for more connections")?;
        let arguments = ClientArgs::of_kubeconfig(testbed.candidate_kubeconfig());
        let threads = OwnThreads::start()?;
        let connecting = threads.spawn(async move {
            let mut clusters = Vec::new();
            for _ in 0..CLIENTS {
                clusters.push(connect(&arguments).await?);
            }
            Ok::<_, anyhow::Error>(clusters)
        })?;
        Ok(Self {
            testbed,
            clusters: connecting.await??,
            next: AtomicUsize::new(0),
            threads,
            candidates: Mutex::default(),
        })
    }

    /// Starts a candidate of that version for a lease, whose work is to wait.
    pub(crate) fn start(&self, lease: &str, name: &str, version: &str) -> Result<()> {
        let testbed = self.testbed;
        testbed.add_participant(name, Implementation::Elector, lease);
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let cluster = self.clusters[index % self.clusters.len()].clone();
        let config = Config::new(lease, version)
            .namespace(testbed.namespace())
            .identity(name);
        let (journal, process) = (Arc::clone(testbed.journal()), name.to_owned());
        let candidate = Candidate::new(config, cluster.into())?;
        let lease = candidate.handle().lease().clone();
        let (book, about) = (Arc::clone(&journal), lease.clone());
        let candidate = candidate.observed_by(move |_, event| {
            let kind = match event {
                CandidateEvent::Registered => EventKind::Start,
                CandidateEvent::Leading { .. } => EventKind::Leading,
                CandidateEvent::WorkStopped { .. } => EventKind::WorkStopped,
                CandidateEvent::Ended { .. } => EventKind::Lost,
                _ => return,
            };
            record(&book, &process, &about, kind);
        });
        let work = |leadership: Leadership| async move {
            leadership.stopped().await;
            Ok::<(), Infallible>(())
        };
        let (shutdown, asked) = oneshot::channel();
        let shutdown_asked = async move {
            if asked.await.is_err() {
                // Dropped, and not asked: it will be aborted.
                std::future::pending::<()>().await;
            }
        };
        let task = self.threads.spawn(async move {
            if let Err(error) = candidate.run(work, shutdown_asked).await {
                tracing::error!(%error, "a candidate gave up");
            }
        })?;
        let hosted = Hosted {
            name: name.to_owned(),
            lease,
            journal,
            shutdown: Some(shutdown),
            task,
        };
        self.candidates.lock().insert(name.to_owned(), hosted);
        Ok(())
    }

    /// A candidate that is to end.
    pub(crate) fn take(&self, name: &str) -> Result<Hosted> {
        self.candidates
            .lock()
            .remove(name)
            .context("a stranger leads")
    }

    /// The first leader of a lease after that mark, and since when it leads.
    pub(crate) async fn leader_since(
        &self,
        lease: &str,
        mark: JournalMark,
        patience: Duration,
    ) -> Result<(String, Timestamp)> {
        let what = format!("{lease} is led");
        let look = |entries: &[HistoryEntry]| {
            about(mark.since(entries), lease, EventKind::Leading)
                .next()
                .map(|(name, at)| (name.to_owned(), at))
        };
        self.testbed.journal().until(&what, patience, look).await
    }

    /// The same, and how long the lease was without work before.
    pub(crate) async fn gap_since(
        &self,
        lease: &str,
        mark: JournalMark,
        patience: Duration,
    ) -> Result<(String, Duration)> {
        let (next, led) = self.leader_since(lease, mark, patience).await?;
        let stopped = self.testbed.journal().read(|entries| {
            let mut stops = about(mark.since(entries), lease, EventKind::WorkStopped);
            stops.next().map(|(_, at)| at)
        });
        let stopped = stopped.with_context(|| format!("the work of {lease} has not ended"))?;
        Ok((next, between(stopped, led)))
    }
}

/// The events of hosted candidates about a lease: the candidate, and when.
fn about<'e>(
    entries: &'e [HistoryEntry],
    lease: &'e str,
    kind: EventKind,
) -> impl Iterator<Item = (&'e str, Timestamp)> {
    events(entries, kind)
        .filter(move |(event, _)| event.lease.as_ref().is_some_and(|key| *key.name == *lease))
        .map(|(event, at)| (event.name.as_str(), at))
}

// === impl Hosted ===

impl Hosted {
    /// Asks it to end, and waits until it has: its lease is released.
    pub(crate) async fn release(mut self) -> Result<()> {
        let asked = self.shutdown.take().map(|shutdown| shutdown.send(()));
        ensure!(asked == Some(Ok(())), "{} has ended", self.name);
        Ok((&mut self.task).await?)
    }

    /// Ends it without a word.
    pub(crate) async fn crash(mut self) {
        self.task.abort();
        // It has been cancelled, which is what the error says.
        let _ = (&mut self.task).await;
        record(&self.journal, &self.name, &self.lease, EventKind::Killed);
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn record(journal: &Journal, name: &str, lease: &LeaseKey, kind: EventKind) {
    let mut event = Event::new(name, kind);
    event.lease = Some(lease.clone());
    journal.record(now(), EntryContent::Event(event));
}
