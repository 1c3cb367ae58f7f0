//! `status`: the leader, told once and as it changes.

use std::sync::Arc;

use anyhow::{Result, ensure};
use elector_tests::rig::{TestProcess, Testbed};

use crate::PROMPTLY;

/// A leader is elected, a better one comes, and both are told: by the one command and by the one that goes on.
pub(super) async fn told(testbed: Arc<Testbed>) -> Result<()> {
    let lease = testbed.lease_name();
    let nothing = testbed.operate(&["status"]).await?;
    let said = String::from_utf8_lossy(&nothing.stderr).into_owned();
    let expected = format!("No resources found in {} namespace.\n", testbed.namespace());
    ensure!(nothing.status.success() && said == expected, "{said}");

    let mut watch = testbed.start_operating("watch", &["status", "-w", "--no-headers"])?;
    let first = testbed.candidate("first").version("1.2.0").start()?;
    first.leads(PROMPTLY).await?;
    let line = format!("{lease} Led first ");
    let is_told = |lines: &[String]| lines.get(1).is_some_and(|told| told.starts_with(&line));
    let told = testbed.operates(&["status"], PROMPTLY, is_told).await?;
    ensure!(
        told[0] == "LEASE STATE HOLDER SINCE TERM NEXT CANDIDATES WHY",
        "{told:?}"
    );
    let end = " 1 <none> 1/1 first is the only eligible candidate";
    ensure!(told[1].ends_with(end), "{told:?}");

    follows(&mut watch, lease, "first").await?;

    let better = testbed.candidate("better").version("1.1.0").start()?;
    better.leads(PROMPTLY).await?;
    let line = format!("{lease} Led better ");
    let is_told = |lines: &[String]| lines.get(1).is_some_and(|told| told.starts_with(&line));
    let told = testbed
        .operates(&["status", lease], PROMPTLY, is_told)
        .await?;
    let end = " 2 <none> 2/2 better has the older emulation version 1.1.0 (not 1.2.0)";
    ensure!(told[1].ends_with(end), "{told:?}");
    ensure!(told[2].starts_with("better rank 1 1.1.0 "), "{told:?}");
    ensure!(told[3].starts_with("first rank 2 1.2.0 "), "{told:?}");
    // The explanation of the one mechanism, under either name.
    let told = testbed
        .operates(&["explain", lease], PROMPTLY, |_| true)
        .await?;
    ensure!(
        told[1].contains("better leads and no candidate is better"),
        "{told:?}"
    );
    follows(&mut watch, lease, "better").await?;
    past(&testbed).await
}

/// Both terms are told afterwards, from Events, and drawn.
async fn past(testbed: &Testbed) -> Result<()> {
    let lease = testbed.lease_name();
    let tells = |lines: &[String], parts: [&str; 2]| {
        let has = |line: &&String| parts.iter().all(|part| line.contains(part));
        lines.iter().any(|line| has(&line))
    };
    let is_told = |lines: &[String]| {
        tells(lines, [" Elected first 1 ", "first leads in term 1: "])
            && tells(
                lines,
                [
                    " HandedOver better 2 ",
                    "better leads in term 2: first handed over",
                ],
            )
    };
    testbed
        .operates(&["history", lease], PROMPTLY, is_told)
        .await?;
    let is_drawn = |lines: &[String]| {
        tells(lines, ["first #", "."]) && tells(lines, ["better .", "#"]) && lines.len() == 3
    };
    testbed
        .operates(&["timeline", lease], PROMPTLY, is_drawn)
        .await?;
    Ok(())
}

/// Waits until the one that goes on has a line for this leader.
async fn follows(watch: &mut TestProcess, lease: &str, leader: &str) -> Result<()> {
    watch
        .output_until(leader, PROMPTLY, |output| {
            let mut lines = output.lines().map(str::split_whitespace);
            let is_told = lines.any(|line| line.take(3).eq([lease, "Led", leader]));
            is_told.then_some(())
        })
        .await
}
