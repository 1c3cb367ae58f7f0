//! Electors with leader election among them: the one that acts dies, stops for a while, is restarted; the other stands by
//! and writes nothing until it acts itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    AuditLog, AuditedWrite, ClusterChoice, Implementation, Suite, TestProcess, Testbed, between,
    now, warm_up,
};
use rustix::process::Signal;
use tokio::time::sleep;

use crate::{LEASE_DURATION, MODES, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, seconds, run| {
        suite.add(
            name,
            ClusterChoice::Own,
            OURS,
            MODES,
            Duration::from_secs(seconds),
            run,
        );
    };
    add("active_elector_and_leader_are_killed", 110, |testbed| {
        Box::pin(killed_together(testbed))
    });
    add("active_elector_is_stopped_and_woken", 130, |testbed| {
        Box::pin(stopped_and_woken(testbed))
    });
    add("electors_are_restarted_one_by_one", 150, |testbed| {
        Box::pin(restarted_one_by_one(testbed))
    });
}

/// The stop of the active elector, or the absence of both: longer than two lease durations.
const AWAY: Duration = Duration::from_secs(30);

/// The time until a standby acts whose predecessor let go of the lock.
const RELEASED: Duration = Duration::from_secs(1);

/// The log lines of an elector when it begins to act, and when it stands by.
const LEADING: &str = "leading the electors";
const STANDING_BY: &str = "standing by";

/// Two electors, the first of which acts, and the log of what each of them writes.
struct ElectorPair {
    testbed: Arc<Testbed>,
    audit: AuditLog,
    active: TestProcess,
    standby: TestProcess,
}

// === impl ElectorPair ===

impl ElectorPair {
    /// Starts two electors, waits until the first of them elects, and checks that the other has written nothing.
    async fn start(testbed: &Arc<Testbed>) -> Result<Self> {
        let site = testbed.site();
        let audit = site.audit().await?;
        // The namespace of their lock.
        Testbed::open(Arc::clone(site), "elector-system", Implementation::Elector).await?;
        let mut active = elector(testbed, "active").await?;
        says(&mut active, LEADING, 1, PROMPTLY).await?;
        let mut standby = elector(testbed, "standby").await?;
        says(&mut standby, STANDING_BY, 1, PROMPTLY).await?;
        warm_up(site).await?;
        // It knows every record for W_max.
        sleep(LEASE_DURATION).await;
        Ok(Self {
            testbed: Arc::clone(testbed),
            audit,
            active,
            standby,
        })
    }

    /// Checks that the standby has written nothing, and that the active elector has.
    fn only_one_writes(&self) -> Result<()> {
        let writes = self.audit.writes_of("standby")?;
        ensure!(writes.is_empty(), "the standby wrote {writes:?}");
        let writes = self.audit.writes_of("active")?;
        ensure!(
            writes.iter().any(is_act),
            "the active elector wrote no more than {writes:?}"
        );
        Ok(())
    }
}

/// Both die at the same moment: the standby has watched the lock and the lease for equally long.
async fn killed_together(testbed: Arc<Testbed>) -> Result<()> {
    let mut electors = ElectorPair::start(&testbed).await?;
    let mut leader = testbed.candidate("leader").version("1.1.0").start()?;
    leader.leads(PROMPTLY).await?;
    let next = testbed.candidate("next").version("1.2.0").start()?;
    testbed.stays("leader", 3).await?;
    electors.only_one_writes()?;
    testbed.note("kill the active elector and the leader");
    electors.active.kill()?;
    let killed = leader.kill()?;
    let limit = crash_limit(Implementation::Elector);
    let led = next.leads(limit + PROMPTLY).await?;
    let took = between(killed, led);
    testbed.figure("until the next leads", took);
    ensure!(took <= limit, "the next led after {took:?}");
    says(&mut electors.standby, LEADING, 1, PROMPTLY).await?;
    testbed.stays("next", 2).await
}

/// Stopped for 30 s, it is replaced, and when it wakes up it writes nothing; once the other one dies it acts again.
async fn stopped_and_woken(testbed: Arc<Testbed>) -> Result<()> {
    let mut electors = ElectorPair::start(&testbed).await?;
    let old = testbed.candidate("old").version("1.2.0").start()?;
    old.leads(PROMPTLY).await?;
    testbed.stays("old", 1).await?;
    electors.only_one_writes()?;
    testbed.note("stop the active elector");
    let stopped = now();
    electors.active.signal(Signal::STOP)?;
    // A better candidate comes, which an elector that acts would elect at once.
    let better = testbed.candidate("better").version("1.1.0").start()?;
    says(&mut electors.standby, LEADING, 1, LEASE_DURATION + PROMPTLY).await?;
    let took = between(stopped, now());
    testbed.figure("until the standby acts", took);
    ensure!(
        took <= LEASE_DURATION + Duration::from_secs(2),
        "the standby acted after {took:?}"
    );
    better.leads(PROMPTLY).await?;
    sleep(AWAY.saturating_sub(between(stopped, now()))).await;
    testbed.note("wake the elector that was active");
    let woken = now();
    electors.active.signal(Signal::CONT)?;
    says(&mut electors.active, STANDING_BY, 1, PROMPTLY).await?;
    // Something to decide, which both see.
    let best = testbed.candidate("best").version("1.0.0").start()?;
    best.leads(PROMPTLY).await?;
    testbed.stays("best", 3).await?;
    let writes = since(electors.audit.writes_of("active")?, woken);
    ensure!(writes.is_empty(), "the woken elector wrote {writes:?}");
    electors.standby.kill()?;
    says(&mut electors.active, LEADING, 2, LEASE_DURATION + PROMPTLY).await?;
    testbed.stays("best", 1).await
}

/// A rolling restart of both changes no leader, nor does their absence; afterwards they elect.
async fn restarted_one_by_one(testbed: Arc<Testbed>) -> Result<()> {
    let electors = ElectorPair::start(&testbed).await?;
    let mut leader = testbed.candidate("leader").version("1.1.0").start()?;
    leader.leads(PROMPTLY).await?;
    let next = testbed.candidate("next").version("1.2.0").start()?;
    testbed.stays("leader", 1).await?;
    electors.only_one_writes()?;
    let terms = testbed.terms();
    let ElectorPair {
        testbed,
        audit,
        active,
        mut standby,
    } = electors;
    testbed.note("restart both electors, one by one");
    let mut third = elector(&testbed, "third").await?;
    says(&mut third, STANDING_BY, 1, PROMPTLY).await?;
    let ended = end(active).await?;
    says(&mut standby, LEADING, 1, PROMPTLY).await?;
    let took = between(ended, now());
    testbed.figure("until the standby acts after a release", took);
    ensure!(took <= RELEASED, "the standby acted after {took:?}");
    let mut fourth = elector(&testbed, "fourth").await?;
    says(&mut fourth, STANDING_BY, 1, PROMPTLY).await?;
    end(standby).await?;
    says(&mut third, LEADING, 1, PROMPTLY).await?;
    testbed.stays("leader", 3).await?;
    let writes = audit.writes_of("fourth")?;
    ensure!(writes.is_empty(), "the standby wrote {writes:?}");

    testbed.note("both electors are away");
    fourth.kill()?;
    third.kill()?;
    sleep(AWAY).await;
    testbed.stays("leader", 1).await?;
    ensure!(
        testbed.terms() == terms,
        "{} terms began where {terms} had before",
        testbed.terms()
    );
    let _last = elector(&testbed, "last").await?;
    testbed.note("kill the leader");
    let killed = leader.kill()?;
    let led = next.leads(LEASE_DURATION * 3 + PROMPTLY).await?;
    testbed.figure(
        "until the next leads after all came back",
        between(killed, led),
    );
    testbed.stays("next", 1).await
}

/// Starts an elector that stands for the lock of the electors, in a Pod of its own.
async fn elector(testbed: &Testbed, name: &str) -> Result<TestProcess> {
    testbed.note(&format!("start the elector {name}"));
    let site = testbed.site();
    let flags = site.mode().elector_flags().iter().copied();
    site.elector(name, flags.chain(["--leader-elect"])).await
}

/// Waits until an elector has said something so many times.
async fn says(
    elector: &mut TestProcess,
    what: &str,
    times: usize,
    patience: Duration,
) -> Result<()> {
    let said = |output: &str| (output.matches(what).count() >= times).then_some(());
    elector.output_until(what, patience, said).await
}

/// Ends an elector with SIGTERM; returns the time just before.
async fn end(mut elector: TestProcess) -> Result<Timestamp> {
    let before = now();
    let (status, took) = elector.terminate(PROMPTLY).await?;
    ensure!(status.success(), "the elector ended with {status}");
    ensure!(took <= Duration::from_secs(2), "it ended after {took:?}");
    elector
        .output()?
        .find("released the lock of the electors")
        .context("it did not release the lock")?;
    Ok(before)
}

/// The writes that came in after that moment.
fn since(mut writes: Vec<AuditedWrite>, then: Timestamp) -> Vec<AuditedWrite> {
    writes.retain(|write| write.at > then);
    writes
}

/// True of a write that only an elector that acts makes.
fn is_act(write: &AuditedWrite) -> bool {
    !write.what.contains(" elector-system/")
}
