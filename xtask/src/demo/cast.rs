//! The players: the elector and its candidates as child processes, and what they say.

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

/// What a candidate did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Leading,
    WorkStopped,
    Other,
}

/// One event of a candidate.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) name: String,
    pub(super) act: Act,
    pub(super) term: i64,
    /// The candidate's own wall time; all of them share one machine's clock.
    pub(super) time_micros: i64,
    pub(super) seen: Instant,
}

/// A line from somebody.
enum Line {
    Event(Value),
    Log(Value),
}

/// Everybody on stage.
pub(super) struct Cast {
    elector: PathBuf,
    kubeconfig: PathBuf,
    players: BTreeMap<String, ChildGuard>,
    lines: Receiver<Line>,
    speak: SyncSender<Line>,
    reasons: BTreeMap<(String, i64), String>,
    /// Whether the elector has said that it knows all leases and candidates.
    listed: bool,
}

/// More lines than anybody says while nobody listens.
const LINES: usize = 10_000;
/// What the elector logs when it is ready to decide.
const LISTED: &str = "leases and candidates are listed";
/// How long a player may take to enter or leave the stage.
const PATIENCE: Duration = Duration::from_secs(15);
/// The elector's log may come a moment after the candidate's event.
const REASON: Duration = Duration::from_secs(1);

// === impl Cast ===

impl Cast {
    pub(super) fn new(elector: &Path, kubeconfig: &Path) -> Self {
        let (speak, lines) = sync_channel(LINES);
        Self {
            elector: elector.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
            players: BTreeMap::new(),
            lines,
            speak,
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
        let mut player = ChildGuard::spawn(&mut command).context("failed to start the elector")?;
        let stderr = player
            .child_mut()
            .stderr
            .take()
            .context("the elector has no standard error")?;
        listen(stderr, self.speak.clone(), Line::Log);
        self.players.insert("the elector".to_owned(), player);
        let deadline = Instant::now() + PATIENCE;
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
        let mut player =
            ChildGuard::spawn(&mut command).with_context(|| format!("failed to start {name}"))?;
        let stdout = player
            .child_mut()
            .stdout
            .take()
            .context("a candidate has no standard output")?;
        listen(stdout, self.speak.clone(), Line::Event);
        self.players.insert(name.to_owned(), player);
        Ok(())
    }

    /// Kills a candidate as a crash would.
    pub(super) fn kill(&mut self, name: &str) -> Result<()> {
        let mut player = self
            .players
            .remove(name)
            .with_context(|| format!("{name} is not on stage"))?;
        player
            .kill()
            .with_context(|| format!("failed to kill {name}"))?;
        Ok(())
    }

    /// Waits for an event.
    pub(super) fn wait_for(
        &mut self,
        patience: Duration,
        wanted: impl Fn(&Scene) -> bool,
    ) -> Result<Scene> {
        let deadline = Instant::now() + patience;
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            let line = self
                .lines
                .recv_timeout(remaining)
                .with_context(|| format!("it did not happen within {} s", patience.as_secs()))?;
            if let Some(scene) = self.note(line).filter(|scene| wanted(scene)) {
                return Ok(scene);
            }
        }
    }

    /// Lets the audience read.
    pub(super) fn rest(&mut self, pause: Duration) {
        let deadline = Instant::now() + pause;
        while let Ok(line) = self
            .lines
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            self.note(line);
        }
    }

    /// What the elector logged about a term.
    pub(super) fn why(&mut self, holder: &str, term: i64) -> Option<String> {
        let key = (holder.to_owned(), term);
        let deadline = Instant::now() + REASON;
        while !self.reasons.contains_key(&key) {
            let line = self
                .lines
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
                .ok()?;
            self.note(line);
        }
        self.reasons.get(&key).cloned()
    }

    /// Ends everybody in good order.
    pub(super) fn leave(&mut self) -> Result<()> {
        for (name, mut player) in std::mem::take(&mut self.players) {
            player
                .terminate(PATIENCE)
                .with_context(|| format!("failed to end {name}"))?;
        }
        Ok(())
    }

    fn note(&mut self, line: Line) -> Option<Scene> {
        match line {
            Line::Log(value) => {
                self.listed |= value.get("msg")?.as_str()? == LISTED;
                let holder = value.get("holder")?.as_str()?.to_owned();
                let term = value.get("term")?.as_i64()?;
                let reason = value.get("reason")?.as_str()?.to_owned();
                self.reasons.insert((holder, term), reason);
                None
            }
            Line::Event(value) => Some(Scene {
                name: value.get("name")?.as_str()?.to_owned(),
                act: match value.get("event")?.as_str()? {
                    "leading" => Act::Leading,
                    "work-stopped" => Act::WorkStopped,
                    _ => Act::Other,
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
fn listen(from: impl Read + Send + 'static, to: SyncSender<Line>, kind: fn(Value) -> Line) {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let Ok(value) = serde_json::from_str(&line) else {
                continue;
            };
            // The stage is gone: nobody listens any more.
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
