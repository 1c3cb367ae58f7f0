//! Joins an election in ten lines: the program of the crate's front page.

use elector_candidate::{Candidate, ClientArgs, Config, Leadership};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shutdown = elector_candidate::shutdown_signal()?;
    let config = Config::new("ten-lines", env!("CARGO_PKG_VERSION").parse()?);
    let candidate = Candidate::connect(config, &ClientArgs::default()).await?;
    candidate.run(work, shutdown).await?.into_result()?;
    Ok(())
}

async fn work(leadership: Leadership) -> std::io::Result<()> {
    println!("leading, token {}", leadership.token());
    leadership.stopped().await;
    Ok(())
}
