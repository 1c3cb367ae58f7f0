//! Leads where rustls has two providers to choose from and nobody has chosen: by itself rustls would panic.

use std::error::Error;

use elector_candidate::{Candidate, Config, Leadership, shutdown_signal};
use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Both are linked.
    println!("{:?}", aws_lc_rs::default_provider().kx_groups);
    println!("{:?}", ring::default_provider().kx_groups);
    assert!(CryptoProvider::get_default().is_none());
    let config = Config::new("two-providers", env!("CARGO_PKG_VERSION"));
    let work = |leadership: Leadership| async move {
        println!("leading, token {}", leadership.token());
        leadership.stopped().await;
        Ok::<(), std::io::Error>(())
    };
    let candidate = Candidate::connect(config).await?;
    println!("{:?}", candidate.run(work, shutdown_signal()?).await?);
    Ok(())
}
