//! A run in which nobody comes to lead: a finding about the election, where all of its candidates run.

use std::fmt::{self, Display, Formatter};

use anyhow::Result;
use elector_tests::rig::StartedCandidate;

/// Nobody came to lead in time.
#[derive(Debug)]
pub(super) struct NobodyLed;

/// Waits until all of these run.
pub(super) async fn all_begin(candidates: &[StartedCandidate]) -> Result<()> {
    for candidate in candidates {
        candidate.begins().await?;
    }
    Ok(())
}

// === impl NobodyLed ===

impl Display for NobodyLed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("nobody led")
    }
}
