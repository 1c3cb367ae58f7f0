//! What an elector says to probes and to Prometheus, beside what the scenario sees itself.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{ClusterChoice, Suite, TestProcess, Testbed, between};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

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

/// An elector for the namespace of one scenario, which answers probes and scrapes.
struct ScrapedElector {
    process: TestProcess,
    health: SocketAddr,
    metrics: SocketAddr,
}

/// How long a server of an elector may take to answer.
const ANSWERS: Duration = Duration::from_secs(10);

// === impl ScrapedElector ===

impl ScrapedElector {
    /// For the namespace of the testbed, with the rights of the manifests.
    async fn start(testbed: &Testbed) -> Result<Self> {
        let name = format!("measured-{}", testbed.namespace());
        let flags = Self::flags(testbed);
        Self::of(testbed.site().elector(&name, flags).await?).await
    }

    /// The same as a user who may do nothing, for whom the administrator speaks.
    async fn without_rights(testbed: &Testbed) -> Result<Self> {
        let name = format!("limited-{}", testbed.namespace());
        let flags = Self::flags(testbed).into_iter();
        let flags = flags.chain(["--as=nobody-in-particular"]);
        let program = &testbed.site().programs().elector;
        Self::of(testbed.site().elector_of(program, &name, flags)?).await
    }

    fn flags(testbed: &Testbed) -> [&str; 5] {
        [
            "--namespace",
            testbed.namespace(),
            "--health-probe-bind-address=127.0.0.1:0",
            "--metrics-bind-address=127.0.0.1:0",
            "--logging-format=json",
        ]
    }

    async fn of(mut process: TestProcess) -> Result<Self> {
        let health = address(&mut process, "serving health").await?;
        let metrics = address(&mut process, "serving metrics").await?;
        Ok(Self {
            process,
            health,
            metrics,
        })
    }

    /// The status and the body for a path and query.
    async fn probe(&self, path: &str) -> Result<(u16, String)> {
        get(self.health, path).await
    }

    /// One sample of the figures; zero where there is none.
    async fn sample(&self, series: &str) -> Result<f64> {
        let (code, text) = get(self.metrics, "/metrics").await?;
        ensure!(code == 200 && text.ends_with("# EOF\n"), "{code}: {text}");
        let value = text.lines().find_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            (name == series).then_some(value)
        });
        Ok(value.map(str::parse).transpose()?.unwrap_or_default())
    }

    /// Waits until a sample has this value.
    async fn reaches(&self, series: &str, value: f64) -> Result<()> {
        let deadline = Instant::now() + PROMPTLY;
        loop {
            let now = self.sample(series).await?;
            if now == value {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "{series} is {now} and not {value}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn figures(testbed: Arc<Testbed>) -> Result<()> {
    let elector = ScrapedElector::start(&testbed).await?;
    let deadline = Instant::now() + PROMPTLY;
    while elector.probe("/readyz").await?.0 != 200 {
        let (_, body) = elector.probe("/readyz?verbose").await?;
        ensure!(Instant::now() < deadline, "it is not ready: {body}");
        sleep(Duration::from_millis(50)).await;
    }
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
        if code == 500 && body.contains("does not let this elector list leases") {
            break;
        }
        ensure!(Instant::now() < deadline, "{code}: {body}");
        sleep(Duration::from_millis(50)).await;
    }
    let (code, body) = elector.probe("/livez").await?;
    ensure!(code == 200, "{code}: {body}");
    Ok(())
}

/// Where a process says that it listens.
async fn address(process: &mut TestProcess, what: &str) -> Result<SocketAddr> {
    let find = |output: &str| {
        let line = output.lines().find(|line| line.contains(what))?;
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        line["address"].as_str()?.parse().ok()
    };
    process.output_until(what, PROMPTLY, find).await
}

/// A GET, and what came back: status and body.
async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: elector\r\n\r\n");
    let answer = spawn_blocking(move || {
        let mut stream = TcpStream::connect_timeout(&address, ANSWERS)?;
        stream.set_read_timeout(Some(ANSWERS))?;
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    });
    let answer = answer.await??;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP")?;
    let code = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((code, body.to_owned()))
}
