//! A namespace full of large candidates: what the elector has in memory while it lists them, and while they change.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_api::LeaseCandidate;
use elector_protocol::{Identity, LeaseKey};
use elector_tests::rig::{LONGEST_LEASE, Suite, TestProcess, Testbed, now};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;

use crate::flooded_namespace::scraped::memory_kib;
use crate::{GATE_OFF, OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, GATE_OFF);
    own.add("large_candidates_take_little_memory", 30, large);
}

/// The number of candidates.
const COUNT: usize = 600;

/// The limit of the elector's peak memory, in KiB.
const MEMORY: u64 = 128 << 10;

/// The limit of an API server for the annotations of one object, less a few bytes for their names.
const ANNOTATION: usize = (256 << 10) - 100;

/// The number of candidates that change under the eyes of the elector.
const CHANGES: usize = 200;

/// The number of requests of the test under way.
const AT_ONCE: usize = 8;

/// The time within which the elector has read everything, beside the wait for leases that it never saw.
const LISTING: Duration = Duration::from_secs(60);

async fn large(testbed: Arc<Testbed>) -> Result<()> {
    stream::iter(0..COUNT)
        .map(|index| create(&testbed, index))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    testbed.note("start the elector");
    let elector = testbed.site().elector("elector", []).await?;
    let first = testbed.candidate("first").version("1.0.0").start()?;
    // No candidate is elected before the list is complete.
    first.leads(LONGEST_LEASE + LISTING).await?;
    check_memory(&testbed, &elector, "listed")?;
    stream::iter(0..CHANGES)
        .map(|index| change(&testbed, index))
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    // The watch brings this one after all the changes; it is the better one, as the oldest version is.
    let second = testbed.candidate("second").version("0.9.0").start()?;
    second.leads(PROMPTLY + LISTING).await?;
    check_memory(&testbed, &elector, "changed")
}

/// Registers one that never answers.
async fn create(testbed: &Testbed, index: usize) -> Result<()> {
    let identity = Identity::new(name(index)).context("an empty name")?;
    let key = LeaseKey::new(testbed.namespace(), "flooded");
    let mut candidate = LeaseCandidate::named(testbed.site().candidate_api(), &key, &identity);
    candidate.spec.binary_version = "1.0.0".to_owned();
    candidate.spec.emulation_version = "1.0.0".to_owned();
    candidate.spec.renew_time = Some(now());
    let annotations = candidate.metadata.annotations.get_or_insert_default();
    annotations.insert("text".to_owned(), "x".repeat(ANNOTATION));
    let candidate = candidate.with_strategy("OldestEmulationVersion");
    let (candidates, parameters) = (testbed.candidates(), PostParams::default());
    candidates.create(&parameters, &candidate).await?;
    Ok(())
}

async fn change(testbed: &Testbed, index: usize) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"text": "y".repeat(ANNOTATION)}}});
    let (candidates, patch) = (testbed.candidates(), Patch::Merge(&patch));
    let parameters = PatchParams::default();
    candidates.patch(&name(index), &parameters, &patch).await?;
    Ok(())
}

fn name(index: usize) -> String {
    format!("large-{index:05}")
}

/// The most that the elector ever had.
fn check_memory(testbed: &Testbed, elector: &TestProcess, when: &str) -> Result<()> {
    let peak = memory_kib("VmHWM:", elector.id())?;
    let words = format!("{when}: the elector had {peak} KiB at most");
    testbed.note(&words);
    ensure!(peak < MEMORY, "{words}, more than {MEMORY}");
    Ok(())
}
