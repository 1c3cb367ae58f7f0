//! Deletion, and holders that never asked to be elected.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_tests::rig::{LONGEST_LEASE, Suite, Testbed, between, revisions};
use kube::api::DeleteParams;

use crate::{CLIENT_GO, EVERYWHERE, GATE_OFF, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut ours = suite.shared(OURS, EVERYWHERE);
    ours.add("lease_is_deleted_while_led", 35, deleted);
    let mut theirs = suite
        .shared(CLIENT_GO, EVERYWHERE)
        .every_change_on(GATE_OFF);
    theirs.add("plain_holder_is_left_alone", 40, plain_holder);
}

/// No process may lead before the deleted record can have been forgotten by its holder (R6).
async fn deleted(testbed: Arc<Testbed>) -> Result<()> {
    let first = testbed.candidate("first").version("1.1.0").start()?;
    first.leads(PROMPTLY).await?;
    let _second = testbed.candidate("second").version("1.2.0").start()?;
    testbed.stays("first", 1).await?;
    let deleted = testbed.note("delete the lease");
    let (lease, delete) = (testbed.lease_name(), DeleteParams::default());
    testbed.leases().delete(lease, &delete).await?;
    let stopped = first.stops(deleted).await?;
    testbed.figure("until the work stops", between(deleted.at, stopped));

    let limit = LONGEST_LEASE + Duration::from_secs(2);
    let (_, led) = testbed.leader_since(deleted, limit + PROMPTLY).await?;
    let took = between(deleted.at, led);
    testbed.figure("until one leads again", took);
    ensure!(took <= limit, "no candidate led for {took:?}");
    Ok(())
}

/// A plain client-go holder keeps its lease while it renews, and loses it to a candidate when it does not.
async fn plain_holder(testbed: Arc<Testbed>) -> Result<()> {
    let mut plain = testbed.candidate_of(CLIENT_GO, "plain").plain().start()?;
    plain.leads(PROMPTLY).await?;
    let candidate = testbed.candidate_of(OURS, "candidate").start()?;
    candidate.begins().await?;
    let begun = testbed.journal().mark();
    testbed.stays("plain", 6).await?;
    // Each revision is a renewal: there is no other writer.
    let (renewals, revisions) = testbed.journal().read(|entries| {
        let revisions = revisions(begun.since(entries), testbed.lease_name());
        let mut renewals: Vec<_> = revisions.map(|(lease, _)| lease.spec.renew_time).collect();
        let all = renewals.len();
        renewals.dedup();
        (renewals.len(), all)
    });
    let holds = renewals == revisions;
    ensure!(holds, "the lease of a plain holder was written");
    let (killed, limit) = (plain.kill()?, crash_limit(OURS));
    let figure = "until the candidate leads";
    testbed
        .leads_within(&candidate, killed, limit, figure)
        .await?;
    testbed.stays("candidate", 1).await
}
