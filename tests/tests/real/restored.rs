//! The store of the API server goes back to a backup: what was led since then is led again, by one leader.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{StartedCandidate, Suite, Testbed, between, now, warm_up, work_intervals};

use crate::{GATE_OFF, LEASE_DURATION, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, GATE_OFF);
    own.add_long("etcd_is_restored_from_a_backup", 120, restored);
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
    let testbed = outer.open_beside(NAMESPACE).await?;
    let led = play(&testbed, &outer).await;
    led.with_context(|| testbed.journal().text())?;
    ensure!(elector.ended()?.is_none(), "the elector has ended");
    let notices = "the store was restored to an older version";
    elector.writes(&[notices], PROMPTLY).await.map(drop)
}

async fn play(testbed: &Testbed, outer: &Testbed) -> Result<()> {
    let site = testbed.site();
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
    let from = testbed.note("restore the store");
    site.restore(&backup).await?;
    let back = testbed.note("the store is back");
    // Both processes run: the one that the backup has as the leader, and the one that led last. Which of them is granted
    // the lease is decided as ever: the better one.
    let led = after.leads_since(from, LED_AGAIN).await?;
    let figure = "until the restored store has a leader";
    outer.figure(figure, between(back.at, led));

    // The recorder of the rig looks for newer versions than it has seen.
    site.pass(version).await?;
    testbed.stays("after", 1).await?;
    let arrival = testbed.note("a better candidate starts");
    let better = candidate(testbed, "better", "1.0.0")?;
    let led = better.leads(PROMPTLY).await?;
    outer.figure("until the better leads", between(arrival.at, led));
    testbed.stays("better", 1).await?;
    one_at_a_time(testbed, 4)
}

fn candidate(testbed: &Testbed, name: &str, version: &str) -> Result<StartedCandidate> {
    let candidate = testbed.candidate(name).version(version);
    candidate.flag("--mode=elected").start()
}

/// Checks that at least this number of terms began, none before the work of the leader before had ended, as the
/// candidates say.
pub(crate) fn one_at_a_time(testbed: &Testbed, least: usize) -> Result<()> {
    let mut entries = testbed.journal().read(<[_]>::to_vec);
    // Events from before a kill may have been read later.
    entries.sort_by_key(|entry| entry.at);
    let intervals = work_intervals(&entries);
    ensure!(intervals.len() >= least, "there were only {intervals:?}");
    for pair in intervals.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let holds = before.to.unwrap_or_else(now) <= after.from;
        ensure!(holds, "two led at once: {before:?} and {after:?}");
    }
    Ok(())
}
