//! Which candidates can be elected, under which strategy, and how that is explained.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_api::{LeaseCandidate, annotation};
use elector_protocol::Identity;
use elector_tests::rig::{
    ClusterChoice, ClusterMode, EntryContent, EventKind, HistoryEntry, Suite, Testbed, now,
};
use kube::api::PostParams;

use crate::{MODES, OURS, PROMPTLY};

/// A strategy that Elector leaves to others.
const FOREIGN: &str = "example.com/by-colour";

pub(crate) fn add(suite: &mut Suite) {
    let mut add = |name, seconds, run| {
        suite.add(
            name,
            ClusterChoice::Shared,
            OURS,
            MODES,
            Duration::from_secs(seconds),
            run,
        );
    };
    add("candidate_without_a_valid_version", 15, |testbed| {
        Box::pin(without_version(testbed))
    });
    add("third_party_strategy", 15, |testbed| {
        Box::pin(third_party(testbed))
    });
    add("mixed_strategies", 20, |testbed| Box::pin(mixed(testbed)));
}

/// Creates a candidate object without a process, as only a stranger would.
async fn object(
    testbed: &Testbed,
    name: &str,
    binary: &str,
    emulation: &str,
    strategy: &str,
) -> Result<()> {
    let identity = Identity::new(name).context("an empty name")?;
    let mut candidate =
        LeaseCandidate::named(testbed.site().candidate_api(), &testbed.key(), &identity);
    binary.clone_into(&mut candidate.spec.binary_version);
    emulation.clone_into(&mut candidate.spec.emulation_version);
    candidate.spec.renew_time = Some(now());
    let candidate = candidate.with_strategy(strategy);
    testbed
        .candidates()
        .create(&PostParams::default(), &candidate)
        .await?;
    Ok(())
}

/// The server lets a candidate without an emulation version in as long as it wishes for another strategy. Where the
/// others' wish wins, it must not be elected, although it is the oldest in every other respect.
async fn without_version(testbed: Arc<Testbed>) -> Result<()> {
    object(&testbed, "lacking", "0.9.0", "", FOREIGN).await?;
    let valid = testbed.candidate("valid").version("1.1.0").start()?;
    valid.leads(PROMPTLY).await?;
    let explanation = testbed
        .explained("a leader", PROMPTLY, |each| each.holder == "valid")
        .await?;
    ensure!(
        explanation.strategy.as_deref() == Some("OldestEmulationVersion"),
        "{explanation:#?}"
    );
    let lacking = explanation.of("lacking")?;
    ensure!(!lacking.eligible && lacking.rank.is_none(), "{lacking:?}");
    ensure!(
        lacking.reason.contains("emulationVersion"),
        "the reason names no field: {}",
        lacking.reason
    );
    ensure!(explanation.of("valid")?.rank == Some(1), "{explanation:#?}");
    testbed.stays("valid", 2).await?;
    testbed.journal().read(|entries| {
        let granted = entries.iter().any(|entry| match &entry.content {
            EntryContent::Lease(_, lease) => {
                [&lease.spec.holder_identity, &lease.spec.preferred_holder]
                    .iter()
                    .any(|name| name.as_deref() == Some("lacking"))
            }
            _ => false,
        });
        ensure!(!granted, "a candidate without emulation version was chosen");
        Ok(())
    })
}

/// The Lease of a foreign strategy exists, says so and names no holder, until another elector decides.
async fn third_party(testbed: Arc<Testbed>) -> Result<()> {
    let candidate = testbed.candidate("candidate").strategy(FOREIGN).start()?;
    let born = testbed
        .lease_until(
            "the lease is there, held by an empty text",
            PROMPTLY,
            |lease| (lease.spec.holder_identity.as_deref() == Some("")).then(|| lease.clone()),
        )
        .await?;
    let strategy = match testbed.site().mode() {
        ClusterMode::GateOn | ClusterMode::Embedded => born.spec.strategy.clone(),
        ClusterMode::GateOff | ClusterMode::Custom | ClusterMode::EmbeddedOff => born
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(annotation::STRATEGY))
            .cloned(),
    };
    ensure!(
        strategy.as_deref() == Some(FOREIGN),
        "the lease names the strategy {strategy:?}"
    );
    let leading = |entries: &[HistoryEntry]| {
        entries.iter().find_map(|entry| match &entry.content {
            EntryContent::Event(event) if event.kind == EventKind::Leading => Some(()),
            _ => None,
        })
    };
    testbed
        .journal()
        .never(
            "it leads though nobody elected it",
            Duration::from_secs(6),
            leading,
        )
        .await?;
    let explanation = testbed.explain().await?;
    ensure!(
        explanation.holder.is_empty() && explanation.action == "leave",
        "{explanation:#?}"
    );
    ensure!(
        explanation.reason.contains(FOREIGN),
        "{}",
        explanation.reason
    );

    // Now the other elector decides.
    let judged = testbed.lease()?;
    let electee = Identity::new("candidate").context("an empty name")?;
    let record = judged
        .record()?
        .granted(electee, Duration::from_secs(5), now());
    let carrier = match testbed.site().mode() {
        ClusterMode::GateOn | ClusterMode::Embedded => elector_api::Carrier::Fields,
        ClusterMode::GateOff | ClusterMode::Custom | ClusterMode::EmbeddedOff => {
            elector_api::Carrier::Annotations
        }
    };
    testbed.write(&judged.with_record(&record, carrier)).await?;
    candidate.leads(PROMPTLY).await?;
    testbed.stays("candidate", 1).await
}

/// Candidates of one binary version that disagree on the strategy: none is elected, and the reason names them.
async fn mixed(testbed: Arc<Testbed>) -> Result<()> {
    object(&testbed, "stubborn", "1.2.0", "1.2.0", FOREIGN).await?;
    let willing = testbed.candidate("willing").version("1.2.0").start()?;
    // Which of the two the elector sees first is open; a Lease may or may not be there by then, but without a holder.
    let explanation = testbed
        .explained("the conflict", PROMPTLY, |each| each.strategy.is_none())
        .await?;
    for part in ["stubborn", "willing", FOREIGN, "OldestEmulationVersion"] {
        ensure!(
            explanation.reason.contains(part),
            "the reason does not name {part}: {}",
            explanation.reason
        );
    }
    ensure!(
        explanation.reason.lines().count() == 1,
        "{}",
        explanation.reason
    );
    ensure!(explanation.holder.is_empty(), "{explanation:#?}");

    testbed.note("delete the stubborn one");
    testbed
        .candidates()
        .delete("stubborn", &kube::api::DeleteParams::default())
        .await?;
    willing.leads(PROMPTLY).await?;
    let resolved = testbed
        .explained("the leader", PROMPTLY, |each| each.holder == "willing")
        .await?;
    ensure!(
        resolved.strategy.as_deref() == Some("OldestEmulationVersion"),
        "{resolved:#?}"
    );
    testbed.stays("willing", 1).await
}
