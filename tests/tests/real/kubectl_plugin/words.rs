//! An operator's words on a lease and on its candidates.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use elector_api::{annotation, parse_freeze, parse_prefer};
use elector_tests::rig::Testbed;

use crate::PROMPTLY;

/// The leader stands down and leads again; the lease is frozen, so that a better one waits, and thawed; a worse one is
/// preferred, and leads. That the better ones lead again is too much for ten minutes (R23).
pub(super) async fn obeyed(testbed: Arc<Testbed>) -> Result<()> {
    let testbed = &*testbed;
    let lease = testbed.lease_name();
    let first = testbed.candidate("first").version("1.2.0").start()?;
    first.leads(PROMPTLY).await?;
    let better = testbed.candidate("better").version("1.1.0").start()?;
    better.leads(PROMPTLY).await?;

    let stands_down = "/better stands down until ";
    let dry_run = ["stand-down", "better", "--dry-run=server"];
    says(testbed, &dry_run, stands_down).await?;
    let asked = testbed.note("better stands down");
    says(testbed, &["stand-down", "better"], stands_down).await?;
    first.leads_since(asked, PROMPTLY).await?;
    shows(testbed, &["status", lease], "better ineligible ").await?;
    let asked = testbed.note("better may lead again");
    let undo = ["stand-down", "better", "--undo"];
    says(testbed, &undo, "/better may be elected again").await?;
    better.leads_since(asked, PROMPTLY).await?;

    let dry_run = ["freeze", lease, "--for=1h", "--dry-run=server"];
    says(testbed, &dry_run, " frozen until ").await?;
    let frozen = annotated(testbed, annotation::FREEZE).await?;
    ensure!(frozen.is_none(), "a dry run wrote");
    says(testbed, &["freeze", lease, "--for=1h"], " frozen until ").await?;
    let frozen = annotated(testbed, annotation::FREEZE).await?;
    parse_freeze(&frozen.context("nothing is frozen")?)?;
    let _best = testbed.candidate("best").version("1.0.0").start()?;
    shows(testbed, &["explain", lease], " is frozen ").await?;
    says(testbed, &["unfreeze", lease], " not frozen any more").await?;
    let frozen = annotated(testbed, annotation::FREEZE).await?;
    ensure!(frozen.is_none(), "it is frozen still");
    let asked = testbed.note("first is preferred");
    let prefers = ["prefer", lease, "first"];
    says(testbed, &prefers, " prefers first until ").await?;
    let preferred = annotated(testbed, annotation::PREFER).await?;
    let preferred = parse_prefer(&preferred.context("no candidate is preferred")?)?;
    ensure!(preferred.candidate.as_str() == "first", "{preferred:?}");
    first.leads_since(asked, PROMPTLY).await?;
    let undo = ["prefer", lease, "--undo"];
    says(testbed, &undo, " prefers no candidate any more").await
}

/// Runs `kubectl elector`, which succeeds and says this.
async fn says(testbed: &Testbed, arguments: &[&str], part: &str) -> Result<()> {
    let output = testbed.operate(arguments).await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let holds = output.status.success() && said.contains(part);
    ensure!(holds, "{arguments:?}: {said}{stderr}");
    Ok(())
}

/// Runs it until one of its lines has this.
async fn shows(testbed: &Testbed, arguments: &[&str], part: &str) -> Result<()> {
    let has = |lines: &[String]| lines.iter().any(|line| line.contains(part));
    let shown = testbed.operates(arguments, PROMPTLY, has);
    shown.await.map(drop)
}

/// The value of an annotation of the Lease.
async fn annotated(testbed: &Testbed, name: &str) -> Result<Option<String>> {
    let lease = testbed.leases().get(testbed.lease_name()).await?;
    let annotations = lease.metadata.annotations.unwrap_or_default();
    Ok(annotations.get(name).cloned())
}
