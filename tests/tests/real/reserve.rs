//! A client-go leader on a server that drops `spec.preferredHolder`, and an elector that may reserve its lease.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EventKind, Implementation, StartedCandidate, Suite, TestProcess,
    Testbed, between, warm_up,
};

use crate::{CLIENT_GO, LEASE_DURATION, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, modes, run| {
        let lasts = Duration::from_secs(110);
        suite.add(name, ClusterChoice::Own, CLIENT_GO, modes, lasts, run);
    };
    add(
        "lease_is_reserved_from_client_go",
        &[ClusterMode::GateOff, ClusterMode::EmbeddedOff],
        |testbed| Box::pin(for_client_go(testbed)),
    );
    add(
        "lease_is_reserved_for_one_of_ours",
        &[ClusterMode::GateOff],
        |testbed| Box::pin(for_ours(testbed)),
    );
}

/// What `holderIdentity` says while the lease is reserved.
const PLACEHOLDER: &str = "elector.dev:reserved-from:holder";

/// How long client-go leads on once it can renew no more: its renew deadline, and a retry period before it counts.
const LEADS_ON: Duration = Duration::from_secs(12);

/// Another client-go candidate follows. Without leave to reserve, nothing changes.
async fn for_client_go(testbed: Arc<Testbed>) -> Result<()> {
    let mut timid = elector(&testbed, "timid-elector", &[]).await?;
    warm_up(testbed.site()).await?;
    let holder = testbed.candidate("holder").version("1.2.0").start()?;
    holder.leads(PROMPTLY).await?;
    testbed.stays("holder", 1).await?;
    let better = testbed.candidate("better").version("1.1.0").start()?;
    testbed
        .explained("that it cannot yield", PROMPTLY, |each| {
            each.reason.contains("cannot be asked to yield")
        })
        .await?;
    testbed.stays("holder", 4).await?;
    ensure!(testbed.terms() == 1, "{} terms began", testbed.terms());
    timid.terminate(PROMPTLY).await?;

    let start = testbed.note("an elector that may reserve takes over");
    let _elector = elector(&testbed, "elector", &["--reserve"]).await?;
    // client-go polls every 2 to 4.4 s.
    reserved(&testbed, &holder, &better, start, Duration::from_secs(6)).await
}

/// A candidate of ours follows a client-go one that releases at the end: what it releases is not its lease any more.
async fn for_ours(testbed: Arc<Testbed>) -> Result<()> {
    let _elector = elector(&testbed, "elector", &["--reserve"]).await?;
    warm_up(testbed.site()).await?;
    let holder = testbed
        .candidate("holder")
        .version("1.2.0")
        .flag_for(Implementation::ClientGo, "--release-on-cancel")
        .start()?;
    holder.leads(PROMPTLY).await?;
    testbed.stays("holder", 1).await?;
    let start = testbed.note("a better candidate starts");
    let better = testbed
        .candidate_of(Implementation::Elector, "better")
        .version("1.1.0")
        .start()?;
    reserved(&testbed, &holder, &better, start, Duration::from_secs(2)).await
}

async fn elector(testbed: &Testbed, name: &str, more: &[&'static str]) -> Result<TestProcess> {
    let flags = testbed.site().mode().elector_flags();
    testbed
        .site()
        .elector(name, flags.iter().chain(more).copied())
        .await
}

/// The lease is reserved from one and granted to the other, which accepts within `accepts`. No work overlaps.
async fn reserved(
    testbed: &Testbed,
    holder: &StartedCandidate,
    better: &StartedCandidate,
    start: Timestamp,
    accepts: Duration,
) -> Result<()> {
    let term = testbed.lease()?.spec.lease_transitions;
    let (since, seconds) = testbed
        .lease_until("the lease is reserved", PROMPTLY, |lease| {
            let reserved = lease.spec.holder_identity.as_deref() == Some(PLACEHOLDER);
            let spec = &lease.spec;
            reserved.then_some((spec.renew_time?, spec.lease_duration_seconds))
        })
        .await?;
    testbed.figure("until it is reserved", between(start, since));
    ensure!(seconds == Some(15), "reserved for {seconds:?} s");
    let explanation = testbed
        .explained("the reservation", PROMPTLY, |each| {
            each.reason
                .starts_with("reserved for better: holder could not be asked to yield")
        })
        .await?;
    let told = (explanation.holder.as_str(), explanation.action.as_str());
    ensure!(told == (PLACEHOLDER, "wait"), "{explanation:#?}");

    let stopped = holder
        .says(EventKind::WorkStopped, 0, LEADS_ON + PROMPTLY)
        .await?;
    testbed.figure("until the holder has stopped", between(since, stopped));
    let led = better.leads(LEASE_DURATION + accepts + PROMPTLY).await?;
    testbed.figure("until the better one leads", between(since, led));
    ensure!(stopped <= led, "the holder worked on");
    let took = between(since, led);
    ensure!(
        (LEASE_DURATION..=LEASE_DURATION + accepts).contains(&took),
        "it led {took:?} after the reservation"
    );
    let next = testbed.lease()?.spec.lease_transitions;
    ensure!(
        next == term.map(|term| term + 2),
        "a reservation is a term: {term:?}, {next:?}"
    );
    testbed.stays("better", 2).await
}
