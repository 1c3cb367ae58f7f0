//! Sixteen parts in three processes over half an hour of kills, and through an update and many ends.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::paths;
use elector_tests::rig::{
    EventKind, HistoryEntry, JournalMark, PROMPTLY, StartedCandidate, Testbed, between, events,
    eventually,
};
use tokio::time::{Instant, sleep_until};

use super::{PartHolders, holders, is_of};
use crate::hand_overs::percentiles;
use crate::transcript::is_recorded;
use crate::{LEASE_DURATION, OURS, crash_limit};

/// The number of kills, and the time from one to the next.
const KILLS: usize = 30;
const EVERY: Duration = Duration::from_secs(60);

/// The number of processes that end, one after the other.
const ENDS: usize = 30;

/// The time in which a newcomer has its share: it settles for 30 s.
const EVENED_OUT: Duration = Duration::from_secs(60);

/// Where the picture of the update is kept.
const PICTURE: &str = "docs/groups.svg";

/// The processes of a group; each new one has a name that was not there before, as a Pod of a Deployment.
struct GroupReplicas<'t> {
    testbed: &'t Testbed,
    parts: Vec<String>,
    running: Vec<StartedCandidate>,
    started: usize,
}

/// Kills the process with the most parts each minute, and starts another one.
pub(super) async fn killed(testbed: Arc<Testbed>) -> Result<()> {
    let _elector = testbed.site().start_elector("elector").await?;
    let mut replicas = GroupReplicas::start(&testbed).await?;
    let (mut took, mut uneven) = (Vec::new(), Vec::new());
    for _ in 0..KILLS {
        let next = Instant::now() + EVERY;
        let mut victim = replicas.take_busiest().await?;
        let mark = victim.kill()?;
        replicas.add("1.0.0").await?;
        replicas
            .led_by_others(victim.name(), crash_limit(OURS))
            .await?;
        took.push(mark.elapsed());
        sleep_until(next).await;
        uneven.push(replicas.unevenness().await?);
    }
    percentiles(&testbed, "killed: until all parts are led again", &mut took);
    let even = uneven.iter().filter(|uneven| **uneven <= 1).count();
    let most = uneven.iter().max().copied().unwrap_or_default();
    testbed.amount(
        "killed: evened out within 60 s",
        format!("{even} of {KILLS} times; the loads differed by {most} at most"),
    );
    let holds = uneven[0] <= 1;
    ensure!(holds, "a first newcomer has not got its share: {uneven:?}");
    Ok(())
}

/// Replaces a process that was killed, then all of them by a newer version, and then the one with the most parts time after
/// time.
pub(super) async fn updated(testbed: Arc<Testbed>) -> Result<()> {
    let _elector = testbed.site().start_elector("elector").await?;
    let mut replicas = GroupReplicas::start(&testbed).await?;
    replicas.take_busiest().await?.kill()?;
    replicas.add("1.0.0").await?;
    replicas.evens_out().await?;

    let before = holders(&testbed).await?;
    testbed.note("a rolling update");
    for _ in 0..replicas.running.len() {
        replicas.add("2.0.0").await?;
        let mut oldest = replicas.running.remove(0);
        oldest.ends().await?;
        replicas.led_by_others(oldest.name(), PROMPTLY).await?;
    }
    let moves = replicas.moves_since(&before).await?;
    let (most, all) = (moves.iter().max(), moves.iter().sum::<i32>());
    let most = most.copied().unwrap_or_default();
    testbed.amount(
        "rolling update of three processes: moves of a part, on average and at most",
        format!("{:.1}, {most}", f64::from(all) / moves.len() as f64),
    );
    let holds = most <= 3 && all <= 2 * i32::try_from(moves.len())?;
    ensure!(holds, "parts moved {moves:?} times");
    replicas.evens_out().await?;

    let options = ["timeline", "--group", testbed.lease_name(), "-o", "svg"];
    let drawn = testbed.operate(&options).await?.stdout;
    ensure!(drawn.starts_with(b"<svg"), "nothing is drawn");
    if is_recorded() {
        fs::write(paths::workspace().join(PICTURE), drawn)?;
    }

    let mut gaps = Vec::new();
    for _ in 0..ENDS {
        replicas.add("2.0.0").await?;
        let before = holders(&testbed).await?;
        let mut victim = replicas.take_busiest().await?;
        let ended = victim.ends().await?;
        gaps.extend(replicas.gaps(&before, ended).await?);
    }
    let what = format!("ended: time without a leader in {} hand-overs", gaps.len());
    percentiles(&testbed, &what, &mut gaps);
    Ok(())
}

// === impl GroupReplicas ===

impl<'t> GroupReplicas<'t> {
    /// Starts three, and waits until all parts are led.
    async fn start(testbed: &'t Testbed) -> Result<Self> {
        let parts: Vec<String> = (0..16).map(|part| format!("p{part:02}")).collect();
        let lease = testbed.lease_name();
        let leases: Vec<String> = parts.iter().map(|part| format!("{lease}-{part}")).collect();
        testbed.admit_group(&leases).await?;
        let mut replicas = Self {
            testbed,
            parts,
            running: Vec::new(),
            started: 0,
        };
        for _ in 0..3 {
            replicas.add("1.0.0").await?;
        }
        replicas.led_by_others("nobody", LEASE_DURATION * 2).await?;
        Ok(replicas)
    }

    async fn add(&mut self, version: &str) -> Result<()> {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        let name = format!("web-{}", self.started);
        let candidate = self.testbed.candidate(&name).parts(&parts).version(version);
        let candidate = candidate.start()?;
        candidate.begins().await?;
        self.running.push(candidate);
        self.started += 1;
        Ok(())
    }

    /// The one that leads the most parts; it is not among the others any more.
    async fn take_busiest(&mut self) -> Result<StartedCandidate> {
        let loads = self.loads().await?;
        let busiest = (0..loads.len()).max_by_key(|index| loads[*index]);
        Ok(self.running.remove(busiest.context("no process runs")?))
    }

    /// The number of parts that each leads.
    async fn loads(&self) -> Result<Vec<usize>> {
        let held = holders(self.testbed).await?;
        let load = |replica: &StartedCandidate| {
            held.values()
                .filter(|(holder, _)| is_of(holder, replica.name()))
                .count()
        };
        Ok(self.running.iter().map(load).collect())
    }

    /// The parts that one has more than another.
    async fn unevenness(&self) -> Result<usize> {
        let loads = self.loads().await?;
        let (least, most) = (loads.iter().min(), loads.iter().max());
        Ok(most.zip(least).map_or(0, |(most, least)| most - least))
    }

    async fn evens_out(&self) -> Result<()> {
        let even = async || {
            let (uneven, loads) = (self.unevenness().await?, self.loads().await?);
            let led = loads.iter().sum::<usize>();
            let holds = uneven <= 1 && led == self.parts.len();
            ensure!(holds, "the processes lead {loads:?}");
            Ok(())
        };
        eventually(EVENED_OUT, even).await
    }

    async fn led_by_others(&self, who: &str, within: Duration) -> Result<PartHolders> {
        super::led_by_others(self.testbed, self.parts.len(), who, within).await
    }

    /// The time for which each part was without work that was handed over since then.
    async fn gaps(&self, before: &PartHolders, ended: JournalMark) -> Result<Vec<Duration>> {
        let runs = |holder: &str| self.running.iter().any(|it| is_of(holder, it.name()));
        let lost: Vec<&String> = before
            .iter()
            .filter_map(|(lease, (holder, _))| (!runs(holder)).then_some(lease))
            .collect();
        let look = |entries: &[HistoryEntry]| {
            let at = |lease: &str, kind| {
                let of_lease = |key: &elector_protocol::LeaseKey| *key.name == *lease;
                let mut said = events(ended.since(entries), kind)
                    .filter(|(event, _)| event.lease.as_ref().is_some_and(of_lease));
                said.next().map(|(_, at)| at)
            };
            let gaps = lost.iter().map(|lease| {
                Some(between(
                    at(lease, EventKind::WorkStopped)?,
                    at(lease, EventKind::Leading)?,
                ))
            });
            gaps.collect()
        };
        let journal = self.testbed.journal();
        journal
            .until("all parts are led again", PROMPTLY, look)
            .await
    }

    /// The number of terms that each part has had since then.
    async fn moves_since(&self, before: &PartHolders) -> Result<Vec<i32>> {
        let now = self.led_by_others("nobody", PROMPTLY).await?;
        let moves = now.iter().map(|(lease, (_, term))| {
            let (_, earlier) = before.get(lease).context("a part that was not led")?;
            Ok(term - earlier)
        });
        moves.collect()
    }
}
