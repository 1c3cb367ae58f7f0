//! A stranger that takes a lease from its holder.

use anyhow::Result;
use elector_tests::rig::{Testbed, now};

/// A stranger writes itself into the Lease of the testbed, for a second.
///
/// # Errors
/// When the server refuses it.
pub(crate) async fn take(testbed: &Testbed) -> Result<()> {
    loop {
        let mut lease = testbed.leases().get(testbed.lease_name()).await?;
        lease.spec.holder_identity = Some("stranger".to_owned());
        lease.spec.lease_duration_seconds = Some(1);
        lease.spec.acquire_time = Some(now());
        lease.spec.renew_time = Some(now());
        match testbed.write(&lease).await {
            Ok(_) => return Ok(()),
            // The holder was quicker.
            Err(error) => match error.downcast_ref() {
                Some(kube::Error::Api(status)) if status.code == 409 => {}
                _ => return Err(error),
            },
        }
    }
}
