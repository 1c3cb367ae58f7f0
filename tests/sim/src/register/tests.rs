//! Work that writes when it may not.

use elector_candidate::{Loss, StopReason, TestTerm};
use elector_protocol::{Identity, LeaseRecord};

use super::*;
use crate::history::fixture::WrittenLease;
use crate::plan::{ClockBound, RunPlan};

/// A register, and a Lease whose holder has renewed at 1 s.
struct RegisteredWork {
    register: WorkRegister,
    lease: WrittenLease,
    term: TestTerm,
    mode: PlannedMode,
}

fn held_by(name: &str) -> LeaseRecord {
    LeaseRecord {
        holder: Identity::new(name),
        duration_seconds: Some(15),
        ..LeaseRecord::default()
    }
}

// === impl RegisteredWork ===

impl RegisteredWork {
    fn new(mode: PlannedMode) -> Self {
        let mut lease = WrittenLease::new("test");
        lease.write(Duration::from_secs(1), "c0", &held_by("c0"));
        Self {
            register: WorkRegister::default(),
            lease,
            term: TestTerm::new().with_token(5),
            mode,
        }
    }

    /// The rule that a write of the holder's work breaks.
    fn writes(&mut self, millis: u64) -> Option<&'static str> {
        let mut candidate = RunPlan::draw(1, ClockBound::Within).setup.candidates[0];
        (candidate.timing, candidate.mode) = ((15, 10), self.mode);
        let work = WorkTerm {
            name: "c0".to_owned(),
            incarnation: 1,
            candidate,
            clock: SimClock::start(TRUE_RATE, 0),
            leadership: self.term.leadership(),
        };
        let now = Duration::from_millis(millis);
        let wrong = self.register.write(now, &work, &self.lease.history);
        wrong.map(|(rule, _)| rule)
    }

    fn successor_writes(&mut self) {
        let newest = (9, "c1".to_owned());
        self.register.newest.insert("test".to_owned(), newest);
    }

    fn lapses(&mut self) {
        self.term.stop(StopReason::Lost(Loss::Deleted));
    }

    /// A clock by which W may be over before the time to stop is.
    fn is_waited_for_fast(&mut self) {
        let fastest = TRUE_RATE * 6 / 5;
        self.register.fastest.insert("test".to_owned(), fastest);
    }
}

#[test]
fn work_writes_until_its_time_to_stop_is_over() {
    // A second of W is lost to a plain one.
    for (mode, last) in [(PlannedMode::Elected, 14_755), (PlannedMode::Plain, 13_755)] {
        let mut work = RegisteredWork::new(mode);
        assert_eq!(work.writes(last), None, "{mode:?}");
        assert_eq!(work.writes(last + 1), Some("R10"), "{mode:?}");
        assert_eq!(work.writes(last + 2), None, "it was reported");
        assert_eq!(work.register.writes, 3);
    }
}

#[test]
fn work_writes_beside_no_successor() {
    let mut work = RegisteredWork::new(PlannedMode::Elected);
    work.is_waited_for_fast();
    work.successor_writes();
    assert_eq!(work.writes(2_000), Some("S1"), "it leads");

    let mut work = RegisteredWork::new(PlannedMode::Elected);
    work.successor_writes();
    work.lapses();
    assert_eq!(work.writes(2_000), Some("S1"), "it stops before W is over");
}

#[test]
fn work_that_its_clock_lets_meet_a_successor_is_held_to_its_time_still() {
    let mut work = RegisteredWork::new(PlannedMode::Elected);
    work.is_waited_for_fast();
    work.successor_writes();
    work.lapses();
    assert_eq!(work.writes(14_755), None);
    assert_eq!(work.writes(14_756), Some("R10"));
}

#[test]
fn work_does_not_write_once_its_lease_was_given_away() {
    let mut work = RegisteredWork::new(PlannedMode::Elected);
    let given = Duration::from_secs(2);
    work.lease.write(given, "c0", &held_by("c1"));
    assert_eq!(work.writes(2_001), Some("R12"));
}

#[test]
fn work_beside_a_successor_is_exempt_while_a_stranger_explains_it() {
    let mut work = RegisteredWork::new(PlannedMode::Elected);
    let own = LeaseRecord {
        token: Some(Token(ResourceVersion(5))),
        token_term: Some(Default::default()),
        ..held_by("c0")
    };
    work.lease.version = 4;
    work.lease.write(Duration::from_secs(2), "c0", &own);
    let stranger = held_by("stranger");
    work.lease
        .write(Duration::from_secs(3), "stranger", &stranger);
    work.successor_writes();
    assert_eq!(work.writes(4_000), None);
    assert_eq!(work.register.exempt.len(), 1);
}
