//! Electors and candidates that answer probes and scrapes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{TestProcess, Testbed};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::PROMPTLY;

/// An elector that answers probes and scrapes.
pub(crate) struct ScrapedElector {
    pub(crate) process: TestProcess,
    health: SocketAddr,
    pub(crate) figures: FiguresEndpoint,
}

/// Where the figures of a process are.
#[derive(Clone, Copy)]
pub(crate) struct FiguresEndpoint {
    pub(crate) address: SocketAddr,
}

/// The time limit of an answer by a server of an elector.
const ANSWERS: Duration = Duration::from_secs(10);

/// Flags for both servers, on free ports.
const SERVING: &[&str] = &[
    "--health-probe-bind-address=127.0.0.1:0",
    "--metrics-bind-address=127.0.0.1:0",
    "--logging-format=json",
];

// === impl ScrapedElector ===

impl ScrapedElector {
    /// For the namespace of the testbed, with the rights of the manifests.
    ///
    /// # Errors
    /// When it does not start, or does not serve both.
    pub(crate) async fn start(testbed: &Testbed) -> Result<Self> {
        let name = format!("measured-{}", testbed.namespace());
        Self::start_with(testbed, &name, &["--namespace", testbed.namespace()]).await
    }

    /// The same under that name, with other flags.
    ///
    /// # Errors
    /// When it does not start, or does not serve both.
    pub(crate) async fn start_with(testbed: &Testbed, name: &str, flags: &[&str]) -> Result<Self> {
        let flags = SERVING.iter().chain(flags).copied();
        Self::of(testbed.site().elector(name, flags).await?).await
    }

    /// For the namespace of the testbed, as a user who may do nothing, for whom the administrator speaks.
    ///
    /// # Errors
    /// When it does not start, or does not serve both.
    pub(crate) async fn without_rights(testbed: &Testbed) -> Result<Self> {
        let name = format!("limited-{}", testbed.namespace());
        let flags = [
            "--namespace",
            testbed.namespace(),
            "--as=nobody-in-particular",
        ];
        let program = &testbed.site().programs().elector;
        let flags = SERVING.iter().copied().chain(flags);
        Self::of(testbed.site().elector_of(program, &name, flags)?).await
    }

    async fn of(mut process: TestProcess) -> Result<Self> {
        let health = address(&mut process, "serving health").await?;
        let figures = FiguresEndpoint::of(&mut process).await?;
        Ok(Self {
            process,
            health,
            figures,
        })
    }

    /// The status and the body for a path and query.
    ///
    /// # Errors
    /// When there is no answer.
    pub(crate) async fn probe(&self, path: &str) -> Result<(u16, String)> {
        get(self.health, path).await
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// When it is not in time, with what it says.
    pub(crate) async fn ready(&self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        while self.probe("/readyz").await?.0 != 200 {
            let (_, body) = self.probe("/readyz?verbose").await?;
            ensure!(Instant::now() < deadline, "it is not ready: {body}");
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

// === impl FiguresEndpoint ===

impl FiguresEndpoint {
    /// Flags of a candidate that serves its figures on a free port, and says where.
    pub(crate) const FLAGS: [&str; 2] = [
        "--metrics-bind-address=127.0.0.1:0",
        "--logging-format=json",
    ];

    /// Those of a process that says where it serves them.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) async fn of(process: &mut TestProcess) -> Result<Self> {
        let address = address(process, "serving metrics").await?;
        Ok(Self { address })
    }

    /// One sample of the figures; zero where there is none.
    ///
    /// # Errors
    /// When there is no scrape.
    pub(crate) async fn sample(&self, series: &str) -> Result<f64> {
        let text = self.scrape().await?;
        let value = text.lines().find_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            (name == series).then_some(value)
        });
        Ok(value.map(str::parse).transpose()?.unwrap_or_default())
    }

    /// All figures.
    ///
    /// # Errors
    /// When there is no scrape.
    pub(crate) async fn scrape(&self) -> Result<String> {
        let (code, text) = get(self.address, "/metrics").await?;
        ensure!(code == 200 && text.ends_with("# EOF\n"), "{code}: {text}");
        Ok(text)
    }

    /// Waits until a sample has this value.
    ///
    /// # Errors
    /// When it has another one in the end.
    pub(crate) async fn reaches(&self, series: &str, value: f64) -> Result<()> {
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

/// Where a process says that it listens.
pub(crate) async fn address(process: &mut TestProcess, what: &str) -> Result<SocketAddr> {
    let find = |output: &str| {
        let line = output.lines().find(|line| line.contains(what))?;
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        line["address"].as_str()?.parse().ok()
    };
    process.output_until(what, PROMPTLY, find).await
}

/// A GET, and what came back: status and body.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
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
