//! An earlier version of Elector beside this one: electors of both, and candidates of either with electors of either.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_api::format_prefer;
use elector_protocol::{Identity, LeaseRecord, OperatorPreference, Term, Timestamp};
use elector_tests::rig::{
    HistoryEntry, LEASE, RequiredFlag, StartedCandidate, Suite, TestProcess, Testbed, now,
    revisions, warm_up,
};
use tokio::time::sleep;

use crate::electors::few_writes;
use crate::{LEASE_DURATION, MODES, OURS, PROMPTLY, SHORT_LEASE, WITHOUT_GATE};

pub(crate) fn add(suite: &mut Suite) {
    let (flag, name) = (RequiredFlag::UpgradeFrom, "builds_beside_each_other");
    suite.own(OURS, MODES).add_with(flag, name, 180, beside);
    // The lock that both take where the gate is on lets one of them act.
    let name = "builds_disagree_politely";
    let mut without_gate = suite.own(OURS, WITHOUT_GATE);
    without_gate.add_with(flag, name, 180, disagree);
}

/// The longest gap after the death of a leader.
const AFTER_A_CRASH: Duration = SHORT_LEASE.saturating_add(Duration::from_secs(2));

/// Both builds.
struct Builds {
    testbed: Arc<Testbed>,
    this: PathBuf,
    other: PathBuf,
}

/// The writes for four changes of leader, however many electors there are: a born record, a grant and its accept, two
/// preferences with a hand-over and an accept each, a grant with its accept, and a release with another. That is 13 or
/// 14; the later one of two electors ends in a conflict, and writes nothing.
const MOST_SIGNALS: usize = 15;

/// Each of four candidates is asked at most once for each change, and one that died may be asked once more.
const MOST_PINGS: usize = 20;

async fn beside(testbed: Arc<Testbed>) -> Result<()> {
    let builds = Builds::of(&testbed)?;
    let (this, other) = (&builds.this, &builds.other);
    let mut other_elector = builds.elector(other, "other-elector")?;
    warm_up(testbed.site()).await?;
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
    let again = "elector of the other build again";
    builds.four_changes(again).await
}

/// For how long electors that disagree are watched: longer than leaders that take all of their grace period make room.
const WATCHED: Duration = Duration::from_secs(90);

/// Twice the budget of an elector of this build (R23), and once more for the other one, which may have none.
const MOST_HAND_OVERS: u32 = 7;

/// The most withdrawals of preferences in one term within a quarter of an hour (L3).
const MOST_WITHDRAWALS: u32 = 8;

/// An operator prefers a candidate; that word is nothing to an elector of an older build.
async fn disagree(testbed: Arc<Testbed>) -> Result<()> {
    let builds = Builds::of(&testbed)?;
    let _other_elector = builds.elector(&builds.other, "other-elector")?;
    let _this_elector = builds.elector(&builds.this, "this-elector")?;
    warm_up(testbed.site()).await?;
    let prompt = builds.disagreement("prompt leaders", "sleep 100000");
    let slow = builds.disagreement("slow leaders", "trap '' TERM; sleep 100000");
    let (prompt, slow) = tokio::join!(prompt, slow);
    prompt.and(slow)
}

// === impl Builds ===

impl Builds {
    fn of(testbed: &Arc<Testbed>) -> Result<Self> {
        let programs = testbed.site().programs();
        let other = programs.earlier_version.as_ref();
        Ok(Self {
            testbed: Arc::clone(testbed),
            this: programs.elector.clone(),
            other: other
                .context("there is no earlier version")?
                .elector
                .clone(),
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
        self.testbed.note(electors);
        let namespace = electors.replace(' ', "-");
        let testbed = self.testbed.open_beside(&namespace).await?;
        let changed = self.change_four_times(electors, &testbed).await;
        self.testbed.conclude(&testbed, changed).await
    }

    async fn change_four_times(&self, electors: &str, testbed: &Testbed) -> Result<()> {
        let (this, other) = (&self.this, &self.other);
        let start = |build: &Path, name, version| {
            let candidate = testbed.candidate(name).build(build);
            candidate.version(version).short().start()
        };
        let third = start(other, "third-of-other", "1.3.0")?;
        third.leads(PROMPTLY).await?;
        let _last = start(this, "last-of-this", "1.4.0")?;
        testbed.stays(third.name(), 2).await?;
        let mut second = start(this, "second-of-this", "1.2.0")?;
        second.leads(PROMPTLY).await?;
        testbed.stays(second.name(), 2).await?;
        let mut best: StartedCandidate = start(other, "best-of-other", "1.1.0")?;
        best.leads(PROMPTLY).await?;
        testbed.stays(best.name(), 3).await?;

        let (lost, figure) = (best.kill()?, format!("{electors}, crash"));
        testbed
            .leads_within(&second, lost, AFTER_A_CRASH, &figure)
            .await?;
        testbed.stays(second.name(), 2).await?;
        let (lost, figure) = (second.terminate()?, format!("{electors}, release"));
        testbed
            .leads_within(&third, lost, AFTER_A_CRASH, &figure)
            .await?;
        second.ends_well().await?;
        testbed.stays(third.name(), 3).await?;
        few_writes(testbed, MOST_SIGNALS, MOST_PINGS)
    }

    /// An operator prefers the worse of two candidates, whose work stops at once or only when it is killed. The lease
    /// changes hands as often as the budget has it, its preference is withdrawn ever later, and one candidate leads on.
    async fn disagreement(&self, leaders: &str, work: &str) -> Result<()> {
        let testbed = self.testbed.open_beside(&leaders.replace(' ', "-")).await?;
        let start = |name, version| {
            let candidate = testbed.candidate(name).version(version).short();
            candidate.work(&["sh", "-c", work]).start()
        };
        let best = start("best", "1.1.0")?;
        best.leads(PROMPTLY).await?;
        let worse = start("worse", "1.2.0")?;
        worse.begins().await?;
        testbed.stays(best.name(), 2).await?;
        let in_an_hour = Timestamp::from_micros(now().as_micros() + 3_600_000_000);
        let word = format_prefer(&OperatorPreference {
            candidate: Identity::new(worse.name()).context("name a candidate")?,
            until: in_an_hour.unwrap_or(Timestamp::MAX),
        });
        let word = format!("elector.dev/prefer={word}");
        let (namespace, lease) = (testbed.namespace(), testbed.lease_name());
        let annotate = ["annotate", "-n", namespace, "lease", lease, &word];
        testbed.site().kubectl(&annotate).await?;
        sleep(WATCHED).await;

        let (hand_overs, withdrawals) = testbed.journal().read(withdrawals);
        let most = withdrawals.values().max().copied().unwrap_or_default();
        for (what, count) in [("hand-overs", hand_overs), ("withdrawals in a term", most)] {
            let name = format!("{leaders}, {what} in {WATCHED:?}");
            self.testbed.amount(&name, count.to_string());
        }
        let lease = testbed.lease()?;
        let holder = lease.spec.holder_identity.as_deref().unwrap_or_default();
        testbed.stays(holder, 3).await?;
        testbed.verdict().await?;
        ensure!(
            (1..=MOST_HAND_OVERS).contains(&hand_overs) && most <= MOST_WITHDRAWALS,
            "{leaders}: {hand_overs} hand-overs, and withdrawals by term {withdrawals:?}"
        );
        Ok(())
    }
}

/// The number of terms after the first in which a candidate led, and that of preferences withdrawn in each term.
fn withdrawals(entries: &[HistoryEntry]) -> (u32, BTreeMap<Term, u32>) {
    let records = revisions(entries, LEASE).filter_map(|(lease, _)| lease.record().ok());
    let mut withdrawals = BTreeMap::new();
    let mut before = None;
    for record in records.filter(LeaseRecord::has_token) {
        let count = withdrawals.entry(record.term).or_insert(0);
        let now = Some((record.term, record.preferred_holder.is_some()));
        *count += u32::from(before == Some((record.term, true)) && now != before);
        before = now;
    }
    let terms = u32::try_from(withdrawals.len()).unwrap_or(u32::MAX);
    (terms.saturating_sub(1), withdrawals)
}
