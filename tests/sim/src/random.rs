//! Randomness that is the same everywhere: splitmix64, one stream for each thing that draws.

use std::time::Duration;

/// A stream of random numbers. One seed, one stream, on every machine and in every release.
#[derive(Clone, Debug)]
pub struct Random(u64);

// === impl Random ===

impl Random {
    /// The stream of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Another stream, which what is drawn from this one later does not change.
    #[must_use]
    pub fn stream(seed: u64, label: u64) -> Self {
        let mut random = Self(seed ^ label.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let state = random.bits();
        Self(state)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = high.saturating_sub(low).saturating_add(1);
        low + self.bits() % span
    }

    /// A time from `low` to `high` milliseconds.
    pub fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }

    /// True in `chance` of a hundred cases.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.bits() % 100 < chance
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.index(items.len())]
    }

    /// The first in `chance` of a hundred cases, else the other.
    pub fn either<T>(&mut self, chance: u64, first: T, other: T) -> T {
        if self.percent(chance) { first } else { other }
    }

    /// An index below `count`, zero where there is none.
    pub fn index(&mut self, count: usize) -> usize {
        let count = u64::try_from(count).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.bits() % count).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_fixed_for_ever_and_apart() {
        // A change of these would change what every seed means.
        assert_eq!(Random::new(1).bits(), 0x910a_2dec_8902_5cc1);
        let (mut one, mut other) = (Random::stream(1, 1), Random::stream(1, 2));
        assert_ne!(one.bits(), other.bits());
        let mut random = Random::new(7);
        let drawn: Vec<u64> = (0..200).map(|_| random.between(3, 5)).collect();
        assert_eq!(
            drawn.iter().copied().min().zip(drawn.iter().copied().max()),
            Some((3, 5))
        );
    }
}
