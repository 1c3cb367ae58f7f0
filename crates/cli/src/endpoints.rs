//! The servers for probes and scrapes of a process, on a thread of their own, which nothing else can hold up.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use elector_runtime::{
    BindAddress, HealthChecks, HttpServer, ServerAnswer, ServerReply, ServerRequest,
};
use tokio::runtime::{Builder, Runtime};
use tracing::info;

/// The servers of a process. Dropping it closes them.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    /// From the first server on.
    runtime: Option<Runtime>,
}

// === impl Endpoints ===

impl Endpoints {
    /// Listens on these addresses, and answers probes by the checks and scrapes by the figures from now on.
    pub(crate) async fn start(
        probes: BindAddress,
        checks: Arc<HealthChecks>,
        scrapes: BindAddress,
        figures: impl Fn() -> ServerReply + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let mut endpoints = Self::default();
        let answer = move |path: &str, query: Option<&str>| checks.answer(path, query);
        let flag = "--health-probe-bind-address";
        endpoints.serve("health", flag, probes, answer).await?;
        let answer = move |path: &str, _: Option<&str>| match path {
            "/metrics" => figures(),
            _ => ServerReply::not_found(),
        };
        let flag = "--metrics-bind-address";
        endpoints.serve("metrics", flag, scrapes, answer).await?;
        Ok(endpoints)
    }

    /// Listens where this flag says, and answers reads about `what` from now on; nothing where that is off.
    async fn serve(
        &mut self,
        what: impl fmt::Display,
        flag: &str,
        address: BindAddress,
        answer: impl Fn(&str, Option<&str>) -> ServerReply + Send + Sync + 'static,
    ) -> anyhow::Result<Option<SocketAddr>> {
        self.start_server(what, flag, address, HttpServer::bind(address, answer))
            .await
    }

    /// The same for requests of any method; where it listens.
    pub(crate) async fn serve_all_methods(
        &mut self,
        what: impl fmt::Display,
        flag: &str,
        address: BindAddress,
        answer: impl Fn(&ServerRequest<'_>) -> ServerAnswer + Send + Sync + 'static,
    ) -> anyhow::Result<Option<SocketAddr>> {
        let bound = HttpServer::bind_for_all_methods(address, answer);
        self.start_server(what, flag, address, bound).await
    }

    /// Runs beside the servers, if there is any.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }

    async fn start_server(
        &mut self,
        what: impl fmt::Display,
        flag: &str,
        address: BindAddress,
        bound: impl Future<Output = io::Result<Option<HttpServer>>> + Send + 'static,
    ) -> anyhow::Result<Option<SocketAddr>> {
        if address == BindAddress::Off {
            return Ok(None);
        }
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .context("start the runtime of the endpoints")?,
        };
        let runtime = self.runtime.insert(runtime);
        // A socket belongs to the runtime in which it is made.
        let bound = runtime.spawn(bound).await?;
        let server = bound.with_context(|| format!("listen where {flag} says, on {address}"))?;
        let Some(server) = server else {
            return Ok(None);
        };
        let address = server.local_address()?;
        info!(%address, "serving {what}");
        runtime.spawn(server.serve());
        Ok(Some(address))
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Also where a runtime may not be waited for.
            runtime.shutdown_background();
        }
    }
}
