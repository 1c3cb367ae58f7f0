//! Replicas that stand for a plain client-go Lease are replaced one by one with ours, which are elected, and these with
//! client-go again.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_tests::rig::{JournalMark, StartedCandidate, Suite, Testbed};
use kube::api::ListParams;

use crate::{CLIENT_GO, OURS, PROMPTLY, SHORT_LEASE, WITHOUT_GATE};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(CLIENT_GO, WITHOUT_GATE);
    shared.add("client_go_is_replaced_and_comes_back", 60, there_and_back);
}

/// The longest gap from a client-go leader, which releases nothing by default, to one of ours.
const AFTER_CLIENT_GO: Duration = SHORT_LEASE.saturating_add(Duration::from_secs(2));

/// The longest gap from one of ours to client-go: it looks every 1 s to 2.2 s.
const AFTER_OURS: Duration = Duration::from_secs(4);

async fn there_and_back(testbed: Arc<Testbed>) -> Result<()> {
    let testbed = &*testbed;
    let mut first = client_go(testbed, "client-go-1")?;
    first.leads(PROMPTLY * 2).await?;
    let mut second = client_go(testbed, "client-go-2")?;
    second.begins().await?;
    testbed.stays("client-go-1", 2).await?;

    testbed.note("a rolling update to ours begins");
    let mut ours_one = ours(testbed, "ours-1", "1.1.0").await?;
    // Candidates are there, and an elector; the leader is none of them, and alive.
    testbed.stays("client-go-1", 3).await?;
    second.ends().await?;
    let mut ours_two = ours(testbed, "ours-2", "1.2.0").await?;
    testbed.stays("client-go-1", 2).await?;
    let (ended, figure) = (first.ends().await?, "from the end of client-go to ours");
    testbed
        .leads_within(&ours_one, ended, AFTER_CLIENT_GO, figure)
        .await?;
    testbed.stays("ours-1", 2).await?;
    let record = testbed.lease()?.record()?;
    ensure!(record.token.is_some(), "the term has no token: {record:?}");

    testbed.note("a rolling update to client-go begins");
    let third = client_go(testbed, "client-go-3")?;
    third.begins().await?;
    testbed.stays("ours-1", 3).await?;
    ours_two.ends().await?;
    testbed.stays("ours-1", 2).await?;
    let (ended, figure) = (ours_one.ends().await?, "from the end of ours to client-go");
    testbed
        .leads_within(&third, ended, AFTER_OURS, figure)
        .await?;
    let fourth = client_go(testbed, "client-go-4")?;
    fourth.begins().await?;
    testbed.stays("client-go-3", 4).await?;
    let left = testbed.candidates().list(&ListParams::default()).await?;
    ensure!(left.items.is_empty(), "candidates are left behind");
    testbed.has_begun_terms(3)
}

/// A replica before the update: it takes the lease itself.
fn client_go(testbed: &Testbed, name: &str) -> Result<StartedCandidate> {
    let candidate = testbed.candidate_of(CLIENT_GO, name);
    candidate.plain().short().start()
}

/// A replica after the update, in auto mode, once it is registered.
async fn ours(testbed: &Testbed, name: &str, version: &str) -> Result<StartedCandidate> {
    let candidate = testbed.candidate_of(OURS, name).version(version);
    let started = candidate.short().start()?;
    testbed.registered(name, JournalMark::BEGINNING).await?;
    Ok(started)
}
