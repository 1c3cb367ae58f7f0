//! The pace at which a process acquires parts without an elector, so that several share them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use elector_protocol::Instant;

/// The pace of the acquisitions of one process. Where many parts are free at once, as at the first start of a group, it
/// takes them one after the other, in an order of its own, and leaves the rest to the others, which begin elsewhere.
#[derive(Debug)]
pub(crate) struct AcquisitionPace {
    /// The number of all parts.
    parts: u32,
    /// The part that this process takes first.
    first: u32,
    /// The time for which the others wait for a part that has become free.
    lasts: Duration,
    /// The places of the parts that have become free lately, and when they did.
    free: Mutex<BTreeMap<u32, Instant>>,
}

/// The pace at which one part is acquired.
#[derive(Clone, Debug)]
pub(crate) struct PartPace {
    process: Arc<AcquisitionPace>,
    /// The place of the part in the order in which this process acquires them.
    place: u32,
    /// True if the part was free when it was looked at last.
    was_free: bool,
}

/// The time from one acquisition to the next: some requests long, so that the others have seen the one before.
const STEP: Duration = Duration::from_millis(250);

// === impl AcquisitionPace ===

impl AcquisitionPace {
    /// For the process of that name, which takes parts that have been free for `fallback`.
    pub(crate) fn new(member: &str, parts: u32, fallback: Duration) -> Self {
        Self {
            parts,
            first: first_part(member, parts),
            lasts: fallback.saturating_add(STEP.saturating_mul(parts + 1)),
            free: Mutex::default(),
        }
    }

    /// The pace of the part with that number, from 0.
    pub(crate) fn of_part(self: &Arc<Self>, number: u32) -> PartPace {
        PartPace {
            place: (number + self.parts - self.first) % self.parts,
            process: Arc::clone(self),
            was_free: false,
        }
    }
}

// === impl PartPace ===

impl PartPace {
    /// The time for which this part is to be left alone, besides what its lease demands: 250 ms for each part before it
    /// that this process is about to acquire, or has just acquired, and a part of 250 ms by its place, so that of several
    /// processes the one comes first that has it first.
    pub(crate) fn delay(&mut self, is_free: bool, now: Instant) -> Duration {
        let was_free = std::mem::replace(&mut self.was_free, is_free);
        if !is_free {
            return Duration::ZERO;
        }
        let AcquisitionPace {
            parts, lasts, free, ..
        } = &*self.process;
        let mut free = free.lock().unwrap_or_else(PoisonError::into_inner);
        if !was_free {
            free.insert(self.place, now);
        }
        free.retain(|_, since| now < since.after(*lasts));
        let before = u32::try_from(free.range(..self.place).count()).unwrap_or(u32::MAX);
        STEP * before + STEP * self.place / *parts
    }
}

/// The part at which the process of that name begins, of so many: by the hash of its name, FNV-1a over 64 bits.
pub(crate) fn first_part(member: &str, parts: u32) -> u32 {
    let hash = member
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let first = hash % u64::from(parts.max(1));
    u32::try_from(first).expect("a remainder is less than what it is one of")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_are_free_at_once_are_taken_in_turn_and_a_single_one_nearly_at_once() {
        let millis = Duration::from_millis;
        let at = |time| Instant::from_epoch(Duration::from_secs(100) + millis(time));
        let pace = Arc::new(AcquisitionPace::new("", 10, millis(5_000)));
        assert_eq!(pace.first, 7);
        // Those at the places 0, 4 and 9.
        let mut parts = [7, 1, 6].map(|number| pace.of_part(number));
        let mut delays = |free: [bool; 3], now| {
            // In whatever order they become free.
            for (part, is_free) in parts.iter_mut().zip(free).rev() {
                part.delay(is_free, at(now));
            }
            let delays = parts.iter_mut().zip(free);
            delays
                .map(|(part, is_free)| part.delay(is_free, at(now)).as_millis())
                .collect::<Vec<_>>()
        };
        assert_eq!(delays([false, false, true], 0), [0, 0, 225], "by its place");
        assert_eq!(delays([true, true, true], 1), [0, 350, 725]);
        assert_eq!(delays([false, true, true], 999), [0, 350, 725], "taken");
        assert_eq!(delays([true, true, true], 1_000), [0, 350, 725]);
        let over = 1 + 5_000 + 11 * 250;
        assert_eq!(delays([true, true, true], over - 1), [0, 350, 725]);
        let since = "one of them has become free later, and the others are no news";
        assert_eq!(delays([true, true, true], over), [0, 350, 475], "{since}");
        assert_eq!(delays([true, true, true], 60_000), [0, 100, 225]);
    }

    #[test]
    fn processes_begin_at_parts_of_their_own() {
        let firsts = (0..300).map(|n| first_part(&format!("web-{n:016x}"), 16));
        let mut counts = [0_u32; 16];
        firsts.for_each(|first| counts[first as usize] += 1);
        let holds = counts.iter().all(|count| (4..50).contains(count));
        assert!(holds, "{counts:?}");
        assert_eq!(first_part("", 16), 5, "the offset basis of FNV-1a");
        assert_eq!(first_part("any", 1), 0);
    }
}
