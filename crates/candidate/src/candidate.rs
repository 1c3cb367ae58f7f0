//! A candidate, ready to run.

use std::convert::Infallible;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};

use elector_protocol::{Identity, LeaseKey};
#[cfg(feature = "connect")]
use elector_runtime::{ClientArgs, ConnectError, connect};
use elector_runtime::{Clock, Cluster, SystemClock, random_seed};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::alongside::{RunPart, RunningParts};
use crate::boxed_work::{BoxedOutcome, WorkOrders, WorkResult};
use crate::candidate_context::CandidateContext;
#[cfg(feature = "connect")]
use crate::config::Mode;
use crate::config::{AfterFailure, AfterTerm, Config, ConfigError};
use crate::event::{CandidateObserver, Event};
use crate::handle::CandidateHandle;
use crate::health_monitor::HealthProbe;
use crate::leadership::Leadership;
#[cfg(feature = "metrics")]
use crate::metrics::CandidateMetrics;
use crate::outcome::{RunError, RunOutcome};
#[cfg(feature = "connect")]
use crate::renewal_thread::RenewalThread;
use crate::request_monitor::RequestMonitor;
use crate::resolved_config::ResolvedConfig;
use crate::run_loop::RunLoop;
use crate::status::StatusPublisher;
#[cfg(feature = "test-util")]
use crate::test_surroundings::{CandidateWitness, TestSurroundings, surroundings};

/// A process that wants to lead, ready to run.
pub struct Candidate {
    config: ResolvedConfig,
    cluster: Cluster,
    clock: Arc<dyn Clock>,
    seed: u64,
    observer: CandidateObserver,
    #[cfg(feature = "metrics")]
    metrics: Option<CandidateMetrics>,
    status: StatusPublisher,
    health: Option<HealthProbe>,
    parts: Vec<RunPart>,
    #[cfg(feature = "test-util")]
    witness: Option<Arc<dyn CandidateWitness>>,
    /// Where requests and renewals run, if not on the caller's executor.
    #[cfg(feature = "connect")]
    thread: Option<RenewalThread>,
}

/// Why a candidate of its own client cannot be started.
#[cfg(feature = "connect")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration breaks a rule.
    #[error("configure the candidate: {0}")]
    Config(#[from] ConfigError),
    /// No connection could be set up.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// There is no room for a thread.
    #[error("start a thread for renewals: {0}")]
    Thread(#[from] std::io::Error),
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
        if let Some(surroundings) = surroundings(&cluster) {
            return Self::surrounded(config, cluster, &*surroundings);
        }
        Self::with(config, cluster, Arc::new(SystemClock::start()))
    }

    fn with(config: Config, cluster: Cluster, clock: Arc<dyn Clock>) -> Result<Self, ConfigError> {
        let config = ResolvedConfig::new(config, cluster.namespace())?;
        Ok(Self {
            status: StatusPublisher::new(&config, Arc::clone(&clock)),
            config,
            cluster,
            clock,
            seed: random_seed(),
            observer: Arc::new(|_| {}),
            #[cfg(feature = "test-util")]
            witness: None,
            #[cfg(feature = "metrics")]
            metrics: None,
            health: None,
            parts: Vec::new(),
            #[cfg(feature = "connect")]
            thread: None,
        })
    }

    /// A candidate in a test that runs a whole program.
    #[cfg(feature = "test-util")]
    fn surrounded(
        mut config: Config,
        cluster: Cluster,
        by: &dyn TestSurroundings,
    ) -> Result<Self, ConfigError> {
        let identity = config.identity.take();
        config.identity = identity.or_else(|| Some(by.identity()));
        let mut candidate = Self::with(config, cluster, by.clock())?.with_seed(by.seed());
        let lease_duration = candidate.config().timing.lease_duration;
        let witness = by.join(candidate.handle(), candidate.config(), lease_duration);
        let observer = Arc::clone(&witness);
        candidate.observer = Arc::new(move |event| observer.note(event));
        candidate.witness = Some(witness);
        Ok(candidate)
    }

    /// A candidate with a client of its own, whose requests and renewals run on a thread of their own: work that blocks
    /// its executor keeps the lease, for as long as it blocks. Such work cannot be stopped; it has to ask
    /// [`Leadership::is_leader`], and after a loss it goes on until it next awaits something.
    ///
    /// With a client that the caller has made, as [`Self::new`] takes it, requests and renewals run on the executor of the
    /// caller, and work that blocks all threads of that for longer than the renew deadline loses the lease.
    ///
    /// The thread costs some memory, and a detour between winning the lease and the beginning of the work: the table in
    /// `docs/leadership.md` of the repository has both.
    ///
    /// The work runs on the executor of the caller of [`Self::run`] in either case, and the shutdown is waited for there. A
    /// clock that is set ([`Self::with_clock`]) must not depend on a runtime.
    ///
    /// # Errors
    ///
    /// When the configuration breaks a rule, when no kubeconfig and no service account names a cluster, or when there is
    /// no room for a thread. A server that is away is no error. [`Mode::Disabled`](crate::Mode::Disabled) needs no
    /// cluster.
    #[cfg(feature = "connect")]
    pub async fn connect(config: Config, args: &ClientArgs) -> Result<Self, StartError> {
        let thread = RenewalThread::start()?;
        let args = args.clone();
        // The tasks of the client belong to the runtime in which it is made.
        let needs_cluster = config.mode != Mode::Disabled;
        let connecting = async move {
            match connect(&args).await {
                Err(_) if !needs_cluster => Ok(Cluster::absent()),
                connected => connected,
            }
        };
        let cluster = thread.run(connecting).await?;
        let mut candidate = Self::new(config, cluster)?;
        candidate.thread = Some(thread);
        Ok(candidate)
    }

    /// The same candidate by another clock, for tests and simulations. A [`handle`](Self::handle) that was obtained before
    /// is one without a candidate from then on.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.status = StatusPublisher::new(&self.config, Arc::clone(&clock));
        self.clock = clock;
        self
    }

    /// The same candidate with this number in place of a random one. It spreads the requests of many candidates; a
    /// simulation that passes it repeats.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The same candidate, reporting what happens. `observer` must not block. Called again, it adds an observer.
    #[must_use]
    pub fn observed_by(mut self, observer: impl FnMut(&Event) + Send + 'static) -> Self {
        let (before, observer) = (self.observer, Mutex::new(observer));
        self.observer = Arc::new(move |event| {
            before(event);
            observer.lock().unwrap_or_else(PoisonError::into_inner)(event);
        });
        self
    }

    /// The same candidate, whose figures are kept there from its run on.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn with_metrics(mut self, metrics: CandidateMetrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// The same candidate, for as long as this process is well, as `probe` says it: an error or a panic is a failure, and
    /// so is no answer in time. [`Config::health`] says how often it is asked and how many failures count.
    ///
    /// It is asked all the time, whether this process leads or not. Before the first success the process is no candidate.
    /// When the probe has failed a few times, a leader stops its work and gives its lease up in good order, and a standby
    /// withdraws. The process stays out for the pause of [`AfterFailure::Retry`](crate::AfterFailure::Retry), and until
    /// the probe passes. Then it is a candidate again. With [`AfterTerm::Return`](crate::AfterTerm::Return) a term that
    /// ends so is the end of the run ([`RunOutcome::Unwell`]).
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
    pub fn with_health<F, E>(mut self, mut probe: impl FnMut() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        self.health = Some(Arc::new(Mutex::new(move || {
            let asked = probe();
            // With its sources, where the error knows how to.
            asked
                .map(|answer| answer.map_err(|error| format!("{error:#}")))
                .boxed()
        })));
        self
    }

    /// The same candidate, with something that has to run beside the work: a controller, a web server, a webhook. A lease
    /// says that its holder works, so that a part which is gone must not leave a leader behind.
    ///
    /// `part` is given a future, and gives the part, which is a task of the executor of the caller of [`Self::run`] from
    /// the beginning of the run on, on standbys too. Where it ends or panics before a shutdown, the work is stopped, the
    /// lease given up, and the run ends with [`RunError::PartEnded`], which names the part; so it does with
    /// [`AfterFailure::Retry`](crate::AfterFailure::Retry).
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
        self.config.given.after_term = AfterTerm::Return;
        self.config.given.after_failure = AfterFailure::End;
        self
    }

    /// The handle by which the rest of the process sees who leads, before, between and after the terms.
    #[must_use]
    pub fn handle(&self) -> CandidateHandle {
        CandidateHandle::new(self.status.reader())
    }

    /// Its configuration, as it was given.
    pub const fn config(&self) -> &Config {
        &self.config.given
    }

    /// The lease that it wants.
    pub const fn lease(&self) -> &LeaseKey {
        &self.config.lease
    }

    /// Its identity.
    pub const fn identity(&self) -> &Identity {
        &self.config.identity
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
    /// it is an error or a panic: those end the run, or are tried again after a pause ([`AfterFailure`](crate::AfterFailure)). So does, or is,
    /// a panic of a task.
    ///
    /// A clean end stops the work, deletes the LeaseCandidate, and hands over or releases the lease, in this order.
    /// It waits for the server no longer than two request timeouts, and a second more for its last Events
    /// ([`Config::record_events`]). When this future is dropped, the work is dropped too, and the lease expires.
    ///
    /// # Errors
    ///
    /// When it cannot go on: the API that the cluster serves does not take the LeaseCandidate's name, the LeaseCandidate
    /// belongs to another lease, or the server refuses it as invalid. A candidate that leads goes on leading first. What a
    /// server that is down, or that lacks permissions, has to say is logged, and tried again. And when a part that has to
    /// run beside the work ([`Self::alongside`]) ends; an error or a panic of the work is the outcome all the same.
    pub async fn run<F, T, E>(
        self,
        mut work: impl FnMut(Leadership) -> F,
        shutdown: impl Future,
    ) -> Result<RunOutcome<T, E>, RunError>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        #[cfg(feature = "test-util")]
        let mut work = {
            let witness = self.witness.clone();
            move |leadership: Leadership| {
                let mut witness = witness.as_ref().map(|it| it.begin_work(&leadership));
                let work = work(leadership);
                async move {
                    let result = work.await;
                    witness.iter_mut().for_each(|it| it.note_return());
                    result
                }
            }
        };
        let (orders, result) = (WorkOrders::default(), WorkResult::default());
        // Outlives the run loop, which takes its end for a shutdown.
        let (tell, told) = oneshot::channel::<Infallible>();
        let mut tell = Some(tell);
        let (mut run_loop, mut parts) = self.start(orders.clone(), told);
        let mut shutdown = pin!(shutdown);
        let ended = loop {
            tokio::select! {
                biased;
                order = orders.next() => order.fill(|leadership| result.boxed(work(leadership))),
                ended = &mut run_loop => break ended,
                _ = &mut shutdown, if tell.is_some() => tell = None,
                () = parts.ended(), if tell.is_some() => tell = None,
            }
        };
        Ok(result.typed(parts.report(ended).await?))
    }

    /// Starts a run, whose work is made where it leaves its orders, and the parts beside it.
    fn start(
        self,
        orders: WorkOrders,
        told: oneshot::Receiver<Infallible>,
    ) -> (
        BoxFuture<'static, Result<BoxedOutcome, RunError>>,
        RunningParts,
    ) {
        let (observer, monitor) = self.reporters();
        let parts = RunningParts::start(self.parts, &self.config, Arc::clone(&self.clock));
        let run = CandidateContext {
            config: self.config,
            cluster: self.cluster,
            clock: self.clock,
            seed: self.seed,
            observer,
            monitor,
            status: self.status,
            work_runtime: Handle::current(),
        };
        let run_loop = RunLoop {
            run,
            health: self.health,
            orders,
        };
        let run_loop = run_loop.run(told);
        #[cfg(feature = "connect")]
        let run_loop = match self.thread {
            Some(thread) => async move { thread.run(run_loop).await }.boxed(),
            None => run_loop.boxed(),
        };
        #[cfg(not(feature = "connect"))]
        let run_loop = run_loop.boxed();
        (run_loop, parts)
    }

    /// The observer of the run, and the monitor of its requests.
    fn reporters(&self) -> (CandidateObserver, Option<Arc<dyn RequestMonitor>>) {
        let observer = Arc::clone(&self.observer);
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &self.metrics {
            let (clock, mode) = (Arc::clone(&self.clock), self.config.given.mode);
            let lease = metrics.follow(self.handle(), clock, mode);
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
