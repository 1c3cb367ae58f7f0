//! A stranger's edit of the Lease.

use anyhow::{Context as _, Result};
use elector_protocol::ResourceVersion;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{Api, DeleteParams, PostParams};

use crate::fault::LeaseEdit;
use crate::subject::LEASE;

/// Edits the Lease; the revision that it made, if any.
///
/// # Errors
/// When the server refuses it.
pub(crate) async fn make(leases: &Api<Lease>, edit: LeaseEdit) -> Result<Option<ResourceVersion>> {
    if edit == LeaseEdit::Delete {
        let deleted = leases.delete(LEASE, &DeleteParams::default()).await;
        deleted.context("failed to delete the lease")?;
        return Ok(None);
    }
    let write = || async {
        let mut lease = leases.get(LEASE).await?;
        if edit == LeaseEdit::Annotate {
            let seen = lease.metadata.resource_version.clone().unwrap_or_default();
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert("example.com/seen".to_owned(), seen);
        } else {
            lease.spec = Some(LeaseSpec {
                holder_identity: Some(String::new()),
                ..LeaseSpec::default()
            });
        }
        leases.replace(LEASE, &PostParams::default(), &lease).await
    };
    let written = loop {
        match write().await {
            // The holder renewed in between.
            Err(kube::Error::Api(status)) if status.is_conflict() => {}
            result => break result.context("failed to edit the lease")?,
        }
    };
    let version = written.metadata.resource_version.unwrap_or_default();
    Ok(Some(ResourceVersion(version.parse()?)))
}
