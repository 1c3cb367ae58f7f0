//! Minutes without an elector, in which leaders die and step down, one after the other.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_protocol::Timestamp;
use elector_tests::rig::{
    ClusterMode, EntryContent, EventKind, HistoryEntry, StartedCandidate, Testbed, between, warm_up,
};
use tokio::time::{Instant, sleep};

use super::{SHORT_LEASE, start, without_an_elector};
use crate::PROMPTLY;

/// The elector's absence.
const AWAY: Duration = Duration::from_secs(180);

/// The time until the best leads again with an elector that has just started: it waits for a record that it never saw,
/// and with the gate on for the end of the built-in controller's term.
const BEST_AGAIN: Duration = Duration::from_secs(60);

/// The candidates; the first is the best one.
const CANDIDATES: [(&str, &str); 4] = [
    ("best", "1.1.0"),
    ("good", "1.2.0"),
    ("fair", "1.3.0"),
    ("poor", "1.4.0"),
];

/// A candidate, and what its successor is started with.
struct CandidateReplica {
    name: &'static str,
    version: &'static str,
    processes: u32,
    candidate: StartedCandidate,
}

/// Each leader that is lost is replaced in time, and the best leads again at the end.
pub(super) async fn away_for_minutes(testbed: Arc<Testbed>) -> Result<()> {
    let testbed = &*testbed;
    let site = testbed.site();
    let built_in = site.mode() == ClusterMode::GateOn;
    let flags = || site.mode().elector_flags().iter().copied();
    let mut elector = site.elector("elector", flags()).await?;
    warm_up(site).await?;
    let mut replicas = Vec::new();
    for (name, version) in CANDIDATES {
        let (processes, candidate) = (1, start(testbed, name, version)?);
        replicas.push(CandidateReplica {
            name,
            version,
            processes,
            candidate,
        });
    }
    replicas[0].candidate.leads(PROMPTLY).await?;
    testbed.stays(CANDIDATES[0].0, 3).await?;

    testbed.note("kill the elector");
    elector.kill()?;
    let (begun, mut longest) = (Instant::now(), [Duration::ZERO; 2]);
    for round in 0.. {
        let leader = leader(testbed, &replicas).await?;
        let (released, from) = (round % 3 == 2, testbed.journal().len());
        let replica = &mut replicas[leader];
        let lost = if released {
            replica.candidate.terminate()?;
            replica.candidate.ends_well(PROMPTLY).await?;
            let stopped = replica
                .candidate
                .says(EventKind::WorkStopped, from, PROMPTLY);
            stopped.await?
        } else {
            replica.candidate.kill()?
        };
        // Another Pod takes its place.
        replica.processes += 1;
        let name = format!("{}-{}", replica.name, replica.processes);
        replica.candidate = start(testbed, &name, replica.version)?;
        let (next, led) = next_leader(testbed, from).await?;
        let took = between(lost, led);
        let limit = if released {
            without_an_elector(testbed) - SHORT_LEASE
        } else {
            without_an_elector(testbed)
        };
        ensure!(
            took <= limit,
            "in round {round} {next} led after {took:?}, where {limit:?} are allowed"
        );
        let longest = &mut longest[usize::from(released)];
        *longest = (*longest).max(took);
        // Not at a moment at which the best leads by chance; the built-in controller sees to it that it does.
        if begun.elapsed() >= AWAY && (built_in || next != replicas[0].candidate.name()) {
            break;
        }
        if built_in {
            // The built-in controller may prefer another one meanwhile.
            sleep(SHORT_LEASE).await;
        } else {
            testbed.stays(&next, 3).await?;
        }
    }
    testbed.figure("crash to next, longest", longest[0]);
    testbed.figure("release to next, longest", longest[1]);

    let back = testbed.note("the elector comes back");
    let seen = testbed.journal().len();
    let _elector = site.elector("elector-again", flags()).await?;
    let best = &replicas[0].candidate;
    // The built-in controller may have elected it, and then it stays.
    if leader(testbed, &replicas).await? != 0 {
        let led = best.leads_again(seen, BEST_AGAIN).await?;
        testbed.figure("until the best leads again", between(back, led));
    }
    testbed.stays(best.name(), 5).await
}

/// Waits until one of them leads and the Lease names it; which one.
async fn leader(testbed: &Testbed, replicas: &[CandidateReplica]) -> Result<usize> {
    let settled = |entries: &[HistoryEntry]| {
        let named = entries
            .iter()
            .rev()
            .find_map(|entry| match &entry.content {
                EntryContent::Lease(name, lease) if name == testbed.lease_name() => {
                    Some(lease.spec.holder_identity.clone().unwrap_or_default())
                }
                _ => None,
            })?;
        let says = entries
            .iter()
            .rev()
            .find_map(|entry| match &entry.content {
                EntryContent::Event(event) if event.name == named => Some(event.kind),
                _ => None,
            })?;
        let replica = replicas
            .iter()
            .position(|replica| replica.candidate.name() == named)?;
        (says == EventKind::Leading).then_some(replica)
    };
    let settled = testbed.journal().until("one leads", PROMPTLY * 2, settled);
    settled.await
}

/// The first that begins to lead in an entry after the first `from`, and when.
async fn next_leader(testbed: &Testbed, from: usize) -> Result<(String, Timestamp)> {
    let leads = |entries: &[HistoryEntry]| {
        entries[from..]
            .iter()
            .find_map(|entry| match &entry.content {
                EntryContent::Event(event) if event.kind == EventKind::Leading => {
                    Some((event.name.clone(), entry.at))
                }
                _ => None,
            })
    };
    let patience = without_an_elector(testbed) + PROMPTLY;
    let next = testbed
        .journal()
        .until("the next one leads", patience, leads);
    next.await.context("without an elector")
}
