//! Prints a line a second while it leads: `cargo run -p elector-candidate --example lead`.

use std::convert::Infallible;
use std::time::Duration;

use elector_candidate::{Candidate, Config, Leadership};
use elector_runtime::{ClientArgs, connect, shutdown_signal};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let shutdown = shutdown_signal()?;
    let cluster = connect(&ClientArgs::default()).await?;
    let config = Config::new("example", env!("CARGO_PKG_VERSION").parse()?);
    let candidate = Candidate::new(config, cluster)?;
    let outcome = candidate.run(work, shutdown).await?;
    println!("{outcome:?}");
    Ok(())
}

async fn work(leadership: Leadership) -> Result<(), Infallible> {
    while leadership.is_leader() {
        println!("leading with token {}", leadership.token());
        let second = Duration::from_secs(1);
        if let Ok(why) = tokio::time::timeout(second, leadership.stopped()).await {
            println!("stopping: {why}");
            break;
        }
    }
    Ok(())
}
