//! The scenarios with clusters of their own that run for every change.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::rig::site::ClusterMode;

/// A scenario that starts a real cluster of its own in each of several modes, and in which of them it runs for
/// every change. Such a cluster takes both processors for half a minute; the embedded server takes next to nothing, so
/// that every scenario that has it always runs on it.
#[derive(Clone, Copy, Debug)]
pub struct EveryChange {
    /// The scenario.
    pub name: &'static str,
    /// Its modes.
    pub modes: &'static [ClusterMode],
}

// === impl EveryChange ===

impl EveryChange {
    /// True if a scenario that starts a cluster of its own runs for every change in this mode.
    pub(super) fn has(all: &[Self], name: &str, mode: ClusterMode) -> bool {
        let listed = all.iter().find(|one| one.name == name);
        mode.is_embedded() || listed.is_none_or(|one| one.modes.contains(&mode))
    }

    /// That each is a scenario which has all its modes, and others too, so that the list stays true.
    ///
    /// # Errors
    /// When one is not.
    pub(super) fn check(all: &[Self], own: &[(&str, ClusterMode)]) -> Result<()> {
        for one in all {
            let modes: BTreeSet<ClusterMode> = own
                .iter()
                .filter(|(name, mode)| *name == one.name && !mode.is_embedded())
                .map(|(_, mode)| *mode)
                .collect();
            let listed: BTreeSet<ClusterMode> = one.modes.iter().copied().collect();
            let embedded = own
                .iter()
                .any(|(name, mode)| *name == one.name && mode.is_embedded());
            let played = embedded || !listed.is_empty();
            ensure!(
                played && listed.is_subset(&modes) && listed != modes,
                "{} is listed for every change with {listed:?}, and starts clusters of its own with {modes:?}",
                one.name
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[EveryChange] = &[EveryChange {
        name: "outage",
        modes: &[ClusterMode::GateOn],
    }];

    #[test]
    fn a_listed_scenario_is_played_in_its_modes_and_on_the_embedded_server_and_others_everywhere() {
        for (name, mode, runs) in [
            ("outage", ClusterMode::GateOn, true),
            ("outage", ClusterMode::GateOff, false),
            ("outage", ClusterMode::Embedded, true),
            ("other", ClusterMode::GateOff, true),
        ] {
            assert_eq!(EveryChange::has(ALL, name, mode), runs, "{name} {mode}");
        }
    }

    #[test]
    fn a_list_that_leaves_nothing_out_or_names_nothing_is_refused() {
        let outage = |modes: &[ClusterMode]| -> Vec<(&str, ClusterMode)> {
            modes.iter().map(|mode| ("outage", *mode)).collect()
        };
        let both = outage(&[
            ClusterMode::GateOn,
            ClusterMode::GateOff,
            ClusterMode::Embedded,
        ]);
        EveryChange::check(ALL, &both).unwrap();
        let nowhere = &[EveryChange {
            name: "outage",
            modes: &[],
        }];
        EveryChange::check(nowhere, &both).unwrap();
        EveryChange::check(nowhere, &outage(&[ClusterMode::GateOn])).unwrap_err();
        for own in [
            outage(&[ClusterMode::Embedded]),
            outage(&[ClusterMode::GateOn, ClusterMode::Embedded]),
            outage(&[ClusterMode::GateOff, ClusterMode::Custom]),
            Vec::new(),
        ] {
            EveryChange::check(ALL, &own).unwrap_err();
        }
    }
}
