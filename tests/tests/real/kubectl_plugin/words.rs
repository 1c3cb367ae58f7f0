//! An operator's words on a lease and on its candidates.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_api::{annotation, parse_freeze, parse_prefer};
use elector_tests::rig::Testbed;

use crate::PROMPTLY;

/// The leader stands down and leads again; the lease is frozen, so that a better one waits, and thawed; a worse one is
/// preferred, and leads. That the better ones lead again is too much for ten minutes (R23).
pub(super) async fn obeyed(testbed: Arc<Testbed>) -> Result<()> {
    let lease = testbed.lease_name();
    let first = testbed.candidate("first").version("1.2.0").start()?;
    first.leads(PROMPTLY).await?;
    let better = testbed.candidate("better").version("1.1.0").start()?;
    better.leads(PROMPTLY).await?;

    let seen = testbed.journal().len();
    says(
        &testbed,
        &["stand-down", "better", "--dry-run=server"],
        "/better stands down until ",
    )
    .await?;
    says(
        &testbed,
        &["stand-down", "better"],
        "/better stands down until ",
    )
    .await?;
    first.leads_again(seen, PROMPTLY).await?;
    let shown = |lines: &[String]| {
        lines
            .iter()
            .any(|line| line.starts_with("better ineligible "))
    };
    testbed
        .operates(&["status", lease], PROMPTLY, shown)
        .await?;
    let seen = testbed.journal().len();
    says(
        &testbed,
        &["stand-down", "better", "--undo"],
        "/better may be elected again",
    )
    .await?;
    better.leads_again(seen, PROMPTLY).await?;

    says(
        &testbed,
        &["freeze", lease, "--for=1h", "--dry-run=server"],
        " frozen until ",
    )
    .await?;
    ensure!(
        annotated(&testbed, annotation::FREEZE).await?.is_none(),
        "a dry run wrote"
    );
    says(&testbed, &["freeze", lease, "--for=1h"], " frozen until ").await?;
    let frozen = annotated(&testbed, annotation::FREEZE).await?;
    parse_freeze(&frozen.context("nothing is frozen")?)?;
    let _best = testbed.candidate("best").version("1.0.0").start()?;
    let waits = |lines: &[String]| lines.iter().any(|line| line.contains(" is frozen "));
    testbed
        .operates(&["explain", lease], PROMPTLY, waits)
        .await?;
    says(&testbed, &["unfreeze", lease], " not frozen any more").await?;
    ensure!(
        annotated(&testbed, annotation::FREEZE).await?.is_none(),
        "it is frozen still"
    );
    let seen = testbed.journal().len();
    says(
        &testbed,
        &["prefer", lease, "first"],
        " prefers first until ",
    )
    .await?;
    let preferred = annotated(&testbed, annotation::PREFER).await?;
    let preferred = parse_prefer(&preferred.context("no candidate is preferred")?)?;
    ensure!(preferred.candidate.as_str() == "first", "{preferred:?}");
    first.leads_again(seen, PROMPTLY).await?;
    says(
        &testbed,
        &["prefer", lease, "--undo"],
        " prefers no candidate any more",
    )
    .await
}

/// Runs `kubectl elector`, which succeeds and says this.
async fn says(testbed: &Testbed, arguments: &[&str], part: &str) -> Result<()> {
    let output = testbed.operate(arguments).await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && said.contains(part),
        "{arguments:?}: {said}{stderr}"
    );
    Ok(())
}

/// The value of an annotation of the Lease.
async fn annotated(testbed: &Testbed, name: &str) -> Result<Option<String>> {
    let lease = testbed.leases().get(testbed.lease_name()).await?;
    let annotations = lease.metadata.annotations.unwrap_or_default();
    Ok(annotations.get(name).cloned())
}
