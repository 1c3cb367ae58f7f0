//! Writes that others came before (R2): what is judged, and when, before the next one is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use elector_protocol::{Instant, LeaseKey, LeaseRecord, ResourceVersion, RetryBackoff};

/// The newest write of each lease that was not applied yet.
#[derive(Debug, Default)]
pub(crate) struct WriteRaces(BTreeMap<LeaseKey, WriteRace>);

/// A write, and the races that it and its equals before it lost.
#[derive(Debug)]
struct WriteRace {
    /// The revision that was judged.
    version: ResourceVersion,
    /// True if its record named a holder.
    held: bool,
    /// The wanted record, without its times: those differ each time.
    wanted: LeaseRecord,
    /// When another write turned out to have come first.
    lost: Option<Instant>,
    backoff: RetryBackoff,
}

/// A lease's next need.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RaceStep {
    /// A step.
    Judge,
    /// A read, since the watch does not bring what came before the write to this revision.
    Read(ResourceVersion),
    /// Nothing before that time, if the watch brings nothing.
    Wait(Instant),
}

/// The time for the watch to bring the revision to which a write of an unheld record lost a race. A read counts as a
/// gap, after which the stop-watch of such a record begins anew (R4).
const WATCH_SETTLES: Duration = Duration::from_secs(2);

// === impl WriteRaces ===

impl WriteRaces {
    /// A write is sent, or its object read for it. Says whether it is another attempt at one that lost a race.
    pub(crate) fn note_sent(
        &mut self,
        key: &LeaseKey,
        version: ResourceVersion,
        held: bool,
        record: &LeaseRecord,
    ) -> bool {
        let wanted = LeaseRecord {
            acquire_time: None,
            renew_time: None,
            ..record.clone()
        };
        let before = self.0.remove(key).filter(|race| race.wanted == wanted);
        let again = before.is_some();
        let race = WriteRace {
            version,
            held,
            wanted,
            lost: None,
            backoff: before.map(|race| race.backoff).unwrap_or_default(),
        };
        self.0.insert(key.clone(), race);
        again
    }

    /// Another write came first.
    pub(crate) fn lose(&mut self, now: Instant, key: &LeaseKey) {
        if let Some(race) = self.0.get_mut(key) {
            race.lost = Some(now);
            race.backoff.lose_race(now);
        }
    }

    /// The object of a write was read before it could be sent. Says whether another write to an unheld record came before
    /// it: the watch brings that revision, and a read of it would count as a gap (R4).
    pub(crate) fn lose_before_sent(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        newest: Option<ResourceVersion>,
    ) -> bool {
        let waits =
            |race: &WriteRace| race.lost.is_none() && !race.held && Some(race.version) < newest;
        let loses = self.0.get(key).is_some_and(waits);
        if loses {
            self.lose(now, key);
        }
        loses
    }

    /// Forgets the write of a lease: it was applied or failed otherwise, or is not wanted any more.
    pub(crate) fn end(&mut self, key: &LeaseKey) {
        self.0.remove(key);
    }

    /// A lease was read. Says whether its write was refused although no other came first; it is forgotten then.
    pub(crate) fn is_refused(&mut self, key: &LeaseKey, newest: Option<ResourceVersion>) -> bool {
        let lost = |race: &WriteRace| race.lost.is_some() && newest == Some(race.version);
        let refused = self.0.get(key).is_some_and(lost);
        if refused {
            self.end(key);
        }
        refused
    }

    /// The need of a lease with this newest known revision.
    pub(crate) fn next_look(
        &mut self,
        now: Instant,
        key: &LeaseKey,
        newest: Option<ResourceVersion>,
    ) -> RaceStep {
        let Some((race, lost)) = self
            .0
            .get_mut(key)
            .and_then(|race| race.lost.map(|lost| (race, lost)))
        else {
            return RaceStep::Judge;
        };
        if let Some(until) = race.backoff.pause(now) {
            return RaceStep::Wait(until);
        }
        let settled = lost.after(WATCH_SETTLES);
        match newest {
            Some(newest) if newest == race.version => {}
            _ => return RaceStep::Judge,
        }
        if race.held || settled <= now {
            RaceStep::Read(race.version)
        } else {
            RaceStep::Wait(settled)
        }
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::Timestamp;

    use super::*;

    fn key() -> LeaseKey {
        LeaseKey::new("ns", "l")
    }

    fn at(millis: u64) -> Instant {
        Instant::from_epoch(Duration::from_millis(millis))
    }

    /// A write to revision 7 that has lost its race.
    fn lost(held: bool) -> WriteRaces {
        let mut races = WriteRaces::default();
        let born = LeaseRecord::born(None);
        assert!(!races.note_sent(&key(), ResourceVersion(7), held, &born));
        races.lose(at(0), &key());
        races
    }

    #[test]
    fn a_newer_revision_is_judged_and_none_is_read_or_waited_for() {
        let newest = |version| Some(ResourceVersion(version));
        let look = |held, now, newest| lost(held).next_look(at(now), &key(), newest);
        let read = RaceStep::Read(ResourceVersion(7));
        for held in [false, true] {
            assert_eq!(look(held, 0, newest(8)), RaceStep::Judge);
            assert_eq!(look(held, 0, None), RaceStep::Judge, "it is gone");
        }
        assert_eq!(look(true, 0, newest(7)), read);
        assert_eq!(look(false, 1_999, newest(7)), RaceStep::Wait(at(2_000)));
        assert_eq!(look(false, 2_000, newest(7)), read);
    }

    #[test]
    fn attempts_at_one_write_are_one_and_each_tenth_is_followed_by_a_pause() {
        let mut races = lost(true);
        let newest = |version| Some(ResourceVersion(version));
        for version in 8..16 {
            let now = Timestamp::from_micros(i64::try_from(version).unwrap());
            let born = LeaseRecord {
                acquire_time: now,
                renew_time: now,
                ..LeaseRecord::born(None)
            };
            assert!(races.note_sent(&key(), ResourceVersion(version), true, &born));
            let expected = RaceStep::Judge;
            assert_eq!(races.next_look(at(0), &key(), newest(version)), expected);
            races.lose(at(0), &key());
            let next = races.next_look(at(0), &key(), newest(version + 1));
            assert_eq!(next, RaceStep::Judge);
        }
        races.lose(at(0), &key());
        let paused = races.next_look(at(0), &key(), newest(17));
        assert_eq!(paused, RaceStep::Wait(at(10)));
        assert_eq!(races.next_look(at(10), &key(), newest(17)), RaceStep::Judge);
        let other = LeaseRecord {
            term: elector_protocol::Term(5),
            ..LeaseRecord::born(None)
        };
        assert!(!races.note_sent(&key(), ResourceVersion(17), true, &other));
    }

    #[test]
    fn a_refusal_that_no_write_explains_is_reported_and_is_no_race() {
        let mut races = lost(true);
        assert!(!races.is_refused(&key(), Some(ResourceVersion(8))));
        assert!(races.is_refused(&key(), Some(ResourceVersion(7))));
        let next = races.next_look(at(0), &key(), Some(ResourceVersion(7)));
        assert_eq!(next, RaceStep::Judge);
    }
}
