//! The elector as its users see it: made once, run until told to stop.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::elector::Election;
use elector_runtime::{ApiDiscovery, Clock, Cluster, SystemClock, random_seed};
use tracing::{info, warn};

use crate::config::{Config, ConfigError};
use crate::event::{ElectorObserver, Event};
use crate::session::{ElectorSession, SessionEnd, StepFn};

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
    config: Config,
    cluster: Cluster,
    clock: Arc<dyn Clock>,
    seed: u64,
    step: StepFn,
    observer: ElectorObserver,
}

/// How often a better API of LeaseCandidates is asked for, where there may be one.
const API_DISCOVERY_PERIOD: Duration = Duration::from_secs(30);

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
            config,
            cluster,
            clock: Arc::new(SystemClock::start()),
            seed: random_seed(),
            step: Election::step,
            observer: Arc::new(|_| {}),
        })
    }

    /// The same elector by another clock, for tests and simulations.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The same elector with this number in place of a random one, which no other elector may have: it spreads the
    /// retries of many, and names this one in the lock of the built-in controller. A simulation that passes it repeats.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The same elector, telling what happens. `observer` must not block.
    #[must_use]
    pub fn observed_by(self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self {
            observer: Arc::new(observer),
            ..self
        }
    }

    /// Elects until `shutdown` is done, through failures of the API server; each is one line in the log. A
    /// server that is away at the start, or that serves no LeaseCandidates, is waited for.
    ///
    /// It follows the cluster to another API of LeaseCandidates: to a better one that comes to be served, and to
    /// the one that is left when the one in use goes. Holders are not disturbed, since all rests on their Leases.
    ///
    /// Returns within two seconds of `shutdown`: what is under way is given up, and the lock of the built-in
    /// controller is released if this elector held it.
    pub async fn run(self, shutdown: impl Future) {
        let mut shutdown = pin!(shutdown);
        let discovery = || ApiDiscovery::new(self.cluster.clone(), API_DISCOVERY_PERIOD, self.seed);
        let (mut api_discovery, mut found) = (discovery(), None);
        loop {
            let candidates = match found.take() {
                Some(api) => api,
                None => tokio::select! {
                    biased;
                    _ = &mut shutdown => return,
                    api = api_discovery.next() => api,
                },
            };
            info!(
                server = self.cluster.url(),
                candidates = %candidates,
                "electing"
            );
            let session = ElectorSession::new(
                &self.config,
                &self.cluster,
                candidates,
                &mut api_discovery,
                (self.clock.clone(), self.seed),
                self.step,
                Arc::clone(&self.observer),
            );
            match session.run(shutdown.as_mut()).await {
                SessionEnd::ShutDown => return,
                SessionEnd::Restored => {
                    warn!(
                        "the store went back to an older version; starting anew, as a new process would"
                    );
                    api_discovery = discovery();
                }
                SessionEnd::ApiMoved(api) => {
                    info!(
                        before = %candidates,
                        now = %api,
                        "candidates are served by another API; starting anew with those"
                    );
                    found = Some(api);
                }
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn with_step(self, step: StepFn) -> Self {
        Self { step, ..self }
    }
}

impl fmt::Debug for Elector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elector")
            .field("config", &self.config)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}
