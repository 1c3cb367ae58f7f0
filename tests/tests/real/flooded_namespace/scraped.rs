//! An elector that answers probes and scrapes.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::{TestProcess, Testbed, eventually, http};

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
            let (code, body) = http(self.health, "GET /readyz?verbose", "").await?;
            ensure!(code == 200, "it is not ready: {body}");
            Ok(())
        };
        eventually(patience, ask).await
    }

    pub(super) async fn cost(&self) -> Result<ElectorCost> {
        let (code, text) = http(self.figures, "GET /metrics", "").await?;
        ensure!(code == 200 && text.ends_with("# EOF\n"), "{code}: {text}");
        let lines = text.lines();
        let writes = lines.filter(|line| line.starts_with("elector_writes_total{"));
        let writes = writes.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        let lines = self.process.output()?.lines().count();
        Ok(ElectorCost {
            writes: writes.sum(),
            lines: f64::from(u32::try_from(lines)?),
            peak_kib: memory_kib("VmHWM:", self.process.id())?,
        })
    }
}

/// Memory of a process in KiB, by a line of its status: `VmRSS:` is resident now, `VmHWM:` was at most.
pub(crate) fn memory_kib(of: &str, process: u32) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(path).context("the process has ended")?;
    let line = status.lines().find_map(|line| line.strip_prefix(of));
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
