//! The pace at which a process acquires parts without an elector, so that several share them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use elector_protocol::Instant;

/// The pace of the acquisitions of one process. Where many parts are free at once, as at the first start of a group, it
/// takes them one after the other, in an order of its own, and leaves the rest to the others, which begin elsewhere.
#[derive(Debug)]
pub(crate) struct AcquisitionPace {
    /// The number of all parts.
    parts: u32,
    /// The time for which the others wait for a part that has become free.
    lasts: Duration,
    /// The places of the parts that have become free lately, and when they did.
    free: Mutex<BTreeMap<u32, Instant>>,
}

/// The time from one acquisition to the next: some requests long, so that the others have seen the one before.
const STEP: Duration = Duration::from_millis(250);

// === impl AcquisitionPace ===

impl AcquisitionPace {
    /// For a process that takes parts which have been free for `fallback`.
    pub(crate) fn new(parts: u32, fallback: Duration) -> Self {
        Self {
            parts,
            lasts: fallback.saturating_add(STEP.saturating_mul(parts + 1)),
            free: Mutex::default(),
        }
    }

    /// The part at that place of the order of this process has become free.
    pub(crate) fn note_free(&self, place: u32, now: Instant) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.insert(place, now);
    }

    /// The time for which that part is to be left alone, besides what its lease demands: 250 ms for each part before it
    /// that this process is about to acquire, or has just acquired, and a part of 250 ms by its place, so that of several
    /// processes the one comes first that has it first.
    pub(crate) fn delay(&self, place: u32, now: Instant) -> Duration {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.retain(|_, since| now < since.after(self.lasts));
        let before = u32::try_from(free.range(..place).count()).unwrap_or(u32::MAX);
        STEP * before + STEP * place / self.parts.max(1)
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
        let pace = AcquisitionPace::new(10, millis(5_000));
        let delays = |now| [0, 4, 9].map(|place| pace.delay(place, at(now)).as_millis());
        assert_eq!(delays(0), [0, 100, 225], "by their places alone");
        // In whatever order they become free.
        for place in [9, 4, 0] {
            pace.note_free(place, at(1));
        }
        assert_eq!(delays(1), [0, 350, 725]);
        pace.note_free(0, at(1_000));
        let over = 1 + 5_000 + 11 * 250;
        assert_eq!(delays(over - 1), [0, 350, 725]);
        let expected = [0, 350, 475];
        assert_eq!(delays(over), expected, "one of them was free again later");
        assert_eq!(delays(60_000), [0, 100, 225]);
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
