//! A gap of the watch never makes an elector quicker (R4, R6).
//!
//! Two electors watch one Lease from the same moment on. One sees every revision; the other misses some and lists. A
//! grant of the second that the server would apply must be one that the first would write too: it has seen at least as
//! much, so a wait that it still keeps is one that the second must not have skipped. The records come from a small
//! alphabet, in which equal records recur.

use std::time::Duration;

use elector_protocol::elector::{Effect, Election, NewsSource, Settings};
use elector_protocol::{
    CandidateRecord, Identity, Instant, LeaseRecord, LeaseSnapshot, LeaseWrite, OperatorWord,
    ResourceVersion, Timestamp, Token, Uid,
};
use proptest::prelude::{Just, Strategy as Arbitrary, any, prop_assert, prop_oneof};
use proptest::test_runner::TestCaseError;

use crate::arbitrary::candidate;

/// One thing that happens to the Lease or to the watch of the second elector.
#[derive(Clone, Copy, Debug)]
pub(crate) enum GapStep {
    /// So many seconds pass.
    Pass(u8),
    /// The Lease changes; `missed`: the watch of the second elector breaks before it tells.
    LeaseChange { change: LeaseChange, missed: bool },
    /// The second elector lists.
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

/// The server, and the two electors that watch it.
struct TwoWatchers {
    now: Instant,
    revision: u64,
    created: u64,
    lease: Option<LeaseSnapshot>,
    complete: Election,
    gappy: Election,
    /// True while the second elector's watch is unbroken.
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

/// Plays a history to both electors and compares them after every step.
pub(crate) fn compare(steps: &[GapStep]) -> Result<(), TestCaseError> {
    let mut watchers = TwoWatchers::new();
    for step in steps {
        match *step {
            GapStep::Pass(seconds) => {
                watchers.now = watchers.now.after(Duration::from_secs(seconds.into()));
            }
            GapStep::LeaseChange { change, missed } => watchers.change(change, missed),
            GapStep::List => watchers.list(),
        }
        watchers.check()?;
    }
    Ok(())
}

// === impl TwoWatchers ===

impl TwoWatchers {
    /// Both electors have just started and found no Lease.
    fn new() -> Self {
        let now = Instant::from_epoch(Duration::from_secs(1000));
        Self {
            now,
            revision: 1,
            created: 0,
            lease: None,
            complete: Election::absent(now),
            gappy: Election::absent(now),
            whole: true,
        }
    }

    fn change(&mut self, change: LeaseChange, missed: bool) {
        let Some(next) = self.next(change) else {
            return;
        };
        self.revision += 1;
        let version = ResourceVersion(self.revision);
        self.lease = next.map(|(uid, record)| LeaseSnapshot {
            uid,
            version,
            record,
            word: OperatorWord::default(),
        });
        self.whole &= !missed;
        tell(&mut self.complete, self.now, version, self.lease.as_ref());
        if self.whole {
            tell(&mut self.gappy, self.now, version, self.lease.as_ref());
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
            Some(lease) => self.gappy.handle_lease(self.now, lease, NewsSource::List),
            None => self
                .gappy
                .handle_lease_gone(self.now, None, NewsSource::List),
        }
    }

    /// A grant that the second elector may write now is one that the first may write too.
    fn check(&mut self) -> Result<(), TestCaseError> {
        self.revision += 1;
        // The second candidate never holds the lease, so that no elector waits for its ack after a term of its own.
        for candidate in [self.candidate("a", "1.1.0"), self.candidate("b", "1.2.0")] {
            for election in [&mut self.complete, &mut self.gappy] {
                // The first sight of a candidate is its creation, every later one an ack.
                election.handle_candidate(self.now, candidate.clone(), NewsSource::Watch);
            }
        }
        let (Some(granted), Some(lease)) = (self.grant(&self.gappy), &self.lease) else {
            return Ok(());
        };
        let applies = granted.uid == lease.uid && granted.version == lease.version;
        prop_assert!(
            !applies || self.grant(&self.complete).is_some(),
            "granted by an elector that missed something, and not by one that saw everything: {lease:?}"
        );
        Ok(())
    }

    fn candidate(&self, name: &str, emulation: &str) -> CandidateRecord {
        let version = ResourceVersion(self.revision);
        candidate(
            Identity::new(name).unwrap(),
            version,
            self.fresh_time(),
            emulation,
        )
    }

    fn grant(&self, election: &Election) -> Option<LeaseWrite> {
        let decision = election.step(self.now, self.fresh_time(), &Settings::default());
        let mut effects = decision.effects.into_iter();
        effects.find_map(|effect| match effect {
            Effect::Write(write) if write.record.is_unaccepted_grant() => Some(write),
            _ => None,
        })
    }
}

fn tell(
    election: &mut Election,
    now: Instant,
    version: ResourceVersion,
    lease: Option<&LeaseSnapshot>,
) {
    match lease {
        Some(lease) => election.handle_lease(now, lease.clone(), NewsSource::Watch),
        None => election.handle_lease_gone(now, Some(version), NewsSource::Watch),
    }
}

fn identity() -> Identity {
    Identity::new("a").unwrap()
}
