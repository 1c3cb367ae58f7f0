//! A control plane of three nodes is upgraded and rolled back node by node, as KEP-4355 has it: the oldest version leads at
//! every step, and leadership changes no more often than it must.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_tests::rig::{
    ClusterMode, HistoryEntry, Implementation, JournalMark, StartedCandidate, Suite, Testbed,
    work_intervals,
};

use crate::restored::one_at_a_time;
use crate::{CLIENT_GO, CLIENT_GO_MODES, EVERYWHERE, GATE_ON, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite
        .shared(OURS, EVERYWHERE)
        .and(CLIENT_GO, CLIENT_GO_MODES)
        .every_change_on(GATE_ON);
    shared.add("nodes_are_upgraded_and_rolled_back", 120, back_and_forth);
}

/// The versions before the upgrade and after it.
const OLD: &str = "1.1.0";
const NEW: &str = "1.2.0";

/// The nodes.
const NODES: [&str; 3] = ["a", "b", "c"];

/// Renewals that take longer than an answer counts, 5 s (R15).
const REST: usize = 3;

/// Three nodes, each with one candidate at a time.
struct ControlPlane<'w> {
    testbed: &'w Testbed,
    nodes: Vec<UpgradedNode>,
    /// The number of candidates that there ever were.
    candidates: usize,
    /// The number of terms that there should be.
    terms: usize,
}

/// A node and its process.
struct UpgradedNode {
    name: &'static str,
    version: &'static str,
    candidate: StartedCandidate,
}

/// The next node when all are to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Each time the node that leads: leadership moves with every step.
    Leader,
    /// The nodes that do not lead, and at last the one that does.
    Standbys,
}

/// From the old version to the new one, back, and forward again.
async fn back_and_forth(testbed: Arc<Testbed>) -> Result<()> {
    let mut plane = ControlPlane::start(&testbed).await?;
    // Two times to another old one, then to one of the new ones.
    plane.replace_all(NEW, Turn::Leader, 3).await?;
    if !cannot_yield(&testbed) {
        // The first old one is handed the lease by a new one, and keeps it.
        plane.replace_all(OLD, Turn::Standbys, 1).await?;
        // Forward again, as one should: the last old one leads until it goes.
        plane.replace_all(NEW, Turn::Standbys, 1).await?;
    }
    one_at_a_time(&testbed, plane.terms)
}

/// True if an older candidate that arrives has to wait until the leader goes: client-go is not asked to make room where
/// the server drops `spec.preferredHolder`.
pub(crate) fn cannot_yield(testbed: &Testbed) -> bool {
    testbed.implementation() == CLIENT_GO && testbed.site().mode() == ClusterMode::GateOff
}

/// The time within which a newer leader makes room for an older candidate that has arrived.
pub(crate) fn yields_within(testbed: &Testbed) -> Duration {
    match testbed.implementation() {
        Implementation::Elector => Duration::from_secs(5),
        // It notices within 2 s, leads on for 10 s, and its record expires 15 s after its last renewal.
        Implementation::ClientGo => Duration::from_secs(5 + 12 + 15 + 5),
    }
}

/// The longest gap of a lease that was given up: far below a lease duration, on a machine that is busy.
fn elects_within(testbed: &Testbed) -> Duration {
    match testbed.implementation() {
        Implementation::Elector => Duration::from_secs(5),
        // Its release is tried once, and a renewal under way can come between: then the lease has to expire. Otherwise
        // its object outlives it and is asked for 5 s, then the other two; and it polls for up to 4.4 s.
        Implementation::ClientGo => crash_limit(CLIENT_GO),
    }
}

// === impl ControlPlane ===

impl<'w> ControlPlane<'w> {
    /// A node after the other, and waits until one of them leads.
    async fn start(testbed: &'w Testbed) -> Result<Self> {
        let mut plane = Self {
            testbed,
            nodes: Vec::new(),
            candidates: 0,
            terms: 1,
        };
        for name in NODES {
            plane.add(name, OLD).await?;
        }
        testbed.first_leader(PROMPTLY).await?;
        Ok(plane)
    }

    /// Starts a candidate on a node, and waits until it is registered.
    async fn add(&mut self, name: &'static str, version: &'static str) -> Result<()> {
        // One identity, one life of a process (R1).
        let identity = format!("{name}-{}", self.candidates);
        self.candidates += 1;
        let plan = self.testbed.candidate(&identity).version(version);
        let plan = plan.flag_for(CLIENT_GO, "--rejoin");
        let candidate = plan.flag_for(CLIENT_GO, "--release-on-cancel").start()?;
        let beginning = JournalMark::BEGINNING;
        self.testbed.registered(&identity, beginning).await?;
        self.nodes.push(UpgradedNode {
            name,
            version,
            candidate,
        });
        Ok(())
    }

    /// Replaces the processes of all nodes, one after the other, in `changes` changes of the leader, and lets leadership
    /// rest for long enough that no process's last answer counts any more: the next election has to ask.
    async fn replace_all(
        &mut self,
        version: &'static str,
        turn: Turn,
        changes: usize,
    ) -> Result<()> {
        let testbed = self.testbed;
        let start = testbed.note(&format!("to {version}, {turn:?} first"));
        for _ in NODES {
            let leader = self.leader()?;
            let due = |leads: bool| {
                self.nodes.iter().position(|node| {
                    node.version != version && (node.candidate.name() == leader) == leads
                })
            };
            let leads = turn == Turn::Leader;
            let position = due(leads).or_else(|| due(!leads));
            let position = position.context("every node has been replaced")?;
            let mut node = self.nodes.remove(position);
            node.candidate.ends().await?;
            self.best_leads(elects_within(testbed)).await?;
            self.add(node.name, version).await?;
            let patience = match cannot_yield(testbed) {
                true => elects_within(testbed),
                false => yields_within(testbed),
            };
            self.best_leads(patience).await?;
        }
        testbed.figure(&format!("to {version}"), start.elapsed());
        testbed.stays(&self.leader()?, REST).await?;
        self.terms += changes;
        testbed.has_begun_terms(self.terms)
    }

    /// Waits until one of the oldest that run leads.
    async fn best_leads(&self, patience: Duration) -> Result<()> {
        let oldest = self.nodes.iter().map(|node| node.version).min();
        let best = self.nodes.iter();
        let best = best.filter(|node| Some(node.version) == oldest);
        let best: Vec<&str> = best.map(|node| node.candidate.name()).collect();
        let leads = |entries: &[HistoryEntry]| {
            let leader = leader(entries)?;
            best.contains(&leader.as_str()).then_some(())
        };
        let what = format!("one of {best:?} leads");
        self.testbed.journal().until(&what, patience, leads).await
    }

    fn leader(&self) -> Result<String> {
        let leader = self.testbed.journal().read(leader);
        leader.context("nobody leads")
    }
}

/// The candidate that leads, as the candidates say.
fn leader(entries: &[HistoryEntry]) -> Option<String> {
    let mut intervals = work_intervals(entries).into_iter().rev();
    let lasting = intervals.find(|interval| interval.to.is_none());
    lasting.map(|interval| interval.name)
}
