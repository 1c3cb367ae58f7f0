//! A number that no other process has.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

/// A random number, from the operating system's randomness that also keys hash maps: the seed of a process that was
/// given none.
pub fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same() {
        assert_ne!(random_seed(), random_seed());
    }
}
