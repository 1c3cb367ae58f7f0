//! The elector as its users see it: made once, run until it is stopped.

use std::convert::Infallible;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::Identity;
use elector_protocol::elector::Election;
use elector_runtime::{ApiDiscovery, Clock, Cluster, EventPublisher, SystemClock, random_seed};
use tracing::{info, warn};

use crate::active_belief::ActiveBelief;
use crate::config::{Config, ConfigError};
use crate::elector_context::ElectorContext;
use crate::elector_lock::ElectorLock;
use crate::event::Event;
use crate::event_recorder::EventRecorder;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::session::{ElectorSession, SessionEnd, SessionMonitor};

/// Elects leaders for the leases that candidates name.
///
/// Everything that it does happens inside of [`run`](Self::run), on the task that awaits it: it spawns nothing, so
/// when that future returns or is dropped, no task, timer, watch or connection of it is left. The client's own
/// connections close with the last clone of the [`Cluster`].
///
/// ```no_run
/// use elector::{Config, Elector};
/// use elector_runtime::Cluster;
///
/// # async fn example(cluster: Cluster) -> Result<(), Box<dyn std::error::Error>> {
/// let elector = Elector::new(Config::default(), cluster)?;
/// elector.run(tokio::signal::ctrl_c()).await;
/// # Ok(())
/// # }
/// ```
pub struct Elector {
    context: ElectorContext,
    health: Option<Health>,
    metrics: Option<Metrics>,
}

/// The period of requests for a better API of LeaseCandidates, if one may exist.
const API_DISCOVERY_PERIOD: Duration = Duration::from_secs(30);

/// The time for the release of the lock of the electors; the whole end takes no more than two seconds.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

// === impl Elector ===

impl Elector {
    /// An elector for that cluster. Nothing happens before [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// When a value of the configuration is out of its bounds.
    pub fn new(config: Config, cluster: Cluster) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            context: ElectorContext {
                config,
                cluster,
                clock: Arc::new(SystemClock::start()),
                seed: random_seed(),
                step: Election::step,
                observer: Arc::new(|_| {}),
            },
            health: None,
            metrics: None,
        })
    }

    /// The same elector by another clock, for tests and simulations.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.context.clock = clock;
        self
    }

    /// The same elector with this number in place of a random one, which no other elector may have: it spreads the
    /// retries of many, and names this one in the lock of the built-in controller. A simulation that passes it repeats.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.context.seed = seed;
        self
    }

    /// The same elector, telling what happens. `observer` must not block.
    #[must_use]
    pub fn observed_by(mut self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.context.observer = Arc::new(observer);
        self
    }

    /// The same elector, reporting its health there.
    #[must_use]
    pub fn with_health(self, health: Health) -> Self {
        Self {
            health: Some(health),
            ..self
        }
    }

    /// The same elector, keeping these figures.
    #[must_use]
    pub fn with_metrics(self, metrics: Metrics) -> Self {
        Self {
            metrics: Some(metrics),
            ..self
        }
    }

    /// Elects until `shutdown` is done, through failures of the API server; each is one line in the log. A
    /// server that is away at the start, or that serves no LeaseCandidates, is waited for.
    ///
    /// It follows the cluster to another API of LeaseCandidates: to a better one that comes to be served, and to
    /// the one that is left when the one in use goes. Holders are not disturbed, since all rests on their Leases.
    ///
    /// With leader election among electors it acts while it holds their lock, and stands by otherwise: it watches, so
    /// that it can act at once when it takes over, and writes nothing.
    ///
    /// Returns within two seconds of `shutdown`. What is under way is given up, with leader election after it had some
    /// time to end; then the lock of the built-in controller and that of the electors are released if this elector held
    /// them.
    pub async fn run(self, shutdown: impl Future) {
        let contact = self.context.cluster.contact();
        if let Some(metrics) = &self.metrics {
            metrics.set_contact(contact.clone());
        }
        if let Some(health) = &self.health {
            health.begin(&self.context.clock, contact);
        }
        let election = self.context.config.leader_election.as_ref();
        let mut lock = election.map(|election| {
            let mut observer = Arc::clone(&self.context.observer);
            let mut counts = None;
            if let Some(metrics) = &self.metrics {
                observer = metrics.observing(observer);
                metrics.set_master(&election.lease.name, false);
                counts = Some(Arc::clone(metrics.write_counts()));
            }
            ElectorLock::new(&self.context, election, observer, counts)
        });
        let (mut events, publishing) = self.event_recorder(lock.as_ref());
        let shutdown = pin!(shutdown);
        let ended = tokio::select! {
            biased;
            ended = self.elect(&mut lock, &mut events, shutdown) => ended,
            never = publishing => match never {},
        };
        // The server may still carry out what was given up: the lock must outlast that.
        if let (Some(lock), SessionEnd::ShutDown { idle: true }) = (lock, ended) {
            lock.release(RELEASE_TIMEOUT).await;
        }
    }

    async fn elect(
        &self,
        lock: &mut Option<ElectorLock>,
        events: &mut EventRecorder,
        mut shutdown: Pin<&mut impl Future>,
    ) -> SessionEnd {
        let (cluster, clock) = (&self.context.cluster, &self.context.clock);
        let discovery =
            || ApiDiscovery::new(cluster.clone(), API_DISCOVERY_PERIOD, self.context.seed);
        let (mut api_discovery, mut found) = (discovery(), None);
        loop {
            let candidates = match found.take() {
                Some(api) => api,
                None => tokio::select! {
                    biased;
                    _ = &mut shutdown => return SessionEnd::ShutDown { idle: true },
                    api = api_discovery.next() => api,
                    never = keep(lock) => match never {},
                    never = turn(self.health.as_ref(), &**clock) => match never {},
                },
            };
            info!(server = cluster.url(), candidates = %candidates, "electing");
            let longest = self.context.config.timing.max_lease_duration;
            let monitor = SessionMonitor::new(self.health.clone(), self.metrics.as_ref(), longest);
            let session = ElectorSession::new(
                &self.context,
                candidates,
                monitor,
                &mut api_discovery,
                lock.as_mut(),
                &mut *events,
            );
            match session.run(shutdown.as_mut()).await {
                end @ SessionEnd::ShutDown { .. } => return end,
                SessionEnd::Restored => {
                    warn!(
                        "the store was restored to an older version: dropping all state and listing again"
                    );
                    api_discovery = discovery();
                }
                SessionEnd::ApiMoved(api) => {
                    info!(
                        before = %candidates,
                        now = %api,
                        "candidates are served by another API: listing them again"
                    );
                    found = Some(api);
                }
            }
        }
    }

    /// The recorder of Events, and what publishes them where any are to be recorded.
    fn event_recorder(
        &self,
        lock: Option<&ElectorLock>,
    ) -> (EventRecorder, impl Future<Output = Infallible> + use<>) {
        let clock = || Arc::clone(&self.context.clock);
        let belief = lock.map_or_else(
            || ActiveBelief::unlimited(clock()),
            |lock| lock.belief().clone(),
        );
        let (recorder, publisher) = match &self.context.config.event_host {
            Some(host) => {
                let instance = Identity::of_elector(host, self.context.seed);
                let cluster = &self.context.cluster;
                let (recorder, publisher) = EventRecorder::start(cluster, &instance, clock());
                (recorder, Some(publisher))
            }
            None => (EventRecorder::off(), None),
        };
        (recorder, publish(publisher, belief))
    }

    #[cfg(test)]
    pub(crate) fn with_step(mut self, step: crate::elector_context::StepFn) -> Self {
        self.context.step = step;
        self
    }
}

impl fmt::Debug for Elector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elector")
            .field("config", &self.context.config)
            .field("cluster", &self.context.cluster)
            .finish_non_exhaustive()
    }
}

/// Reports that this elector goes on, while no session does.
async fn turn(health: Option<&Health>, clock: &dyn Clock) -> Infallible {
    let Some(health) = health else {
        return std::future::pending().await;
    };
    loop {
        let again = health.turn(clock.monotonic());
        clock.sleep_until(again).await;
    }
}

/// Publishes the Events that are recorded. One that comes to its turn when this elector does not act any more is dropped.
async fn publish(publisher: Option<EventPublisher>, belief: ActiveBelief) -> Infallible {
    if let Some(mut publisher) = publisher {
        while let Some(event) = publisher.next().await {
            if belief.may_begin() {
                belief.guard(publisher.write(&event)).await;
            }
        }
    }
    std::future::pending().await
}

/// Keeps the lock of the electors, if there is one, while no session does.
async fn keep(lock: &mut Option<ElectorLock>) -> Infallible {
    match lock {
        Some(lock) => lock.keep().await,
        None => std::future::pending().await,
    }
}
