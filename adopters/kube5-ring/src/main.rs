//! Leads with the client that the program has anyway: kube 5 on rustls with ring.

mod work;

use std::error::Error;
use std::time::Duration;

use elector_candidate::{Candidate, Config, shutdown_signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = kube::Client::try_default().await?;
    let mut config = Config::new("kube5-ring", env!("CARGO_PKG_VERSION").parse()?);
    // Here is no elector to wait for, and nothing deletes the Lease.
    config.fallback = Duration::ZERO;
    config.absent_lease_grace = Some(Duration::ZERO);
    let candidate = Candidate::new(config, client.into())?;
    let work = |leadership| work::count(leadership, |line| println!("{line}"));
    println!("{:?}", candidate.run(work, shutdown_signal()?).await?);
    Ok(())
}
