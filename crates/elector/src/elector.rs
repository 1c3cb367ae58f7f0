//! The elector as its users see it: made once, run until told to stop.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use elector_api::CandidateApi;
use elector_protocol::Instant;
use elector_protocol::Timestamp;
use elector_protocol::elector::{Decision, Election, Settings};
use elector_runtime::{Clock, Cluster, FailureLog};
use elector_workqueue::Backoff;
use tracing::{info, warn};

use crate::config::{Config, ConfigError};
use crate::event::{Event, Observer};
use crate::life::{Ended, Life};

/// Elects leaders for the leases that candidates name.
///
/// Everything that it does happens inside of [`run`](Self::run), on the task that awaits it: it spawns nothing, so
/// when that future returns or is dropped, no task, timer, watch or connection of it is left. The client's own
/// connections close with the last clone of the [`Cluster`].
///
/// ```no_run
/// use std::sync::Arc;
///
/// use elector::{Config, Elector};
/// use elector_runtime::{Cluster, SystemClock};
///
/// # async fn example(cluster: Cluster) -> Result<(), Box<dyn std::error::Error>> {
/// let elector = Elector::new(Config::default(), cluster, Arc::new(SystemClock::start()))?;
/// elector.run(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await;
/// # Ok(())
/// # }
/// ```
pub struct Elector {
    config: Config,
    cluster: Cluster,
    clock: Arc<dyn Clock>,
    step: Step,
    observer: Observer,
}

/// How an election is stepped: [`Election::step`], save in tests that make it fail.
pub(crate) type Step = fn(&Election, Instant, Timestamp, &Settings) -> Decision;

// === impl Elector ===

impl Elector {
    /// An elector for that cluster. Nothing happens before [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// When a value of the configuration is out of its bounds.
    pub fn new(
        config: Config,
        cluster: Cluster,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            config,
            cluster,
            clock,
            step: Election::step,
            observer: Arc::new(|_| {}),
        })
    }

    /// The same elector, telling what happens. `observer` must not block.
    #[must_use]
    pub fn observed_by(self, observer: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self {
            observer: Arc::new(observer),
            ..self
        }
    }

    /// Elects until `shutdown` is done, through whatever failures of the API server; each is one line in the log.
    ///
    /// It follows the cluster to another API of LeaseCandidates: to a better one that comes to be served, and to
    /// whichever is left when the one in use goes. Holders are not disturbed, since all rests on their Leases.
    ///
    /// Returns within two seconds of `shutdown`: what is under way is given up, and the lock of the built-in
    /// controller is released if this elector held it.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut found = None;
        loop {
            let candidates = match found.take() {
                Some(api) => api,
                None => tokio::select! {
                    biased;
                    () = &mut shutdown => return,
                    api = self.discover() => api,
                },
            };
            info!(
                server = self.cluster.url(),
                candidates = %candidates,
                "electing"
            );
            let life = Life::new(
                &self.config,
                &self.cluster,
                candidates,
                self.clock.clone(),
                self.step,
                Arc::clone(&self.observer),
            );
            match life.run(shutdown.as_mut()).await {
                Ended::ShutDown => return,
                Ended::Rewound => {
                    warn!(
                        "the store went back to an older version; starting anew, as a new process would"
                    );
                }
                Ended::Moved(api) => {
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

    /// Finds out which LeaseCandidates are served, for as long as it takes.
    async fn discover(&self) -> CandidateApi {
        let backoff = Backoff::new(self.config.retry_base, self.config.retry_max);
        let (mut log, subject) = (FailureLog::default(), "discovery");
        let mut failures = 0;
        loop {
            let found = self.cluster.candidate_api().await;
            let now = self.clock.monotonic();
            match found {
                Ok(api) => {
                    log.end(now, subject, None);
                    return api;
                }
                Err(error) => log.note(now, subject, &format!("failed to {error}")),
            }
            failures += 1;
            self.clock
                .sleep_until(now.after(backoff.delay(failures)))
                .await;
        }
    }

    #[cfg(test)]
    pub(crate) fn with_step(self, step: Step) -> Self {
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
