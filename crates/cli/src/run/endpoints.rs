//! Where probes and scrapes are answered.

use std::convert::Infallible;
use std::fmt;

use anyhow::Context as _;
use clap::Args;
use elector::{Health, Metrics};
use elector_runtime::{BindAddress, HttpServer, ServerReply};
use tokio::task::JoinSet;
use tracing::info;

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

/// The servers of a process. Dropping it closes them.
pub(crate) struct Endpoints {
    _servers: JoinSet<Infallible>,
}

// === impl EndpointArgs ===

impl EndpointArgs {
    /// Listens, and serves from now on: on threads of the runtime, and so beside the elector.
    pub(crate) async fn serve(
        &self,
        health: &Health,
        metrics: &Metrics,
    ) -> anyhow::Result<Endpoints> {
        let mut servers = JoinSet::new();
        let checks = health.checks();
        let address = self.health_probe_bind_address;
        let server = HttpServer::bind(address, move |path, query| checks.answer(path, query));
        let server = server
            .await
            .with_context(|| failure("--health-probe-bind-address", address))?;
        if let Some(server) = server {
            info!(address = %server.local_address()?, "serving health");
            servers.spawn(server.serve());
        }
        let (address, metrics) = (self.metrics_bind_address, metrics.clone());
        let server = HttpServer::bind(address, move |path, _| match path {
            "/metrics" => ServerReply::typed(Metrics::CONTENT_TYPE, metrics.encode()),
            _ => ServerReply::not_found(),
        });
        let server = server
            .await
            .with_context(|| failure("--metrics-bind-address", address))?;
        if let Some(server) = server {
            info!(address = %server.local_address()?, "serving metrics");
            servers.spawn(server.serve());
        }
        Ok(Endpoints { _servers: servers })
    }
}

fn failure(flag: &str, address: impl fmt::Display) -> String {
    format!("listen where {flag} says, on {address}")
}
