//! Deletion, and holders that never asked to be elected.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_tests::rig::{
    ClusterChoice, EntryContent, EventKind, Implementation, LONGEST_LEASE, Suite, Testbed, between,
};
use kube::api::DeleteParams;

use crate::{CLIENT_GO, EVERYWHERE, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, implementations, seconds, run| {
        suite.add(
            name,
            ClusterChoice::Shared,
            implementations,
            EVERYWHERE,
            Duration::from_secs(seconds),
            run,
        );
    };
    add("lease_is_deleted_while_led", OURS, 35, |testbed| {
        Box::pin(deleted(testbed))
    });
    add("plain_holder_is_left_alone", CLIENT_GO, 40, |testbed| {
        Box::pin(plain_holder(testbed))
    });
}

/// No process may lead before the deleted record can have been forgotten by its holder (R6).
async fn deleted(testbed: Arc<Testbed>) -> Result<()> {
    let first = testbed.candidate("first").version("1.1.0").start()?;
    first.leads(PROMPTLY).await?;
    let second = testbed.candidate("second").version("1.2.0").start()?;
    testbed.stays("first", 1).await?;
    let seen = testbed.journal().len();
    let deleted = testbed.note("delete the lease");
    testbed
        .leases()
        .delete(testbed.lease_name(), &DeleteParams::default())
        .await?;
    let stopped = first
        .says(EventKind::WorkStopped, seen, Duration::from_secs(5))
        .await?;
    testbed.figure("until the work stops", between(deleted, stopped));

    let limit = LONGEST_LEASE + Duration::from_secs(2);
    let led = testbed
        .journal()
        .until("somebody leads again", limit + PROMPTLY, |entries| {
            entries[seen..]
                .iter()
                .find_map(|entry| match &entry.content {
                    EntryContent::Event(event) if event.kind == EventKind::Leading => {
                        Some(entry.at)
                    }
                    _ => None,
                })
        })
        .await?;
    testbed.figure("until somebody leads again", between(deleted, led));
    ensure!(
        between(deleted, led) <= limit,
        "nobody led for {:?}",
        between(deleted, led)
    );
    drop(second);
    Ok(())
}

/// A plain client-go holder keeps its lease while it renews, and loses it to a candidate when it does not.
async fn plain_holder(testbed: Arc<Testbed>) -> Result<()> {
    let mut plain = testbed
        .candidate_of(Implementation::ClientGo, "plain")
        .flag("--coordinated=false")
        .start()?;
    plain.leads(PROMPTLY).await?;
    let candidate = testbed
        .candidate_of(Implementation::Elector, "candidate")
        .start()?;
    candidate.says(EventKind::Start, 0, PROMPTLY).await?;
    let seen = testbed.journal().len();
    testbed.stays("plain", 6).await?;
    testbed.journal().read(|entries| {
        // Each revision is a renewal: there is no other writer.
        let mut renewals: Vec<_> = entries[seen..]
            .iter()
            .filter_map(|entry| match &entry.content {
                EntryContent::Lease(_, lease) => Some(lease.spec.renew_time),
                _ => None,
            })
            .collect();
        let revisions = renewals.len();
        renewals.dedup();
        ensure!(
            renewals.len() == revisions,
            "the lease of a plain holder was written"
        );
        Ok(())
    })?;
    let killed = plain.kill()?;
    let limit = crash_limit(Implementation::Elector);
    let led = candidate.leads(limit + PROMPTLY).await?;
    let took = between(killed, led);
    testbed.figure("until the candidate leads", took);
    ensure!(took <= limit, "the candidate led after {took:?}");
    testbed.stays("candidate", 1).await
}
