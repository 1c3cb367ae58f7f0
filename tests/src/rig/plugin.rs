//! An operator's use of `kubectl elector` in the namespace of a scenario.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::rig::process::TestProcess;
use crate::rig::site::TestSite;
use crate::rig::testbed::Testbed;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(300);

// === impl TestSite ===

impl TestSite {
    /// `kubectl elector` with these arguments: kubectl finds the plugin in $PATH.
    ///
    /// # Errors
    /// When the plugin cannot be put there.
    pub fn kubectl_elector(&self, arguments: &[&str]) -> Result<Command> {
        let plugins = self.plugins().context("failed to install the plugin")?;
        let mut command = self.command(&self.programs().kubectl);
        let path = env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", plugins.display()))
            .arg("elector")
            .args(arguments);
        Ok(command)
    }

    /// A folder with the plugin alone.
    fn plugins(&self) -> io::Result<PathBuf> {
        let folder = self.folder().join("plugins");
        fs::create_dir_all(&folder)?;
        let link = folder.join("kubectl-elector");
        match symlink(&self.programs().kubectl_elector, link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(folder),
        }
    }
}

// === impl Testbed ===

impl Testbed {
    /// Runs `kubectl elector` in the namespace of the scenario, to its end.
    ///
    /// # Errors
    /// When it cannot be run.
    pub async fn operate(&self, arguments: &[&str]) -> Result<Output> {
        let arguments = [arguments, &["--namespace", self.namespace()]].concat();
        let mut command = self.site().kubectl_elector(&arguments)?;
        Ok(spawn_blocking(move || command.output()).await??)
    }

    /// Runs it until it succeeds and its lines, each with single blanks, satisfy `look`.
    ///
    /// # Errors
    /// When they do not within `patience`; what it said last is in the message.
    pub async fn operates(
        &self,
        arguments: &[&str],
        patience: Duration,
        look: impl Fn(&[String]) -> bool,
    ) -> Result<Vec<String>> {
        let deadline = Instant::now() + patience;
        loop {
            let output = self.operate(arguments).await?;
            let lines = words_of_lines(&output.stdout);
            if output.status.success() && look(&lines) {
                return Ok(lines);
            }
            if Instant::now() >= deadline {
                let stderr = String::from_utf8_lossy(&output.stderr);
                bail!("kubectl elector {arguments:?} says {lines:#?} {stderr}");
            }
            sleep(PAUSE).await;
        }
    }

    /// Starts it in the background.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_operating(&self, name: &str, arguments: &[&str]) -> Result<TestProcess> {
        let arguments = [arguments, &["--namespace", self.namespace()]].concat();
        let command = self.site().kubectl_elector(&arguments)?;
        TestProcess::spawn(name, command, self.folder(), |_| {})
    }
}

/// The lines of an output, each with single blanks.
fn words_of_lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(words).collect()
}
