//! A web service of which the leader alone gives out ticket numbers: any replica answers, and sends the client on to the
//! leader. The replicas are a StatefulSet behind the headless Service `tickets`, so that each has a name in DNS.

mod routes;

use std::convert::Infallible;
use std::env;
use std::error::Error;
use std::fs;
use std::future::ready;
use std::path::PathBuf;

use elector_candidate::{Candidate, Cluster, Config, Leadership, shutdown_signal};
use tokio::net::TcpListener;

/// Requests are the work: a term lasts until it is to end.
async fn work(leadership: Leadership) -> Result<(), Infallible> {
    leadership.stopped().await;
    Ok(())
}

/// All of the program but what a test makes otherwise.
async fn program(
    cluster: Cluster,
    listener: TcpListener,
    data: PathBuf,
    shutdown: impl Future,
) -> Result<(), elector_candidate::Error> {
    let config = Config::new("axum-routed", env!("CARGO_PKG_VERSION"));
    let candidate = Candidate::new(config, cluster)?;
    let routes = routes::routes(candidate.handle());
    // A replica that has lost its volume is not ready, and does not lead.
    let volume = move || ready(fs::metadata(&data).map(drop));
    let candidate = candidate.with_health(volume).alongside("http", |stop| {
        axum::serve(listener, routes).with_graceful_shutdown(stop)
    });
    candidate.run(work, shutdown).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let shutdown = shutdown_signal()?;
    let address = env::var("LISTEN").unwrap_or_else(|_| "0.0.0.0:8080".to_owned());
    let listener = TcpListener::bind(address).await?;
    let data = env::var_os("DATA").map_or_else(env::temp_dir, PathBuf::from);
    Ok(program(Cluster::connect().await?, listener, data, shutdown).await?)
}

#[cfg(test)]
mod tests;
