//! The first start on a cluster that has neither an elector nor the Lease: how long each mode waits.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use elector_tests::rig::{CandidateBuilder, Suite, Testbed};
use tokio::try_join;

use crate::{FALLBACK, GATE_OFF, LEASE_DURATION, OURS};

pub(crate) fn add(suite: &mut Suite) {
    // With the gate on, an elector is built in.
    let mut own = suite.own(OURS, GATE_OFF);
    own.add("first_start_without_an_elector", 30, first_start);
}

/// The delay of a wait on a machine that is busy. The figures show how little it is on one that is not.
const BUSY: Duration = Duration::from_secs(1);

async fn first_start(testbed: Arc<Testbed>) -> Result<()> {
    // Each has a Lease of its own: the modes are not to be mixed.
    let plain = testbed.open_beside("plain").await?;
    let at_once = testbed.open_beside("as-client-go").await?;
    let (unproven, waits) = (LEASE_DURATION + BUSY, LEASE_DURATION + FALLBACK + BUSY);
    try_join!(
        leads_within(&testbed, testbed.candidate("auto"), waits),
        leads_within(&plain, plain.candidate("plain").plain(), unproven),
        leads_within(
            &at_once,
            at_once.candidate("as-client-go").as_client_go(),
            BUSY
        ),
    )?;
    for other in [&plain, &at_once] {
        for (name, figure) in other.figures() {
            testbed.figure(&name, figure);
        }
    }
    plain.verdict().await
}

/// Starts a candidate, and checks that it leads within `limit` of its first request, and no other one after it.
async fn leads_within(
    testbed: &Testbed,
    candidate: CandidateBuilder<'_>,
    limit: Duration,
) -> Result<()> {
    let (mut begun, candidate) = (testbed.journal().mark(), candidate.start()?);
    begun.at = candidate.begins().await?;
    let name = candidate.name();
    let default = if name == "auto" { ", the default" } else { "" };
    let figure = format!("`--mode {name}`{default}");
    testbed
        .leads_within(&candidate, begun, limit, &figure)
        .await?;
    testbed.stays(name, 2).await
}
