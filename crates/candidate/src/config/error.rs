//! The rules that a configuration can break.

use std::time::Duration;

use elector_api::FieldError;
use elector_protocol::{StrategyName, TimingError};

/// Why a candidate cannot be started.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A constant is outside of its bounds. The text names the rule.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// Electors choose by the version of the binary.
    #[error(
        "binary-version is missing: electors choose by it, unless the mode is plain or disabled"
    )]
    MissingVersion,
    /// The API server would not take the LeaseCandidate. The text names the field.
    #[error("{0}")]
    Candidate(FieldError),
    /// No elector decides leases of this strategy: the name is one of Elector's, which has no such strategy.
    #[error("strategy is {0}: Elector has {known}", known = StrategyName::KNOWN.join(", "))]
    Strategy(StrategyName),
    /// The API server would take the LeaseCandidate but never a Lease of the name that it wants. The text names the
    /// rule.
    #[error("the lease {name:?} cannot exist: {error}")]
    Lease {
        /// The name of the lease.
        name: String,
        /// The words of an API server about it.
        error: FieldError,
    },
    /// The grace is too long to be waited for.
    #[error("grace-period is {0:?}: must be at most 1h")]
    Grace(Duration),
    /// An elector would be waited for too long.
    #[error("fallback-after is {0:?}: must be at most 1h")]
    Fallback(Duration),
    /// No lease duration of any client is so short, or so long.
    #[error("max-lease-duration is {0:?}: must be from 1s to 1h")]
    MaxLeaseDuration(Duration),
    /// A missing Lease would be waited for too long.
    #[error("absent-lease-grace is {0:?}: must be at most 1h")]
    AbsentLeaseGrace(Duration),
    /// The health probe would be asked too often, or hardly ever.
    #[error("health-period is {0:?}: must be from 100ms to 1h")]
    HealthPeriod(Duration),
    /// No health probe could answer, or it would be waited for too long.
    #[error("health-timeout is {0:?}: must be from 10ms to 1h")]
    HealthTimeout(Duration),
    /// A candidate that takes no lease waits for none.
    #[error(
        "absent-lease-grace is set, but the elected mode takes no lease: electors have this setting"
    )]
    UnusedAbsentLeaseGrace,
}
