//! The store of the API server goes back to a backup: what was led since then is led again, by one leader.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{
    ClusterChoice, ClusterMode, Implementation, RequiredFlag, StartedCandidate, Suite, TestSite,
    Testbed, between, now, warm_up, work_intervals,
};

use crate::{LEASE_DURATION, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add_with_flag(
        RequiredFlag::Long,
        "etcd_is_restored_from_a_backup",
        ClusterChoice::Own,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(120),
        |testbed| Box::pin(restored(testbed)),
    );
}

/// Its Leases are of two histories, so that its record cannot be judged as one; what its candidates say can.
const NAMESPACE: &str = "restored";

/// The time within which the restored store has a leader: the elector starts over, and the record in the store, which
/// its holder does not renew, runs out.
const LED_AGAIN: Duration = LEASE_DURATION.saturating_mul(3).saturating_add(PROMPTLY);

async fn restored(outer: Arc<Testbed>) -> Result<()> {
    let site = outer.site();
    let mut elector = site.elector("elector", std::iter::empty()).await?;
    warm_up(site).await?;
    let testbed = Testbed::open(Arc::clone(site), NAMESPACE, Implementation::Elector).await?;
    let led = play(site, &testbed, &outer).await;
    led.with_context(|| testbed.journal().text())?;
    ensure!(elector.ended()?.is_none(), "the elector has ended");
    let notices = |output: &str| {
        output
            .contains("the store was restored to an older version")
            .then_some(())
    };
    elector
        .output_until("that the store was restored", PROMPTLY, notices)
        .await
}

async fn play(site: &TestSite, testbed: &Testbed, outer: &Testbed) -> Result<()> {
    let before = candidate(testbed, "before", "1.2.0")?;
    before.leads(PROMPTLY).await?;
    testbed.stays("before", 1).await?;
    testbed.note("back up the store");
    let backup = site.back_up().await?;
    testbed.stays("before", 1).await?;
    let after = candidate(testbed, "after", "1.1.0")?;
    after.leads(PROMPTLY).await?;
    testbed.stays("after", 2).await?;

    let version = site.version().await?;
    let from = testbed.journal().len();
    testbed.note("restore the store");
    site.restore(&backup).await?;
    let back = testbed.note("the store is back");
    // Both processes run: the one that the backup has as the leader, and the one that led last. Which of them is granted
    // the lease is decided as ever: the better one.
    let led = after.leads_again(from, LED_AGAIN).await?;
    outer.figure("until the restored store has a leader", between(back, led));

    // The recorder of the rig looks for newer versions than it has seen.
    site.pass(version).await?;
    testbed.stays("after", 1).await?;
    let arrival = testbed.note("a better candidate starts");
    let better = candidate(testbed, "better", "1.0.0")?;
    let led = better.leads(PROMPTLY).await?;
    outer.figure("until the better leads", between(arrival, led));
    testbed.stays("better", 1).await?;
    one_at_a_time(testbed)
}

fn candidate(testbed: &Testbed, name: &str, version: &str) -> Result<StartedCandidate> {
    let candidate = testbed.candidate(name).version(version);
    candidate.flag("--mode=elected").start()
}

/// Checks that no work began before that of the leader before had ended, as the candidates say.
fn one_at_a_time(testbed: &Testbed) -> Result<()> {
    let intervals = testbed.journal().read(work_intervals);
    ensure!(intervals.len() >= 4, "there were only {intervals:?}");
    for pair in intervals.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        ensure!(
            before.to.unwrap_or_else(now) <= after.from,
            "two led at once: {before:?} and {after:?}"
        );
    }
    Ok(())
}
