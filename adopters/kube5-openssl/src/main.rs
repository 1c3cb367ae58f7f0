//! Leads with the client that the program has anyway: kube 5 on OpenSSL.

use std::error::Error;

use elector_candidate::{Candidate, Config, Leadership, shutdown_signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = kube::Client::try_default().await?;
    let config = Config::new("kube5-openssl", env!("CARGO_PKG_VERSION"));
    let work = |leadership: Leadership| async move {
        println!("leading, token {}", leadership.token());
        leadership.stopped().await;
        Ok::<(), std::io::Error>(())
    };
    let candidate = Candidate::new(config, client.into())?;
    println!("{:?}", candidate.run(work, shutdown_signal()?).await?);
    Ok(())
}
