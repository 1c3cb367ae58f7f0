//! Two electors and the lock that one of them holds.

use elector_api::{Carrier, Lease};
use elector_protocol::{LeaseKey, LeaseRecord, ResourceVersion, Timestamp, Token};

use super::*;
use crate::clock::TRUE_RATE;

/// Two electors with a lock of 15 s, whose leader believes for 10 s.
struct LockFixture {
    history: LeaseHistory,
    monitor: ElectorMonitor,
    lock: Lease,
    clock: SimClock,
    version: u64,
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
            history: LeaseHistory::new(W),
            monitor,
            lock: Lease::named(&LeaseKey::new("default", ELECTOR_LOCK)),
            clock,
            version: 0,
        };
        fixture.write("e0", |_, _| LeaseRecord::born(None));
        fixture
    }

    fn author(name: &str) -> Author {
        Author {
            name: name.to_owned(),
            role: match name.starts_with('e') {
                true => Role::Elector { rate: TRUE_RATE },
                false => Role::Kubectl,
            },
            identity: Identity::new(name),
            incarnation: 1,
            born: Duration::ZERO,
        }
    }

    /// A write of the lock that is applied at once. Returns what is said of its sending.
    fn write(
        &mut self,
        name: &str,
        next: impl Fn(&LeaseRecord, Timestamp) -> LeaseRecord,
    ) -> Option<&'static str> {
        let before = self.lock.record().unwrap();
        let base = (self.version > 0).then_some(self.version);
        self.version += 1;
        let next = next(&before, self.clock.wall());
        self.lock = self.lock.with_record(&next, Carrier::Annotations);
        self.lock.metadata.uid = Some("u".to_owned());
        self.lock.metadata.resource_version = Some(self.version.to_string());
        let author = Self::author(name);
        self.history.attempts.push(RequestAttempt {
            monotonic: self.clock.holder(),
            author: author.clone(),
            at: self.clock.holder().since_epoch(),
            clock: self.clock.holder(),
            lease: ELECTOR_LOCK.to_owned(),
            base,
            record: self.lock.record().ok(),
            applied: false,
        });
        let attempt = self.history.attempts.last();
        let now = self.clock.holder();
        let said = self
            .monitor
            .check_write(&self.history, &author, now, attempt);
        let at = self.clock.holder().since_epoch();
        self.history.record_lease(at, self.lock.clone());
        said.map(|(rule, _)| rule)
    }

    fn take(&mut self, name: &str) -> Option<&'static str> {
        let token = Token(ResourceVersion(self.version));
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

    fn acts(&mut self, name: &str) -> Option<&'static str> {
        let now = self.clock.holder();
        let author = Self::author(name);
        let said = self.monitor.check_write(&self.history, &author, now, None);
        said.map(|(rule, _)| rule)
    }

    fn overlap(&mut self) -> Vec<&'static str> {
        let found = self.monitor.check(&self.history);
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
    assert_eq!(fixture.monitor.leader(&fixture.history), None);
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
    assert_eq!(fixture.monitor.terms, 2);
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
