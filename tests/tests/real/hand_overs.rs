//! The gaps of two hundred leases: when a leader ends, when a better candidate comes, and when a leader crashes. One
//! lease after the other, so that each time is that of a hand-over and not of a queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EntryContent, EventKind, Implementation, RequiredFlag, Suite,
    Testbed, between, warm_up,
};

use crate::hosted::{Host, Hosted};
use crate::{LEASE_DURATION, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    suite.add_with_flag(
        RequiredFlag::Long,
        "hand_overs_of_two_hundred_leases",
        ClusterChoice::Own,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(150),
        |testbed| Box::pin(hand_over(testbed)),
    );
}

/// The number of leases.
const LEASES: usize = 200;

/// The longest time until all are led for the first time.
const ALL_LED: Duration = Duration::from_secs(60);

/// The candidates, by lease and then by name, and who leads.
struct Elections<'w> {
    testbed: &'w Testbed,
    host: Host<'w>,
    candidates: BTreeMap<(String, String), Hosted>,
}

async fn hand_over(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    let flags = site.mode().elector_flags().iter().copied();
    let _elector = site.elector("elector", flags).await?;
    warm_up(site).await?;
    let leases: Vec<String> = (0..LEASES)
        .map(|lease| format!("lease-{lease:03}"))
        .collect();
    testbed.admit(&leases).await?;
    let mut elections = Elections {
        host: Host::connect(&testbed).await?,
        testbed: &testbed,
        candidates: BTreeMap::new(),
    };
    for lease in &leases {
        for candidate in ["one", "other"] {
            elections.start(lease, candidate, "1.9.0")?;
        }
    }
    let mut leaders = BTreeMap::new();
    for lease in &leases {
        let (leader, _) = elections.leader(lease, 0, ALL_LED).await?;
        leaders.insert(lease.clone(), leader);
    }

    let mut took = Vec::new();
    for (lease, leader) in &mut leaders {
        let from = testbed.journal().read(<[_]>::len);
        elections.take(lease, leader)?.release().await?;
        took.push(elections.gap(lease, leader, from).await?);
    }
    tell(&testbed, "a leader ends", &mut took);

    for (lease, leader) in &mut leaders {
        let from = testbed.journal().read(<[_]>::len);
        elections.start(lease, "better", "1.0.0")?;
        took.push(elections.gap(lease, leader, from).await?);
    }
    tell(&testbed, "a better candidate comes", &mut took);

    let mut renewals = BTreeMap::new();
    let from = testbed.journal().read(<[_]>::len);
    for (lease, leader) in &leaders {
        elections.take(lease, leader)?.crash().await;
        let record = testbed.leases().get(lease).await?.spec;
        let renewed = record.renew_time.context("a leader that never renewed")?;
        renewals.insert(lease, renewed);
    }
    for (lease, renewed) in renewals {
        let limit = crash_limit(Implementation::Elector) + PROMPTLY;
        let (_, at) = elections.leader(lease, from, limit).await?;
        took.push(between(renewed, at).saturating_sub(LEASE_DURATION));
    }
    tell(
        &testbed,
        "a leader has crashed, counted from the expiry",
        &mut took,
    );
    Ok(())
}

/// Tells the median and the one below which 99 of 100 are, and begins anew.
fn tell(testbed: &Testbed, what: &str, took: &mut Vec<Duration>) {
    took.sort_unstable();
    for percent in [50, 99] {
        let rank = (took.len() * percent).div_ceil(100);
        testbed.figure(&format!("{what}: p{percent}"), took[rank - 1]);
    }
    took.clear();
}

// === impl Elections ===

impl Elections<'_> {
    fn start(&mut self, lease: &str, candidate: &str, version: &str) -> Result<()> {
        let name = format!("{lease}-{candidate}");
        let hosted = self.host.start(lease, &name, version)?;
        self.candidates.insert((lease.to_owned(), name), hosted);
        Ok(())
    }

    fn take(&mut self, lease: &str, name: &str) -> Result<Hosted> {
        let key = (lease.to_owned(), name.to_owned());
        self.candidates.remove(&key).context("a stranger leads")
    }

    /// The first leader from that entry of the journal on, and since when it leads.
    async fn leader(
        &self,
        lease: &str,
        from: usize,
        patience: Duration,
    ) -> Result<(String, Timestamp)> {
        let what = format!("{lease} is led");
        let told = self.testbed.journal().until(&what, patience, |entries| {
            entries[from..]
                .iter()
                .find_map(|entry| match &entry.content {
                    EntryContent::Event(event)
                        if event.kind == EventKind::Leading
                            && event.lease.as_ref().is_some_and(|key| *key.name == *lease) =>
                    {
                        Some((event.name.clone(), entry.at))
                    }
                    _ => None,
                })
        });
        told.await
    }

    /// The lease's gap between the end of its leader's work and the next one, who is the leader from now on.
    async fn gap(&self, lease: &str, leader: &mut String, from: usize) -> Result<Duration> {
        let (next, at) = self.leader(lease, from, PROMPTLY).await?;
        let ended = self.testbed.journal().read(|entries| {
            entries[from..]
                .iter()
                .find_map(|entry| match &entry.content {
                    EntryContent::Event(event)
                        if event.kind == EventKind::WorkStopped && event.name == *leader =>
                    {
                        Some(entry.at)
                    }
                    _ => None,
                })
        });
        let ended = ended.with_context(|| format!("the work of {leader} has not ended"))?;
        *leader = next;
        Ok(between(ended, at))
    }
}
