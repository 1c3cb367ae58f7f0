//! Two electors and the lock that one of them holds.

use elector_protocol::{Identity, LeaseRecord, ResourceVersion, Timestamp, Token};

use super::*;
use crate::clock::TRUE_RATE;
use crate::history::fixture::WrittenLease;

/// Two electors with a lock of 15 s, whose leader believes for 10 s.
struct LockFixture {
    lock: WrittenLease,
    monitor: ElectorMonitor,
    clock: SimClock,
}

const W: Duration = Duration::from_secs(15);
const H: Duration = Duration::from_secs(10);

impl LockFixture {
    fn new() -> Self {
        let clock = SimClock::start(TRUE_RATE, 0);
        let mut monitor = ElectorMonitor::new(Some(H));
        monitor.start("e0", 1, clock.clone());
        monitor.start("e1", 1, clock.clone());
        let mut fixture = Self {
            lock: WrittenLease::new(ELECTOR_LOCK),
            monitor,
            clock,
        };
        fixture.write("e0", |_, _| LeaseRecord::born(None));
        fixture
    }

    /// A write of the lock that is applied at once. Returns what is said of its sending.
    fn write(
        &mut self,
        name: &str,
        next: impl Fn(&LeaseRecord, Timestamp) -> LeaseRecord,
    ) -> Option<&'static str> {
        let before = self.lock.lease.record().unwrap();
        let next = next(&before, self.clock.wall());
        let now = self.clock.holder();
        self.lock.send(now.since_epoch(), name, &next);
        let said = self.said(name, self.lock.history.attempts.last());
        self.lock.apply(now.since_epoch());
        said
    }

    fn said(&self, name: &str, lock: Option<&RequestAttempt>) -> Option<&'static str> {
        let (author, now) = (WrittenLease::author(name), self.clock.holder());
        let said = self
            .monitor
            .check_write(&self.lock.history, &author, now, lock);
        said.map(|(rule, _)| rule)
    }

    fn take(&mut self, name: &str) -> Option<&'static str> {
        let token = Token(ResourceVersion(self.lock.version));
        self.write(name, |before, now| {
            before.acquired(Identity::new(name).unwrap(), W, token, now)
        })
    }

    fn renew(&mut self, name: &str) -> Option<&'static str> {
        self.write(name, |before, now| LeaseRecord {
            renew_time: Some(now),
            ..before.clone()
        })
    }

    fn acts(&self, name: &str) -> Option<&'static str> {
        self.said(name, None)
    }

    fn overlap(&mut self) -> Vec<&'static str> {
        let found = self.monitor.check(&self.lock.history);
        found.into_iter().map(|(rule, _)| rule).collect()
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn an_elector_acts_from_its_acquisition_until_h_after_its_newest_renewal() {
    let mut fixture = LockFixture::new();
    assert_eq!(fixture.acts("e0"), Some("S2"));
    pass(1).await;
    assert_eq!(fixture.take("e0"), None);
    assert_eq!((fixture.acts("e0"), fixture.acts("e1")), (None, Some("S2")));
    pass(9).await;
    assert_eq!(fixture.renew("e0"), None);
    pass(9).await;
    assert_eq!(fixture.acts("e0"), None);
    pass(1).await;
    assert_eq!(fixture.acts("e0"), Some("S2"));
    assert_eq!(fixture.monitor.leader(&fixture.lock.history), None);
    assert_eq!(fixture.renew("e0"), Some("S2"));
}

#[tokio::test(start_paused = true)]
async fn an_elector_that_lets_go_acts_no_more_and_the_next_one_may_at_once() {
    let mut fixture = LockFixture::new();
    pass(1).await;
    assert_eq!(fixture.take("e0"), None);
    pass(1).await;
    assert_eq!(fixture.write("e0", LeaseRecord::released), None);
    assert_eq!(fixture.acts("e0"), Some("S2"));
    assert_eq!(fixture.take("e1"), None);
    assert_eq!(fixture.acts("e1"), None);
    assert_eq!(fixture.overlap(), [""; 0]);
    assert_eq!(lock_terms(&fixture.lock.history), 2);
}

#[tokio::test(start_paused = true)]
async fn two_electors_lead_at_once_unless_a_stranger_came_between() {
    for (before, between, expected) in [
        (false, false, &["S1"][..]),
        (true, false, &["S1"]),
        (false, true, &[]),
    ] {
        let mut fixture = LockFixture::new();
        let stranger = |fixture: &mut LockFixture| {
            fixture.write("kubectl", |before, _| LeaseRecord {
                holder: None,
                ..before.clone()
            });
        };
        if before {
            stranger(&mut fixture);
        }
        pass(1).await;
        assert_eq!(fixture.take("e0"), None);
        pass(1).await;
        if between {
            stranger(&mut fixture);
        }
        assert_eq!(fixture.take("e1"), None);
        assert_eq!(fixture.overlap(), expected);
        assert_eq!(fixture.overlap(), [""; 0], "each pair is reported once");
    }
}
