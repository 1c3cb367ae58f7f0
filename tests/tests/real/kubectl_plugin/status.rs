//! `status`: the leader, shown once and as it changes; `explain`, `history` and `timeline` of the same lease.

use std::sync::Arc;

use anyhow::{Result, ensure};
use elector_tests::rig::{TestProcess, Testbed};

use crate::PROMPTLY;

/// A leader is elected, a better one comes, and both are shown: by the one command and by the one that goes on.
pub(super) async fn shown(testbed: Arc<Testbed>) -> Result<()> {
    let lease = testbed.lease_name();
    let nothing = testbed.operate(&["status"]).await?;
    let said = String::from_utf8_lossy(&nothing.stderr).into_owned();
    let expected = format!("No resources found in {} namespace.\n", testbed.namespace());
    ensure!(nothing.status.success() && said == expected, "{said}");

    let mut watch = testbed.start_operating("watch", &["status", "-w", "--no-headers"])?;
    let first = testbed.candidate("first").version("1.2.0").start()?;
    first.leads(PROMPTLY).await?;
    let header = "LEASE STATE HOLDER SINCE TERM NEXT CANDIDATES WHY";
    let led = format!("{lease} Led first ");
    let why = " 1 <none> 1/1 first is the only eligible candidate";
    says(&testbed, &["status"], &[&[header], &[&led, why]]).await?;
    follows(&mut watch, lease, "first").await?;

    let better = testbed.candidate("better").version("1.1.0").start()?;
    better.leads(PROMPTLY).await?;
    let led = format!("{lease} Led better ");
    let why = " 2 <none> 2/2 better has the older emulation version 1.1.0 (not 1.2.0)";
    let (ranked, next) = (["better rank 1 1.1.0 "], ["first rank 2 1.2.0 "]);
    says(
        &testbed,
        &["status", lease],
        &[&[&led, why], &ranked, &next],
    )
    .await?;
    // The explanation of the one mechanism, under either name.
    let explained = ["better leads and no candidate is better"];
    says(&testbed, &["explain", lease], &[&explained]).await?;
    follows(&mut watch, lease, "better").await?;

    // Both terms are shown afterwards, from Events, and drawn.
    let elected = [" Elected first 1 ", "first leads in term 1: "];
    let handed_over = [
        " HandedOver better 2 ",
        "better leads in term 2: first handed over",
    ];
    says(&testbed, &["history", lease], &[&elected, &handed_over]).await?;
    let drawn: [&[&str]; 2] = [&["first #", "."], &["better .", "#"]];
    says(&testbed, &["timeline", lease], &drawn).await
}

/// Asks until each of these has a line with all its parts.
async fn says(testbed: &Testbed, arguments: &[&str], wanted: &[&[&str]]) -> Result<()> {
    let is_said = |lines: &[String]| {
        let has = |parts: &&[&str]| {
            let mut lines = lines.iter();
            lines.any(|line| parts.iter().all(|part| line.contains(part)))
        };
        wanted.iter().all(has)
    };
    let said = testbed.operates(arguments, PROMPTLY, is_said);
    said.await.map(drop)
}

/// Waits until the one that goes on has a line for this leader.
async fn follows(watch: &mut TestProcess, lease: &str, leader: &str) -> Result<()> {
    watch
        .output_until(leader, PROMPTLY, |output| {
            let mut lines = output.lines().map(str::split_whitespace);
            let is_shown = lines.any(|line| line.take(3).eq([lease, "Led", leader]));
            is_shown.then_some(())
        })
        .await
}
