//! The strategies that Elector decides itself, by name.

use super::Strategy;
use super::name::StrategyName;
use super::oldest_emulation_version::OldestEmulationVersion;

// === impl StrategyName ===

impl StrategyName {
    /// How to choose under this strategy, `None` where another elector decides it.
    pub fn strategy(&self) -> Option<&'static dyn Strategy> {
        match self.as_str() {
            Self::OLDEST_EMULATION_VERSION => Some(&OldestEmulationVersion),
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
        assert!(strategy("OldestEmulationVersion").is_some());
        assert!(strategy("example.com/OldestEmulationVersion").is_none());
    }
}
