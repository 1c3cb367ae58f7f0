//! Prints a line a second while it leads: `cargo run -p elector-candidate --features connect --example lead`.

use std::convert::Infallible;
use std::time::Duration;

use elector_candidate::{Candidate, Config, Error, Leadership, shutdown_signal};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let candidate = Candidate::connect(Config::new("example", env!("CARGO_PKG_VERSION"))).await?;
    candidate.run(work, shutdown_signal()?).await?;
    Ok(())
}

async fn work(leadership: Leadership) -> Result<(), Infallible> {
    while leadership.is_leader() {
        println!("leading under token {}", leadership.token());
        let second = Duration::from_secs(1);
        if let Ok(why) = tokio::time::timeout(second, leadership.stopped()).await {
            println!("stopping: {why}");
            break;
        }
    }
    Ok(())
}
