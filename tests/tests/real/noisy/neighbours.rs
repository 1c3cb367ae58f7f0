//! The leases of a quiet namespace: how long fail-over and hand-over take there.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_protocol::Timestamp;
use elector_tests::rig::{EntryContent, EventKind, HistoryEntry, Implementation, Testbed, between};

use crate::hosted::{Host, Hosted};
use crate::{PROMPTLY, crash_limit};

/// Leases with candidates that are tasks of this process.
pub(super) struct Neighbours<'w> {
    testbed: &'w Testbed,
    host: &'w Host<'w>,
    candidates: BTreeMap<String, Hosted>,
    /// The number of candidates started so far.
    started: usize,
}

/// The number of leases.
pub(super) const LEASES: usize = 20;
/// The version of those that stand from the beginning on.
const WORST: &str = "1.9.0";
/// The number of candidates of each lease.
const STANDING: usize = 2;

// === impl Neighbours ===

impl<'w> Neighbours<'w> {
    /// Starts the candidates, and waits until each lease is led.
    pub(super) async fn start(testbed: &'w Testbed, host: &'w Host<'w>) -> Result<Self> {
        let mut neighbours = Self {
            testbed,
            host,
            candidates: BTreeMap::new(),
            started: 0,
        };
        for lease in leases() {
            for _ in 0..STANDING {
                neighbours.add(&lease, WORST)?;
            }
        }
        for lease in leases() {
            neighbours.leader_after(&lease, 0, None).await?;
        }
        Ok(neighbours)
    }

    /// Crashes each leader, and says how long each lease was without one. A candidate that is no better than the others
    /// comes in its place.
    pub(super) async fn fail_over(&mut self) -> Result<Vec<Duration>> {
        let mut crashes = Vec::new();
        for lease in leases() {
            let (leader, _) = self.leader(&lease).context("nobody leads")?;
            let crashed = self
                .candidates
                .remove(&leader)
                .context("a stranger leads")?;
            self.add(&lease, WORST)?;
            let seen = self.testbed.journal().len();
            let at = self.testbed.note(&format!("crash {leader}"));
            crashed.crash().await;
            crashes.push((lease, seen, at));
        }
        let mut took = Vec::new();
        for (lease, seen, at) in crashes {
            let (_, next) = self.leader_after(&lease, seen, None).await?;
            took.push(between(at, next));
        }
        Ok(took)
    }

    /// Starts a better candidate for each lease, and says for how long nobody worked.
    pub(super) async fn hand_over(&mut self, version: &str) -> Result<Vec<Duration>> {
        let mut better = Vec::new();
        for lease in leases() {
            let (leader, _) = self.leader(&lease).context("nobody leads")?;
            let seen = self.testbed.journal().len();
            better.push((self.add(&lease, version)?, leader, lease, seen));
        }
        let mut took = Vec::new();
        for (name, leader, lease, seen) in better {
            let (_, leads) = self.leader_after(&lease, seen, Some(&name)).await?;
            let stopped = self.testbed.journal().read(|entries| {
                let of_leader = events(&entries[seen..], EventKind::WorkStopped);
                of_leader
                    .filter(|(who, _, _)| *who == leader)
                    .last()
                    .map(|(_, _, at)| at)
            });
            took.push(between(stopped.context("it did not stop")?, leads));
        }
        Ok(took)
    }

    fn add(&mut self, lease: &str, version: &str) -> Result<String> {
        let name = format!("{lease}-{}", self.started);
        self.started += 1;
        let candidate = self.host.start(lease, &name, version)?;
        self.candidates.insert(name.clone(), candidate);
        Ok(name)
    }

    /// The candidate that was last to begin to lead this lease.
    fn leader(&self, lease: &str) -> Option<(String, Timestamp)> {
        let journal = self.testbed.journal();
        journal.read(|entries| leaders(entries, lease).last())
    }

    /// The candidate that begins to lead this lease after so many entries; of this name, where one is given.
    async fn leader_after(
        &self,
        lease: &str,
        seen: usize,
        name: Option<&str>,
    ) -> Result<(String, Timestamp)> {
        let patience = crash_limit(Implementation::Elector) + PROMPTLY * 3;
        let look = |entries: &[HistoryEntry]| {
            leaders(&entries[seen..], lease)
                .find(|(leader, _)| name.is_none_or(|name| name == leader))
        };
        let what = format!("{lease} is led by {}", name.unwrap_or("another one"));
        self.testbed.journal().until(&what, patience, look).await
    }
}

/// Their names.
pub(super) fn leases() -> impl Iterator<Item = String> {
    (0..LEASES).map(|lease| format!("quiet-{lease:02}"))
}

fn leaders(entries: &[HistoryEntry], lease: &str) -> impl Iterator<Item = (String, Timestamp)> {
    events(entries, EventKind::Leading)
        .filter(move |(_, of, _)| *of == lease)
        .map(|(name, _, at)| (name.to_owned(), at))
}

/// The events of a kind: of whom, about which lease, and when.
fn events(
    entries: &[HistoryEntry],
    kind: EventKind,
) -> impl Iterator<Item = (&str, &str, Timestamp)> {
    entries
        .iter()
        .filter_map(move |entry| match &entry.content {
            EntryContent::Event(event) if event.kind == kind => {
                let lease = event.lease.as_ref()?;
                Some((event.name.as_str(), lease.name.as_ref(), entry.at))
            }
            _ => None,
        })
}
