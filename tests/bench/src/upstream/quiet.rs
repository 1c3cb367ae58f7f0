//! The requests for leases that nothing happens to: those that the API server counts, less those that it gets without them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_tests::rig::{EventKind, TestSite, Testbed, events};
use http::Request;
use tokio::time::sleep;

use super::args::RunKind;
use super::results::Figures;
use super::unelected::{Unelected, all_begin};
use crate::scale::ScrapedFigures;

/// Each with three candidates.
const LEASES: usize = 10;

/// The time for which requests are counted.
const COUNTED: Duration = Duration::from_secs(60);

/// The time after which nothing more happens because of the start.
const SETTLES: Duration = Duration::from_secs(30);

const PATIENCE: Duration = Duration::from_secs(90);

/// Counts them.
pub(super) async fn requests(testbed: &Testbed, kind: RunKind) -> Result<Figures> {
    let leases: Vec<String> = (0..LEASES)
        .map(|number| format!("quiet-{number}"))
        .collect();
    testbed.admit(&leases).await?;
    let site = testbed.site();
    let without = counted(site).await?;
    let start = |place: &str, version: &str, lease: &String| {
        let name = format!("{place}-{lease}");
        kind.candidate(testbed, &name)
            .version(version)
            .lease(lease)
            .start()
    };
    let of_all = |place: &str, version: &str| {
        let leases = leases.iter();
        leases
            .map(|lease| start(place, version, lease))
            .collect::<Result<Vec<_>>>()
    };
    // The best one is there first, so that no lease is handed over.
    let leaders = of_all("first", "1.1.0")?;
    all_begin(&leaders).await?;
    let led = testbed
        .journal()
        .until("all leases are led", PATIENCE, |entries| {
            (events(entries, EventKind::Leading).count() >= LEASES).then_some(())
        });
    led.await.context(Unelected)?;
    let _standbys = [of_all("second", "1.2.0")?, of_all("third", "1.3.0")?];
    sleep(SETTLES).await;
    let with = counted(site).await?;
    Ok(vec![(
        "requests in a second",
        (with - without) / LEASES as f64,
    )])
}

/// The number of requests for Leases and LeaseCandidates in a second.
async fn counted(site: &TestSite) -> Result<f64> {
    let before = requests_so_far(site).await?;
    sleep(COUNTED).await;
    Ok((requests_so_far(site).await? - before) / COUNTED.as_secs_f64())
}

async fn requests_so_far(site: &TestSite) -> Result<f64> {
    let request = Request::get("/metrics").body(Vec::new())?;
    let metrics = site.client().request_text(request).await;
    let metrics =
        ScrapedFigures::of(metrics.context("failed to read the metrics of the API server")?);
    let count = |resource| metrics.sum("apiserver_request_total", &[resource]);
    Ok(count("resource=\"leases\"") + count("resource=\"leasecandidates\""))
}
