//! Failures that probes of a candidate report: work that outlives its lease, and an unwell process.

use std::fmt;
use std::time::Duration;

/// The work of a term still runs although it may act no more ([`CandidateHandle::check_work`](crate::CandidateHandle::check_work)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkOverdue {
    /// For how long it has been so.
    pub since: Duration,
}

/// This process is not well, and is no candidate until it is
/// ([`CandidateHandle::check_health`](crate::CandidateHandle::check_health)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unwell {
    /// The last error of its probe, in one line.
    pub error: String,
}

// === impl WorkOverdue ===

impl fmt::Display for WorkOverdue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since =
            Duration::from_millis(u64::try_from(self.since.as_millis()).unwrap_or(u64::MAX));
        write!(
            f,
            "the lease was lost, and the work should have stopped {since:?} ago"
        )
    }
}

impl std::error::Error for WorkOverdue {}

// === impl Unwell ===

impl fmt::Display for Unwell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unwell: {}", self.error)
    }
}

impl std::error::Error for Unwell {}
