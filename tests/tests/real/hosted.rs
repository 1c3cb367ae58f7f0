//! Candidates as tasks of the test's own process, where so many are needed that as many processes would be too much.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, ensure};
use elector_candidate::{Candidate, Config, Event as CandidateEvent, Leadership};
use elector_protocol::{Identity, LeaseKey};
use elector_runtime::{ClientArgs, Cluster, connect};
use elector_tests::rig::{
    EntryContent, Event, EventKind, Implementation, Journal, OwnThreads, Testbed, now,
};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Resources that candidates of one process share: a handful of clients of the cluster, and threads that are not those
/// of the test, which must not see late what happens.
pub(crate) struct Host<'w> {
    testbed: &'w Testbed,
    clusters: Vec<Cluster>,
    next: AtomicUsize,
    threads: OwnThreads,
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
    /// Connects to the cluster of the testbed.
    ///
    /// # Errors
    /// When its kubeconfig is not usable, or it serves no candidates.
    pub(crate) async fn connect(testbed: &'w Testbed) -> Result<Self> {
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
        let clusters = connecting.await??;
        let next = AtomicUsize::new(0);
        Ok(Self {
            testbed,
            clusters,
            next,
            threads,
        })
    }

    /// Starts a candidate of that version for a lease, whose work is to wait.
    ///
    /// # Errors
    /// When its name or version is unusable.
    pub(crate) fn start(&self, lease: &str, name: &str, version: &str) -> Result<Hosted> {
        self.testbed
            .add_participant(name, Implementation::Elector, lease);
        let namespace = self.testbed.namespace();
        let identity = Identity::new(name).context("an empty name")?;
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let cluster = self.clusters[index % self.clusters.len()].clone();
        let config = Config::new(lease, version.parse()?)
            .in_namespace(namespace)
            .identified_as(identity);
        let (journal, process) = (Arc::clone(self.testbed.journal()), name.to_owned());
        let candidate = Candidate::new(config, cluster)?;
        let lease = candidate.lease().clone();
        let (book, about) = (Arc::clone(&journal), lease.clone());
        let candidate = candidate.observed_by(move |told| tell(&book, &process, &about, told));
        let work = |leadership: Leadership| async move {
            leadership.stopped().await;
            Ok::<(), Infallible>(())
        };
        let (shutdown, told) = oneshot::channel();
        let shutdown_told = async move {
            if told.await.is_err() {
                // Dropped, and not told: it will be aborted.
                std::future::pending::<()>().await;
            }
        };
        let task = self.threads.spawn(async move {
            if let Err(error) = candidate.run(work, shutdown_told).await {
                tracing::error!(%error, "a candidate gave up");
            }
        })?;
        Ok(Hosted {
            name: name.to_owned(),
            lease,
            journal,
            shutdown: Some(shutdown),
            task,
        })
    }
}

// === impl Hosted ===

impl Hosted {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Tells it to end, and waits until it has: its lease is released.
    ///
    /// # Errors
    /// When it has ended before.
    pub(crate) async fn release(mut self) -> Result<()> {
        let told = self.shutdown.take().map(|shutdown| shutdown.send(()));
        ensure!(told == Some(Ok(())), "{} has ended", self.name);
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

/// Records an event of a candidate, as the process of one would.
pub(crate) fn tell(journal: &Journal, name: &str, lease: &LeaseKey, told: &CandidateEvent) {
    let kind = match told {
        CandidateEvent::Registered => EventKind::Start,
        CandidateEvent::Leading { .. } => EventKind::Leading,
        CandidateEvent::WorkStopped { .. } => EventKind::WorkStopped,
        CandidateEvent::Ended { .. } => EventKind::Lost,
        _ => return,
    };
    record(journal, name, lease, kind);
}

fn record(journal: &Journal, name: &str, lease: &LeaseKey, kind: EventKind) {
    let mut event = Event::new(name, kind);
    event.lease = Some(lease.clone());
    journal.record(now(), EntryContent::Event(event));
}
