//! Many leaders in one program: a candidate for each part of a group, in one process.

pub(crate) mod feeds;
mod handle;
mod layouts;
mod members;
pub(crate) mod pace;
mod parts;
mod run;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use elector_api::GROUP_LABEL;
use elector_protocol::LeaseKey;
use tokio::runtime::Handle;
use tower::BoxError;

use self::feeds::GroupFeeds;
pub use self::handle::GroupHandle;
use self::layouts::OtherLayouts;
use self::members::GroupMember;
use self::pace::AcquisitionPace;
pub use self::parts::Parts;
use self::run::{GroupRun, GroupWatches};
use crate::alongside::{RunPart, RunningParts, StartedLoop};
use crate::boxed_work::{WorkOrders, WorkResult};
use crate::candidate_context::CandidateContext;
use crate::cluster::Cluster;
use crate::config::{Config, ConfigError, Mode};
use crate::error::Error;
use crate::event::{CandidateObserver, Event, observed_also};
use crate::handle::CandidateHandle;
use crate::health_monitor::{HealthMonitor, HealthProbe, health_probe};
use crate::instance::SharedInstance;
use crate::leadership::Leadership;
#[cfg(feature = "metrics")]
use crate::metrics::Metrics;
use crate::process_health::{ProcessHealth, SharedHealth, health_answers};
#[cfg(feature = "metrics")]
use crate::request_monitor::RequestMonitor;
use crate::run_loop::RunLoop;
use crate::session::failures::SessionFailures;
use crate::session::sources::SessionSources;
use crate::status::StatusPublisher;
#[cfg(feature = "test-util")]
use crate::test_surroundings::{CandidateWitness, begin_witness, surroundings, witnessed};

/// A process that wants to lead parts of a group, ready to run.
///
/// Each part is a lease of its own ([`Parts`]) with a term, a token and work of its own. Several processes share the parts,
/// and what befalls one part is no affair of the others: losing it stops its work alone.
///
#[cfg_attr(feature = "connect", doc = "```no_run")]
#[cfg_attr(not(feature = "connect"), doc = "```ignore")]
/// use elector_candidate::{Config, Error, GroupCandidate, Leadership, Parts, shutdown_signal};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Error> {
/// let config = Config::new("web", env!("CARGO_PKG_VERSION"));
/// let parts = Parts::named(["certs", "routes"]);
/// let candidate = GroupCandidate::connect(config, parts).await?;
/// candidate.run(work, shutdown_signal()?).await?;
/// # Ok(())
/// # }
///
/// async fn work(leadership: Leadership) -> std::io::Result<()> {
///     let part = leadership.part().unwrap_or_default();
///     println!("leading {part} under token {}", leadership.token());
///     leadership.stopped().await;
///     Ok(())
/// }
/// ```
///
/// A process has two watches and writes for all of its parts, which are three connections. It watches all Leases of the
/// namespace, and needs the rights to `list` and `watch` them there; the rest is as for one lease, for each part. The parts
/// are as many renewals as that many leases, and no more processes make no more of them.
pub struct GroupCandidate {
    /// One for all who ask: its clients and gates count the same lists.
    handle: GroupHandle,
    member: GroupMember,
    /// One for each part.
    statuses: Vec<StatusPublisher>,
    cluster: Cluster,
    observer: CandidateObserver,
    #[cfg(feature = "metrics")]
    metrics: Option<Metrics>,
    health: Option<HealthProbe>,
    alongside: Vec<RunPart>,
    #[cfg(feature = "test-util")]
    witnesses: Vec<Arc<dyn CandidateWitness>>,
}

// === impl GroupCandidate ===

impl GroupCandidate {
    /// A member of the group that `config` names as its lease, on that cluster. Nothing happens before
    /// [`run`](Self::run).
    ///
    /// The settings hold for each part. The identity is the name of the process, [`Config::identity`] or one that is found
    /// as usual: each candidate is called by it, a dot, and the name of its Lease.
    ///
    /// # Errors
    ///
    /// When the configuration or the parts break a rule, or [`Config::one_term`] is set, which a group cannot have; the
    /// text names the setting. That of the parts is `parts`.
    pub fn new(config: Config, parts: Parts, cluster: Cluster) -> Result<Self, ConfigError> {
        #[cfg(feature = "test-util")]
        let surroundings = surroundings(cluster.api_server());
        #[cfg(feature = "test-util")]
        let config = match &surroundings {
            Some(by) if config.identity.is_none() => config.identity(by.identity().as_str()),
            _ => config,
        };
        let timeout = cluster.request_timeout();
        // Each Lease says what group it belongs to.
        let group = config.lease.clone();
        let config = config.lease_label(GROUP_LABEL, group);
        let member = GroupMember::new(&config, &parts, cluster.namespace(), timeout)?;
        let status = |config| StatusPublisher::new(config, cluster.clock());
        let statuses: Vec<StatusPublisher> = member.configs.iter().map(status).collect();
        let handles = statuses.iter().map(|it| CandidateHandle::new(it.reader()));
        let candidate = Self {
            handle: GroupHandle::new(parts, handles),
            member,
            statuses,
            cluster,
            observer: Arc::new(|_, _| {}),
            #[cfg(feature = "metrics")]
            metrics: None,
            health: None,
            alongside: Vec::new(),
            #[cfg(feature = "test-util")]
            witnesses: Vec::new(),
        };
        #[cfg(feature = "test-util")]
        if let Some(by) = surroundings {
            let handles = candidate.handle.parts().iter().cloned();
            let handles = handles.zip(&candidate.member.configs);
            let witnesses = handles.map(|(handle, config)| by.join(handle, &config.given));
            let witnesses: Vec<_> = witnesses.collect();
            return Ok(candidate.witnessed(witnesses));
        }
        Ok(candidate)
    }

    /// A member in a test that runs a whole program.
    #[cfg(feature = "test-util")]
    fn witnessed(mut self, witnesses: Vec<Arc<dyn CandidateWitness>>) -> Self {
        self.witnesses.clone_from(&witnesses);
        let leases: Vec<_> = self.leases().cloned().zip(witnesses).collect();
        self.observed_by(move |lease, event| {
            let own = leases.iter().filter(|(own, _)| own == lease);
            own.for_each(|(_, witness)| witness.note(event));
        })
    }

    /// A member with a client of its own, found as kubectl finds it, on a thread of its own
    /// ([`Candidate::connect`](crate::Candidate::connect)).
    ///
    /// # Errors
    ///
    /// As [`Self::new`], when no kubeconfig and no service account names a cluster, or when there is no room for a thread.
    /// A server that is away is no error. [`Mode::Disabled`] needs no cluster.
    #[cfg(feature = "connect")]
    pub async fn connect(config: Config, parts: Parts) -> Result<Self, Error> {
        Self::validate(&config, &parts)?;
        let cluster = match Cluster::connect().await {
            Err(_) if !config.needs_cluster() => Cluster::none(),
            connected => connected?,
        };
        Ok(Self::new(config, parts, cluster)?)
    }

    /// Checks everything that can be checked without a cluster, for the command line.
    #[doc(hidden)]
    pub fn validate(config: &Config, parts: &Parts) -> Result<(), ConfigError> {
        let timeout = elector_runtime::Cluster::REQUEST_TIMEOUT;
        GroupMember::new(config, parts, "default", timeout).map(drop)
    }

    /// The same member, reporting what happens to the candidate of which lease. `observer` must not block. Called again,
    /// it adds an observer.
    #[must_use]
    pub fn observed_by(mut self, observer: impl FnMut(&LeaseKey, &Event) + Send + 'static) -> Self {
        self.observer = observed_also(self.observer, observer);
        self
    }

    /// The same member, whose figures are kept there from its run on, for each lease apart.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// The same member, for as long as this process is well, as `probe` says it
    /// ([`Candidate::with_health`](crate::Candidate::with_health)). It is asked once for all parts: a process that is not
    /// well gives all of them up, in good order, and stands for none until the probe passes.
    ///
    /// Work of one part that finds itself unwell returns an error: its part goes elsewhere, and the others stay.
    #[must_use]
    pub fn with_health<F, E>(mut self, probe: impl FnMut() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        self.health = Some(health_probe(probe));
        self
    }

    /// The same member, with something that has to run beside the work of all parts: a controller, a web server, a webhook
    /// ([`Candidate::alongside`](crate::Candidate::alongside)). Where it ends or panics before a shutdown, the work of all
    /// parts is stopped, their leases are given up, and the run ends with [`Error::PartEnded`]. The future that it is
    /// given is done when they have been given up.
    #[must_use]
    pub fn alongside<P>(
        mut self,
        name: impl Into<String>,
        part: impl FnOnce(Pin<Box<dyn Future<Output = ()> + Send + Sync>>) -> P,
    ) -> Self
    where
        P: IntoFuture<Output: fmt::Debug, IntoFuture: Send + 'static>,
    {
        self.alongside.push(RunPart::new(name.into(), part));
        self
    }

    /// The handle by which the rest of the process sees who leads which part, before, between and after the terms.
    #[must_use]
    pub fn handle(&self) -> GroupHandle {
        self.handle.clone()
    }

    /// Stands for each part, and runs `work` for each term of each, until `shutdown` is done.
    ///
    /// `work` is called with the guard of a term, whose [`Leadership::part`] says which part it is. It is run, stopped and
    /// dropped as [`Candidate::run`](crate::Candidate::run) has it, for each part apart: terms of several parts go on side
    /// by side, and never two of one part.
    ///
    /// Work that fails, panics or returns gives its part back, and this process is no candidate for that part for a while:
    /// 1 s after the first time, doubling up to 1 min, each less by up to a half at random; after work that went on for
    /// more than 1 min it is 1 s again. Neither the other parts nor the run are affected.
    ///
    /// Where no elector acts, a process that finds many parts free takes one every 250 ms, and each process begins at
    /// another part: so they are spread, and not balanced.
    ///
    /// A shutdown stops the work of all parts at once, and hands over or releases their leases. When this future is
    /// dropped, all work is dropped too, and the leases expire.
    ///
    /// # Errors
    ///
    /// When it cannot go on: the name of a LeaseCandidate belongs to another lease, or the server refuses one as invalid
    /// ([`Error::Registration`], [`Error::Config`]); the parts are given up first. When a part beside the work ends
    /// ([`Self::alongside`]). And, at its end, when work of a part did not stop, not even when it was dropped
    /// ([`Error::TermEnded`]): this process did not stand for that part any more from then on, and
    /// [`GroupHandle::check_live`] failed.
    pub async fn run<F, E>(
        self,
        mut work: impl FnMut(Leadership) -> F,
        shutdown: impl Future,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + Send + 'static,
    {
        #[cfg(feature = "test-util")]
        let witnesses: Vec<_> = self.leases().cloned().zip(self.witnesses.clone()).collect();
        let result = WorkResult::default();
        let make = |leadership: Leadership| {
            #[cfg(feature = "test-util")]
            let witness = {
                let own = |(lease, _): &&(LeaseKey, _)| lease == leadership.lease();
                let own = witnesses.iter().find(own).map(|(_, witness)| witness);
                begin_witness(own, &leadership)
            };
            let work = result.boxed(work(leadership));
            #[cfg(feature = "test-util")]
            let work = witnessed(witness, work);
            work
        };
        let (started, parts) = self.start();
        let ended = parts.run_beside(started, make, shutdown).await?;
        result.of(ended).map(drop)
    }

    /// Starts a run, whose work is made where it leaves its orders, and what runs beside it.
    fn start(mut self) -> (StartedLoop, RunningParts) {
        self.log_start();
        let settings = self.member.configs[0].given.clone();
        let (clock, thread) = (self.cluster.clock(), self.cluster.thread());
        let (group, alongside) = (
            self.member.group.clone(),
            std::mem::take(&mut self.alongside),
        );
        let beside = RunningParts::start(alongside, group, settings.grace, Arc::clone(&clock));
        let health = HealthMonitor::new(
            self.health.take(),
            None,
            settings.health,
            clock,
            Handle::current(),
        );
        let answers = health_answers(&health);
        let orders = WorkOrders::default();
        let names = self.member.configs.iter();
        let names = names.map(|it| (it.lease.name.to_string(), it.identity.to_string()));
        let feeds = GroupFeeds::new(names);
        let mut watches = self.watches(settings.mode, &feeds);
        let contexts = self.contexts(settings.fallback, &feeds);
        if let Some(watches) = &mut watches {
            // Their failures are counted once, by the first part.
            watches.monitored_by(contexts[0].monitor.clone());
        }
        let loops = contexts.into_iter().map(|run| RunLoop {
            run,
            health: ProcessHealth::Shared(SharedHealth::follow(&answers)),
            orders: orders.clone(),
        });
        let run = GroupRun {
            watches,
            loops: loops.collect(),
            health,
            answers,
        };
        let started = StartedLoop::start(thread, orders, |shutdown| run.run(shutdown));
        (started, beside)
    }

    /// The watches that all parts share, where there are any.
    fn watches(&self, mode: Mode, feeds: &GroupFeeds) -> Option<GroupWatches> {
        (mode != Mode::Disabled).then(|| GroupWatches {
            group: self.member.group.clone(),
            mode,
            cluster: self.cluster.clone().into_api_server(),
            clock: self.cluster.clock(),
            seed: self.cluster.seed(),
            feeds: feeds.clone(),
            layouts: self.other_layouts(),
            failures: SessionFailures::new(mode, None),
        })
    }

    /// The watch that keeps this process from leading beside members of another number of ranges.
    fn other_layouts(&self) -> Option<OtherLayouts> {
        let (group, settings) = (&self.member.group, &self.member.configs[0].given);
        let ranges = self.handle.ranges()?;
        Some(OtherLayouts::new(
            &group.name,
            ranges,
            settings.max_lease_duration,
        ))
    }

    /// The context of the sessions of each part.
    fn contexts(self, fallback: Duration, feeds: &GroupFeeds) -> Vec<CandidateContext> {
        let count = u32::try_from(self.member.configs.len()).unwrap_or(u32::MAX);
        let member = self.member.member.as_str();
        let pace = Arc::new(AcquisitionPace::new(member, count, fallback));
        let (clock, seed) = (self.cluster.clock(), self.cluster.seed());
        let obtained = self.cluster.instance_lock();
        let cluster = self.cluster.into_api_server();
        let instance = SharedInstance::new(&self.member.configs[0].given, obtained);
        let parts = self.member.configs.into_iter().zip(self.statuses);
        let contexts = parts.zip(0..count).map(|((config, status), index)| {
            let reporters = (Arc::clone(&self.observer), None);
            #[cfg(feature = "metrics")]
            let reporters = match &self.metrics {
                Some(metrics) => {
                    let handle = CandidateHandle::new(status.reader());
                    let lease = metrics.follow(handle, Arc::clone(&clock));
                    let monitor: Arc<dyn RequestMonitor> = Arc::clone(&lease) as _;
                    (lease.observing(reporters.0), Some(monitor))
                }
                None => reporters,
            };
            let (observer, monitor) = reporters;
            CandidateContext {
                config,
                cluster: cluster.clone(),
                clock: Arc::clone(&clock),
                // The pauses of one process differ as those of several do.
                seed: seed.wrapping_add(index.into()),
                observer,
                monitor,
                status,
                sources: SessionSources::Group {
                    feeds: feeds.clone(),
                    pace: pace.of_part(index),
                },
                instance: instance.clone(),
                work_runtime: Handle::current(),
            }
        });
        contexts.collect()
    }

    #[cfg(feature = "test-util")]
    fn leases(&self) -> impl Iterator<Item = &LeaseKey> {
        self.member.configs.iter().map(|config| &config.lease)
    }

    fn log_start(&self) {
        let GroupMember {
            group,
            member,
            configs,
        } = &self.member;
        let (mode, server) = (configs[0].given.mode, self.cluster.url());
        let parts = configs.len();
        tracing::info!(%group, %member, parts, %mode, server, "member of a group starts");
    }
}

impl fmt::Debug for GroupCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCandidate")
            .field("parts", &self.handle)
            .field("member", &self.member)
            .finish_non_exhaustive()
    }
}
