//! Answers of electors and candidates to probes and to Prometheus, beside what the scenario sees itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use elector_tests::rig::{ClusterChoice, Suite, Testbed, between};
use tokio::time::sleep;

use crate::scraped::{FiguresEndpoint, ScrapedElector};
use crate::taken::take;
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
    suite.add(
        "figures_of_a_candidate",
        ClusterChoice::Shared,
        OURS,
        MODES,
        Duration::from_secs(20),
        |testbed| Box::pin(of_a_candidate(testbed)),
    );
}

/// A candidate is granted a term and hands it over to a better one, which loses its own to a stranger.
async fn of_a_candidate(testbed: Arc<Testbed>) -> Result<()> {
    let namespace = testbed.namespace();
    let lease = testbed.lease_name();
    let of_lease = |name: &str, further: &str| {
        format!("elector_candidate_{name}{{namespace=\"{namespace}\",lease=\"{lease}\"{further}}}")
    };
    let start = async |name, version| {
        let candidate = testbed.candidate(name).version(version);
        let [address, format] = FiguresEndpoint::FLAGS;
        let mut candidate = candidate.flag(address).flag(format).start()?;
        let figures = FiguresEndpoint::of(&mut candidate.process).await?;
        Ok::<_, anyhow::Error>((candidate, figures))
    };
    let (first, of_first) = start("first", "1.2.0").await?;
    first.leads(PROMPTLY).await?;
    let (leading, remaining) = (of_lease("leading", ""), of_lease("remaining_seconds", ""));
    let master = format!("leader_election_master_status{{name=\"{lease}\"}}");
    ensure!(of_first.sample(&leading).await? == 1.0);
    ensure!(of_first.sample(&master).await? == 1.0);
    ensure!(
        of_first
            .sample(&of_lease("terms_begun_total", ",by=\"granted\""))
            .await?
            == 1.0
    );
    testbed.stays("first", 2).await?;
    let left = of_first.sample(&remaining).await?;
    ensure!((1.0..=10.0).contains(&left), "{left} s are left");
    let renewals = of_lease("renew_duration_seconds_count", "");
    ensure!(of_first.sample(&renewals).await? >= 1.0);

    let (better, of_better) = start("better", "1.1.0").await?;
    better.leads(PROMPTLY).await?;
    let ended = |cause: &str| of_lease("terms_ended_total", &format!(",cause=\"{cause}\""));
    of_first.reaches(&ended("handed_over"), 1.0).await?;
    ensure!(of_first.sample(&leading).await? == 0.0);
    ensure!(of_first.sample(&remaining).await? == 0.0);
    let took = of_first
        .sample(&of_lease("handover_duration_seconds_sum", ""))
        .await?;
    testbed.figure("hand-over, by its giver", Duration::from_secs_f64(took));
    ensure!(took > 0.0 && took < 5.0, "a hand-over in {took} s");
    ensure!(of_better.sample(&leading).await? == 1.0);
    let token = of_lease("token", "");
    let held = testbed.lease()?.record()?.token;
    ensure!(Some(of_better.sample(&token).await?) == held.map(|token| token.0.0 as f64));
    of_first
        .reaches(&token, of_better.sample(&token).await?)
        .await?;

    let seen = testbed.journal().len();
    take(&testbed).await?;
    of_better.reaches(&ended("taken"), 1.0).await?;
    let log = better.process.output()?;
    let mut lines = log.lines();
    let ended = lines.find(|line| line.contains("stopped leading"));
    ensure!(
        ended.is_some_and(|line| line.contains("\"cause\":\"taken\"")),
        "{ended:?}"
    );
    better.leads_again(seen, PROMPTLY * 2).await?;
    Ok(())
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
    elector.figures.reaches(&changes("first"), 1.0).await?;
    let mut better = testbed.candidate("better").version("1.1.0").start()?;
    better.leads(PROMPTLY).await?;
    elector
        .figures
        .reaches(&changes("handed_over"), 1.0)
        .await?;
    let seen = testbed.journal().len();
    let killed = better.kill()?;
    let next = worse
        .leads_again(seen, crash_limit(testbed.implementation()) + PROMPTLY)
        .await?;
    elector.figures.reaches(&changes("expired"), 1.0).await?;

    let took = elector
        .figures
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
        .figures
        .sample("elector_handover_duration_seconds_sum")
        .await?;
    testbed.figure(
        "hand-over, by the metric",
        Duration::from_secs_f64(handover),
    );
    ensure!(handover < 5.0, "a hand-over in {handover} s");
    let led = format!("elector_leases{{namespace=\"{namespace}\",state=\"led\"}}");
    elector.figures.reaches(&led, 1.0).await?;
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
    let flag = format!("--metrics-bind-address={}", elector.figures.address);
    let name = format!("second-{}", testbed.namespace());
    let mut second = testbed.site().elector(&name, [flag.as_str()]).await?;
    let status = second.exit(PROMPTLY).await?;
    let said = second.output()?;
    ensure!(status.code() == Some(1), "{status}: {said}");
    let expected = format!(
        "error: failed to listen where --metrics-bind-address says, on {}: Address already in use (os error 98)\n",
        elector.figures.address
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
