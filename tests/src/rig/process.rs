//! Child processes of a test: their lines are read as they come, and they die with the test.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_cluster::child_guard::ChildGuard;
use elector_protocol::Timestamp;
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use crate::rig::journal::now;

/// A running child. Dropping it kills it; so does the end of the test process, however it ends.
#[derive(Debug)]
pub struct TestProcess {
    name: String,
    guard: ChildGuard,
    log: PathBuf,
}

/// The interval at which a wait polls the child.
const POLL: Duration = Duration::from_millis(5);

// === impl TestProcess ===

impl TestProcess {
    /// Starts the command. Each line of its standard output goes to `on_line`, standard error to a log file in
    /// `folder`, the lines too.
    pub fn spawn(
        name: &str,
        mut command: Command,
        folder: &Path,
        mut on_line: impl FnMut(&str) + Send + 'static,
    ) -> Result<Self> {
        let log = folder.join(format!("{name}.log"));
        let open = || OpenOptions::new().create(true).append(true).open(&log);
        let mut copy: File =
            open().with_context(|| format!("failed to write {}", log.display()))?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(open()?);
        let program = command.get_program().to_owned();
        let mut guard = ChildGuard::spawn(&mut command)
            .with_context(|| format!("failed to start {}", program.display()))?;
        let stdout = guard
            .child_mut()
            .stdout
            .take()
            .context("the child has no standard output")?;
        // The thread ends with the last process that has the pipe open.
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                on_line(&line);
                // The log is for people; the test does without.
                let _ = writeln!(copy, "{line}");
            }
        });
        Ok(Self {
            name: name.to_owned(),
            guard,
            log,
        })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.guard.id()
    }

    /// Its output so far, both streams.
    pub fn output(&self) -> Result<String> {
        let bytes = std::fs::read(&self.log)
            .with_context(|| format!("failed to read {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits until what it wrote satisfies `look`.
    pub async fn output_until<T>(
        &mut self,
        what: &str,
        patience: Duration,
        mut look: impl FnMut(&str) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + patience;
        loop {
            let ended = self.guard.try_wait()?.is_some();
            let output = self.output()?;
            if let Some(found) = look(&output) {
                return Ok(found);
            }
            if ended || Instant::now() >= deadline {
                let (name, state) = (&self.name, if ended { "ended" } else { "runs" });
                bail!("{name} {state} and did not write {what}; it wrote:\n{output}");
            }
            sleep(POLL * 4).await;
        }
    }

    /// Waits until it has written a line with all these parts; the line.
    pub async fn writes(&mut self, parts: &[&str], patience: Duration) -> Result<String> {
        let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
        let find = |output: &str| output.lines().find(has_all).map(str::to_owned);
        let what = format!("a line with {parts:?}");
        self.output_until(&what, patience, find).await
    }

    /// Kills it with SIGKILL; returns the time just before.
    pub fn kill(&mut self) -> Result<Timestamp> {
        let before = now();
        self.signal(Signal::KILL)?;
        Ok(before)
    }

    /// Sends a signal.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        let name = &self.name;
        self.guard
            .signal(signal)
            .with_context(|| format!("failed to signal {name}"))
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.guard.try_wait()?)
    }

    /// Waits for its end.
    pub async fn exit(&mut self, patience: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.guard.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                bail!("{} still ran after {patience:?}", self.name);
            }
            sleep(POLL).await;
        }
    }

    /// Asks it with SIGTERM to end, and waits; how long it took.
    pub async fn terminate(&mut self, patience: Duration) -> Result<(ExitStatus, Duration)> {
        let start = Instant::now();
        self.signal(Signal::TERM)?;
        let status = self.exit(patience).await?;
        Ok((status, start.elapsed()))
    }

    /// The same, and checks that it ends well within 2 s; how long it took.
    pub async fn ends_promptly(&mut self) -> Result<Duration> {
        let (status, took) = self.terminate(Duration::from_secs(10)).await?;
        let (name, limit) = (&self.name, Duration::from_secs(2));
        ensure!(status.success(), "{name} ended with {status}");
        ensure!(took <= limit, "{name} ended after {took:?}");
        Ok(took)
    }
}
