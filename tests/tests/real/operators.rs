//! What operators say of a Lease with `kubectl annotate` (R16).

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_api::{format_freeze, format_prefer};
use elector_protocol::{Identity, OperatorPreference, Timestamp};
use elector_tests::rig::{ClusterChoice, Suite, Testbed, between, now};
use tokio::task::spawn_blocking;

use crate::{MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "operators_freeze_and_prefer",
        ClusterChoice::Shared,
        OURS,
        MODES,
        Duration::from_secs(30),
        |testbed| Box::pin(freeze_and_prefer(testbed)),
    );
}

/// A leader that is worse stays while its lease is frozen, leads once more while it is preferred, and not after that.
async fn freeze_and_prefer(testbed: Arc<Testbed>) -> Result<()> {
    let worse = testbed.candidate("worse").version("1.1.0").start()?;
    worse.leads(PROMPTLY).await?;
    annotate(
        &testbed,
        &format!("elector.dev/freeze={}", format_freeze(after(3600))),
    )
    .await?;
    let best = testbed.candidate("best").version("1.0.0").start()?;
    let frozen = testbed
        .explained("a frozen lease", PROMPTLY, |each| {
            each.reason.contains("is frozen")
        })
        .await?;
    ensure!(
        frozen.action == "none" && frozen.operator.freeze.is_some(),
        "{frozen:?}"
    );
    testbed.stays("worse", 1).await?;

    let thawed = testbed.note("unfreeze");
    annotate(&testbed, "elector.dev/freeze-").await?;
    let led = best.leads(PROMPTLY).await?;
    testbed.figure("best leads after the freeze", between(thawed, led));

    let seen = testbed.journal().len();
    let until = after(8);
    let preference = OperatorPreference {
        candidate: Identity::new("worse").unwrap_or_else(|| unreachable!("it is not empty")),
        until,
    };
    let preferred = testbed.note("prefer");
    annotate(
        &testbed,
        &format!("elector.dev/prefer={}", format_prefer(&preference)),
    )
    .await?;
    let led = worse.leads_again(seen, PROMPTLY).await?;
    testbed.figure("worse leads after the word", between(preferred, led));
    let seen = testbed.journal().len();
    let explained = testbed.explain().await?;
    let prefers = explained.operator.prefer.as_ref();
    ensure!(
        prefers.is_some_and(|word| word.candidate == "worse")
            && explained.of("worse")?.rank == Some(1),
        "{explained:?}"
    );
    let back = best
        .leads_again(seen, PROMPTLY + Duration::from_secs(8))
        .await?;
    ensure!(back >= until, "best leads at {back}, before {until}");
    testbed.figure("best leads after the end of the word", between(until, back));

    annotate(&testbed, "elector.dev/freeze=tomorrow").await?;
    let ignored = testbed
        .explained("a word that is over", PROMPTLY, |each| {
            each.operator.ignored.len() == 2
        })
        .await?;
    let [over, malformed] = &ignored.operator.ignored[..] else {
        unreachable!("there are two")
    };
    ensure!(
        over.starts_with("elector.dev/prefer of worse ended at ")
            && malformed.ends_with("must be an RFC 3339 time"),
        "{ignored:?}"
    );
    testbed.stays("best", 1).await
}

/// The time of day in so many seconds.
fn after(seconds: i64) -> Timestamp {
    Timestamp::from_micros(now().as_micros() + seconds * 1_000_000).unwrap_or(Timestamp::MAX)
}

/// `kubectl annotate` of the Lease.
async fn annotate(testbed: &Testbed, annotation: &str) -> Result<()> {
    let site = testbed.site();
    let mut command = site.command(&site.programs().kubectl);
    let (namespace, lease) = (testbed.namespace(), testbed.lease_name());
    command.args([
        "annotate",
        "--overwrite",
        "-n",
        namespace,
        "lease",
        lease,
        annotation,
    ]);
    let output = spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl annotate: {said}");
    Ok(())
}
