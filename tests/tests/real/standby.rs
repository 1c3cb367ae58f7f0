//! Electors with leader election among them: the one that acts is stopped for a while; the other stands by and writes
//! nothing until it acts itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_tests::rig::{Suite, TestProcess, Testbed, warm_up};
use rustix::process::Signal;
use tokio::time::sleep;

use crate::{GATE_OFF, LEASE_DURATION, MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, MODES).every_change_on(GATE_OFF);
    own.add("active_elector_is_stopped_and_woken", 130, stopped);
}

/// The stop of the active elector: longer than two lease durations.
const AWAY: Duration = Duration::from_secs(30);

/// The log lines of an elector when it begins to act, and when it stands by.
const LEADING: &str = "leading the electors";
const STANDING_BY: &str = "standing by";

/// Stopped for 30 s, it is replaced, and when it wakes up it writes nothing; once the other one dies it acts again.
async fn stopped(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let audit = site.audit().await?;
    // The namespace of their lock.
    testbed.open_beside("elector-system").await?;
    let mut active = elector(&testbed, "active").await?;
    says(&mut active, LEADING, 1, PROMPTLY).await?;
    let mut standby = elector(&testbed, "standby").await?;
    says(&mut standby, STANDING_BY, 1, PROMPTLY).await?;
    warm_up(site).await?;
    // It knows every record for W_max.
    sleep(LEASE_DURATION).await;
    let old = testbed.candidate("old").version("1.2.0").start()?;
    old.leads(PROMPTLY).await?;
    testbed.stays("old", 1).await?;
    let writes = audit.writes_of("standby")?;
    ensure!(writes.is_empty(), "the standby wrote {writes:?}");
    // One that acts writes more than the lock.
    let writes = audit.writes_of("active")?;
    let mut elsewhere = writes.iter().map(|write| &write.what);
    let holds = elsewhere.any(|what| !what.contains(" elector-system/"));
    ensure!(holds, "the active elector wrote no more than {writes:?}");

    let asleep = testbed.note("stop the active elector");
    active.signal(Signal::STOP)?;
    // A better candidate comes, which an elector that acts would elect at once.
    let better = testbed.candidate("better").version("1.1.0").start()?;
    says(&mut standby, LEADING, 1, LEASE_DURATION + PROMPTLY).await?;
    let took = asleep.elapsed();
    testbed.figure("until the standby acts", took);
    let limit = LEASE_DURATION + Duration::from_secs(2);
    ensure!(took <= limit, "the standby acted after {took:?}");
    better.leads(PROMPTLY).await?;
    sleep(AWAY.saturating_sub(asleep.elapsed())).await;
    let woken = testbed.note("wake the elector that was active").at;
    active.signal(Signal::CONT)?;
    says(&mut active, STANDING_BY, 1, PROMPTLY).await?;
    // Something to decide, which both see.
    let best = testbed.candidate("best").version("1.0.0").start()?;
    best.leads(PROMPTLY).await?;
    testbed.stays("best", 3).await?;
    let mut writes = audit.writes_of("active")?;
    writes.retain(|write| write.at > woken);
    ensure!(writes.is_empty(), "the woken elector wrote {writes:?}");
    standby.kill()?;
    says(&mut active, LEADING, 2, LEASE_DURATION + PROMPTLY).await?;
    testbed.stays("best", 1).await
}

/// Starts an elector that stands for the lock of the electors, in a Pod of its own.
async fn elector(testbed: &Testbed, name: &str) -> Result<TestProcess> {
    testbed.note(&format!("start the elector {name}"));
    let site = testbed.site();
    let flags = site.mode().elector_flags().iter().copied();
    site.elector(name, flags.chain(["--leader-elect"])).await
}

/// Waits until an elector has said something this number of times.
async fn says(
    elector: &mut TestProcess,
    what: &str,
    times: usize,
    patience: Duration,
) -> Result<()> {
    let said = |output: &str| (output.matches(what).count() >= times).then_some(());
    elector.output_until(what, patience, said).await
}
