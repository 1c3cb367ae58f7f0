//! The writes that the same elections need, by themselves: what the server can do.

use std::time::Duration;

use anyhow::{Result, ensure};
use elector_protocol::{Identity, StrategyName};
use elector_runtime::{WriteOutcome, Writer};
use elector_tests::rig::now as wall_clock;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::scale::args::RunSize;
use crate::scale::follower::{accept, candidate, lease_key, snapshot};

/// The durations of the writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BareTimes {
    /// The creation of all LeaseCandidates.
    pub(crate) registrations: Duration,
    /// A Lease created, granted and accepted, for each lease.
    pub(crate) lease_writes: Duration,
}

/// The prefix of the namespaces that are written to.
pub(crate) const PREFIX: &str = "bare";

/// Does the writes through this number of connections, without watches and decisions.
///
/// # Errors
/// When the server refuses one.
pub(crate) async fn write_bare(
    size: &RunSize,
    connections: usize,
    writer: &Writer,
) -> Result<BareTimes> {
    let start = Instant::now();
    for_each(size.all_candidates(), connections, |number| {
        let (writer, size) = (writer.clone(), size.clone());
        async move { register(&size, &writer, number).await }
    })
    .await?;
    let registered = Instant::now();
    for_each(size.leases, connections, |number| {
        let (writer, size) = (writer.clone(), size.clone());
        async move { write_lease(&size, &writer, number).await }
    })
    .await?;
    Ok(BareTimes {
        registrations: registered - start,
        lease_writes: registered.elapsed(),
    })
}

/// Does something for each number, `at_once` at a time.
async fn for_each<F>(count: u32, at_once: usize, task: impl Fn(u32) -> F) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for number in 0..count {
        if running.len() >= at_once
            && let Some(ended) = running.join_next().await
        {
            ended??;
        }
        running.spawn(task(number));
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(())
}

async fn register(size: &RunSize, writer: &Writer, number: u32) -> Result<()> {
    let key = lease_key(PREFIX, size, number / size.candidates);
    let turn = number % size.candidates;
    let object = candidate(
        writer.candidate_api(),
        &key,
        turn,
        &size.timing,
        wall_clock(),
    );
    let outcome = match object {
        Some(object) => writer.post_candidate(&object).await,
        None => WriteOutcome::Gone,
    };
    ensure!(
        matches!(outcome, WriteOutcome::Done(_)),
        "failed to create candidate {turn} of {key}: {:?}",
        outcome.error()
    );
    Ok(())
}

async fn write_lease(size: &RunSize, writer: &Writer, number: u32) -> Result<()> {
    let key = lease_key(PREFIX, size, number);
    let strategy = StrategyName::oldest_emulation_version();
    let born = writer.post_lease(&key, Some(&strategy)).await.done();
    let granted = match (born, Identity::new(format!("{}-0", key.name))) {
        (Some(born), Some(electee)) => {
            let record = born.record()?;
            let record = record.granted(electee, size.timing.accept_window, wall_clock());
            writer.put_lease(&born, &record).await.done()
        }
        _ => None,
    };
    let accepted = match granted
        .as_ref()
        .and_then(|lease| Some((lease, snapshot(lease)?)))
    {
        Some((lease, grant)) => {
            let record = accept(&grant, &size.timing, wall_clock());
            writer.put_lease(lease, &record).await.done()
        }
        None => None,
    };
    ensure!(accepted.is_some(), "failed to write {key}");
    Ok(())
}
