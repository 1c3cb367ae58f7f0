//! The mutants of a crate, and those of them that a seed chooses.

use std::collections::BTreeSet;
use std::hash::{Hash as _, Hasher as _};

use fnv::FnvHasher;
use serde::Deserialize;

/// A mutant, as cargo-mutants lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct ListedMutant {
    /// `FILE:LINE:COLUMN: CHANGE`.
    pub(super) name: String,
    /// The package that it is in.
    pub(super) package: String,
    /// The rules that the mutated code follows, by its comments.
    #[serde(skip)]
    pub(super) rules: BTreeSet<u8>,
}

// === impl ListedMutant ===

impl ListedMutant {
    /// The change without its place, which moves whenever a line is added above: the function, and what becomes of it.
    pub(super) fn change(name: &str) -> &str {
        name.split_once(": ").map_or(name, |(_, change)| change)
    }
}

/// The sample of a seed. One that is larger has all those of a smaller one, and a mutant that is new displaces one at most.
pub(super) fn sample(all: &[ListedMutant], seed: u64, size: usize) -> Vec<ListedMutant> {
    let mut ranked: Vec<(u64, &ListedMutant)> = all
        .iter()
        .map(|mutant| {
            let mut hash = FnvHasher::default();
            seed.to_le_bytes()[..].hash(&mut hash);
            mutant.name.as_bytes().hash(&mut hash);
            (hash.finish(), mutant)
        })
        .collect();
    ranked.sort_unstable_by_key(|(rank, _)| *rank);
    ranked.truncate(size);
    ranked
        .into_iter()
        .map(|(_, mutant)| mutant.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_chooses_the_same_and_another_one_others() {
        let all: Vec<ListedMutant> = (0..50)
            .map(|line| ListedMutant {
                name: format!("src/a.rs:{line}:1: replace f with ()"),
                package: "a".to_owned(),
                ..ListedMutant::default()
            })
            .collect();
        let chosen = sample(&all, 1, 10);
        assert_eq!(chosen, sample(&all, 1, 12)[..10]);
        assert_ne!(chosen, sample(&all, 2, 10));
        assert_eq!(sample(&all, 1, 100).len(), 50);
        assert_eq!(ListedMutant::change(&all[3].name), "replace f with ()");
    }
}
