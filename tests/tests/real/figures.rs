//! What an elector says to probes and to Prometheus, beside what the scenario sees itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use elector_tests::rig::{ClusterChoice, Suite, Testbed, between};
use tokio::time::sleep;

use crate::scraped::ScrapedElector;
use crate::{COLD_START, LEASE_DURATION, MODES, OURS, PROMPTLY, crash_limit};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "figures_of_an_election",
        ClusterChoice::Shared,
        OURS,
        MODES,
        Duration::from_secs(40),
        |testbed| Box::pin(figures(testbed)),
    );
}

async fn figures(testbed: Arc<Testbed>) -> Result<()> {
    let elector = ScrapedElector::start(&testbed).await?;
    elector.ready(PROMPTLY).await?;
    let (code, body) = elector.probe("/livez?verbose").await?;
    ensure!(code == 200, "{code}: {body}");
    ensure!(
        body == "[+]ping ok\n[+]loop ok\nlivez check passed\n",
        "{body}"
    );

    let namespace = testbed.namespace();
    let changes = |reason: &str| {
        format!("elector_leader_changes_total{{namespace=\"{namespace}\",reason=\"{reason}\"}}")
    };
    let worse = testbed.candidate("worse").version("1.2.0").start()?;
    worse.leads(COLD_START + LEASE_DURATION + PROMPTLY).await?;
    elector.reaches(&changes("first"), 1.0).await?;
    let mut better = testbed.candidate("better").version("1.1.0").start()?;
    better.leads(PROMPTLY).await?;
    elector.reaches(&changes("handed_over"), 1.0).await?;
    let seen = testbed.journal().len();
    let killed = better.kill()?;
    let next = worse
        .leads_again(seen, crash_limit(testbed.implementation()) + PROMPTLY)
        .await?;
    elector.reaches(&changes("expired"), 1.0).await?;

    let took = elector
        .sample("elector_failover_duration_seconds_sum")
        .await?;
    let waited = between(killed, next);
    testbed.figure("fail-over, by the metric", Duration::from_secs_f64(took));
    testbed.figure("fail-over, from the kill on", waited);
    // The last renewal came some time before the kill, and never more than a lease duration.
    let least = LEASE_DURATION.as_secs_f64() - 1.0;
    ensure!(took >= least, "a fail-over in {took} s");
    ensure!(
        took <= (waited + LEASE_DURATION).as_secs_f64(),
        "a fail-over in {took} s"
    );
    let handover = elector
        .sample("elector_handover_duration_seconds_sum")
        .await?;
    testbed.figure(
        "hand-over, by the metric",
        Duration::from_secs_f64(handover),
    );
    ensure!(handover < 5.0, "a hand-over in {handover} s");
    let led = format!("elector_leases{{namespace=\"{namespace}\",state=\"led\"}}");
    elector.reaches(&led, 1.0).await?;
    testbed.stays("worse", 1).await?;

    port_in_use(&testbed, &elector).await?;
    without_rights(&testbed).await?;
    let mut process = elector.process;
    let (status, _) = process.terminate(PROMPTLY).await?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// A port that is in use ends the program with one line.
async fn port_in_use(testbed: &Testbed, elector: &ScrapedElector) -> Result<()> {
    let flag = format!("--metrics-bind-address={}", elector.metrics);
    let name = format!("second-{}", testbed.namespace());
    let mut second = testbed.site().elector(&name, [flag.as_str()]).await?;
    let status = second.exit(PROMPTLY).await?;
    let said = second.output()?;
    ensure!(status.code() == Some(1), "{status}: {said}");
    let expected = format!(
        "error: failed to listen where --metrics-bind-address says, on {}: Address already in use (os error 98)\n",
        elector.metrics
    );
    ensure!(said == expected, "{said}");
    Ok(())
}

/// An elector that may do nothing is alive and not ready, and says why.
async fn without_rights(testbed: &Testbed) -> Result<()> {
    let elector = ScrapedElector::without_rights(testbed).await?;
    let deadline = Instant::now() + PROMPTLY;
    loop {
        let (code, body) = elector.probe("/readyz/permissions").await?;
        if code == 500 && body.contains("does not let this elector list ") {
            break;
        }
        ensure!(Instant::now() < deadline, "{code}: {body}");
        sleep(Duration::from_millis(50)).await;
    }
    let (code, body) = elector.probe("/livez").await?;
    ensure!(code == 200, "{code}: {body}");
    Ok(())
}
