//! A run in which nobody is elected: a finding about the election, where all of its candidates have begun.

use std::fmt::{self, Display, Formatter};

use anyhow::Result;
use elector_tests::rig::StartedCandidate;

/// Within its time the election elected nobody: no first leader, no successor, or not the better candidate.
#[derive(Debug)]
pub(super) struct Unelected;

/// Waits until all of these have begun.
pub(super) async fn all_begin(candidates: &[StartedCandidate]) -> Result<()> {
    for candidate in candidates {
        candidate.begins().await?;
    }
    Ok(())
}

// === impl Unelected ===

impl Display for Unelected {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("nobody was elected")
    }
}
