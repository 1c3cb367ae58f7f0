//! The output of `kubectl describe` on the lease of a scenario, as an operator reads it.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::rig::testbed::Testbed;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(300);

// === impl Testbed ===

impl Testbed {
    /// The lines under `Events:` that `kubectl describe lease` prints, each with single blanks.
    ///
    /// # Errors
    /// When kubectl fails.
    pub async fn described_events(&self) -> Result<Vec<String>> {
        let site = self.site();
        let mut command = site.command(&site.programs().kubectl);
        command.args([
            "describe",
            "lease",
            self.lease_name(),
            "--namespace",
            self.namespace(),
        ]);
        let output = spawn_blocking(move || command.output()).await??;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            bail!("kubectl describe failed: {text}");
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let events = text.lines().skip_while(|line| !line.starts_with("Events:"));
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(events.skip(1).map(words).collect())
    }

    /// Looks until one of these lines has all these parts, and returns it.
    ///
    /// # Errors
    /// When none has within `patience`; the lines are in the message.
    pub async fn describes(&self, parts: &[&str], patience: Duration) -> Result<String> {
        let deadline = Instant::now() + patience;
        loop {
            let lines = self.described_events().await?;
            let has_all = |line: &&String| parts.iter().all(|part| line.contains(part));
            match lines.iter().find(has_all) {
                Some(line) => return Ok(line.clone()),
                None if Instant::now() >= deadline => {
                    bail!("kubectl describe shows nothing with {parts:?}: {lines:#?}")
                }
                None => sleep(PAUSE).await,
            }
        }
    }
}
