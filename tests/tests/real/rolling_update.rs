//! Replicas that stand for a plain client-go Lease are replaced one by one with ours, which are elected, and these with
//! client-go again.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EntryContent, EventKind, HistoryEntry, Implementation,
    StartedCandidate, Suite, Testbed, between,
};
use kube::api::ListParams;

use crate::{CLIENT_GO, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "client_go_is_replaced_and_comes_back",
        ClusterChoice::Shared,
        CLIENT_GO,
        &[ClusterMode::GateOff, ClusterMode::Custom],
        Duration::from_secs(60),
        |testbed| Box::pin(there_and_back(testbed)),
    );
}

/// W of all replicas.
const SHORT_LEASE: Duration = Duration::from_secs(4);

/// The longest gap from a client-go leader, which releases nothing by default, to one of ours.
const AFTER_CLIENT_GO: Duration = SHORT_LEASE.saturating_add(Duration::from_secs(2));

/// The longest gap from one of ours to client-go: it looks every 1 s to 2.2 s.
const AFTER_OURS: Duration = Duration::from_secs(4);

async fn there_and_back(testbed: Arc<Testbed>) -> Result<()> {
    let testbed = &*testbed;
    let first = client_go(testbed, "client-go-1")?;
    first.leads(PROMPTLY * 2).await?;
    let second = client_go(testbed, "client-go-2")?;
    second.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("client-go-1", 2).await?;

    testbed.note("a rolling update to ours begins");
    let ours_one = ours(testbed, "ours-1", "1.1.0").await?;
    // Candidates are there, and an elector; the leader is none of them, and alive.
    testbed.stays("client-go-1", 3).await?;
    end(second).await?;
    let ours_two = ours(testbed, "ours-2", "1.2.0").await?;
    testbed.stays("client-go-1", 2).await?;
    let ended = testbed.note("the last of client-go ends");
    end(first).await?;
    let led = ours_one.leads(AFTER_CLIENT_GO + PROMPTLY).await?;
    let took = between(ended, led);
    testbed.figure("from the end of client-go to ours", took);
    ensure!(took <= AFTER_CLIENT_GO, "ours led after {took:?}");
    testbed.stays("ours-1", 2).await?;
    let record = testbed.lease()?.record()?;
    ensure!(record.token.is_some(), "the term has no token: {record:?}");

    testbed.note("a rolling update to client-go begins");
    let third = client_go(testbed, "client-go-3")?;
    third.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("ours-1", 3).await?;
    end(ours_two).await?;
    testbed.stays("ours-1", 2).await?;
    let ended = testbed.note("the last of ours ends");
    end(ours_one).await?;
    let led = third.leads(AFTER_OURS + PROMPTLY).await?;
    let took = between(ended, led);
    testbed.figure("from the end of ours to client-go", took);
    ensure!(took <= AFTER_OURS, "client-go led after {took:?}");
    let fourth = client_go(testbed, "client-go-4")?;
    fourth.says(EventKind::Start, 0, PROMPTLY).await?;
    testbed.stays("client-go-3", 4).await?;
    let left = testbed.candidates().list(&ListParams::default()).await?;
    ensure!(left.items.is_empty(), "candidates are left behind");
    ensure!(testbed.terms() == 3, "{} terms began", testbed.terms());
    Ok(())
}

/// A replica before the update: it takes the lease itself.
fn client_go(testbed: &Testbed, name: &str) -> Result<StartedCandidate> {
    testbed
        .candidate_of(Implementation::ClientGo, name)
        .plain()
        .flag("--lease-duration=4s")
        .flag("--renew-deadline=3s")
        .flag("--retry-period=1s")
        .start()
}

/// A replica after the update, in auto mode, once it is registered.
async fn ours(testbed: &Testbed, name: &str, version: &str) -> Result<StartedCandidate> {
    let started = testbed
        .candidate_of(Implementation::Elector, name)
        .version(version)
        .flag("--lease-duration=4s")
        .flag("--renew-deadline=3s")
        .start()?;
    let is_it = |entry: &HistoryEntry| matches!(&entry.content, EntryContent::Candidate(found, _) if found == name);
    let what = format!("{name} is registered");
    testbed
        .journal()
        .until(&what, PROMPTLY, |entries| {
            entries.iter().any(is_it).then_some(())
        })
        .await?;
    Ok(started)
}

/// Ends a replica as a kubelet does.
async fn end(mut replica: StartedCandidate) -> Result<()> {
    replica.terminate()?;
    replica.ends_well(PROMPTLY).await.map(drop)
}
