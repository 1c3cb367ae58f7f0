//! Why a candidate cannot be elected.

use std::time::Duration;

use crate::strategy::name::StrategyNameError;
use crate::version::{Version, VersionError};

/// Why a candidate cannot be elected.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Rejection {
    /// `spec.binaryVersion` is missing or no version.
    #[error("spec.binaryVersion {0}")]
    BinaryVersion(VersionError),
    /// `spec.emulationVersion` is given and no version.
    #[error("spec.emulationVersion {0}")]
    EmulationVersion(VersionError),
    /// `spec.emulationVersion` is missing or 0.0.0, which a strategy that ranks by it cannot do without.
    #[error("spec.emulationVersion is missing, and the strategy needs it")]
    NoEmulationVersion,
    /// The emulation version is above the binary version.
    #[error("spec.emulationVersion {emulation} is above spec.binaryVersion {binary}")]
    EmulationAboveBinary {
        /// The emulation version.
        emulation: Version,
        /// The binary version.
        binary: Version,
    },
    /// `spec.strategy` is missing or malformed.
    #[error("spec.strategy {0}")]
    StrategyName(StrategyNameError),
    /// `spec.preferredStrategies` is empty, or an entry of it is malformed.
    #[error("spec.preferredStrategies {0}")]
    PreferredStrategies(StrategyNameError),
    /// `spec.renewTime` is missing: the candidate has not registered itself yet.
    #[error("spec.renewTime is missing, so it never answered")]
    NoRenewTime,
    /// An operator wants it not to lead for this time from now: annotation `elector.dev/stand-down`.
    #[error("the annotation elector.dev/stand-down excludes it for another {:.1}s", .0.as_secs_f64())]
    StandsDown(Duration),
    /// A field could not be read at all.
    #[error("{0}")]
    Malformed(String),
}
