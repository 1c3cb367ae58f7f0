//! Probes of a candidate: their timing, and the failures that they report.

use std::time::Duration;

use elector_protocol::LeaseKey;

/// This process fails a probe: its work still runs although it may act no more
/// ([`CandidateHandle::check_live`](crate::CandidateHandle::check_live)), or it is not well
/// ([`CandidateHandle::check_ready`](crate::CandidateHandle::check_ready)). The text says which, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unhealthy(String);

/// The period, timeout and threshold of the probe of a program. The defaults are those of a livenessProbe of Kubernetes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HealthTiming {
    pub(crate) period: Duration,
    pub(crate) timeout: Duration,
    /// The number of failures, one after the other, that make a well process unwell.
    pub(crate) failures: u32,
}

// === impl HealthTiming ===

impl Default for HealthTiming {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(10),
            timeout: Duration::from_secs(1),
            failures: 3,
        }
    }
}

// === impl Unhealthy ===

impl Unhealthy {
    /// The work should have stopped that long ago.
    pub(crate) fn overdue(since: Duration) -> Self {
        let millis = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let since = Duration::from_millis(millis);
        Self(format!(
            "the lease was lost, and the work should have stopped {since:?} ago"
        ))
    }

    /// The same of a part of a group.
    pub(crate) fn of(self, lease: &LeaseKey) -> Self {
        Self(format!("{lease}: {}", self.0))
    }

    /// The probe of the program says so.
    pub(crate) fn unwell(reason: &str) -> Self {
        Self(format!("unwell: {reason}"))
    }
}
