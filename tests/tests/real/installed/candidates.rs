//! Candidates beside an overlay, each in a Pod of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elector_tests::rig::{CandidateBuilder, Implementation, StartedCandidate, Testbed, between};

/// The namespace that `namespaced` serves, as all others do.
pub(super) const NAMESPACE: &str = "default";

/// Candidates that come for one lease, each better than the one before.
pub(super) struct BetterAndBetter<'w> {
    pub(super) testbed: &'w Testbed,
    candidates: Vec<StartedCandidate>,
}

/// One of ours that no other than the elector brings to lead.
pub(super) async fn candidate<'w>(
    testbed: &'w Testbed,
    name: &str,
    version: &str,
) -> Result<CandidateBuilder<'w>> {
    let account = testbed.site().candidate_account(NAMESPACE, name).await?;
    let candidate = testbed
        .candidate_of(Implementation::Elector, name)
        .account(&account.context("the server asks nobody who they are")?)
        .version(version)
        .flag("--mode=elected");
    Ok(candidate)
}

// === impl BetterAndBetter ===

impl<'w> BetterAndBetter<'w> {
    pub(super) fn new(testbed: &'w Testbed) -> Self {
        Self {
            testbed,
            candidates: Vec::new(),
        }
    }

    /// Starts one of that build, which is better than all before, and waits until it leads and has renewed. No other may
    /// have led since the last one came.
    pub(super) async fn next(
        &mut self,
        build: &Path,
        when: &str,
        patience: Duration,
    ) -> Result<()> {
        let testbed = self.testbed;
        let number = self.candidates.len();
        let name = format!("candidate-{number}");
        let version = format!("1.{}.0", 99 - number);
        let start = testbed.note(when);
        let candidate = candidate(testbed, &name, &version).await?;
        let candidate = candidate.build(build).start()?;
        let led = candidate.leads(patience).await?;
        testbed.figure(when, between(start.at, led));
        testbed.stays(&name, 1).await?;
        self.candidates.push(candidate);
        let begun = testbed.has_begun_terms(self.candidates.len());
        begun.with_context(|| when.to_owned())
    }
}
