//! A Lease and its history, for tests of what is read from one.

use std::time::Duration;

use elector_api::{Carrier, Lease};
use elector_protocol::{Identity, Instant, LeaseKey, LeaseRecord};

use super::{Author, LeaseHistory, RequestAttempt, Role};
use crate::clock::TRUE_RATE;
use crate::plan::PlannedMode;

/// A Lease that is written.
pub(crate) struct WrittenLease {
    pub(crate) history: LeaseHistory,
    pub(crate) lease: Lease,
    /// Its newest version; 0 where it is yet to be created.
    pub(crate) version: u64,
}

// === impl WrittenLease ===

impl WrittenLease {
    /// A Lease of that name.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            history: LeaseHistory::default(),
            lease: Lease::named(&LeaseKey::new("default", name)),
            version: 0,
        }
    }

    /// A process of that name: an elector's begins with e, a candidate's with c, and all others are people.
    pub(crate) fn author(name: &str) -> Author {
        Author {
            name: name.to_owned(),
            role: match name.bytes().next() {
                Some(b'e') => Role::Elector { rate: TRUE_RATE },
                Some(b'c') => Role::Candidate {
                    lease: 0,
                    member: false,
                    rate: TRUE_RATE,
                    mode: PlannedMode::Plain,
                },
                _ => Role::Kubectl,
            },
            identity: Identity::new(name),
            incarnation: 1,
            born: Duration::ZERO,
        }
    }

    /// A write is sent, by a clock that shows the time of the run.
    pub(crate) fn send(&mut self, at: Duration, name: &str, record: &LeaseRecord) {
        let name_of_lease = self.lease.key().name.to_string();
        let base = self.history.current(&name_of_lease).map(|it| it.version);
        self.version += 1;
        self.lease = self.lease.with_record(record, Carrier::Annotations);
        self.lease.metadata.uid = Some("u".to_owned());
        self.lease.metadata.resource_version = Some(self.version.to_string());
        self.history.attempts.push(RequestAttempt {
            author: Self::author(name),
            at,
            clock: Instant::from_epoch(at),
            monotonic: Instant::from_epoch(at),
            lease: name_of_lease,
            base,
            record: self.lease.record().ok(),
            applied: None,
        });
    }

    /// The newest write is applied.
    pub(crate) fn apply(&mut self, at: Duration) {
        self.history.record_lease(at, self.lease.clone());
    }

    /// A write that is applied at once.
    pub(crate) fn write(&mut self, at: Duration, name: &str, record: &LeaseRecord) {
        self.send(at, name, record);
        self.apply(at);
    }
}
