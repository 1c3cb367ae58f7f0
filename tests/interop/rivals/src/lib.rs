//! The part that the programs of this package share: their command line, and work that asks before each operation.

#[path = "../../../faults/src/register_client.rs"]
mod register_client;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

pub use register_client::RegisterClient;

/// The command line of a rival. The API server is found by KUBECONFIG.
#[derive(Debug, Default)]
pub struct RivalArgs {
    pub namespace: String,
    pub lease: String,
    pub name: String,
    pub register: String,
}

/// The lease duration of the matrix.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);

/// The interval of renewals that kube-leader-election documents for such a lease.
pub const RENEWAL: Duration = Duration::from_secs(5);

// === impl RivalArgs ===

impl RivalArgs {
    /// Reads it.
    ///
    /// # Errors
    /// When it names a flag that is unknown, or one without a value.
    pub fn read() -> Result<Self> {
        let (mut args, mut words) = (Self::default(), std::env::args().skip(1));
        while let Some(flag) = words.next() {
            let value = words
                .next()
                .with_context(|| format!("{flag} has no value"))?;
            match flag.as_str() {
                "--kubeconfig" => {}
                "--namespace" => args.namespace = value,
                "--lease" => args.lease = value,
                "--name" => args.name = value,
                "--register" => args.register = value,
                _ => bail!("{flag} is unknown"),
            }
        }
        Ok(args)
    }
}

/// Does an operation every 50 ms while `leads` returns a period and a token, and asks right before each. Each renewal begins a
/// period: where two lead at once, the later renewal is the newer claim.
pub async fn work(client: &mut RegisterClient, leads: impl Fn() -> Option<(u64, u64)>) {
    let mut ticks = RegisterClient::ticks();
    loop {
        ticks.tick().await;
        if let Some((period, token)) = leads() {
            client.period = period;
            client.operate(token, || leads().is_some()).await;
        }
    }
}
