//! Operators' words on Leases and candidates with `kubectl annotate` (R16).

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_api::{format_freeze, format_prefer};
use elector_protocol::{Identity, OperatorPreference, Timestamp};
use elector_tests::rig::{ClusterChoice, Suite, Testbed, between, now};
use tokio::task::spawn_blocking;

use crate::{MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, seconds, run| {
        suite.add(
            name,
            ClusterChoice::Shared,
            OURS,
            MODES,
            Duration::from_secs(seconds),
            run,
        );
    };
    add("operators_freeze_and_prefer", 30, |testbed| {
        Box::pin(freeze_and_prefer(testbed))
    });
    add("leader_is_told_to_stand_down", 20, |testbed| {
        Box::pin(told_to_stand_down(testbed))
    });
    add("strategies_choose_the_leader", 20, |testbed| {
        Box::pin(strategies(testbed))
    });
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
        over.starts_with("elector.dev/prefer of worse until ")
            && over.ends_with(" is over")
            && malformed.ends_with("must be an RFC 3339 time"),
        "{ignored:?}"
    );
    testbed.stays("best", 1).await
}

/// An operator annotates the best candidate, which makes room, and takes that back.
async fn told_to_stand_down(testbed: Arc<Testbed>) -> Result<()> {
    let best = testbed.candidate("best").version("1.0.0").start()?;
    best.leads(PROMPTLY).await?;
    let next = testbed.candidate("next").version("1.1.0").start()?;
    let seen = testbed.journal().len();
    let annotated = testbed.note("stand down");
    annotate_candidate(&testbed, "best", "elector.dev/stand-down=true").await?;
    let led = next.leads(PROMPTLY).await?;
    testbed.figure("next leads after the word", between(annotated, led));
    let explanation = testbed
        .explained("another leader", PROMPTLY, |each| each.holder == "next")
        .await?;
    let told = explanation.of("best")?;
    ensure!(
        !told.eligible && told.reason.contains("elector.dev/stand-down"),
        "{told:?}"
    );
    testbed.stays("next", 2).await?;
    annotate_candidate(&testbed, "best", "elector.dev/stand-down-").await?;
    best.leads_again(seen, PROMPTLY).await?;
    testbed.stays("best", 1).await
}

/// The wish of the highest binary version counts, so that each candidate that comes brings the next strategy.
async fn strategies(testbed: Arc<Testbed>) -> Result<()> {
    let candidate = |name: &str, version: &str, strategy: &str| {
        let strategy = format!("elector.dev/{strategy}");
        testbed
            .candidate(name)
            .version(version)
            .strategy(&strategy)
            .start()
    };
    let seen = || testbed.journal().len();
    let old = candidate("old", "1.0.0", "newest-version")?;
    old.leads(PROMPTLY).await?;
    let new = candidate("new", "1.1.0", "newest-version")?;
    new.leads(PROMPTLY).await?;

    let before = seen();
    let _third = candidate("third", "1.2.0", "priority")?;
    old.leads_again(before, PROMPTLY).await?;
    let before = seen();
    annotate_candidate(&testbed, "new", "elector.dev/priority=10").await?;
    new.leads_again(before, PROMPTLY).await?;
    let explained = testbed.explain().await?;
    ensure!(
        explained.strategy.as_deref() == Some("elector.dev/priority")
            && explained.of("new")?.reason == "has the higher priority 10 (not none)",
        "{explained:?}"
    );

    let _fourth = candidate("fourth", "1.3.0", "sticky")?;
    testbed
        .explained("a sticky lease", PROMPTLY, |each| {
            each.strategy.as_deref() == Some("elector.dev/sticky")
        })
        .await?;
    annotate_candidate(&testbed, "new", "elector.dev/priority-").await?;
    testbed.stays("new", 1).await
}

/// `kubectl annotate` of the Lease.
pub(crate) async fn annotate(testbed: &Testbed, annotation: &str) -> Result<()> {
    kubectl_annotate(testbed, "lease", testbed.lease_name(), annotation).await
}

/// `kubectl annotate` of a LeaseCandidate.
async fn annotate_candidate(testbed: &Testbed, candidate: &str, annotation: &str) -> Result<()> {
    let group = testbed.site().candidate_api().group();
    let resource = format!("leasecandidates.{group}");
    kubectl_annotate(testbed, &resource, candidate, annotation).await
}

/// The time of day in so many seconds.
pub(crate) fn after(seconds: i64) -> Timestamp {
    Timestamp::from_micros(now().as_micros() + seconds * 1_000_000).unwrap_or(Timestamp::MAX)
}

async fn kubectl_annotate(
    testbed: &Testbed,
    resource: &str,
    name: &str,
    annotation: &str,
) -> Result<()> {
    let site = testbed.site();
    let mut command = site.command(&site.programs().kubectl);
    let namespace = testbed.namespace();
    command.args([
        "annotate",
        "--overwrite",
        "-n",
        namespace,
        resource,
        name,
        annotation,
    ]);
    let output = spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl annotate: {said}");
    Ok(())
}
