//! A candidate, ready to run.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use elector_protocol::LeaseKey;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tower::BoxError;

use crate::alongside::{RunPart, RunningParts, StartedLoop};
use crate::boxed_work::{WorkOrders, WorkResult};
use crate::candidate_context::CandidateContext;
use crate::cluster::Cluster;
use crate::config::{Config, ConfigError, Mode};
use crate::error::Error;
use crate::event::{CandidateObserver, Event, observed_also};
use crate::handle::CandidateHandle;
use crate::health_monitor::{HealthMonitor, HealthProbe, HealthReports, health_probe};
use crate::instance::SharedInstance;
use crate::leadership::Leadership;
#[cfg(feature = "metrics")]
use crate::metrics::Metrics;
use crate::outcome::Outcome;
use crate::process_health::ProcessHealth;
use crate::request_monitor::RequestMonitor;
use crate::resolved_config::ResolvedConfig;
use crate::run_loop::RunLoop;
use crate::session::sources::SessionSources;
use crate::status::StatusPublisher;
#[cfg(feature = "test-util")]
use crate::test_surroundings::{
    CandidateWitness, TestSurroundings, begin_witness, surroundings, witnessed,
};

/// A process that wants to lead, ready to run.
pub struct Candidate {
    config: ResolvedConfig,
    cluster: Cluster,
    observer: CandidateObserver,
    #[cfg(feature = "metrics")]
    metrics: Option<Metrics>,
    status: StatusPublisher,
    health: Option<HealthProbe>,
    health_reports: Option<HealthReports>,
    parts: Vec<RunPart>,
    #[cfg(feature = "test-util")]
    witness: Option<Arc<dyn CandidateWitness>>,
}

// === impl Candidate ===

impl Candidate {
    /// A candidate on that cluster. Nothing happens before [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// When the configuration breaks a rule; the text names it.
    pub fn new(config: Config, cluster: Cluster) -> Result<Self, ConfigError> {
        #[cfg(feature = "test-util")]
        let surroundings = surroundings(cluster.api_server());
        #[cfg(feature = "test-util")]
        let config = match &surroundings {
            Some(by) if config.identity.is_none() => config.identity(by.identity().as_str()),
            _ => config,
        };
        let timeout = cluster.request_timeout();
        let config = ResolvedConfig::new(config, cluster.namespace(), timeout)?;
        let candidate = Self {
            status: StatusPublisher::new(&config, cluster.clock()),
            config,
            cluster,
            observer: Arc::new(|_, _| {}),
            #[cfg(feature = "metrics")]
            metrics: None,
            health: None,
            health_reports: None,
            parts: Vec::new(),
            #[cfg(feature = "test-util")]
            witness: None,
        };
        #[cfg(feature = "test-util")]
        if let Some(by) = surroundings {
            return Ok(candidate.witnessed(&*by));
        }
        Ok(candidate)
    }

    /// A candidate in a test that runs a whole program.
    #[cfg(feature = "test-util")]
    fn witnessed(mut self, by: &dyn TestSurroundings) -> Self {
        let witness = by.join(self.handle(), &self.config.given);
        let observer = Arc::clone(&witness);
        self.observer = Arc::new(move |_, event| observer.note(event));
        self.witness = Some(witness);
        self
    }

    /// A candidate with a client of its own, found as kubectl finds it ([`Cluster::connect`]), whose requests and renewals
    /// run on a thread of their own: work that blocks its executor keeps the lease, for as long as it blocks. Such work
    /// cannot be stopped; it has to ask [`Leadership::is_leader`], and after a loss it goes on until it next awaits
    /// something.
    ///
    /// The thread costs some memory, and a detour between winning the lease and the beginning of the work: the table in
    /// `docs/leadership.md` of the repository has both. The work runs on the executor of the caller of [`Self::run`] in
    /// any case, and the shutdown is waited for there.
    ///
    /// # Errors
    ///
    /// When the configuration breaks a rule, when no kubeconfig and no service account names a cluster, or when there is
    /// no room for a thread. A server that is away is no error. [`Mode::Disabled`](crate::Mode::Disabled) needs no
    /// cluster.
    #[cfg(feature = "connect")]
    pub async fn connect(config: Config) -> Result<Self, Error> {
        config.validate()?;
        let cluster = match Cluster::connect().await {
            Err(_) if !config.needs_cluster() => Cluster::none(),
            connected => connected?,
        };
        Ok(Self::new(config, cluster)?)
    }

    /// The same candidate, reporting what happens to that of which lease. `observer` must not block. Called again, it adds
    /// an observer.
    #[must_use]
    pub fn observed_by(mut self, observer: impl FnMut(&LeaseKey, &Event) + Send + 'static) -> Self {
        self.observer = observed_also(self.observer, observer);
        self
    }

    /// The same candidate, whose figures are kept there from its run on.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// The same candidate, for as long as this process is well, as `probe` says it: an error or a panic is a failure, and
    /// so is no answer in time. [`Config::health_period`] says how often it is asked, and
    /// [`Config::health_failures`] how many failures count.
    ///
    /// It is asked all the time, whether this process leads or not. Before the first success the process is no candidate.
    /// When the probe has failed a few times, a leader stops its work and gives its lease up in good order, and a standby
    /// withdraws. The process stays out for the pause of [`Config::retry_work`], and until the probe passes. Then it is a
    /// candidate again. With [`Config::one_term`] a term that ends so is the end of the run ([`Error::Unwell`]).
    ///
    /// Ask for what this process alone lacks: a disk, a zone, its own progress. Where the probes of all candidates fail
    /// because of something that they share, none leads. A probe that concerns the work alone asks a
    /// [`handle`](Self::handle) first, and passes on a standby; new work is first asked for after a period.
    ///
    /// The probe runs on the executor of the caller of [`Self::run`], one question at a time, and holds up neither work nor
    /// renewals. Where work blocks that executor, the probe gives no answer, so that its leader is unwell too: with
    /// a client that the candidate has made, such a leader would renew for as long as it blocks.
    ///
    /// ```no_run
    /// # fn example(candidate: elector_candidate::Candidate) {
    /// let handle = candidate.handle();
    /// let candidate = candidate.with_health(move || {
    ///     let leads = handle.is_leader();
    ///     async move {
    ///         if leads {
    ///             tokio::net::TcpStream::connect("127.0.0.1:8080").await?;
    ///         }
    ///         std::fs::metadata("/mnt/data/ready").map(drop)
    ///     }
    /// });
    /// # }
    /// ```
    #[must_use]
    pub fn with_health<F, E>(mut self, probe: impl FnMut() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        self.health = Some(health_probe(probe));
        self
    }

    /// The same candidate, for as long as this process does not say by itself that it is unwell: `reports` holds the
    /// reason while it is. What follows is that of [`Self::with_health`], which may be given too; but a report counts at
    /// once, without a period or a number of failures. A process whose sender is dropped says nothing any more.
    ///
    /// ```no_run
    /// # fn example(candidate: elector_candidate::Candidate) {
    /// let (report, reports) = tokio::sync::watch::channel(None);
    /// let candidate = candidate.with_health_reports(reports);
    /// // Later, wherever it turns out:
    /// report.send_replace(Some("the disk is full".to_owned()));
    /// # }
    /// ```
    #[must_use]
    pub fn with_health_reports(mut self, reports: watch::Receiver<Option<String>>) -> Self {
        self.health_reports = Some(reports);
        self
    }

    /// The same candidate, with something that has to run beside the work: a controller, a web server, a webhook. A lease
    /// says that its holder works, so that a part which is gone must not leave a leader behind.
    ///
    /// `part` is given a future, and gives the part, which is a task of the executor of the caller of [`Self::run`] from
    /// the beginning of the run on, on standbys too. Where it ends or panics before a shutdown, the work is stopped, the
    /// lease given up, and the run ends with [`Error::PartEnded`], which names the part; so it does with
    /// [`Config::retry_work`].
    ///
    /// The future that the part was given is done when the lease has been given up. A part that keeps it has
    /// [`Config::grace`] to end from then on; a part that dropped it is dropped at once. A part that blocks its thread
    /// cannot be dropped: the run returns a second later without it.
    ///
    /// ```no_run
    /// # async fn example(candidate: elector_candidate::Candidate) -> Result<(), Box<dyn std::error::Error>> {
    /// let listener = tokio::net::TcpListener::bind("0.0.0.0:8080").await?;
    /// let routes = axum::Router::new();
    /// let candidate = candidate.alongside("http", |stop| {
    ///     axum::serve(listener, routes).with_graceful_shutdown(stop)
    /// });
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn alongside<P>(
        mut self,
        name: impl Into<String>,
        part: impl FnOnce(Pin<Box<dyn Future<Output = ()> + Send + Sync>>) -> P,
    ) -> Self
    where
        P: IntoFuture<Output: fmt::Debug, IntoFuture: Send + 'static>,
    {
        self.parts.push(RunPart::new(name.into(), part));
        self
    }

    /// The same candidate for one term: its run ends with that, whatever the configuration says.
    pub(crate) fn for_one_term(mut self) -> Self {
        self.config.given.one_term = true;
        self.config.given.retry_work = false;
        self
    }

    /// The handle by which the rest of the process sees who leads, before, between and after the terms.
    #[must_use]
    pub fn handle(&self) -> CandidateHandle {
        CandidateHandle::new(self.status.reader())
    }

    /// Registers, waits to be elected, and runs `work` for each term, until `shutdown` is done or the work ends by
    /// itself.
    ///
    /// A server that is away at the start is waited for. Where it serves no LeaseCandidates,
    /// [`Mode::Elected`](crate::Mode::Elected) waits for them, [`Mode::Auto`](crate::Mode::Auto) does without, and
    /// registers when they come; [`Mode::Plain`](crate::Mode::Plain) needs none. Where the cluster comes to serve them
    /// by another API, the candidate registers there; the Lease and its term go on.
    ///
    /// `work` is called once per term, with the guard of that term, and never while the work of an earlier term still
    /// runs, nor a task that it has spawned ([`Leadership::spawn`]). When it is told to stop ([`Leadership::stopped`])
    /// it should return soon. It is dropped, with its tasks, after the grace period while the lease is held; after a
    /// loss when [`Config::stop_budget`] is used up, which counts from the end of the belief and not from when the loss
    /// was noticed; and at once when another holder is known to lead. What it returns while stopping is ignored, unless
    /// it is an error or a panic: those end the run, or are tried again after a pause ([`Config::retry_work`]). So does, or is, a panic of
    /// a task.
    ///
    /// A clean end stops the work, deletes the LeaseCandidate, and hands over or releases the lease, in this order.
    /// It waits for the server no longer than two request timeouts, and a second more for its last Events
    /// (`Config::record_events`). When this future is dropped, the work is dropped too, and the lease expires.
    ///
    /// # Errors
    ///
    /// When it cannot go on: the API that the cluster serves does not take the LeaseCandidate's name, the LeaseCandidate
    /// belongs to another lease, or the server refuses it as invalid. A candidate that leads goes on leading first. What a
    /// server that is down, or that lacks permissions, has to say is logged, and tried again. And when a part that has to
    /// run beside the work ([`Self::alongside`]) ends, when the work fails or panics, and when a term was the end of the run.
    pub async fn run<F, T, E>(
        self,
        mut work: impl FnMut(Leadership) -> F,
        shutdown: impl Future,
    ) -> Result<Outcome<T>, Error>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Into<BoxError> + Send + 'static,
    {
        #[cfg(feature = "test-util")]
        let witness = self.witness.clone();
        let result = WorkResult::default();
        let make = |leadership: Leadership| {
            #[cfg(feature = "test-util")]
            let witness = begin_witness(witness.as_ref(), &leadership);
            let work = result.boxed(work(leadership));
            #[cfg(feature = "test-util")]
            let work = witnessed(witness, work);
            work
        };
        let (run_loop, parts) = self.start();
        let ended = parts.run_beside(run_loop, make, shutdown).await?;
        result.of(ended)
    }

    /// Starts a run, whose work is made where it leaves its orders, and the parts beside it.
    fn start(self) -> (StartedLoop, RunningParts) {
        self.log_start();
        let (observer, monitor) = self.reporters();
        let (clock, thread) = (self.cluster.clock(), self.cluster.thread());
        let (lease, grace) = (self.config.lease.clone(), self.config.given.grace);
        let parts = RunningParts::start(self.parts, lease, grace, Arc::clone(&clock));
        let health = HealthMonitor::new(
            self.health,
            self.health_reports,
            self.config.given.health,
            Arc::clone(&clock),
            Handle::current(),
        );
        let orders = WorkOrders::default();
        let run = CandidateContext {
            instance: SharedInstance::new(&self.config.given, self.cluster.instance_lock()),
            config: self.config,
            seed: self.cluster.seed(),
            cluster: self.cluster.into_api_server(),
            clock,
            observer,
            monitor,
            status: self.status,
            sources: SessionSources::Own,
            work_runtime: Handle::current(),
        };
        let run_loop = RunLoop {
            run,
            health: ProcessHealth::Own(health),
            orders: orders.clone(),
        };
        let started = StartedLoop::start(thread, orders, |told| run_loop.run(told));
        (started, parts)
    }

    fn log_start(&self) {
        let (lease, candidate) = (&self.config.lease, &self.config.identity);
        let (mode, server) = (self.config.given.mode, self.cluster.url());
        let fallback = self.config.given.fallback;
        let fallback_after = (mode == Mode::Auto).then(|| tracing::field::debug(fallback));
        tracing::info!(%lease, %candidate, %mode, fallback_after, server, "candidate starts");
    }

    /// The observer of the run, and the monitor of its requests.
    fn reporters(&self) -> (CandidateObserver, Option<Arc<dyn RequestMonitor>>) {
        let observer = Arc::clone(&self.observer);
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            let lease = metrics.follow(self.handle(), self.cluster.clock());
            return (lease.observing(observer), Some(lease));
        }
        (observer, None)
    }
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
