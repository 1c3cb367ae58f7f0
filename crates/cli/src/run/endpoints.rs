//! Where probes and scrapes of an elector are answered.

use clap::Args;
use elector::{Health, Metrics};
use elector_runtime::{BindAddress, ServerReply};

use crate::endpoints::Endpoints;

/// What is served, and to whom.
#[derive(Args, Debug)]
#[command(next_help_heading = "Health and metrics")]
pub(crate) struct EndpointArgs {
    /// Answer /livez, /readyz and /healthz there, each check also by its name, as /readyz/lease-sync, with ?verbose and
    /// ?exclude=NAME. 0 is off, PORT is that port of 127.0.0.1, :PORT that of all interfaces, or IP:PORT
    #[arg(long, value_name = "ADDRESS", default_value_t = BindAddress::Off)]
    health_probe_bind_address: BindAddress,

    /// Serve the figures for Prometheus there, under /metrics; an address as above
    #[arg(long, value_name = "ADDRESS", default_value_t = BindAddress::Off)]
    metrics_bind_address: BindAddress,
}

// === impl EndpointArgs ===

impl EndpointArgs {
    /// Listens, and serves from now on, beside the elector.
    pub(crate) async fn serve(
        &self,
        health: &Health,
        metrics: &Metrics,
    ) -> anyhow::Result<Endpoints> {
        let metrics = metrics.clone();
        let figures = move || ServerReply::typed(Metrics::CONTENT_TYPE, metrics.encode());
        let (probes, scrapes) = (self.health_probe_bind_address, self.metrics_bind_address);
        Endpoints::start(probes, health.checks(), scrapes, figures).await
    }
}
