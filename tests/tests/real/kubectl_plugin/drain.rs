//! `kubectl elector drain` on a real server: the candidates whose Pods are on a node make room, and those of another lead.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{StartedCandidate, Testbed};

use crate::installed::drained::Kubelet;
use crate::{LEASE_DURATION, PROMPTLY};

pub(super) async fn drained(testbed: Arc<Testbed>) -> Result<()> {
    let testbed = &*testbed;
    let site = testbed.site();
    let (node, other) = (Kubelet::of(site, "node-a"), Kubelet::of(site, "node-b"));
    node.join().await?;
    other.join().await?;
    let _elector = site.elector("elector-0", ["--leader-elect"]).await?;
    let first = candidate(testbed, "first", "1.1.0", &node).await?;
    first.leads(LEASE_DURATION * 2 + PROMPTLY).await?;

    // The only candidate leads on, and the command says so.
    let in_vain = testbed
        .operate(&["drain", "node-a", "--timeout=5s"])
        .await?;
    let stderr = String::from_utf8_lossy(&in_vain.stderr).into_owned();
    let lease = format!(
        "{}/{} is led by first (",
        testbed.namespace(),
        testbed.lease_name()
    );
    let holds = !in_vain.status.success() && stderr.contains(&lease);
    ensure!(holds, "{stderr}");
    says(
        testbed,
        &["drain", "node-a", "--undo"],
        "/first may be elected again",
    )
    .await?;

    let second = candidate(testbed, "second", "1.2.0", &other).await?;
    testbed.stays("first", 2).await?;
    says(
        testbed,
        &["drain", "node-b", "--dry-run=server"],
        "/second stands down until ",
    )
    .await?;
    let asked = testbed.note("drain node-a");
    says(
        testbed,
        &["drain", "node-a"],
        "node/node-a drained: its candidates, 1, lead nothing",
    )
    .await?;
    second.leads_since(asked, PROMPTLY).await?;
    testbed.stays("second", 1).await?;
    says(testbed, &["words"], " stand-down first counts ").await?;
    let asked = testbed.note("node-a is back");
    says(
        testbed,
        &["drain", "node-a", "--undo"],
        "/first may be elected again",
    )
    .await?;
    first.leads_since(asked, PROMPTLY).await.map(drop)
}

/// Starts a candidate whose Pod is on a node.
async fn candidate(
    testbed: &Testbed,
    name: &str,
    version: &str,
    node: &Kubelet<'_>,
) -> Result<StartedCandidate> {
    let namespace = testbed.namespace();
    let account = testbed.site().candidate_account(namespace, name).await?;
    let account = account.context("the server asks nobody who they are")?;
    node.bind(namespace, name).await?;
    testbed
        .candidate(name)
        .account(&account)
        .version(version)
        .start()
}

/// Runs `kubectl elector`, which succeeds and says this, with single blanks.
async fn says(testbed: &Testbed, arguments: &[&str], part: &str) -> Result<()> {
    let is_said = |lines: &[String]| lines.iter().any(|line| line.contains(part));
    testbed
        .operates(arguments, PROMPTLY, is_said)
        .await
        .map(drop)
}
