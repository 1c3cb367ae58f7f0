//! The electors under measurement: processes of their own, asked through `/proc` and through its own endpoints.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_tests::rig::TestProcess;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// Running electors, which are killed when this is dropped.
#[derive(Default)]
pub(crate) struct BenchmarkedElectors(Vec<BenchmarkedElector>);

struct BenchmarkedElector {
    process: TestProcess,
    health: SocketAddr,
    metrics: SocketAddr,
}

/// The resources used by an elector up to some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ResourceUsage {
    /// utime and stime of all its threads, seconds.
    pub(crate) processor: f64,
    /// VmRSS, bytes.
    pub(crate) resident: u64,
    /// VmHWM, bytes: the most that was ever resident.
    pub(crate) most_resident: u64,
    /// Sockets that are open.
    pub(crate) sockets: u32,
}

/// The elector's own figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ScrapedFigures(String);

/// The time that an elector has to list, or what stands in its place.
pub(crate) const LISTS: Duration = Duration::from_secs(60);

// === impl BenchmarkedElectors ===

impl BenchmarkedElectors {
    /// Starts one, and waits until it is ready. Its log goes to `folder`.
    pub(crate) async fn start(
        &mut self,
        program: &Path,
        kubeconfig: &Path,
        flags: Vec<String>,
        folder: &Path,
    ) -> Result<()> {
        let (health, metrics) = (free_port()?, free_port()?);
        let mut command = Command::new(program);
        command
            .arg("run")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg(format!("--health-probe-bind-address={health}"))
            .arg(format!("--metrics-bind-address={metrics}"))
            // The store is its own: no lease was ever held. The announced durations, of up to an hour, would be waited for.
            .arg("--absent-lease-grace=0s")
            .args(flags)
            .env_remove("RUST_LOG");
        let name = format!("elector-{}", self.0.len());
        let mut elector = BenchmarkedElector {
            process: TestProcess::spawn(&name, command, folder, |_| {})?,
            health,
            metrics,
        };
        let deadline = Instant::now() + LISTS;
        while !http_get(elector.health, "/readyz")
            .await
            .is_ok_and(|answer| answer.0)
        {
            ensure!(
                elector.process.ended()?.is_none() && Instant::now() < deadline,
                "the elector does not become ready: {}",
                elector.process.output()?
            );
            sleep(Duration::from_millis(20)).await;
        }
        self.0.push(elector);
        Ok(())
    }

    /// The resources that all have used so far.
    pub(crate) fn usage(&self) -> Result<ResourceUsage> {
        self.0
            .iter()
            .try_fold(ResourceUsage::default(), |sum, elector| {
                let own = ResourceUsage::of(&elector.process)?;
                Ok(ResourceUsage {
                    processor: sum.processor + own.processor,
                    resident: sum.resident + own.resident,
                    most_resident: sum.most_resident + own.most_resident,
                    sockets: sum.sockets + own.sockets,
                })
            })
    }

    /// Their own figures.
    pub(crate) async fn scrape(&self) -> Result<ScrapedFigures> {
        let mut all = String::new();
        for elector in &self.0 {
            let (ok, body) = http_get(elector.metrics, "/metrics").await?;
            ensure!(ok, "the elector refuses its figures: {body}");
            all.push_str(&body);
        }
        Ok(ScrapedFigures(all))
    }

    /// Their process ids, for a profiler.
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.0.iter().map(|elector| elector.process.id()).collect()
    }
}

// === impl ResourceUsage ===

impl ResourceUsage {
    /// The resources that a process has used so far.
    pub(crate) fn of(process: &TestProcess) -> Result<Self> {
        let folder = format!("/proc/{}", process.id());
        let read = |name: &str| {
            fs::read_to_string(format!("{folder}/{name}"))
                .with_context(|| format!("failed to read {folder}/{name}"))
        };
        let descriptors = fs::read_dir(format!("{folder}/fd"))?.flatten();
        let sockets = descriptors.filter(|descriptor| {
            fs::read_link(descriptor.path())
                .is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
        });
        let sockets = u32::try_from(sockets.count())?;
        let (stat, status) = (read("stat")?, read("status")?);
        Self::parse(&stat, &status, sockets).context("what /proc says cannot be read")
    }

    fn parse(stat: &str, status: &str, sockets: u32) -> Option<Self> {
        // The name of the program, in brackets, may hold anything.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u64 = fields
            .get(11..13)?
            .iter()
            .flat_map(|text| text.parse::<u64>())
            .sum();
        let kilobytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            let number: u64 = line.split_whitespace().next()?.parse().ok()?;
            Some(number * 1024)
        };
        Some(Self {
            processor: ticks as f64 / rustix::param::clock_ticks_per_second() as f64,
            resident: kilobytes("VmRSS:")?,
            most_resident: kilobytes("VmHWM:")?,
            sockets,
        })
    }
}

// === impl ScrapedFigures ===

impl ScrapedFigures {
    /// Of the text that a program serves.
    pub(crate) const fn of(text: String) -> Self {
        Self(text)
    }

    /// The sum of all series of that name, or of those that have all of these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let of_name = self.0.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let (series, value) = rest.rsplit_once(' ')?;
            let named = series.is_empty() || series.starts_with('{');
            (named && labels.iter().all(|label| series.contains(label))).then_some(value)
        });
        of_name.filter_map(|value| value.parse::<f64>().ok()).sum()
    }
}

/// A port that was free a moment ago.
fn free_port() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("failed to find a port")?;
    Ok(listener.local_addr()?)
}

/// True if the answer was 200, and its body.
async fn http_get(address: SocketAddr, path: &str) -> Result<(bool, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    Ok((head.starts_with("HTTP/1.1 200"), body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says_is_read() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 3 0 9 9 9";
        let status = "Name:\ta\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        let usage = ResourceUsage::parse(stat, status, 4).unwrap();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let expected = ResourceUsage {
            processor: 200.0 / ticks,
            resident: 1 << 20,
            most_resident: 2 << 20,
            sockets: 4,
        };
        assert_eq!(usage, expected);
        assert_eq!(ResourceUsage::parse(stat, "VmHWM: 1 kB", 0), None);
    }

    #[test]
    fn figures_are_summed_by_name_and_labels() {
        let scrape = ScrapedFigures(
            "# TYPE w counter\nw_total{resource=\"leases\",outcome=\"done\"} 3\n\
             w_total{resource=\"leases\",outcome=\"conflict\"} 2\nw_total_more 9\nplain 4\n"
                .to_owned(),
        );
        let sums = [
            scrape.sum("w_total", &[]),
            scrape.sum("w_total", &["outcome=\"done\""]),
            scrape.sum("plain", &[]),
            scrape.sum("w", &[]),
        ];
        assert_eq!(sums, [5.0, 3.0, 4.0, 0.0]);
    }
}
