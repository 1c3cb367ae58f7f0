//! Another build of elector beside this one: electors of both, and candidates of either with electors of either.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterChoice, Implementation, RequiredFlag, StartedCandidate, Suite, TestProcess, Testbed,
    between, warm_up,
};
use tokio::time::sleep;

use crate::electors::{pings, signals};
use crate::{LEASE_DURATION, MODES, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add_with_flag(
        RequiredFlag::Beside,
        "builds_beside_each_other",
        ClusterChoice::Own,
        OURS,
        MODES,
        Duration::from_secs(180),
        |testbed| Box::pin(beside(testbed)),
    );
}

/// W of these candidates.
const SHORT_LEASE: Duration = Duration::from_secs(4);

/// How soon after the death of a leader there is the next.
const AFTER_A_CRASH: Duration = SHORT_LEASE.saturating_add(Duration::from_secs(2));

/// Both builds.
struct Builds {
    testbed: Arc<Testbed>,
    this: PathBuf,
    other: PathBuf,
}

/// What is written for four changes of leader, however many electors there are: a born record, a grant and its accept, two
/// preferences with a hand-over and an accept each, a grant with its accept, and a release with another. That is 13 or 14;
/// the later one of two electors ends in a conflict, and writes nothing.
const MOST_SIGNALS: usize = 15;

/// Each of four candidates is asked at most once for each change, and one that died may be asked once more.
const MOST_PINGS: usize = 20;

async fn beside(testbed: Arc<Testbed>) -> Result<()> {
    let builds = Builds::of(&testbed)?;
    let (this, other) = (&builds.this, &builds.other);
    let site = testbed.site();
    let mut other_elector = builds.elector(other, "other-elector")?;
    warm_up(site).await?;
    builds.four_changes("elector of the other build").await?;

    let mut this_elector = builds.elector(this, "this-elector")?;
    // It knows every record for W_max, and has been beside the other one for that time.
    sleep(LEASE_DURATION).await;
    builds.four_changes("electors of both builds").await?;

    testbed.note("the elector of the other build is away");
    other_elector.kill()?;
    // With the gate on, the lock of the built-in controller has to be taken over.
    sleep(LEASE_DURATION).await;
    builds.four_changes("elector of this build").await?;

    testbed.note("the elector of this build is away, and the other one is back");
    this_elector.kill()?;
    let _other_elector = builds.elector(other, "other-elector-again")?;
    sleep(LEASE_DURATION * 2).await;
    builds
        .four_changes("elector of the other build again")
        .await
}

// === impl Builds ===

impl Builds {
    fn of(testbed: &Arc<Testbed>) -> Result<Self> {
        let programs = testbed.site().programs();
        let other = programs.other_build.clone();
        Ok(Self {
            testbed: Arc::clone(testbed),
            this: programs.elector.clone(),
            other: other.context("there is no other build")?,
        })
    }

    fn elector(&self, build: &Path, name: &str) -> Result<TestProcess> {
        self.testbed.note(&format!("start {name}"));
        let site = self.testbed.site();
        site.elector_of(build, name, site.mode().elector_flags().iter().copied())
    }

    /// Candidates of both builds come for a lease of their own, better and better, the best dies, and the next one steps
    /// down: the best that is there leads each time. The writes are no more than those of one elector.
    async fn four_changes(&self, electors: &str) -> Result<()> {
        let outer = &self.testbed;
        outer.note(electors);
        let namespace = electors.replace(' ', "-");
        let site = Arc::clone(outer.site());
        let testbed = Testbed::open(site, &namespace, Implementation::Elector).await?;
        let changed = self.change_four_times(electors, &testbed).await;
        let judged = testbed.verdict().await;
        for (name, figure) in testbed.figures() {
            outer.figure(&format!("{electors}, {name}"), figure);
        }
        changed
            .and(judged)
            .with_context(|| format!("{electors}\n{}", testbed.journal().text()))
    }

    async fn change_four_times(&self, electors: &str, testbed: &Testbed) -> Result<()> {
        let (this, other) = (&self.this, &self.other);
        let third = candidate(testbed, other, "third-of-other", "1.3.0")?;
        third.leads(PROMPTLY).await?;
        let _last = candidate(testbed, this, "last-of-this", "1.4.0")?;
        testbed.stays(third.name(), 2).await?;
        let mut second = candidate(testbed, this, "second-of-this", "1.2.0")?;
        second.leads(PROMPTLY).await?;
        testbed.stays(second.name(), 2).await?;
        let mut best = candidate(testbed, other, "best-of-other", "1.1.0")?;
        best.leads(PROMPTLY).await?;
        testbed.stays(best.name(), 3).await?;

        let (from, killed) = (testbed.journal().len(), best.kill()?);
        follows(testbed, &second, (from, killed), "crash").await?;
        testbed.stays(second.name(), 2).await?;
        let (from, ended) = (testbed.journal().len(), second.terminate()?);
        follows(testbed, &third, (from, ended), "release").await?;
        second.ends_well(PROMPTLY).await?;
        testbed.stays(third.name(), 3).await?;

        let (signals, pings) = testbed
            .journal()
            .read(|entries| (signals(entries), pings(entries)));
        println!("{electors}: {signals} writes of the lease that are no renewals, {pings} pings");
        ensure!(
            signals <= MOST_SIGNALS,
            "{signals} writes of the lease that are no renewals"
        );
        ensure!(pings <= MOST_PINGS, "{pings} pings");
        Ok(())
    }
}

fn candidate(
    testbed: &Testbed,
    build: &Path,
    name: &str,
    version: &str,
) -> Result<StartedCandidate> {
    testbed
        .candidate(name)
        .build(build)
        .version(version)
        .flag("--lease-duration=4s")
        .flag("--renew-deadline=3s")
        .start()
}

/// Waits until it leads, in an entry after the first `from`, and checks that it does so in time.
async fn follows(
    testbed: &Testbed,
    candidate: &StartedCandidate,
    (from, lost): (usize, Timestamp),
    figure: &str,
) -> Result<()> {
    let led = candidate
        .leads_again(from, AFTER_A_CRASH + PROMPTLY)
        .await?;
    let took = between(lost, led);
    testbed.figure(figure, took);
    ensure!(took <= AFTER_A_CRASH, "{figure}: after {took:?}");
    Ok(())
}
