//! Plain candidates, which need no elector, and share a lease with client-go's plain election.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterChoice, EventKind, Implementation, StartedCandidate, Suite, Testbed, between,
};
use kube::api::ListParams;

use crate::{CLIENT_GO, CLIENT_GO_MODES, EVERYWHERE, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "plain_candidates_follow_each_other",
        ClusterChoice::Shared,
        OURS,
        EVERYWHERE,
        Duration::from_secs(25),
        |testbed| Box::pin(among_ours(testbed)),
    );
    suite.add(
        "plain_candidates_beside_client_go",
        ClusterChoice::Shared,
        CLIENT_GO,
        CLIENT_GO_MODES,
        Duration::from_secs(40),
        |testbed| Box::pin(with_client_go(testbed)),
    );
}

/// W of these candidates.
const SHORT_LEASE: Duration = Duration::from_secs(4);

/// The longest gap from a crash to the next plain candidate of ours.
const AFTER_A_CRASH: Duration = SHORT_LEASE.saturating_add(Duration::from_millis(500));

/// The same for client-go, which looks every 1 s to 2.2 s, at records of whole seconds.
const CLIENT_GO_AFTER_A_CRASH: Duration = SHORT_LEASE.saturating_add(Duration::from_secs(4));

/// The longest gap from a release to the next one of ours, on a machine that is busy with all the other scenarios.
const AFTER_A_RELEASE: Duration = Duration::from_secs(2);

/// The annotation that the test writes, as a deployment tool might.
const NOTE: (&str, &str) = ("example.com/note", "kept");

fn ours(testbed: &Testbed, name: &str) -> Result<StartedCandidate> {
    testbed
        .candidate_of(Implementation::Elector, name)
        .plain()
        .flag("--lease-duration=4s")
        .flag("--renew-deadline=3s")
        .start()
}

fn theirs(testbed: &Testbed, name: &str) -> Result<StartedCandidate> {
    testbed
        .candidate_of(Implementation::ClientGo, name)
        .plain()
        .flag("--lease-duration=4s")
        .flag("--renew-deadline=3s")
        .flag("--retry-period=1s")
        .flag("--rejoin")
        .start()
}

/// Waits until it leads, and checks that it does so within `limit`.
async fn leads_within(
    testbed: &Testbed,
    candidate: &StartedCandidate,
    since: Timestamp,
    (figure, limit): (&str, Duration),
) -> Result<()> {
    let led = candidate.leads(limit + PROMPTLY).await?;
    let took = between(since, led);
    testbed.figure(figure, took);
    let name = candidate.name();
    ensure!(took <= limit, "{figure}: {name} led after {took:?}");
    Ok(())
}

/// Labels and annotations of strangers are there, whoever has written the Lease since.
fn is_kept(testbed: &Testbed) -> Result<()> {
    let lease = testbed.lease()?;
    let has = |map: &Option<std::collections::BTreeMap<String, String>>| {
        let value = map.as_ref().and_then(|map| map.get(NOTE.0));
        value.map(String::as_str) == Some(NOTE.1)
    };
    ensure!(has(&lease.metadata.labels), "a label is gone");
    ensure!(has(&lease.metadata.annotations), "an annotation is gone");
    Ok(())
}

async fn among_ours(testbed: Arc<Testbed>) -> Result<()> {
    testbed.write_released(NOTE).await?;
    let start = testbed.note("a plain candidate starts");
    let mut first = ours(&testbed, "first")?;
    leads_within(&testbed, &first, start, ("cold start", PROMPTLY)).await?;
    let mut second = ours(&testbed, "second")?;
    second.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("first", 3).await?;

    first.terminate()?;
    second.leads(PROMPTLY).await?;
    let stopped = first.says(EventKind::WorkStopped, 0, PROMPTLY).await?;
    let release = ("from the end of the work to the next", AFTER_A_RELEASE);
    leads_within(&testbed, &second, stopped, release).await?;
    first.ends_well(PROMPTLY).await?;

    let third = ours(&testbed, "third")?;
    third.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("second", 3).await?;
    let killed = second.kill()?;
    let crash = ("from the kill to the next", AFTER_A_CRASH);
    leads_within(&testbed, &third, killed, crash).await?;
    testbed.stays("third", 2).await?;
    is_kept(&testbed)?;
    let candidates = testbed.candidates();
    let registered = candidates.list(&ListParams::default()).await?.items;
    ensure!(registered.is_empty(), "a plain candidate registered");
    Ok(())
}

async fn with_client_go(testbed: Arc<Testbed>) -> Result<()> {
    testbed.write_released(NOTE).await?;
    let mut first = ours(&testbed, "first")?;
    first.leads(PROMPTLY).await?;
    let mut theirs_one = theirs(&testbed, "theirs-1")?;
    theirs_one.says(EventKind::Start, 0, PROMPTLY).await?;
    // It respects our lease.
    testbed.stays("first", 4).await?;

    // It takes the lease of ours that has died.
    let killed = first.kill()?;
    let crash = ("from our crash to client-go", CLIENT_GO_AFTER_A_CRASH);
    leads_within(&testbed, &theirs_one, killed, crash).await?;
    let mut second = ours(&testbed, "second")?;
    second.says(EventKind::Start, 0, PROMPTLY).await?;
    // We respect its lease, and take it when it has died.
    testbed.stays("theirs-1", 3).await?;
    let killed = theirs_one.kill()?;
    let crash = ("from client-go's crash to ours", AFTER_A_CRASH);
    leads_within(&testbed, &second, killed, crash).await?;

    // Released while two wait: one of ours is there in milliseconds, client-go looks once in a while.
    let third = ours(&testbed, "third")?;
    third.says(EventKind::Start, 0, PROMPTLY).await?;
    let theirs_two = theirs(&testbed, "theirs-2")?;
    theirs_two.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("second", 3).await?;
    let seen = testbed.journal().len();
    second.terminate()?;
    let stopped = second.says(EventKind::WorkStopped, seen, PROMPTLY).await?;
    let release = ("from the end of the work to ours", AFTER_A_RELEASE);
    leads_within(&testbed, &third, stopped, release).await?;
    testbed.stays("third", 3).await?;
    is_kept(&testbed)
}
