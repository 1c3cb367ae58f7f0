//! The first start on a cluster that has neither an elector nor the Lease: how long each mode waits.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_tests::rig::{
    CandidateBuilder, ClusterChoice, ClusterMode, EventKind, Suite, Testbed, between,
};
use tokio::try_join;

use crate::{LEASE_DURATION, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "first_start_without_an_elector",
        ClusterChoice::Own,
        OURS,
        // With the gate on, an elector is built in.
        &[ClusterMode::GateOff],
        Duration::from_secs(30),
        |testbed| Box::pin(first_start(testbed)),
    );
}

/// The time that an elector has for its grant.
const FALLBACK: Duration = Duration::from_secs(5);

/// The delay of a wait on a machine that is busy.
const BUSY: Duration = Duration::from_secs(1);

/// The time until a candidate leads that waits for nothing: it watches, creates the Lease and takes it.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Starts a candidate, and checks that it leads within `limit` of its first request, and no other one after it.
async fn leads_within(
    testbed: &Testbed,
    mode: &str,
    candidate: CandidateBuilder<'_>,
    limit: Duration,
) -> Result<Duration> {
    let candidate = candidate.start()?;
    let begun = candidate.says(EventKind::Start, 0, PROMPTLY).await?;
    let took = between(begun, candidate.leads(limit + PROMPTLY).await?);
    ensure!(took <= limit, "--mode {mode}: it led after {took:?}");
    testbed.stays(candidate.name(), 2).await?;
    Ok(took)
}

async fn first_start(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let open = |namespace| Testbed::open(Arc::clone(site), namespace, testbed.implementation());
    // Each has a Lease of its own: the modes are not to be mixed.
    let (plain, at_once) = (open("plain").await?, open("as-client-go").await?);
    let took = try_join!(
        leads_within(
            &testbed,
            "auto",
            testbed.candidate("auto"),
            LEASE_DURATION + FALLBACK + BUSY
        ),
        leads_within(
            &plain,
            "plain",
            plain.candidate("plain").plain(),
            LEASE_DURATION + BUSY
        ),
        leads_within(
            &at_once,
            "as-client-go",
            at_once.candidate("at-once").as_client_go(),
            AT_ONCE
        ),
    );
    let (auto, plain_took, at_once) = took?;
    testbed.figure("`--mode auto`, the default", auto);
    testbed.figure("`--mode plain`", plain_took);
    testbed.figure("`--mode as-client-go`", at_once);
    plain.verdict().await
}
