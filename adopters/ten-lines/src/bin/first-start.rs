//! The ten lines with a log, in the mode of the argument, which also names the lease: how long a first start takes.

use elector_candidate::{Candidate, Config, Error, Leadership, shutdown_signal};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let log = tracing_subscriber::fmt().with_timer(tracing_subscriber::fmt::time::uptime());
    log.with_ansi(false).init();
    let shutdown = shutdown_signal()?;
    let config = match std::env::args().nth(1).as_deref() {
        Some("plain") => Config::plain("plain"),
        Some("as-client-go") => Config::as_client_go("as-client-go"),
        _ => Config::new("auto", env!("CARGO_PKG_VERSION")),
    };
    let candidate = Candidate::connect(config).await?;
    candidate.run(work, shutdown).await?;
    Ok(())
}

async fn work(leadership: Leadership) -> std::io::Result<()> {
    tracing::info!("leading, token {}", leadership.token());
    leadership.stopped().await;
    Ok(())
}
