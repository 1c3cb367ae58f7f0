//! The highest priority leads, as KEP-4355 proposes; among equals the oldest version.

use std::cmp::Ordering;

use super::Strategy;
use super::oldest_emulation_version::OldestEmulationVersion;
use crate::rejection::Rejection;
use crate::spec::CandidateSpec;

/// The highest priority leads; among equals the oldest emulation version, then the oldest binary version.
///
/// A candidate without a priority comes after all that have one. Where no candidate has one, this is the built-in
/// strategy.
#[derive(Clone, Copy, Debug)]
pub(super) struct HighestPriority;

// === impl HighestPriority ===

impl Strategy for HighestPriority {
    fn eligible(&self, candidate: &CandidateSpec) -> Result<(), Rejection> {
        OldestEmulationVersion.eligible(candidate)
    }

    fn compare(&self, left: &CandidateSpec, right: &CandidateSpec) -> Ordering {
        right
            .priority
            .cmp(&left.priority)
            .then_with(|| OldestEmulationVersion.compare(left, right))
    }

    fn because(&self, better: &CandidateSpec, other: &CandidateSpec) -> String {
        if better.priority == other.priority {
            return OldestEmulationVersion.because(better, other);
        }
        let show = |priority: i32| match priority {
            0 => "none".to_owned(),
            priority => priority.to_string(),
        };
        format!(
            "has the higher priority {} (not {})",
            show(better.priority),
            show(other.priority)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_come_first_and_then_the_oldest_version() {
        let spec = |priority, version| {
            let spec = CandidateSpec::parse(version, version, "elector.dev/priority").unwrap();
            CandidateSpec { priority, ..spec }
        };
        // Each before the next.
        let sorted = [
            (
                spec(i32::MAX, "1.9.0"),
                "has the higher priority 2147483647 (not 10)",
            ),
            (
                spec(10, "1.1.0"),
                "has the older emulation version 1.1.0 (not 1.2.0)",
            ),
            (spec(10, "1.2.0"), "has the higher priority 10 (not 9)"),
            (spec(9, "1.0.0"), "has the higher priority 9 (not none)"),
            (
                spec(0, "0.9.0"),
                "has the older emulation version 0.9.0 (not 1.0.0)",
            ),
            (spec(0, "1.0.0"), ""),
        ];
        for pair in sorted.windows(2) {
            let ((better, because), (other, _)) = (&pair[0], &pair[1]);
            assert_eq!(HighestPriority.compare(better, other), Ordering::Less);
            assert_eq!(HighestPriority.compare(other, better), Ordering::Greater);
            assert_eq!(HighestPriority.because(better, other), *because);
            assert_eq!(HighestPriority.eligible(better), Ok(()));
        }
        let versionless = CandidateSpec {
            emulation: None,
            ..spec(10, "1.0.0")
        };
        let why = Err(Rejection::NoEmulationVersion);
        assert_eq!(HighestPriority.eligible(&versionless), why);
    }
}
