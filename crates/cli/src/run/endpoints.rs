//! Where probes and scrapes of an elector are answered.

use std::sync::Arc;

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

    /// How many namespaces have a value of their own in the label of figures; the rest share _other_. A namespace whose
    /// leases are gone gives its place to the next that comes
    #[arg(long, value_name = "N", default_value_t = Metrics::NAMESPACES)]
    metrics_namespaces: usize,
}

// === impl EndpointArgs ===

impl EndpointArgs {
    /// The figures to serve.
    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::with_namespaces(self.metrics_namespaces)
    }

    /// Listens, and serves from now on, beside the elector.
    pub(crate) async fn serve(
        &self,
        health: &Health,
        metrics: &Metrics,
    ) -> anyhow::Result<Endpoints> {
        let metrics = metrics.clone();
        let figures = move || ServerReply::typed(Metrics::CONTENT_TYPE, metrics.encode());
        let (probes, scrapes) = (self.health_probe_bind_address, self.metrics_bind_address);
        let checks = Arc::new(health.checks());
        Endpoints::start(probes, checks, scrapes, figures).await
    }
}
