//! A program from top to bottom, which holds the lease while it works through a list of jobs:
//! `cargo run -p elector-candidate --features connect --example batch`.

use elector_candidate::{Candidate, Config, Error, shutdown_signal};

fn jobs() -> impl Iterator<Item = u32> {
    1..=3
}

async fn run_job(job: u32, token: u64) {
    println!("job {job} under token {token}");
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let candidate = Candidate::connect(Config::new("report", env!("CARGO_PKG_VERSION"))).await?;
    let lease = tokio::select! {
        lease = candidate.become_leader() => lease?,
        () = shutdown_signal()? => return Ok(()),
    };
    for job in jobs() {
        // Nothing drops this program: it has to ask.
        if lease.stop_reason().is_some() {
            break;
        }
        run_job(job, lease.token()).await;
    }
    // An error where the term had ended before.
    lease.release().await.map(drop)
}
