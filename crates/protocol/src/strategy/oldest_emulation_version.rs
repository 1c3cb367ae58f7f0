//! The built-in strategy: lower emulation version first, then lower binary version (KEP-4355).

use std::cmp::Ordering;

use super::Strategy;
use crate::rejection::Rejection;
use crate::spec::CandidateSpec;
use crate::version::{Version, VersionError};

/// The built-in strategy: lower emulation version first, then lower binary version (KEP-4355).
#[derive(Clone, Copy, Debug)]
pub(super) struct OldestEmulationVersion;

// === impl OldestEmulationVersion ===

impl Strategy for OldestEmulationVersion {
    fn eligible(&self, candidate: &CandidateSpec) -> Result<(), Rejection> {
        if candidate.binary.is_none() {
            return Err(Rejection::BinaryVersion(VersionError::Empty));
        }
        match &candidate.emulation {
            Some(version) if !version.is_zero() => Ok(()),
            _ => Err(Rejection::NoEmulationVersion),
        }
    }

    fn compare(&self, left: &CandidateSpec, right: &CandidateSpec) -> Ordering {
        left.emulation
            .cmp(&right.emulation)
            .then_with(|| left.binary.cmp(&right.binary))
    }

    fn because(&self, better: &CandidateSpec, other: &CandidateSpec) -> String {
        if better.emulation == other.emulation {
            return format!(
                "has the older binary version {} (not {})",
                show(&better.binary),
                show(&other.binary)
            );
        }
        format!(
            "has the older emulation version {} (not {})",
            show(&better.emulation),
            show(&other.emulation)
        )
    }
}

/// A version, or that there is none.
pub(super) fn show(version: &Option<Version>) -> String {
    let version = version.as_ref();
    version.map_or_else(|| "none".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_emulation_version_cannot_be_told_without_versions() {
        let wish = ["OldestEmulationVersion"];
        for (binary, emulation, text) in [
            ("", "1.0.0", "spec.binaryVersion is empty"),
            (
                "1.0.0",
                "",
                "spec.emulationVersion is missing, and the strategy needs it",
            ),
        ] {
            let spec = CandidateSpec::parse_list(binary, emulation, &wish).unwrap();
            assert_eq!(
                OldestEmulationVersion
                    .eligible(&spec)
                    .unwrap_err()
                    .to_string(),
                text
            );
        }
    }
}
