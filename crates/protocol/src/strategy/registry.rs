//! The strategies that Elector decides itself, by name.

use super::Strategy;
use super::name::StrategyName;
use super::newest_version::NewestVersion;
use super::oldest_emulation_version::OldestEmulationVersion;
use super::priority::HighestPriority;
use super::sticky::Sticky;

/// Each name and its rules.
const STRATEGIES: [(&str, &dyn Strategy); 4] = [
    (
        StrategyName::OLDEST_EMULATION_VERSION,
        &OldestEmulationVersion,
    ),
    (StrategyName::NEWEST_VERSION, &NewestVersion),
    (StrategyName::PRIORITY, &HighestPriority),
    (StrategyName::STICKY, &Sticky),
];

// === impl StrategyName ===

impl StrategyName {
    /// The name of the built-in strategy.
    pub const OLDEST_EMULATION_VERSION: &'static str = "OldestEmulationVersion";
    /// The name of the strategy by which the newest version leads.
    pub const NEWEST_VERSION: &'static str = "elector.dev/newest-version";
    /// The name of the strategy by which the highest priority leads.
    pub const PRIORITY: &'static str = "elector.dev/priority";
    /// The name of the strategy by which the leader stays.
    pub const STICKY: &'static str = "elector.dev/sticky";

    /// Those that Elector decides itself.
    pub const KNOWN: [&'static str; STRATEGIES.len()] = {
        let mut names = [""; STRATEGIES.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = STRATEGIES[index].0;
            index += 1;
        }
        names
    };

    /// The rules of this strategy, `None` where another elector decides it.
    pub fn strategy(&self) -> Option<&'static dyn Strategy> {
        let mut known = STRATEGIES.iter();
        let (_, strategy) = known.find(|(name, _)| *name == self.as_str())?;
        Some(*strategy)
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
