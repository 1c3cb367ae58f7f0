//! The output of `elector explain` about a lease, as its users read it.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::rig::testbed::Testbed;

/// One entry of the JSON array that `elector explain -o json` prints.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExplainOutput {
    /// The namespace of the lease.
    pub namespace: String,
    /// Its name.
    pub lease: String,
    /// The elector's next action.
    pub action: String,
    /// The holder after that.
    pub holder: String,
    /// The preferred candidate after that.
    pub preferred_holder: String,
    /// The strategy, `None` on a conflict.
    pub strategy: Option<String>,
    /// The candidates that are pinged.
    pub ping: Vec<String>,
    /// Why.
    pub reason: String,
    /// The better candidate that is not preferred yet.
    pub held_back: Option<HeldBack>,
    /// The operators' words.
    pub operator: ExplainedWord,
    /// When the elector would look again, `None` for never.
    pub wake: Option<NextLook>,
    /// Each candidate.
    pub candidates: Vec<ExplainedCandidate>,
}

/// A better candidate that is not preferred yet.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeldBack {
    /// The candidate.
    pub candidate: String,
    /// Until when, RFC 3339.
    pub until: String,
    /// Why.
    pub reason: String,
}

/// The operators' words on a lease.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainedWord {
    /// Until when it is frozen, RFC 3339.
    pub freeze: Option<String>,
    /// The candidate that is preferred.
    pub prefer: Option<ExplainedPreference>,
    /// The words that do not count, and why.
    pub ignored: Vec<String>,
}

/// The candidate that an operator prefers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainedPreference {
    /// The candidate.
    pub candidate: String,
    /// Until when, RFC 3339.
    pub until: String,
}

/// When the elector would look again, at the latest.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NextLook {
    /// In so many seconds.
    pub after_seconds: f64,
    /// Why.
    pub reason: String,
}

/// The standing of one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainedCandidate {
    /// The candidate.
    pub name: String,
    /// True if it is valid under the strategy.
    pub eligible: bool,
    /// From 1 among the eligible.
    pub rank: Option<u32>,
    /// Why.
    pub reason: String,
}

/// The pause between two questions.
const PAUSE: Duration = Duration::from_millis(300);

// === impl Testbed ===

impl Testbed {
    /// Asks `elector explain` about the lease of the scenario.
    ///
    /// # Errors
    /// When it fails, or says nothing about that lease.
    pub async fn explain(&self) -> Result<ExplainOutput> {
        let site = self.site();
        let mut command = site.command(&site.programs().elector);
        command.args([
            "explain",
            "--namespace",
            self.namespace(),
            "--output",
            "json",
        ]);
        let output = spawn_blocking(move || command.output()).await??;
        if !output.status.success() {
            bail!(
                "elector explain failed: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let all: Vec<ExplainOutput> = serde_json::from_slice(&output.stdout)
            .context("elector explain printed something else")?;
        let ours = |each: &ExplainOutput| {
            each.namespace == self.namespace() && each.lease == self.lease_name()
        };
        all.into_iter()
            .find(ours)
            .context("elector explain says nothing about the lease")
    }

    /// Asks until the explanation satisfies `look`.
    ///
    /// # Errors
    /// When it does not within `patience`; the last explanation is in the message.
    pub async fn explained(
        &self,
        what: &str,
        patience: Duration,
        look: impl Fn(&ExplainOutput) -> bool,
    ) -> Result<ExplainOutput> {
        let deadline = Instant::now() + patience;
        loop {
            let answer = self.explain().await;
            match answer {
                Ok(explanation) if look(&explanation) => return Ok(explanation),
                answer if Instant::now() >= deadline => {
                    bail!("{what} is not what is explained: {answer:#?}")
                }
                _ => sleep(PAUSE).await,
            }
        }
    }
}

// === impl ExplainOutput ===

impl ExplainOutput {
    /// The standing of this candidate.
    ///
    /// # Errors
    /// When nothing is said about it.
    pub fn of(&self, name: &str) -> Result<&ExplainedCandidate> {
        let found = self.candidates.iter().find(|chances| chances.name == name);
        found.with_context(|| format!("{name} is not explained: {self:#?}"))
    }
}
