//! The comparisons of the policies, for a Lease that the test writes.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_api::Lease;
use elector_tests::rig::Testbed;
use futures::FutureExt as _;
use http::Request;
use kube::Client;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::{Attempt, OBJECT, config_maps, create, create_object, fence, until_answered, update};
use crate::policy_mutants;

/// The Lease, which no candidate names.
const LEASE: &str = "by-hand";

/// Parts of the policies' messages.
const STALE: &str = "is stale: the object was written with";
const NO_LEADER: &str = "is not that of a leader";
const MISSING: &str = "elector.dev/token is missing";

pub(super) async fn compared(testbed: Arc<Testbed>) -> Result<()> {
    let [fenced, other] = accounts(&testbed).await?;
    hold(&testbed, &fenced, &other).await
}

/// Each expression of the policies is changed in each way, and some cell tells.
pub(super) async fn changed(testbed: Arc<Testbed>) -> Result<()> {
    let accounts = accounts(&testbed).await?;
    let reset = || {
        let testbed = Arc::clone(&testbed);
        async move {
            // A check that failed may have left neither.
            let leases = testbed.leases();
            leases.delete(LEASE, &DeleteParams::default()).await.ok();
            let path = format!("{}/{OBJECT}", config_maps(&testbed));
            let delete = Request::delete(path).body(Vec::new())?;
            testbed.site().client().request::<Value>(delete).await.ok();
            create(&testbed).await
        }
        .boxed()
    };
    let check = || {
        let (testbed, [fenced, other]) = (Arc::clone(&testbed), accounts.clone());
        async move { hold(&testbed, &fenced, &other).await }.boxed()
    };
    let is_fence = |name: &str| name.ends_with(".object") || name.ends_with(".lease");
    policy_mutants::play_each(&testbed, is_fence, reset, check).await
}

/// An account whose writes need a token, and one whose do not.
async fn accounts(testbed: &Testbed) -> Result<[Client; 2]> {
    create_object(testbed).await?;
    let (site, namespace) = (testbed.site(), testbed.namespace());
    let fenced = site.unbound_account(namespace, "fenced").await?;
    let other = site.unbound_account(namespace, "other").await?;
    fence(testbed, LEASE, "fenced").await?;
    Ok([fenced, other].map(|account| account.client().clone()))
}

async fn hold(testbed: &Testbed, fenced: &Client, other: &Client) -> Result<()> {
    // Without a Lease, a token is needed all the same; and by the named account only.
    says(testbed, fenced, None, Some(MISSING)).await?;
    says(testbed, fenced, Some("0x5"), Some("is no fencing token")).await?;
    says(testbed, fenced, Some("5"), None).await?;
    says(testbed, other, None, None).await?;
    for (token, refused) in [(None, Some(MISSING)), (Some("5"), None)] {
        let creates = Attempt {
            creates: true,
            token,
        };
        until_answered(testbed, fenced, creates, refused).await?;
    }

    // A leader, and its term.
    let mut lease = led("a", 1, Some(("5", "a", 1)))?;
    lease = testbed.write(&lease).await?;
    says(testbed, fenced, Some("6"), Some(NO_LEADER)).await?;
    says(testbed, fenced, Some("4"), Some(NO_LEADER)).await?;
    says(testbed, fenced, Some("5"), None).await?;
    ensure!(update(testbed, fenced, "5").await?.is_none(), "refused");

    // A grant, of which the accept may be on its way.
    lease = testbed.write(&of(&lease, led("b", 2, None)?)).await?;
    let granted = lease.metadata.resource_version.clone();
    let granted = granted.context("a Lease without a version")?;
    says(testbed, fenced, Some("5"), Some("by-hand has none")).await?;
    says(testbed, fenced, Some(&granted), None).await?;
    lease = testbed
        .write(&of(&lease, led("b", 2, Some((&granted, "b", 2)))?))
        .await?;
    let words = format!("by-hand has {granted}");
    says(testbed, fenced, Some("5"), Some(&words)).await?;
    says(testbed, fenced, Some(&granted), None).await?;
    let holds = update(testbed, fenced, &granted).await?.is_none();
    ensure!(holds, "refused");

    // Another kind of client leads, in a term that it has counted to: it leaves the annotations in place.
    for (holder, term) in [("c", 2), ("b", 3)] {
        let led = led(holder, term, Some((&granted, "b", 2)))?;
        lease = testbed.write(&of(&lease, led)).await?;
        says(testbed, fenced, Some(&granted), Some("by-hand has none")).await?;
    }

    // The token of the object's last write does not depend on the Lease.
    let delete = DeleteParams::default();
    testbed.leases().delete(LEASE, &delete).await?;
    says(testbed, fenced, Some(&granted), None).await?;
    says(testbed, fenced, Some("5"), Some(STALE)).await?;
    let wrong = update(testbed, fenced, "5").await?;
    ensure!(wrong.is_some(), "a stale write is stored");
    // As numbers, and not as the texts that they are.
    for (before, after) in [
        ("9", "10"),
        ("99", "100"),
        ("999999999999999999", "1000000000000000000"),
    ] {
        let renumbered = update(testbed, other, before).await?;
        ensure!(renumbered.is_none(), "{renumbered:?}");
        says(testbed, fenced, Some(after), None).await?;
        let written = update(testbed, fenced, after).await?;
        ensure!(written.is_none(), "{after} after {before}: {written:?}");
        says(testbed, fenced, Some(before), Some(STALE)).await?;
    }
    says(testbed, other, None, None).await
}

async fn says(
    testbed: &Testbed,
    by: &Client,
    token: Option<&str>,
    refused: Option<&str>,
) -> Result<()> {
    until_answered(testbed, by, Attempt::update(token), refused).await
}

/// The Lease in that term, with a token, and the holder and the term that it belongs to.
fn led(holder: &str, term: i32, token: Option<(&str, &str, i32)>) -> Result<Lease> {
    let time = "2026-11-20T05:30:00.000000Z";
    let mut annotations = json!({});
    if let Some((token, holder, term)) = token {
        annotations = json!({
            "elector.dev/token": token, "elector.dev/token-holder": holder,
            "elector.dev/token-term": term.to_string(),
        });
    }
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": LEASE, "annotations": annotations},
        "spec": {
            "holderIdentity": holder, "leaseTransitions": term, "leaseDurationSeconds": 15,
            "acquireTime": time, "renewTime": time,
        },
    });
    Ok(serde_json::from_value(lease)?)
}

/// The one in the place of the other.
fn of(stored: &Lease, mut lease: Lease) -> Lease {
    lease.metadata.resource_version = stored.metadata.resource_version.clone();
    lease.metadata.uid = stored.metadata.uid.clone();
    lease
}
