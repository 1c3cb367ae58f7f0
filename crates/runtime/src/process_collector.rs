//! The figures of a process that Prometheus' own clients have, by their names: read from `/proc` at each scrape, and left out
//! where that is not to be had.

use std::fmt::Error;
use std::fs;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use rustix::time::{ClockId, clock_gettime};

use crate::metric_set::MetricDescription;

/// Processor time, memory, open files and the start of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessCollector;

const CPU: &str = "Processor time of this process";
const MEMORY: &str = "Resident memory of this process";
const FILES: &str = "Open file descriptors of this process";
const START: &str = "When this process started, since the epoch of Unix";

/// The ticks in a second of the times in `/proc`, which Linux shows alike on every architecture, whatever its own are.
const USER_HZ: f64 = 100.0;

// === impl ProcessCollector ===

impl ProcessCollector {
    /// The descriptions of these figures.
    pub fn descriptions() -> [MetricDescription; 4] {
        let describe = |name: &str, kind, unit, help| {
            MetricDescription::new(name.to_owned(), kind, &[], unit, help)
        };
        [
            describe("process_cpu_seconds_total", "counter", Some("seconds"), CPU),
            describe(
                "process_resident_memory_bytes",
                "gauge",
                Some("bytes"),
                MEMORY,
            ),
            describe("process_open_fds", "gauge", None, FILES),
            describe(
                "process_start_time_seconds",
                "gauge",
                Some("seconds"),
                START,
            ),
        ]
    }
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let (seconds, bytes) = (Unit::Seconds, Unit::Bytes);
        let kind = MetricType::Counter;
        let metric = encoder.encode_descriptor("process_cpu", CPU, Some(&seconds), kind)?;
        ConstCounter::new(processor_time().as_secs_f64()).encode(metric)?;
        if let Some(resident) = resident_bytes() {
            let name = "process_resident_memory";
            let metric =
                encoder.encode_descriptor(name, MEMORY, Some(&bytes), MetricType::Gauge)?;
            ConstGauge::new(resident).encode(metric)?;
        }
        // The folder that is read is among them, as it is for other clients.
        if let Ok(files) = fs::read_dir("/proc/self/fd") {
            let files = i64::try_from(files.count()).unwrap_or(i64::MAX);
            let metric =
                encoder.encode_descriptor("process_open_fds", FILES, None, MetricType::Gauge)?;
            ConstGauge::new(files).encode(metric)?;
        }
        if let Some(start) = start_time() {
            let name = "process_start_time";
            let metric =
                encoder.encode_descriptor(name, START, Some(&seconds), MetricType::Gauge)?;
            ConstGauge::new(start).encode(metric)?;
        }
        Ok(())
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn resident_bytes() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = after(&status, "VmRSS:")?;
    kilobytes.parse::<i64>().ok()?.checked_mul(1024)
}

/// In seconds since the epoch of Unix.
fn start_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    // The start is field 22, in ticks since the machine started; the first one here is field 3.
    let ticks: f64 = fields.split_whitespace().nth(19)?.parse().ok()?;
    let machine = fs::read_to_string("/proc/stat").ok()?;
    let booted: f64 = after(&machine, "btime")?.parse().ok()?;
    Some(booted + ticks / USER_HZ)
}

/// The word after this one at the beginning of a line.
fn after<'t>(text: &'t str, first: &str) -> Option<&'t str> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(first));
    lines.next()?.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::metric_set::MetricSet;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_figures_are_those_of_this_process() {
        let mut set = MetricSet::default();
        set.collect(ProcessCollector, ProcessCollector::descriptions());
        let opened = fs::File::open("/proc/self/stat").unwrap();
        let text = set.encode();
        drop(opened);
        let value = |name: &str| -> f64 { after(&text, name).unwrap().parse().unwrap() };
        assert!(value("process_cpu_seconds_total") > 0.0, "{text}");
        let resident = value("process_resident_memory_bytes");
        assert!((1e6..1e11).contains(&resident), "{text}");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let age = now.unwrap().as_secs_f64() - value("process_start_time_seconds");
        assert!((-2.0..86_400.0).contains(&age), "{text}");
        let less = value("process_open_fds");
        assert!(less >= 4.0, "{text}");
    }
}
