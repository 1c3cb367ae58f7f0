//! Leads with the client that the program has anyway: kube 5 on rustls with ring.

mod work;

use std::error::Error;

use elector_candidate::{Candidate, Config, shutdown_signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = kube::Client::try_default().await?;
    let config = Config::new("kube5-ring", env!("CARGO_PKG_VERSION"));
    let candidate = Candidate::new(config, client.into())?;
    let work = |leadership| work::count(leadership, |line| println!("{line}"));
    println!("{:?}", candidate.run(work, shutdown_signal()?).await?);
    Ok(())
}
