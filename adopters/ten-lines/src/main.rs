//! Joins an election in ten lines: the program of the crate's front page.

use elector_candidate::{Candidate, Config, Error, Leadership, shutdown_signal};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let candidate = Candidate::connect(Config::new("ten-lines", env!("CARGO_PKG_VERSION"))).await?;
    candidate.run(work, shutdown_signal()?).await?;
    Ok(())
}

async fn work(leadership: Leadership) -> std::io::Result<()> {
    println!("leading under token {}", leadership.token());
    leadership.stopped().await;
    Ok(())
}
