//! Requests under way, in batches: those of one decision each. The queue waits for the newest batch of a lease. Beside
//! it those come to their end that were *overtaken*: their write has lost its race by what the watch has brought, before
//! there was an answer to it (R2).

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use elector_protocol::{
    LeaseKey, LeaseRecord, LeaseSnapshot, MOST_WRITES_UNDER_WAY, ResourceVersion,
};

/// The batches under way.
#[derive(Debug)]
pub(crate) struct RequestBatches {
    batches: BTreeMap<u64, BatchProgress>,
    /// The newest batch of each lease, unless that was overtaken.
    newest: BTreeMap<LeaseKey, u64>,
    /// The number of those begun so far.
    begun: u64,
    /// The most leases with a newest batch, and the most batches that are overtaken.
    limit: NonZeroUsize,
}

/// One batch, as its responses name it.
#[derive(Clone, Debug)]
pub(crate) struct RequestBatch {
    pub(crate) lease: LeaseKey,
    number: u64,
}

/// A batch has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchEnd {
    /// One of its requests failed.
    pub(crate) failed: bool,
    pub(crate) overtaken: bool,
}

/// The write of a batch: the revision that it replaces, and the record that it puts there.
#[derive(Clone, Debug)]
pub(crate) struct RacingWrite {
    pub(crate) version: ResourceVersion,
    pub(crate) record: LeaseRecord,
}

#[derive(Debug)]
struct BatchProgress {
    lease: LeaseKey,
    /// The number of requests besides the write without a response yet.
    others: usize,
    failed: bool,
    race: Race,
}

/// The race of a write against those of others.
#[derive(Debug)]
enum Race {
    Open(RacingWrite),
    /// The watch has brought another revision in its place.
    Lost,
    /// The watch or a response has shown how it ended, or there is no write.
    Over,
}

// === impl RequestBatches ===

impl RequestBatches {
    /// None, and room for those of `limit` leases.
    pub(crate) const fn new(limit: NonZeroUsize) -> Self {
        Self {
            batches: BTreeMap::new(),
            newest: BTreeMap::new(),
            begun: 0,
            limit,
        }
    }

    /// No batch is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.batches.is_empty()
    }

    /// No other lease may have one now.
    pub(crate) fn is_full(&self) -> bool {
        self.newest.len() >= self.limit.get()
    }

    /// Begins the newest batch of a lease: a write, where there is one, and `others` more.
    pub(crate) fn begin(
        &mut self,
        lease: LeaseKey,
        write: Option<RacingWrite>,
        others: usize,
    ) -> RequestBatch {
        self.begun += 1;
        let number = self.begun;
        self.newest.insert(lease.clone(), number);
        let progress = BatchProgress {
            lease: lease.clone(),
            others,
            failed: false,
            race: write.map_or(Race::Over, Race::Open),
        };
        self.batches.insert(number, progress);
        RequestBatch { lease, number }
    }

    /// The watch has brought this revision of a lease. The first one after the one that a write replaces is its own, or came
    /// in its place. A list may hide that it is its own; then the write is taken for lost, and the newest revision is judged
    /// as it is in any case.
    pub(crate) fn note_revision(&mut self, lease: &LeaseKey, seen: &LeaseSnapshot) {
        let newest = self.newest.get(lease);
        if let Some(batch) = newest.and_then(|number| self.batches.get_mut(number))
            && let Race::Open(write) = &batch.race
            && seen.version > write.version
        {
            batch.race = match seen.record == write.record {
                true => Race::Over,
                false => Race::Lost,
            };
        }
    }

    /// Overtakes the newest batch of a lease whose write has lost, and names that lease: another decision may follow
    /// beside. Nothing else of the batch may be under way, so that nothing is sent twice.
    pub(crate) fn overtake(&mut self) -> Option<LeaseKey> {
        let has_lost =
            |batch: &BatchProgress| batch.others == 0 && matches!(batch.race, Race::Lost);
        // Most of the time none has, and then no batch is looked up.
        if !self.batches.values().any(has_lost)
            || self.batches.len() - self.newest.len() >= self.limit.get()
        {
            return None;
        }
        let has_room = |lease: &LeaseKey| {
            let same = self.batches.values().filter(|batch| batch.lease == *lease);
            same.count() < MOST_WRITES_UNDER_WAY
        };
        let mut newest = self.newest.iter();
        let (lease, _) = newest.find(|(lease, number)| {
            self.batches.get(number).is_some_and(has_lost) && has_room(lease)
        })?;
        let lease = lease.clone();
        self.newest.remove(&lease);
        Some(lease)
    }

    /// A request has its response: the write, or another. Says whether its batch was overtaken.
    pub(crate) fn note_response(&mut self, batch: &RequestBatch, is_write: bool) -> bool {
        let overtaken = !self.is_newest(batch);
        if let Some(batch) = self.batches.get_mut(&batch.number) {
            if is_write {
                batch.race = Race::Over;
            } else {
                batch.others = batch.others.saturating_sub(1);
            }
        }
        overtaken
    }

    /// A request has failed.
    pub(crate) fn note_failure(&mut self, batch: &RequestBatch) {
        if let Some(batch) = self.batches.get_mut(&batch.number) {
            batch.failed = true;
        }
    }

    /// All requests of a batch have ended.
    pub(crate) fn finish(&mut self, batch: &RequestBatch) -> BatchEnd {
        let overtaken = !self.is_newest(batch);
        if !overtaken {
            self.newest.remove(&batch.lease);
        }
        let batch = self.batches.remove(&batch.number);
        BatchEnd {
            failed: batch.is_some_and(|batch| batch.failed),
            overtaken,
        }
    }

    /// Gives up all of them, and names the leases whose newest batch was under way.
    pub(crate) fn give_up(&mut self) -> impl Iterator<Item = LeaseKey> + use<> {
        self.batches.clear();
        std::mem::take(&mut self.newest).into_keys()
    }

    fn is_newest(&self, batch: &RequestBatch) -> bool {
        self.newest.get(&batch.lease) == Some(&batch.number)
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::{OperatorOverrides, Term, Uid};

    use super::*;

    fn key() -> LeaseKey {
        LeaseKey::new("ns", "l")
    }

    fn batches() -> RequestBatches {
        RequestBatches::new(const { NonZeroUsize::new(16).unwrap() })
    }

    fn record(term: i32) -> LeaseRecord {
        LeaseRecord {
            term: Term(term),
            ..LeaseRecord::born(None)
        }
    }

    /// A write to that revision, which begins the ninth term.
    fn write(version: u64) -> Option<RacingWrite> {
        Some(RacingWrite {
            version: ResourceVersion(version),
            record: record(9),
        })
    }

    /// The watch brings a revision of that term.
    fn see(batches: &mut RequestBatches, version: u64, term: i32) {
        let seen = LeaseSnapshot {
            uid: Uid::new("uid"),
            version: ResourceVersion(version),
            record: record(term),
            overrides: OperatorOverrides::default(),
        };
        batches.note_revision(&key(), &seen);
    }

    #[test]
    fn a_write_has_lost_when_the_watch_brings_another_revision_in_its_place() {
        let mut batches = batches();
        let lost = batches.begin(key(), write(7), 0);
        see(&mut batches, 7, 8);
        assert_eq!(batches.overtake(), None, "its base");
        see(&mut batches, 8, 8);
        assert_eq!(batches.overtake(), Some(key()));
        assert_eq!(batches.overtake(), None, "once");
        assert!(!batches.is_idle() && !batches.is_full());
        let newer = batches.begin(key(), write(8), 0);
        assert!(batches.note_response(&lost, true));
        assert!(!batches.note_response(&newer, true));
        batches.note_failure(&lost);
        let end = |failed, overtaken| BatchEnd { failed, overtaken };
        assert_eq!(batches.finish(&lost), end(true, true));
        assert_eq!(batches.finish(&newer), end(false, false));
        assert!(batches.is_idle());
    }

    #[test]
    fn a_write_whose_own_revision_or_response_has_come_has_not_lost() {
        let mut batches = batches();
        let applied = batches.begin(key(), write(7), 0);
        for (version, term) in [(8, 9), (9, 9), (10, 10)] {
            see(&mut batches, version, term);
            assert_eq!(batches.overtake(), None, "{version}");
        }
        batches.finish(&applied);
        let answered = batches.begin(key(), write(10), 0);
        see(&mut batches, 11, 10);
        batches.note_response(&answered, true);
        assert_eq!(batches.overtake(), None);
        assert!(!batches.finish(&answered).overtaken);
    }

    /// A ping would be written twice.
    #[test]
    fn a_batch_is_overtaken_once_nothing_but_its_write_is_under_way() {
        let mut batches = batches();
        let batch = batches.begin(key(), write(7), 1);
        see(&mut batches, 8, 8);
        assert_eq!(batches.overtake(), None);
        batches.note_response(&batch, false);
        assert_eq!(batches.overtake(), Some(key()));
    }

    /// Loses this number of races of a lease, and says how many batches are overtaken by then.
    fn lose(batches: &mut RequestBatches, lease: &LeaseKey, races: usize) -> usize {
        let lose = |_: &usize| {
            if !batches.newest.contains_key(lease) {
                batches.begin(lease.clone(), write(7), 0);
            }
            let number = batches.newest[lease];
            batches.batches.get_mut(&number).unwrap().race = Race::Lost;
            batches.overtake().is_some()
        };
        (0..races).filter(lose).count()
    }

    #[test]
    fn four_batches_of_a_lease_are_under_way_at_most_and_of_all_so_many_as_leases_may_be() {
        let mut batches = batches();
        let first = batches.begin(key(), write(7), 0);
        assert_eq!(lose(&mut batches, &key(), 10), 3);
        batches.finish(&first);
        assert_eq!(batches.overtake(), Some(key()));
        for lease in 0..30 {
            let lease = LeaseKey::new("other", format!("l-{lease}"));
            lose(&mut batches, &lease, 2);
        }
        let overtaken = batches.batches.len() - batches.newest.len();
        assert_eq!((overtaken, batches.is_full()), (16, true));
    }

    #[test]
    fn overtaken_batches_are_given_up_with_the_others() {
        let mut batches = batches();
        assert_eq!(lose(&mut batches, &key(), 2), 2);
        batches.begin(key(), None, 1);
        assert_eq!(batches.give_up().collect::<Vec<_>>(), [key()]);
        assert!(batches.is_idle());
    }
}
