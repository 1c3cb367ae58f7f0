//! Probes of a candidate: their timing, and the failures that they report.

use std::fmt;
use std::num::NonZeroU32;
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

/// The period, timeout and threshold of the probe of [`Candidate::with_health`](crate::Candidate::with_health).
/// The defaults are those of a livenessProbe of Kubernetes.
///
/// A leader whose probe begins to fail is asked to stop after at most the threshold times the period, and the timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HealthTiming {
    /// The time from one question to the next. From 100 ms to 1 h; 10 s. It is longer where an answer takes longer.
    pub period: Duration,
    /// The time that an answer may take before it counts as a failure. From 10 ms to 1 h; 1 s.
    pub timeout: Duration,
    /// The number of failures, one after the other, that make a well process unwell. 3. One success ends that.
    pub failure_threshold: NonZeroU32,
}

const FAILURE_THRESHOLD: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);

const LONGEST: Duration = Duration::from_secs(3600);

// === impl HealthTiming ===

impl HealthTiming {
    /// True if the period is within its bounds.
    pub(crate) fn has_valid_period(&self) -> bool {
        (Duration::from_millis(100)..=LONGEST).contains(&self.period)
    }

    /// True if the timeout is within its bounds.
    pub(crate) fn has_valid_timeout(&self) -> bool {
        (Duration::from_millis(10)..=LONGEST).contains(&self.timeout)
    }
}

impl Default for HealthTiming {
    fn default() -> Self {
        Self {
            period: Duration::from_secs(10),
            timeout: Duration::from_secs(1),
            failure_threshold: FAILURE_THRESHOLD,
        }
    }
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
