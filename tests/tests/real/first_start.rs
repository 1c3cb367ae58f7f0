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

/// The delay of a wait on a machine that is busy.
const BUSY: Duration = Duration::from_secs(1);

/// The time until a candidate leads that waits for nothing: it watches, creates the Lease and takes it.
const AT_ONCE: Duration = Duration::from_millis(200);

/// A machine that is busy may delay one such start, and not each.
const ATTEMPTS: u32 = 4;

async fn first_start(testbed: Arc<Testbed>) -> Result<()> {
    // Each has a Lease of its own: the modes are not to be mixed.
    let plain = testbed.open_beside("plain").await?;
    let (unproven, waits) = (LEASE_DURATION + BUSY, LEASE_DURATION + FALLBACK + BUSY);
    try_join!(
        leads_within(&testbed, testbed.candidate("auto"), waits),
        leads_within(&plain, plain.candidate("plain").plain(), unproven),
        leads_at_once(&testbed),
    )?;
    for (name, figure) in plain.figures() {
        testbed.figure(&name, figure);
    }
    plain.verdict().await
}

/// Checks that a candidate which waits for nothing leads at once, on a Lease of its own in each attempt.
async fn leads_at_once(testbed: &Testbed) -> Result<()> {
    let mut attempt = 1;
    loop {
        let namespace = format!("as-client-go-{attempt}");
        let own = testbed.open_beside(&namespace).await?;
        let candidate = own.candidate("as-client-go").as_client_go();
        let led = leads_within(&own, candidate, AT_ONCE).await;
        if led.is_ok() {
            for (name, figure) in own.figures() {
                testbed.figure(&name, figure);
            }
        }
        if led.is_ok() || attempt == ATTEMPTS {
            return led;
        }
        attempt += 1;
    }
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
