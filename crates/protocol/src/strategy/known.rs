//! The strategies that Elector decides itself, by name.

use super::Strategy;
use super::name::StrategyName;
use super::newest_version::NewestVersion;
use super::oldest_emulation_version::OldestEmulationVersion;
use super::priority::HighestPriority;
use super::sticky::Sticky;

// === impl StrategyName ===

impl StrategyName {
    /// Those that Elector decides itself.
    pub const KNOWN: [&'static str; 4] = [
        Self::OLDEST_EMULATION_VERSION,
        Self::NEWEST_VERSION,
        Self::PRIORITY,
        Self::STICKY,
    ];

    /// The rules of this strategy, `None` where another elector decides it.
    pub fn strategy(&self) -> Option<&'static dyn Strategy> {
        match self.as_str() {
            Self::OLDEST_EMULATION_VERSION => Some(&OldestEmulationVersion),
            Self::NEWEST_VERSION => Some(&NewestVersion),
            Self::PRIORITY => Some(&HighestPriority),
            Self::STICKY => Some(&Sticky),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_api_that_is_not_listed_is_decided_by_another_elector() {
        let strategy = |text| StrategyName::parse(text).unwrap().strategy();
        for known in StrategyName::KNOWN {
            assert!(strategy(known).is_some(), "{known}");
        }
        for other in [
            "example.com/OldestEmulationVersion",
            "elector.dev/Sticky",
            "a/sticky",
        ] {
            assert!(strategy(other).is_none(), "{other}");
        }
    }
}
