//! The newest version leads: higher binary version first, then higher emulation version.

use std::cmp::Ordering;

use super::Strategy;
use super::oldest_emulation_version::show;
use crate::rejection::Rejection;
use crate::spec::CandidateSpec;
use crate::version::VersionError;

/// The newest version leads: higher binary version first, then higher emulation version.
///
/// Of two that have the same binary version, one that names no emulation version comes last.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewestVersion;

// === impl NewestVersion ===

impl Strategy for NewestVersion {
    fn eligible(&self, candidate: &CandidateSpec) -> Result<(), Rejection> {
        match candidate.binary {
            Some(_) => Ok(()),
            None => Err(Rejection::BinaryVersion(VersionError::Empty)),
        }
    }

    fn compare(&self, left: &CandidateSpec, right: &CandidateSpec) -> Ordering {
        right
            .binary
            .cmp(&left.binary)
            .then_with(|| right.emulation.cmp(&left.emulation))
    }

    fn because(&self, better: &CandidateSpec, other: &CandidateSpec) -> String {
        let (what, better, other) = if better.binary == other.binary {
            ("emulation", &better.emulation, &other.emulation)
        } else {
            ("binary", &better.binary, &other.binary)
        };
        format!(
            "has the newer {what} version {} (not {})",
            show(better),
            show(other)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "elector.dev/newest-version";

    #[test]
    fn higher_versions_come_first() {
        let spec = |binary, emulation| CandidateSpec::parse(binary, emulation, NAME).unwrap();
        // Each before the next.
        let sorted = [
            (
                spec("1.10.0", "1.9.0"),
                "has the newer emulation version 1.9.0 (not 1.8.0)",
            ),
            (
                spec("1.10.0", "1.8.0"),
                "has the newer emulation version 1.8.0 (not none)",
            ),
            (
                spec("1.10.0", ""),
                "has the newer binary version 1.10.0 (not 1.10.0-rc.1)",
            ),
            (
                spec("1.10.0-rc.1", ""),
                "has the newer binary version 1.10.0-rc.1 (not 1.9.0)",
            ),
            (spec("1.9.0", "1.9.0"), ""),
        ];
        for pair in sorted.windows(2) {
            let ((better, because), (other, _)) = (&pair[0], &pair[1]);
            assert_eq!(NewestVersion.compare(better, other), Ordering::Less);
            assert_eq!(NewestVersion.compare(other, better), Ordering::Greater);
            assert_eq!(NewestVersion.because(better, other), *because);
        }
        let same = spec("1.9.0+a", "");
        let expected = Ordering::Equal;
        assert_eq!(NewestVersion.compare(&same, &spec("1.9.0+b", "")), expected);
    }

    #[test]
    fn a_candidate_without_a_binary_version_is_not_eligible() {
        let spec = CandidateSpec::parse_list("", "1.0.0", &[NAME]).unwrap();
        let why = NewestVersion.eligible(&spec).unwrap_err();
        assert_eq!(why.to_string(), "spec.binaryVersion is empty");
    }
}
