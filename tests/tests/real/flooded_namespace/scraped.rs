//! An elector that answers probes and scrapes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{TestProcess, Testbed, eventually};
use tokio::task::spawn_blocking;

use crate::PROMPTLY;

/// An elector that answers probes and scrapes.
pub(super) struct ScrapedElector {
    process: TestProcess,
    health: SocketAddr,
    figures: SocketAddr,
}

/// The cost of an elector so far.
pub(super) struct ElectorCost {
    /// Requests that write.
    pub(super) writes: f64,
    pub(super) lines: f64,
    /// The most that it has had resident.
    pub(super) peak_kib: u64,
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
    pub(super) async fn start(testbed: &Testbed, name: &str) -> Result<Self> {
        let flags = testbed.site().mode().elector_flags();
        let flags = SERVING.iter().chain(flags).copied();
        let mut process = testbed.site().elector(name, flags).await?;
        let health = address(&mut process, "serving health").await?;
        let figures = address(&mut process, "serving metrics").await?;
        Ok(Self {
            process,
            health,
            figures,
        })
    }

    /// Waits until it is ready.
    pub(super) async fn ready(&self, patience: Duration) -> Result<()> {
        let ask = || async {
            let (code, body) = get(self.health, "/readyz?verbose").await?;
            ensure!(code == 200, "it is not ready: {body}");
            Ok(())
        };
        eventually(patience, ask).await
    }

    pub(super) async fn cost(&self) -> Result<ElectorCost> {
        let (code, text) = get(self.figures, "/metrics").await?;
        ensure!(code == 200 && text.ends_with("# EOF\n"), "{code}: {text}");
        let lines = text.lines();
        let writes = lines.filter(|line| line.starts_with("elector_writes_total{"));
        let writes = writes.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        let lines = self.process.output()?.lines().count();
        Ok(ElectorCost {
            writes: writes.sum(),
            lines: f64::from(u32::try_from(lines)?),
            peak_kib: peak_kib(self.process.id())?,
        })
    }
}

/// The most memory that a process ever had resident, in KiB.
pub(crate) fn peak_kib(process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(path).context("the process has ended")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let text = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(text.context("the kernel does not say")?.parse()?)
}

/// The address on which a process says that it listens.
async fn address(process: &mut TestProcess, what: &str) -> Result<SocketAddr> {
    let line = process.writes(&[what], PROMPTLY).await?;
    let line: serde_json::Value = serde_json::from_str(&line)?;
    let address = line["address"].as_str().context("no address")?;
    Ok(address.parse()?)
}

/// The status and the body of the answer to a GET.
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
