//! Child processes of a test: their lines are read as they come, and they die with the test.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
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
    ///
    /// # Errors
    /// When the command cannot be started or the log not be written.
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
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn output(&self) -> Result<String> {
        let bytes = std::fs::read(&self.log)
            .with_context(|| format!("failed to read {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits until what it wrote satisfies `look`.
    ///
    /// # Errors
    /// When it has not within `patience`; the output is in the message.
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
                let state = if ended { "ended" } else { "runs" };
                bail!(
                    "{} {state} and did not write {what}; it wrote:\n{output}",
                    self.name
                );
            }
            sleep(POLL * 4).await;
        }
    }

    /// Kills it with SIGKILL; returns the time just before.
    ///
    /// # Errors
    /// When it has ended before, so that the kill would prove nothing.
    pub fn kill(&mut self) -> Result<Timestamp> {
        let before = now();
        self.signal(Signal::KILL)?;
        Ok(before)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When it has ended before.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        let name = &self.name;
        self.guard
            .signal(signal)
            .with_context(|| format!("failed to signal {name}"))
    }

    /// Its exit status, if it has ended.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.guard.try_wait()?)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it still runs after `patience`.
    pub async fn exit(&mut self, patience: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.guard.try_wait()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                bail!(
                    "{} still ran after {:.1} s",
                    self.name,
                    patience.as_secs_f64()
                );
            }
            sleep(POLL).await;
        }
    }

    /// Asks it with SIGTERM to end, and waits; how long it took.
    ///
    /// # Errors
    /// When it still runs after `patience`.
    pub async fn terminate(&mut self, patience: Duration) -> Result<(ExitStatus, Duration)> {
        let start = Instant::now();
        self.signal(Signal::TERM)?;
        let status = self.exit(patience).await?;
        Ok((status, start.elapsed()))
    }
}
