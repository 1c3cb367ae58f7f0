//! A gap of the watch never makes an elector quicker (R4, R6).
//!
//! An elector misses some revisions of a Lease and lists. What it grants is judged by all revisions that there were. The
//! records come from a small alphabet, in which equal records recur.

use std::time::Duration;

use elector_protocol::elector::{Effect, Election, NewsSource, Settings};
use elector_protocol::{
    CandidateRecord, CandidateSpec, Identity, Instant, LeaseRecord, LeaseSnapshot,
    OperatorOverrides, ResourceVersion, StrategyName, Timestamp, Token, Uid,
};
use proptest::prelude::{Just, Strategy as Arbitrary, any, prop_oneof};
use proptest::test_runner::TestCaseError;

use crate::RecordedElection;

/// One thing that happens to the Lease or to the watch of the elector.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GapStep {
    /// This number of seconds passes.
    Pass(u8),
    /// The Lease changes; `missed`: the watch breaks before it tells.
    LeaseChange { change: LeaseChange, missed: bool },
    /// The elector lists.
    List,
}

/// A change of the Lease. One that does not fit leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LeaseChange {
    /// It is created as a POST of ours creates it.
    Create,
    /// It is deleted.
    Delete,
    /// A stranger writes the born record back.
    Bare,
    /// A stranger takes the holder away and leaves the rest.
    Blank,
    /// It is granted to the candidate `a`.
    Grant,
    /// The electee accepts.
    Accept,
    /// The holder renews.
    Renew,
    /// The holder releases it.
    Release,
    /// A preference is written.
    Prefer,
}

/// The server, and the elector that watches it.
struct GappyWatch {
    now: Instant,
    revision: u64,
    created: u64,
    lease: Option<LeaseSnapshot>,
    recording: RecordedElection,
    election: Election,
    /// True while the watch is unbroken.
    whole: bool,
}

pub(crate) fn steps() -> impl Arbitrary<Value = GapStep> {
    let change = prop_oneof![
        3 => Just(LeaseChange::Create),
        1 => Just(LeaseChange::Delete),
        3 => Just(LeaseChange::Bare),
        2 => Just(LeaseChange::Blank),
        4 => Just(LeaseChange::Grant),
        4 => Just(LeaseChange::Accept),
        2 => Just(LeaseChange::Renew),
        1 => Just(LeaseChange::Release),
        1 => Just(LeaseChange::Prefer),
    ];
    prop_oneof![
        3 => (1..16u8).prop_map(GapStep::Pass),
        6 => (change, any::<bool>()).prop_map(|(change, missed)| GapStep::LeaseChange { change, missed }),
        3 => Just(GapStep::List),
    ]
}

/// Plays a history and judges what the elector would write after every step.
pub(crate) fn check(steps: &[GapStep]) -> Result<(), TestCaseError> {
    let mut watch = GappyWatch::new();
    for step in steps {
        match *step {
            GapStep::Pass(seconds) => {
                watch.now = watch.now.after(Duration::from_secs(seconds.into()));
            }
            GapStep::LeaseChange { change, missed } => watch.change(change, missed),
            GapStep::List => watch.list(),
        }
        watch.check()?;
    }
    Ok(())
}

// === impl GappyWatch ===

impl GappyWatch {
    /// The elector has just started and found no Lease.
    fn new() -> Self {
        let now = Instant::from_epoch(Duration::from_secs(1000));
        Self {
            now,
            revision: 1,
            created: 0,
            lease: None,
            recording: RecordedElection::new(now, &Settings::default()),
            election: Election::absent(now),
            whole: true,
        }
    }

    fn change(&mut self, change: LeaseChange, missed: bool) {
        let Some(next) = self.next(change) else {
            return;
        };
        self.revision += 1;
        self.whole &= !missed;
        let version = ResourceVersion(self.revision);
        self.lease = next.map(|(uid, record)| LeaseSnapshot {
            uid,
            version,
            record,
            overrides: OperatorOverrides::default(),
        });
        match self.lease.clone() {
            Some(lease) => {
                self.recording.lease(self.now, &lease);
                if self.whole {
                    self.election
                        .handle_lease(self.now, lease, NewsSource::Watch);
                }
            }
            None => {
                self.recording.gone(self.now, version);
                if self.whole {
                    self.election
                        .handle_lease_gone(self.now, Some(version), NewsSource::Watch);
                }
            }
        }
    }

    /// The next Lease; `None` where the change does not fit, `Some(None)` where the Lease goes.
    fn next(&mut self, change: LeaseChange) -> Option<Option<(Uid, LeaseRecord)>> {
        let wall = self.fresh_time();
        let Some(lease) = &self.lease else {
            return matches!(change, LeaseChange::Create).then(|| {
                self.created += 1;
                let uid = Uid::new(format!("lease-{}", self.created));
                Some((uid, LeaseRecord::born(None)))
            });
        };
        let record = &lease.record;
        let held = record.holder.is_some();
        let accepted = held && record.has_token();
        let next = match change {
            LeaseChange::Delete => return Some(None),
            LeaseChange::Bare => LeaseRecord::born(record.strategy.clone()),
            LeaseChange::Blank if held => LeaseRecord {
                holder: None,
                ..record.clone()
            },
            LeaseChange::Grant => record.granted(identity(), Duration::from_secs(5), wall),
            LeaseChange::Accept if record.is_unaccepted_grant() => LeaseRecord {
                duration_seconds: Some(15),
                renew_time: Some(wall),
                token: Some(Token(lease.version)),
                token_term: Some(record.term),
                ..record.clone()
            },
            LeaseChange::Renew if accepted => LeaseRecord {
                renew_time: Some(wall),
                ..record.clone()
            },
            LeaseChange::Release if accepted => record.released(wall),
            LeaseChange::Prefer if accepted => record.preferring(Some(identity()), None),
            _ => return None,
        };
        Some(Some((lease.uid.clone(), next)))
    }

    /// A time that no record carries yet: a held record never recurs (R11).
    fn fresh_time(&self) -> Timestamp {
        Timestamp::from_micros(i64::try_from(self.revision).unwrap() * 1_000_000).unwrap()
    }

    fn list(&mut self) {
        self.whole = true;
        match self.lease.clone() {
            Some(lease) => self
                .election
                .handle_lease(self.now, lease, NewsSource::List),
            None => self
                .election
                .handle_lease_gone(self.now, None, NewsSource::List),
        }
    }

    /// A write that the server would apply now is one that the rules allow.
    fn check(&mut self) -> Result<(), TestCaseError> {
        self.revision += 1;
        // The second candidate never holds the lease, so that no elector waits for its ack after a term of its own.
        for candidate in [self.candidate("a", "1.1.0"), self.candidate("b", "1.2.0")] {
            // The first sight of a candidate is its creation, every later one an ack.
            let news = NewsSource::Watch;
            self.recording
                .candidate(self.now, &candidate, news, &self.election);
            self.election.handle_candidate(self.now, candidate, news);
        }
        let decision = self
            .election
            .step(self.now, self.fresh_time(), &Settings::default());
        for effect in decision.effects {
            if let (Effect::Write(write), Some(lease)) = (effect, &self.lease)
                && (&write.uid, write.version) == (&lease.uid, lease.version)
            {
                self.recording
                    .check_write(self.now, lease, &write, &self.election)?;
            }
        }
        Ok(())
    }

    fn candidate(&self, name: &str, version: &str) -> CandidateRecord {
        CandidateRecord {
            name: Identity::new(name).unwrap(),
            uid: Uid::new(name),
            version: ResourceVersion(self.revision),
            created: Timestamp::MIN,
            ping: None,
            renew: Some(self.fresh_time()),
            marked: true,
            announced: None,
            deleting: false,
            spec: CandidateSpec::parse(version, version, StrategyName::OLDEST_EMULATION_VERSION)
                .into(),
        }
    }
}

fn identity() -> Identity {
    Identity::new("a").unwrap()
}
