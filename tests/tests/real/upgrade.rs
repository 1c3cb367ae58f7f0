//! A control plane of three nodes is upgraded and rolled back node by node, as KEP-4355 tells it: the oldest version
//! leads at every step, and leadership changes no more often than it must.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EntryContent, HistoryEntry, Implementation, StartedCandidate,
    Suite, Testbed, WorkInterval, between, now, work_intervals,
};

use crate::{CLIENT_GO, CLIENT_GO_MODES, EVERYWHERE, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    for (implementations, modes, seconds) in
        [(OURS, EVERYWHERE, 60), (CLIENT_GO, CLIENT_GO_MODES, 120)]
    {
        suite.add(
            "nodes_are_upgraded_and_rolled_back",
            ClusterChoice::Shared,
            implementations,
            modes,
            Duration::from_secs(seconds),
            |testbed| Box::pin(upgraded_and_rolled_back(testbed)),
        );
        suite.add(
            "nodes_are_upgraded_under_a_pinned_version",
            ClusterChoice::Shared,
            implementations,
            modes,
            Duration::from_secs(seconds),
            |testbed| Box::pin(pinned(testbed)),
        );
    }
}

/// The versions of a node, in the order of the strategy: emulation, then binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Versions {
    emulation: &'static str,
    binary: &'static str,
}

/// The version before the upgrade.
const OLD: Versions = Versions {
    emulation: "1.1.0",
    binary: "1.1.0",
};

/// The new binary, which still behaves as the old one.
const PINNED: Versions = Versions {
    emulation: "1.1.0",
    binary: "1.2.0",
};

/// The version after the upgrade.
const NEW: Versions = Versions {
    emulation: "1.2.0",
    binary: "1.2.0",
};

/// The nodes.
const NODES: [&str; 3] = ["a", "b", "c"];

/// The time within which a candidate that does not lead has ended.
const ENDS: Duration = Duration::from_secs(10);

/// Renewals that take longer than an answer counts, 5 s (R15).
const REST: usize = 3;

/// Three nodes, each with one candidate at a time.
struct ControlPlane<'w> {
    testbed: &'w Testbed,
    nodes: Vec<UpgradedNode>,
    /// All candidates there ever were.
    runs: Vec<NodeCandidate>,
    /// The number of terms accounted for.
    terms: usize,
}

/// A node and what runs on it.
struct UpgradedNode {
    name: &'static str,
    versions: Versions,
    candidate: StartedCandidate,
}

/// From when to when a candidate of these versions could have led.
struct NodeCandidate {
    candidate: String,
    versions: Versions,
    from: Timestamp,
    to: Option<Timestamp>,
}

/// The next node when all are to be replaced.
#[derive(Clone, Copy, Debug)]
enum Turn {
    /// Each time the node that leads: leadership moves with every step.
    Leader,
    /// The nodes that do not lead, and at last the one that does.
    Standbys,
}

/// From the old version to the new one, back, and forward again.
async fn upgraded_and_rolled_back(testbed: Arc<Testbed>) -> Result<()> {
    let mut plane = ControlPlane::start(&testbed, OLD).await?;
    // Two times to another old one, then to one of the new ones.
    plane.replace_all(NEW, Turn::Leader).await?;
    plane.changed(3).await?;
    if cannot_yield(&testbed) {
        return plane.end(Duration::ZERO);
    }
    // The first old one is handed the lease by a new one, and keeps it.
    plane.replace_all(OLD, Turn::Standbys).await?;
    plane.changed(1).await?;
    // Forward again, as one should: the last old one leads until it goes.
    plane.replace_all(NEW, Turn::Standbys).await?;
    plane.changed(1).await?;
    plane.end(yields_within(&testbed))
}

/// The binaries first, behaving as the old version did; then the version that they behave as; then all of it back.
async fn pinned(testbed: Arc<Testbed>) -> Result<()> {
    let mut plane = ControlPlane::start(&testbed, OLD).await?;
    // Each time to one that is of the old version through and through, then to one of those that only behave so.
    plane.replace_all(PINNED, Turn::Leader).await?;
    plane.changed(3).await?;
    plane.replace_all(NEW, Turn::Standbys).await?;
    plane.changed(1).await?;
    if cannot_yield(&testbed) {
        return plane.end(Duration::ZERO);
    }
    plane.replace_all(PINNED, Turn::Standbys).await?;
    plane.changed(1).await?;
    plane.replace_all(OLD, Turn::Standbys).await?;
    plane.changed(1).await?;
    plane.end(yields_within(&testbed))
}

/// True if an older candidate that arrives has to wait until the leader goes: client-go is not asked to make room where
/// the server drops `spec.preferredHolder`.
fn cannot_yield(testbed: &Testbed) -> bool {
    testbed.implementation() == Implementation::ClientGo
        && testbed.site().mode() == ClusterMode::GateOff
}

/// The time within which a newer leader makes room for an older candidate that has arrived.
fn yields_within(testbed: &Testbed) -> Duration {
    match testbed.implementation() {
        Implementation::Elector => Duration::from_secs(5),
        // It notices within 2 s, leads on for 10 s, and its record expires 15 s after its last renewal.
        Implementation::ClientGo => Duration::from_secs(5 + 12 + 15 + 5),
    }
}

/// The longest gap of a lease that was given up.
fn elects_within(testbed: &Testbed) -> Duration {
    match testbed.implementation() {
        Implementation::Elector => Duration::from_secs(2),
        // Its release is tried once, and a renewal under way can come between: then the lease has to expire. Otherwise
        // its object outlives it and is asked for 5 s, then the other two; and it polls for up to 4.4 s.
        Implementation::ClientGo => crash_limit(Implementation::ClientGo),
    }
}

// === impl Versions ===

impl Versions {
    fn text(self) -> String {
        let Self { emulation, binary } = self;
        if emulation == binary {
            binary.to_owned()
        } else {
            format!("{binary} as {emulation}")
        }
    }
}

// === impl ControlPlane ===

impl<'w> ControlPlane<'w> {
    /// A node after the other, and waits until one of them leads.
    async fn start(testbed: &'w Testbed, versions: Versions) -> Result<Self> {
        let mut plane = Self {
            testbed,
            nodes: Vec::new(),
            runs: Vec::new(),
            terms: 1,
        };
        for name in NODES {
            plane.add(name, versions).await?;
        }
        testbed.first_leader(PROMPTLY).await?;
        Ok(plane)
    }

    /// Starts a candidate on a node, and waits until it is registered.
    async fn add(&mut self, name: &'static str, versions: Versions) -> Result<()> {
        // One identity, one life of a process (R1).
        let candidate = format!("{name}-{}", self.runs.len());
        let plan = self.testbed.candidate(&candidate);
        let plan = plan.versions(versions.binary, versions.emulation);
        let running = plan
            .flag_for(Implementation::ClientGo, "--rejoin")
            .flag_for(Implementation::ClientGo, "--release-on-cancel")
            .start()?;
        let there = |entry: &HistoryEntry| matches!(&entry.content, EntryContent::Candidate(name, _) if *name == candidate);
        let what = format!("{candidate} is registered");
        self.testbed
            .journal()
            .until(&what, PROMPTLY, |entries| {
                entries.iter().any(there).then_some(())
            })
            .await?;
        self.runs.push(NodeCandidate {
            candidate,
            versions,
            from: now(),
            to: None,
        });
        self.nodes.push(UpgradedNode {
            name,
            versions,
            candidate: running,
        });
        Ok(())
    }

    /// Replaces what runs on every node, one after the other.
    async fn replace_all(&mut self, versions: Versions, turn: Turn) -> Result<()> {
        let start = self
            .testbed
            .note(&format!("to {}, {turn:?} first", versions.text()));
        for _ in NODES {
            let leader = self.leader()?;
            let old = |node: &UpgradedNode| node.versions != versions;
            let due = |wanted: bool| {
                self.nodes
                    .iter()
                    .position(|node| old(node) && (node.candidate.name() == leader) == wanted)
            };
            let position = match turn {
                Turn::Leader => due(true).or_else(|| due(false)),
                Turn::Standbys => due(false).or_else(|| due(true)),
            };
            let position = position.context("every node has been replaced")?;
            self.replace(position, versions).await?;
        }
        self.testbed
            .figure(&format!("to {}", versions.text()), between(start, now()));
        Ok(())
    }

    /// Replaces what runs on a node, and waits until the best of those that run leads.
    async fn replace(&mut self, position: usize, versions: Versions) -> Result<()> {
        let mut node = self.nodes.remove(position);
        let gone = node.candidate.name().to_owned();
        let asked = node.candidate.terminate()?;
        if let Some(run) = self.runs.iter_mut().find(|run| run.candidate == gone) {
            run.to = Some(asked);
        }
        node.candidate.ends_well(ENDS).await?;
        self.best_leads(elects_within(self.testbed)).await?;
        self.add(node.name, versions).await?;
        let patience = if cannot_yield(self.testbed) {
            elects_within(self.testbed)
        } else {
            yields_within(self.testbed)
        };
        self.best_leads(patience).await
    }

    /// Waits until one of the oldest that run leads.
    async fn best_leads(&self, patience: Duration) -> Result<()> {
        let oldest = self.nodes.iter().map(|node| node.versions).min();
        let best: Vec<&str> = self
            .nodes
            .iter()
            .filter(|node| Some(node.versions) == oldest)
            .map(|node| node.candidate.name())
            .collect();
        let leads = |entries: &[HistoryEntry]| {
            let interval = work_intervals(entries).into_iter().rev().find(lasts)?;
            best.contains(&interval.name.as_str()).then_some(())
        };
        let what = format!("one of {best:?} leads");
        self.testbed.journal().until(&what, patience, leads).await
    }

    /// The leader.
    fn leader(&self) -> Result<String> {
        let last = |entries: &[HistoryEntry]| work_intervals(entries).into_iter().rev().find(lasts);
        let interval = self.testbed.journal().read(last);
        Ok(interval.context("nobody leads")?.name)
    }

    /// Checks how often leadership has changed since the last time, and lets it rest for long enough that no process's last
    /// answer counts any more: the next election has to ask.
    async fn changed(&mut self, times: usize) -> Result<()> {
        self.testbed.stays(&self.leader()?, REST).await?;
        let terms = self.testbed.terms();
        let changes = terms - self.terms;
        ensure!(
            changes == times,
            "leadership changed {changes} times where {times} would have done"
        );
        self.terms = terms;
        Ok(())
    }

    /// Checks all of the past: no two led at once, none began to lead while an older one was there, and a leader
    /// when an older one came made room within `limit`.
    fn end(self, limit: Duration) -> Result<()> {
        let work_intervals = self.testbed.journal().read(work_intervals);
        let (mut gaps, mut wrong) = (Duration::ZERO, Duration::ZERO);
        for pair in work_intervals.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let stopped = before.to.filter(|stopped| *stopped <= after.from);
            let stopped =
                stopped.with_context(|| format!("two led at once: {before:?} and {after:?}"))?;
            gaps += between(stopped, after.from);
        }
        for interval in &work_intervals {
            wrong += self.wrong(interval, limit)?;
        }
        self.testbed.figure("without a leader", gaps);
        self.testbed.figure("led by a newer one", wrong);
        Ok(())
    }

    /// For how long this one led while an older one was there.
    fn wrong(&self, interval: &WorkInterval, limit: Duration) -> Result<Duration> {
        let known = |run: &&NodeCandidate| run.candidate == interval.name;
        let own = self.runs.iter().find(known);
        let own = own.with_context(|| format!("{} is a stranger", interval.name))?;
        let until = interval.to.unwrap_or_else(now);
        let mut longest = Duration::ZERO;
        for older in &self.runs {
            let ended = older.to.unwrap_or(until);
            if older.versions >= own.versions || older.from >= until || ended <= interval.from {
                continue;
            }
            let (name, versions) = (&older.candidate, older.versions);
            ensure!(
                interval.from < older.from,
                "{} ({:?}) began to lead while {name} ({versions:?}) was there",
                own.candidate,
                own.versions
            );
            longest = longest.max(between(older.from, until.min(ended)));
        }
        ensure!(
            longest <= limit,
            "{} ({:?}) led on for {longest:?} although an older one was there",
            own.candidate,
            own.versions
        );
        Ok(longest)
    }
}

fn lasts(interval: &WorkInterval) -> bool {
    interval.to.is_none()
}
