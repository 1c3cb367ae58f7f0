//! The leases of a quiet namespace: how long fail-over and hand-over take there.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_tests::rig::{JournalMark, Testbed, between};

use crate::hosted_candidates::Host;
use crate::{OURS, PROMPTLY, crash_limit};

/// Leases with candidates that are tasks of this process.
pub(super) struct Neighbours<'w> {
    testbed: &'w Testbed,
    host: Host<'w>,
    /// The leader of each lease.
    leaders: BTreeMap<String, String>,
    /// The number of candidates started so far.
    started: usize,
}

/// The longest of twenty fail-overs and of twenty hand-overs.
pub(super) struct Disturbance {
    pub(super) fail_over: Duration,
    pub(super) hand_over: Duration,
}

/// The number of leases.
const LEASES: usize = 20;
/// The version of those that stand from the beginning on.
const WORST: &str = "1.9.0";
/// The number of candidates of each lease.
const STANDING: usize = 2;

// === impl Neighbours ===

impl<'w> Neighbours<'w> {
    /// Starts the candidates, and waits until each lease is led.
    pub(super) async fn start(testbed: &'w Testbed) -> Result<Self> {
        let leases = (0..LEASES).map(|lease| format!("quiet-{lease:02}"));
        let leases: Vec<String> = leases.collect();
        let mut neighbours = Self {
            testbed,
            host: Host::connect(testbed, &leases).await?,
            leaders: BTreeMap::new(),
            started: 0,
        };
        for lease in &leases {
            for _ in 0..STANDING {
                neighbours.add(lease, WORST)?;
            }
        }
        for lease in leases {
            let beginning = JournalMark::BEGINNING;
            let led = neighbours.host.leader_since(&lease, beginning, patience());
            let (leader, _) = led.await?;
            neighbours.leaders.insert(lease, leader);
        }
        Ok(neighbours)
    }

    /// Lets all leaders crash, and then hands over to candidates of a better version.
    pub(super) async fn measure(&mut self, better: &str) -> Result<Disturbance> {
        Ok(Disturbance {
            fail_over: self.fail_over().await?,
            hand_over: self.hand_over(better).await?,
        })
    }

    /// Crashes each leader; the longest time that a lease was without one. A candidate that is no better than the others
    /// comes in its place.
    async fn fail_over(&mut self) -> Result<Duration> {
        let mut crashes = Vec::new();
        for (lease, leader) in self.leaders.clone() {
            let crashed = self.host.take(&leader)?;
            self.add(&lease, WORST)?;
            crashes.push((lease, self.testbed.note(&format!("crash {leader}"))));
            crashed.crash().await;
        }
        let mut longest = Duration::ZERO;
        for (lease, crash) in crashes {
            let led = self.host.leader_since(&lease, crash, patience());
            let (leader, at) = led.await?;
            longest = longest.max(between(crash.at, at));
            self.leaders.insert(lease, leader);
        }
        Ok(longest)
    }

    /// Starts a better candidate of one lease after the other, since twenty hand-overs at once would disturb each other more
    /// than the noise does; the longest time that none worked.
    async fn hand_over(&mut self, version: &str) -> Result<Duration> {
        let mut longest = None;
        for lease in self.leaders.clone().into_keys() {
            let arrival = self.testbed.journal().mark();
            self.add(&lease, version)?;
            let led = self.host.gap_since(&lease, arrival, patience());
            let (leader, gap) = led.await?;
            longest = longest.max(Some(gap));
            self.leaders.insert(lease, leader);
        }
        longest.context("nothing was measured")
    }

    fn add(&mut self, lease: &str, version: &str) -> Result<()> {
        let name = format!("{lease}-{}", self.started);
        self.started += 1;
        self.host.start(lease, &name, version)
    }
}

fn patience() -> Duration {
    crash_limit(OURS) + PROMPTLY * 3
}
