//! The history of the Lease: every revision, checked against the rules.

use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_protocol::{LeaseKey, ResourceVersion};
use elector_tests::rig::{EntryContent, HistoryEntry, Implementation, Journal};
use elector_verify::{Limits, Participants, TraceCoverage, verify};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};

use crate::subject::LEASE;

/// A Lease without candidates, written at the end.
const SETTLED: &str = "rig-has-seen-everything";

/// For the recorder to catch up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The violations in the history of the Lease. Belief is taken from the Lease alone: what the processes did is
/// the register's affair. The recorder may have stood still for as long as the machine did, `stall`.
///
/// # Errors
/// When the end of the history does not come.
pub(crate) async fn violations(
    client: &Client,
    journal: &Journal,
    namespace: &str,
    members: impl IntoIterator<Item = (String, Implementation)>,
    foreign: &[ResourceVersion],
    stall: Duration,
) -> Result<Vec<String>> {
    settle(client, journal, namespace).await?;
    let mut limits = Limits::default();
    limits.recording_delay = limits.recording_delay.max(stall);
    let mut participants = Participants::new(limits);
    for (name, implementation) in members {
        participants.add(LeaseKey::new(namespace, LEASE), name, implementation);
    }
    for version in foreign {
        participants.add_foreign(*version);
    }
    let history = journal
        .history()
        .with_trace_coverage(TraceCoverage::Partial);
    let verdict = verify(&history, &participants);
    Ok(verdict
        .promised_breaches()
        .map(ToString::to_string)
        .collect())
}

/// Waits until a Lease that is written now has been seen, and with it all earlier ones.
async fn settle(client: &Client, journal: &Journal, namespace: &str) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let last = Lease {
        metadata: ObjectMeta {
            name: Some(SETTLED.to_owned()),
            ..ObjectMeta::default()
        },
        ..Lease::default()
    };
    let last = leases.create(&PostParams::default(), &last).await;
    last.context("failed to write the last lease")?;
    let seen = |entry: &HistoryEntry| matches!(&entry.content, EntryContent::Lease(name, _) if name == SETTLED);
    let seen = |entries: &[HistoryEntry]| entries.iter().any(seen).then_some(());
    journal
        .until("the recorder has caught up", PATIENCE, seen)
        .await
}
