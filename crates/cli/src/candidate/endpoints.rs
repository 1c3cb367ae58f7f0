//! Where probes and scrapes of a candidate are answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use elector_candidate::{Metrics, Unhealthy};
use elector_runtime::{BindAddress, HealthCheck, HealthChecks, ServerReply};

use crate::endpoints::Endpoints;

/// What is served, and to whom.
#[derive(Args, Debug)]
pub(super) struct CandidateEndpointArgs {
    /// Answer /livez, /readyz and /healthz there, each check also by its name, as /livez/work, with ?verbose and
    /// ?exclude=NAME. A standby is live and ready. 0 is off, PORT is that port of 127.0.0.1, :PORT that of all
    /// interfaces, or IP:PORT
    #[arg(long, value_name = "ADDRESS", default_value_t = BindAddress::Off, env = "ELECTOR_HEALTH_PROBE_BIND_ADDRESS")]
    health_probe_bind_address: BindAddress,

    /// Serve the figures for Prometheus there, under /metrics; an address as above
    #[arg(long, value_name = "ADDRESS", default_value_t = BindAddress::Off, env = "ELECTOR_METRICS_BIND_ADDRESS")]
    metrics_bind_address: BindAddress,
}

// === impl CandidateEndpointArgs ===

impl CandidateEndpointArgs {
    /// Listens, and serves from now on.
    pub(super) async fn serve(
        &self,
        checks: HealthChecks,
        metrics: &Metrics,
    ) -> anyhow::Result<Endpoints> {
        let metrics = metrics.clone();
        let figures = move || ServerReply::typed(Metrics::CONTENT_TYPE, metrics.encode());
        let (probes, scrapes) = (self.health_probe_bind_address, self.metrics_bind_address);
        Endpoints::start(probes, checks, scrapes, figures).await
    }
}

/// Live unless work goes on that should have stopped, and ready while it is well, until it is asked to end: neither depends
/// on leadership, nor on the API server. `ending` becomes true then.
pub(super) fn checks(
    live: impl Fn() -> Result<(), Unhealthy> + Send + Sync + 'static,
    ready: impl Fn() -> Result<(), Unhealthy> + Send + Sync + 'static,
    ending: Arc<AtomicBool>,
) -> HealthChecks {
    let health = move || ready().map_err(|unwell| unwell.to_string());
    let work = move || live().map_err(|overdue| overdue.to_string());
    let shutdown = move || match ending.load(Ordering::Relaxed) {
        true => Err("the candidate is shutting down".to_owned()),
        false => Ok(()),
    };
    HealthChecks {
        live: vec![HealthCheck::ping(), HealthCheck::new("work", work)],
        ready: vec![
            HealthCheck::ping(),
            HealthCheck::new("health", health),
            HealthCheck::new("shutdown", shutdown),
        ],
    }
}
