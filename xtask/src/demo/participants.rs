//! The participants: the elector and its candidates as child processes, and what they say.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::child_guard::ChildGuard;

/// An action of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DemoEventKind {
    Leading,
    WorkStopped,
    Other,
}

/// One event of a candidate.
#[derive(Clone, Debug)]
pub(super) struct DemoEvent {
    pub(super) name: String,
    pub(super) kind: DemoEventKind,
    pub(super) term: i64,
    /// The candidate's own wall time; all of them share one machine's clock.
    pub(super) time_micros: i64,
    pub(super) seen: Instant,
}

/// A line that a participant wrote.
enum ParticipantLine {
    Event(Value),
    Log(Value),
}

/// The elector and the candidates that run.
pub(super) struct DemoParticipants {
    elector: PathBuf,
    kubeconfig: PathBuf,
    processes: BTreeMap<String, ChildGuard>,
    lines: Receiver<ParticipantLine>,
    sender: SyncSender<ParticipantLine>,
    reasons: BTreeMap<(String, i64), String>,
    /// True once the elector has said that it knows all leases and candidates.
    listed: bool,
}

/// More lines than all participants write between two reads.
const UNREAD_LINES: usize = 10_000;
/// The log line of an elector that is ready to decide.
const LISTED: &str = "leases and candidates are listed";
/// The time that a participant may take to start or end.
const START_STOP_DEADLINE: Duration = Duration::from_secs(15);
/// The elector's log may come a moment after the candidate's event.
const REASON_DEADLINE: Duration = Duration::from_secs(1);

// === impl DemoParticipants ===

impl DemoParticipants {
    pub(super) fn new(elector: &Path, kubeconfig: &Path) -> Self {
        let (sender, lines) = sync_channel(UNREAD_LINES);
        Self {
            elector: elector.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            processes: BTreeMap::new(),
            lines,
            sender,
            reasons: BTreeMap::new(),
            listed: false,
        }
    }

    /// Starts the elector and waits until it has listed leases and candidates.
    pub(super) fn start_elector(&mut self, flags: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.elector);
        command
            .args(["run", "--logging-format=json"])
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(flags)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut process = ChildGuard::spawn(&mut command).context("failed to start the elector")?;
        let stderr = process
            .child_mut()
            .stderr
            .take()
            .context("the elector has no standard error")?;
        forward_lines(stderr, self.sender.clone(), ParticipantLine::Log);
        self.processes.insert("the elector".to_owned(), process);
        let deadline = Instant::now() + START_STOP_DEADLINE;
        while !self.listed {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let line = self
                .lines
                .recv_timeout(remaining)
                .context("the elector did not come up")?;
            self.note(line);
        }
        Ok(())
    }

    /// Starts a candidate for lease `default/demo` that leads by sleeping.
    pub(super) fn start_candidate(
        &mut self,
        name: &str,
        version: &str,
        lease_seconds: u64,
    ) -> Result<()> {
        let mut command = Command::new(&self.elector);
        command
            .args([
                "candidate",
                "--events",
                "--namespace=default",
                "--lease=demo",
            ])
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg(format!("--name={name}"))
            .arg(format!("--binary-version={version}"))
            .arg(format!("--emulation-version={version}"))
            .arg(format!("--lease-duration={lease_seconds}s"))
            .arg(format!("--renew-deadline={}s", lease_seconds * 2 / 3))
            .arg("--retry-period=1s")
            .args(["--", "sleep", "infinity"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process =
            ChildGuard::spawn(&mut command).with_context(|| format!("failed to start {name}"))?;
        let stdout = process
            .child_mut()
            .stdout
            .take()
            .context("a candidate has no standard output")?;
        forward_lines(stdout, self.sender.clone(), ParticipantLine::Event);
        self.processes.insert(name.to_owned(), process);
        Ok(())
    }

    /// Kills a candidate as a crash would.
    pub(super) fn kill(&mut self, name: &str) -> Result<()> {
        let mut process = self
            .processes
            .remove(name)
            .with_context(|| format!("{name} does not run"))?;
        process
            .kill()
            .with_context(|| format!("failed to kill {name}"))?;
        Ok(())
    }

    /// Waits for an event.
    pub(super) fn wait_for(
        &mut self,
        patience: Duration,
        wanted: impl Fn(&DemoEvent) -> bool,
    ) -> Result<DemoEvent> {
        let deadline = Instant::now() + patience;
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let line = self
                .lines
                .recv_timeout(remaining)
                .with_context(|| format!("it did not happen within {} s", patience.as_secs()))?;
            if let Some(event) = self.note(line).filter(|event| wanted(event)) {
                return Ok(event);
            }
        }
    }

    /// Goes on reading lines for a while, so that a person can read what was written.
    pub(super) fn pause(&mut self, pause: Duration) {
        let deadline = Instant::now() + pause;
        while let Ok(line) = self
            .lines
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            self.note(line);
        }
    }

    /// The text that the elector logged about a term.
    pub(super) fn why(&mut self, holder: &str, term: i64) -> Option<String> {
        let key = (holder.to_owned(), term);
        let deadline = Instant::now() + REASON_DEADLINE;
        while !self.reasons.contains_key(&key) {
            let line = self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
                .ok()?;
            self.note(line);
        }
        self.reasons.get(&key).cloned()
    }

    /// Ends all participants in good order.
    pub(super) fn end(&mut self) -> Result<()> {
        for (name, mut process) in std::mem::take(&mut self.processes) {
            process
                .terminate(START_STOP_DEADLINE)
                .with_context(|| format!("failed to end {name}"))?;
        }
        Ok(())
    }

    fn note(&mut self, line: ParticipantLine) -> Option<DemoEvent> {
        match line {
            ParticipantLine::Log(value) => {
                self.listed |= value.get("msg")?.as_str()? == LISTED;
                let holder = value.get("holder")?.as_str()?.to_owned();
                let term = value.get("term")?.as_i64()?;
                let reason = value.get("reason")?.as_str()?.to_owned();
                self.reasons.insert((holder, term), reason);
                None
            }
            ParticipantLine::Event(value) => Some(DemoEvent {
                name: value.get("name")?.as_str()?.to_owned(),
                kind: match value.get("event")?.as_str()? {
                    "leading" => DemoEventKind::Leading,
                    "work-stopped" => DemoEventKind::WorkStopped,
                    _ => DemoEventKind::Other,
                },
                term: value
                    .get("term")
                    .and_then(Value::as_i64)
                    .unwrap_or_default(),
                time_micros: micros(value.get("time")?.as_str()?)?,
                seen: Instant::now(),
            }),
        }
    }
}

/// Reads JSON lines on a thread that ends with the child. What is not JSON is passed over.
fn forward_lines(
    from: impl Read + Send + 'static,
    to: SyncSender<ParticipantLine>,
    kind: fn(Value) -> ParticipantLine,
) {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let Ok(value) = serde_json::from_str(&line) else {
                continue;
            };
            // The receiver is gone.
            if to.send(kind(value)).is_err() {
                return;
            }
        }
    });
}

/// Microseconds since the Unix epoch of an RFC 3339 time.
fn micros(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>()
        .ok()
        .map(jiff::Timestamp::as_microsecond)
}
