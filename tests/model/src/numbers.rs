//! Numbers grow for ever, what they mean does not: equal meaning must be an equal state.
//!
//! Every process's clock is shifted so that it reads [`NOW`]; ages beyond the longest wait are all alike. Versions,
//! terms and the wire times of candidates matter by their order, the wire times of a Lease by their equality. What is
//! in the store is numbered first. What one process remembers, has sent or is yet to learn is numbered within the
//! gaps between those, for each process by itself: whether two processes remember the same old thing is of no
//! consequence, since neither can ever tell. A number that is sent to the store is one that no other process uses.
//!
//! One term has a meaning of its own: zero, that of a record without leaseTransitions. Where a stranger may write such
//! a record, zero stays zero and the terms after it count from there. Otherwise an old record of term zero would never
//! equal a new one.

use std::time::Duration;

use elector_protocol::{Instant, Moment, Renumber, Renumbering, ResourceVersion, Term, Timestamp};

use super::clocks::Time;

/// The reading of every clock in every state, save the monotonic one of a process.
pub(super) const NOW: Instant = Instant::from_epoch(Duration::from_secs(1000));
/// The same by both clocks of a process. They read so far apart that an instant tells which of them it is of.
pub(super) const MOMENT: Moment = Moment {
    holder: NOW,
    monotonic: Instant::from_epoch(Duration::from_secs(500)),
};
/// Later than every instant of a monotonic clock, and earlier than those of a holder's.
const APART: Instant = Instant::from_epoch(Duration::from_secs(750));
/// Longer ago than any wait.
pub(super) const LONG_AGO: Instant = Instant::from_epoch(Duration::ZERO);
/// Wire times and versions of one object stay below those of the next.
pub(super) const BUCKET: i64 = 1_000_000_000;
/// Later than every wire time of the same bucket.
pub(super) const FRESH: i64 = BUCKET / 2;
/// Between two shared numbers.
const STEP: i64 = 1000;
/// Leaves room for the next few numbers above a shared one.
const ROOM: i64 = 100;

/// The numbers of some part of a state.
#[derive(Default)]
pub(super) struct Numbers {
    lease_times: Vec<i64>,
    candidate_times: Vec<i64>,
    versions: Vec<i64>,
    terms: Vec<i64>,
    /// True if term zero may come again.
    zero_recurs: bool,
}

/// The growth of a process's ages, and the limits from which they are alike.
#[derive(Clone, Copy, Default)]
pub(super) struct Aging {
    /// The time that passes.
    pub(super) by: Duration,
    /// The time that passes by the monotonic clock, where there are two.
    pub(super) awake: Option<Duration>,
    /// Ages of this and more are alike.
    pub(super) limit: Duration,
    /// The same for pings and acks.
    pub(super) sightings: Duration,
    /// The same for how long a candidate is passed over.
    pub(super) passed_over: Duration,
    /// The same for the restart of a wait.
    pub(super) restart: Duration,
    /// The same for a confirmation.
    pub(super) confirmation: Duration,
    /// The same for how long a preference has stood.
    pub(super) preference: Duration,
    /// The same for hand-overs that failed.
    pub(super) failed: Duration,
    /// The same for pre-emptions.
    pub(super) preemptions: Duration,
    /// Durations up to this one are alike.
    pub(super) usual: Duration,
    /// Withdrawals and failures of this number and more are alike. A failure is always counted.
    pub(super) counts: u8,
}

/// Gives numbers to the shared parts, or to a process's own memory.
pub(super) struct Assign<'a> {
    shared: &'a Numbers,
    private: &'a Numbers,
    aging: Aging,
    /// The first wire time of a Lease for this process alone.
    times: i64,
}

// === impl Numbers ===

impl Numbers {
    /// No number yet; `zero_recurs`: whether term zero may come again.
    pub(super) fn new(zero_recurs: bool) -> Self {
        Self {
            zero_recurs,
            ..Self::default()
        }
    }

    /// Forgets every number.
    pub(super) fn clear(&mut self) {
        self.lease_times.clear();
        self.candidate_times.clear();
        self.versions.clear();
        self.terms.clear();
        if self.zero_recurs {
            self.terms.push(0);
        }
    }

    /// Sorts what is compared by order.
    pub(super) fn sort(&mut self) {
        for numbers in [
            &mut self.candidate_times,
            &mut self.versions,
            &mut self.terms,
        ] {
            numbers.sort_unstable();
            numbers.dedup();
        }
    }

    /// Drops what is shared.
    pub(super) fn retain_private(&mut self, shared: &Self) {
        self.lease_times
            .retain(|time| !shared.lease_times.contains(time));
        self.candidate_times
            .retain(|time| shared.candidate_times.binary_search(time).is_err());
        self.versions
            .retain(|version| shared.versions.binary_search(version).is_err());
        self.terms
            .retain(|term| shared.terms.binary_search(term).is_err());
    }
}

impl Renumbering for Numbers {
    fn lease_time(&mut self, time: &mut Timestamp) {
        let time = time.as_micros();
        if !self.lease_times.contains(&time) {
            self.lease_times.push(time);
        }
    }

    fn candidate_time(&mut self, time: &mut Timestamp) {
        self.candidate_times.push(time.as_micros());
    }

    fn version(&mut self, version: &mut ResourceVersion) {
        self.versions.push(signed(version.0));
    }

    fn term(&mut self, term: &mut Term) {
        self.terms.push(i64::from(term.0));
    }
}

// === impl Aging ===

impl Aging {
    /// That of a candidate whose clocks run at this rate, without a limit.
    pub(super) fn of_candidate(time: Time, index: usize, rate: u64) -> Self {
        let (by, awake) = time.of_candidate(index, rate);
        Self {
            by: Duration::from_secs(by),
            awake: Some(Duration::from_secs(awake)),
            ..Self::default()
        }
    }

    /// Moves a reading so that its clock reads what it reads in every state; returns its age.
    pub(super) fn age(self, instant: &mut Instant, limit: Duration) -> Duration {
        let (now, by) = match self.awake {
            Some(awake) if *instant < APART => (MOMENT.monotonic, awake),
            _ => (NOW, self.by),
        };
        // Only a pause lies ahead. The scheduler pauses any process at will, so a pause is over at once.
        let age = if *instant > now {
            limit
        } else {
            now.since(*instant).saturating_add(by).min(limit)
        };
        *instant = before(now, age);
        age
    }
}

// === impl Assign ===

impl<'a> Assign<'a> {
    /// Numbers in the place of `shared` ones and of the `private` ones of this process; both must be sorted.
    pub(super) fn new(
        shared: &'a Numbers,
        private: &'a Numbers,
        process: usize,
        aging: Aging,
    ) -> Self {
        Self {
            shared,
            private,
            aging,
            times: STEP * (2 + index_of(process)),
        }
    }

    /// Renumbers one part.
    pub(super) fn apply(&mut self, part: &mut impl Renumber) {
        part.renumber(self);
    }
}

impl Renumbering for Assign<'_> {
    fn instant(&mut self, instant: &mut Instant) {
        self.aging.age(instant, self.aging.limit);
    }

    fn sighting(&mut self, instant: &mut Instant) {
        self.aging.age(instant, self.aging.sightings);
    }

    fn preference(&mut self, instant: &mut Instant) -> bool {
        self.aging.age(instant, self.aging.preference) < self.aging.preference
    }

    fn withdrawals(&mut self, withdrawals: &mut u8) {
        *withdrawals = self.aging.counts.min(*withdrawals);
    }

    fn heard(&mut self, instant: &mut Instant) {
        *instant = NOW;
    }

    fn passed_over(&mut self, instant: &mut Instant) {
        self.aging.age(instant, self.aging.passed_over);
    }

    fn tells_hold_backs(&self) -> bool {
        !self.aging.preemptions.is_zero()
    }

    fn failed_hand_over(&mut self, instant: &mut Instant) -> bool {
        self.aging.age(instant, self.aging.failed) < self.aging.failed
    }

    fn preemption(&mut self, instant: &mut Instant) -> bool {
        self.aging.age(instant, self.aging.preemptions) < self.aging.preemptions
    }

    fn restart(&mut self, instant: &mut Instant) {
        self.aging.age(instant, self.aging.restart);
    }

    fn confirmation(&mut self, instant: &mut Instant) -> bool {
        self.aging.age(instant, self.aging.limit) < self.aging.confirmation
    }

    fn longest(&mut self, duration: &mut Duration) {
        if *duration <= self.aging.usual {
            *duration = Duration::ZERO;
        }
    }

    // That one was lost decides what a conflict without news means. The pause after ten of them is one more way to learn
    // of it late, which is explored anyway.
    fn lost_races(&mut self, lost_races: &mut u8) {
        *lost_races = u8::from(*lost_races > 0);
    }

    fn failures(&mut self, failures: &mut u8) {
        *failures = self.aging.counts.max(1).min(*failures);
    }

    fn lease_time(&mut self, time: &mut Timestamp) {
        let wanted = time.as_micros();
        let place = |times: &[i64]| times.iter().position(|time| *time == wanted).map(index_of);
        let new = match place(&self.shared.lease_times) {
            Some(index) => index,
            None => self.times + place(&self.private.lease_times).unwrap_or(STEP - 1),
        };
        *time = timestamp(new);
    }

    fn candidate_time(&mut self, time: &mut Timestamp) {
        *time = timestamp(ordered(
            time.as_micros(),
            &self.shared.candidate_times,
            &self.private.candidate_times,
        ));
    }

    fn version(&mut self, version: &mut ResourceVersion) {
        let new = ordered(
            signed(version.0),
            &self.shared.versions,
            &self.private.versions,
        );
        *version = ResourceVersion(new.unsigned_abs());
    }

    fn term(&mut self, term: &mut Term) {
        let mut new = counted(i64::from(term.0), &self.shared.terms, &self.private.terms);
        if self.shared.zero_recurs {
            // The lowest shared term is zero, and stays it.
            new -= STEP;
        }
        *term = Term(i32::try_from(new).unwrap_or(i32::MAX));
    }
}

/// An instant that is earlier by a duration.
pub(super) fn before(instant: Instant, by: Duration) -> Instant {
    Instant::from_epoch(instant.since_epoch().saturating_sub(by))
}

/// A wire time. All of ours are within a few thousand seconds of the epoch.
pub(super) fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros).unwrap_or(Timestamp::MAX)
}

/// The new number for `number`: its rank among the shared ones of its bucket, or a place in the gap below one.
fn ordered(number: i64, shared: &[i64], private: &[i64]) -> i64 {
    let floor = number.div_euclid(BUCKET) * BUCKET;
    let first = shared.partition_point(|other| *other < floor);
    let place = shared.partition_point(|other| *other < number);
    let rank = index_of(place - first);
    if shared.get(place) == Some(&number) {
        return floor + (rank + 1) * STEP;
    }
    let below = if place > first {
        shared[place - 1]
    } else {
        floor - 1
    };
    let from = private.partition_point(|other| *other <= below);
    let within = private.partition_point(|other| *other < number) - from;
    floor + rank * STEP + ROOM + index_of(within)
}

/// The new number for a term. A grant must still be seen to be the next term, so neighbours stay neighbours.
fn counted(number: i64, shared: &[i64], private: &[i64]) -> i64 {
    let place = shared.partition_point(|other| *other < number);
    let mut new = STEP;
    for pair in shared.windows(2).take(place) {
        let gap = pair[1] - pair[0];
        new += if gap <= 2 { gap } else { STEP };
    }
    match shared.get(place) {
        Some(found) if *found == number => new,
        Some(above) if *above == number + 1 => new - 1,
        above => {
            let floor = if above.is_some() { new - STEP } else { new };
            let below = place.checked_sub(1).map_or(i64::MIN, |below| shared[below]);
            if below == number - 1 {
                return floor + 1;
            }
            let from = private.partition_point(|other| *other <= below);
            let within = private.partition_point(|other| *other < number) - from;
            floor + ROOM + index_of(within)
        }
    }
}

fn index_of(index: usize) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}

fn signed(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_increasing(numbers: &[i64]) -> bool {
        numbers.is_sorted_by(|left, right| left < right)
    }

    #[test]
    fn order_is_kept_among_shared_and_private_numbers() {
        let (shared, private) = ([10, 20, 30], [5, 7, 15, 25, 27, 35]);
        let mut all: Vec<i64> = shared.into_iter().chain(private).collect();
        all.sort_unstable();
        let new: Vec<i64> = all
            .iter()
            .map(|number| ordered(*number, &shared, &private))
            .collect();
        assert!(is_increasing(&new), "{new:?}");
    }

    #[test]
    fn equal_meaning_is_an_equal_number_whatever_the_distance() {
        let near = [6, 10, 12].map(|number| ordered(number, &[10], &[6, 12]));
        let far = [1, 50, 99].map(|number| ordered(number, &[50], &[1, 99]));
        assert_eq!(near, far);
        // The memory of another process is of no consequence.
        let other = [1, 50, 99].map(|number| ordered(number, &[50], &[1, 99, 120]));
        assert_eq!(other, far);
    }

    #[test]
    fn buckets_are_numbered_by_themselves() {
        let shared = [3, BUCKET + 8, BUCKET + 9];
        assert_eq!(ordered(3, &shared, &[]), STEP);
        assert_eq!(ordered(BUCKET + 8, &shared, &[]), BUCKET + STEP);
        assert_eq!(ordered(BUCKET + 9, &shared, &[]), BUCKET + 2 * STEP);
        let below = ordered(BUCKET + 1, &shared, &[BUCKET + 1]);
        assert_eq!(below, BUCKET + ROOM);
    }

    #[test]
    fn the_next_term_stays_the_next_term() {
        let (shared, private) = ([4, 9, 10, 12], [3, 5, 11, 13, 40]);
        let new = |number| counted(number, &shared, &private);
        for (term, next) in [(3, 4), (4, 5), (9, 10), (10, 11), (11, 12), (12, 13)] {
            assert_eq!(new(term) + 1, new(next), "{term} and {next}");
        }
        let mut all: Vec<i64> = shared.into_iter().chain(private).collect();
        all.sort_unstable();
        let new: Vec<i64> = all.into_iter().map(new).collect();
        assert!(is_increasing(&new), "{new:?}");
        assert!(new[new.len() - 1] > new[new.len() - 2] + 1);
    }

    #[test]
    fn ages_grow_up_to_their_limit_and_a_pause_is_over_at_once() {
        let aging = Aging {
            by: Duration::from_secs(2),
            limit: Duration::from_secs(5),
            ..Aging::default()
        };
        let mut instant = NOW;
        let mut ages = Vec::new();
        for _ in 0..4 {
            aging.age(&mut instant, aging.limit);
            ages.push(NOW.since(instant).as_secs());
        }
        assert_eq!(ages, [2, 4, 5, 5]);
        let mut ahead = NOW.after(Duration::from_secs(1));
        aging.age(&mut ahead, aging.limit);
        assert_eq!(NOW.since(ahead), aging.limit);
    }
}
