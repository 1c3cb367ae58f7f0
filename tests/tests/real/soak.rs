//! Hours in which a lease changes hands every few seconds, by hand-overs and now and then a crash: neither the elector nor
//! the leader of another lease, who live through all of it, grow in memory or descriptors.

use std::env;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{StartedCandidate, Suite, Testbed, warm_up};
use tokio::time::Instant;

use crate::flooded_namespace::scraped::memory_kib;
use crate::{GATE_OFF, OURS, PROMPTLY, SHORT_LEASE};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, GATE_OFF);
    let name = "memory_and_descriptors_do_not_grow";
    let lasts = 60 * minutes().unwrap_or(MINUTES) + 60;
    own.add_long(name, lasts, soak);
}

/// Names another number of minutes.
const ELECTOR_SOAK: &str = "ELECTOR_SOAK";

/// The minutes that are played by default.
const MINUTES: u64 = 5;

/// The candidates of the lease that changes hands.
const STANDING: usize = 3;

/// One in so many leaders crashes; what it leaves behind is considered for half an hour and more, and 64 of a lease are.
const CRASHES: usize = 30;

/// The growth that is no leak, in the second half: pages that an allocator keeps, and connections that idle.
const SPARE_KIB: u64 = 2048;
const SPARE_DESCRIPTORS: usize = 4;

/// The resources that a process has at one moment.
#[derive(Clone, Copy)]
struct Held {
    resident_kib: u64,
    descriptors: usize,
}

/// A process under watch, and what it had after each change of leader.
struct Watched {
    name: &'static str,
    process: u32,
    samples: Vec<Held>,
}

async fn soak(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let elector = site.start_elector("elector").await?;
    warm_up(site).await?;
    testbed.admit(&[testbed.lease_name(), "anchor"]).await?;
    let anchor = testbed.candidate("anchor").lease("anchor").start()?;
    anchor.leads(PROMPTLY).await?;
    let mut watched = [
        Watched::new("elector", elector.id()),
        Watched::new("leader", anchor.process.id()),
    ];
    let minutes = minutes()?;
    let deadline = Instant::now() + Duration::from_secs(60 * minutes);
    let mut mark = testbed.note("start those that take turns");
    let mut standing = Vec::new();
    for number in 0..STANDING {
        standing.push(start(&testbed, number)?);
    }
    let mut changes = 0;
    while Instant::now() < deadline {
        let (leader, _) = testbed.leader_since(mark, SHORT_LEASE + PROMPTLY).await?;
        testbed.stays(&leader, 2).await?;
        for one in &mut watched {
            one.look()?;
        }
        let index = standing.iter().position(|it| it.name() == leader);
        let index = index.with_context(|| format!("{leader} leads, which has ended"))?;
        let mut ended = standing.remove(index);
        changes += 1;
        mark = match changes % CRASHES {
            0 => ended.kill()?,
            _ => ended.ends().await?,
        };
        standing.push(start(&testbed, STANDING + changes)?);
    }
    testbed.amount("minutes", minutes.to_string());
    testbed.amount("changes of leader", changes.to_string());
    watched.iter().try_for_each(|one| one.judge(&testbed))
}

fn minutes() -> Result<u64> {
    match env::var(ELECTOR_SOAK) {
        Ok(text) => text.parse().context("ELECTOR_SOAK is no number of minutes"),
        Err(_) => Ok(MINUTES),
    }
}

fn start(testbed: &Testbed, number: usize) -> Result<StartedCandidate> {
    testbed.candidate(&format!("turn-{number}")).short().start()
}

// === impl Watched ===

impl Watched {
    const fn new(name: &'static str, process: u32) -> Self {
        Self {
            name,
            process,
            samples: Vec::new(),
        }
    }

    fn look(&mut self) -> Result<()> {
        let resident = memory_kib("VmRSS:", self.process);
        self.samples.push(Held {
            resident_kib: resident
                .with_context(|| format!("failed to look at the {}", self.name))?,
            descriptors: fs::read_dir(format!("/proc/{}/fd", self.process))?.count(),
        });
        Ok(())
    }

    /// The most that it had in the last quarter is no more than the most of the second one.
    fn judge(&self, testbed: &Testbed) -> Result<()> {
        let quarter = self.samples.len() / 4;
        ensure!(quarter > 0, "{} samples are too few", self.samples.len());
        let most = |quarters: &[Held]| {
            let resident = quarters.iter().map(|it| it.resident_kib).max();
            let descriptors = quarters.iter().map(|it| it.descriptors).max();
            (
                resident.unwrap_or_default(),
                descriptors.unwrap_or_default(),
            )
        };
        let before = most(&self.samples[quarter..2 * quarter]);
        let last = most(&self.samples[self.samples.len() - quarter..]);
        for (when, (resident, descriptors)) in [("second", before), ("last", last)] {
            let what = format!(
                "{}: most resident, descriptors in the {when} quarter",
                self.name
            );
            testbed.amount(&what, format!("{resident} KiB, {descriptors}"));
        }
        ensure!(
            last.0 <= before.0 + SPARE_KIB && last.1 <= before.1 + SPARE_DESCRIPTORS,
            "{} grows: {before:?} KiB and descriptors, then {last:?}",
            self.name
        );
        Ok(())
    }
}
