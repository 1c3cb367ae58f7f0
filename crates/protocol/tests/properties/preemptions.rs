//! An elector's demands on live holders, whatever candidates come, change and go (R16, R23).
//!
//! One elector sees every revision of a Lease whose holders obey and whose electees accept or not. The checker of recorded
//! histories, which knows the writers, judges each of its preferences by the budget of R23 and all other rules; the waits
//! around withdrawals (R16) are judged here.

use std::time::Duration;

use elector_protocol::elector::{Effect, Election, NewsSource, Settings};
use elector_protocol::{
    CandidateRecord, CandidateSpec, Identity, Instant, LeaseRecord, LeaseSnapshot, LeaseWrite,
    OperatorOverrides, ResourceVersion, StrategyName, Timestamp, Token, Uid,
};
use elector_verify::{ElectorSight, TermSource, WriterRole};
use proptest::prelude::{Just, Strategy as Arbitrary, any, prop_assert, prop_oneof};
use proptest::test_runner::TestCaseError;

use crate::RecordedElection;
use crate::arbitrary::candidate;

/// One thing that happens. What does not fit changes nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PreemptionStep {
    /// This number of seconds passes, in which a holder that has accepted renews.
    Pass(u16),
    /// A candidate appears or changes its version.
    Version { candidate: u8, minor: u8 },
    /// A candidate is deleted.
    Delete(u8),
    /// A candidate acks.
    Ack(u8),
    /// The elector's decision is written.
    Decide,
    /// Another elector prefers this candidate.
    Prefer(u8),
    /// Another elector withdraws the preference.
    Withdraw,
    /// The holder makes room as it is asked to; `releases`: it lets go and does not hand over.
    MakeRoom { releases: bool },
    /// The electee accepts.
    Accept,
    /// The grant lasts for its accept window, and the elector grants the lease anew to a candidate that accepts.
    FailAndGrant,
}

/// News of the preferred candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PreferredNews {
    Changed,
    Gone,
}

/// The Lease, its elector, and all that was written.
struct PreemptedLease {
    now: Instant,
    revision: u64,
    lease: LeaseSnapshot,
    election: Election,
    settings: Settings,
    recording: RecordedElection,
    /// When the present preference was written, and whether its candidate changed or went since.
    preferred: Option<(Instant, Option<PreferredNews>)>,
    /// The number of preferences of this term that were withdrawn, and when the newest was, where none stands.
    withdrawals: u32,
    withdrawn: Option<Instant>,
}

pub(crate) fn steps() -> impl Arbitrary<Value = Vec<PreemptionStep>> {
    let candidate = || 0..4u8;
    let single = prop_oneof![
        3 => (1..700u16).prop_map(|seconds| PreemptionStep::Pass(seconds.min(4 + seconds / 7))),
        3 => (candidate(), 0..9u8).prop_map(|(candidate, minor)| PreemptionStep::Version { candidate, minor }),
        1 => candidate().prop_map(PreemptionStep::Delete),
        6 => candidate().prop_map(PreemptionStep::Ack),
        8 => Just(PreemptionStep::Decide),
        1 => candidate().prop_map(PreemptionStep::Prefer),
        1 => Just(PreemptionStep::Withdraw),
        5 => any::<bool>().prop_map(|releases| PreemptionStep::MakeRoom { releases }),
        4 => Just(PreemptionStep::Accept),
        4 => Just(PreemptionStep::FailAndGrant),
    ];
    prop_oneof![
        12 => single.prop_map(|step| vec![step]),
        1 => candidate().prop_map(take_over),
    ]
}

/// A candidate becomes the best one, acks, is preferred where the elector prefers it, and takes over: by themselves the
/// steps seldom come in this order as often as a budget allows.
fn take_over(best: u8) -> Vec<PreemptionStep> {
    let version = |candidate| PreemptionStep::Version {
        candidate,
        minor: if candidate == best { 0 } else { 8 },
    };
    let take_over = [
        PreemptionStep::Ack(best),
        PreemptionStep::Decide,
        PreemptionStep::MakeRoom { releases: false },
        PreemptionStep::Accept,
    ];
    (0..4).map(version).chain(take_over).collect()
}

/// Plays a history and checks what the elector would write after every step.
pub(crate) fn check(steps: &[Vec<PreemptionStep>]) -> Result<(), TestCaseError> {
    let mut world = PreemptedLease::new();
    for step in steps.iter().flatten() {
        world.play(*step);
        world.check()?;
    }
    Ok(())
}

// === impl PreemptedLease ===

impl PreemptedLease {
    /// Candidate 0 leads; the others are yet to come.
    fn new() -> Self {
        let now = Instant::from_epoch(Duration::from_secs(100_000));
        let lease = LeaseSnapshot {
            uid: Uid::new("lease"),
            version: ResourceVersion(1),
            record: LeaseRecord::born(None).released(Timestamp::MIN),
            overrides: OperatorOverrides::default(),
        };
        let settings = Settings::default();
        let mut world = Self {
            now,
            revision: 1,
            election: Election::absent(Instant::default()),
            recording: RecordedElection::new(now, &settings),
            settings,
            preferred: None,
            withdrawals: 0,
            withdrawn: None,
            lease,
        };
        world.play(PreemptionStep::Version {
            candidate: 0,
            minor: 8,
        });
        world.write(world.lease.record.clone(), elector());
        world.play(PreemptionStep::Decide);
        world.play(PreemptionStep::Accept);
        world
    }

    fn play(&mut self, step: PreemptionStep) {
        match step {
            PreemptionStep::Pass(seconds) => {
                for _ in 0..seconds {
                    self.now = self.now.after(Duration::from_secs(1));
                    if self.leader().is_some() {
                        let renewed = LeaseRecord {
                            renew_time: Some(self.wall()),
                            ..self.lease.record.clone()
                        };
                        self.show_lease(renewed);
                    }
                }
                if let Some(leader) = self.leader() {
                    // The last renewal stands for all of them: a history of each second takes long to judge.
                    let role = holder(leader);
                    self.recording.written(self.now, &self.lease, role);
                }
            }
            PreemptionStep::Version { candidate, minor } => self.change(candidate, minor),
            PreemptionStep::Delete(candidate) => {
                let name = name(candidate);
                self.note_news(&name, PreferredNews::Gone);
                self.election.handle_candidate_gone(&name, None);
            }
            PreemptionStep::Ack(candidate) => self.ack(&name(candidate)),
            PreemptionStep::Decide => {
                if let Some(write) = self.decided() {
                    self.write(write.record, elector());
                }
                self.ping();
            }
            PreemptionStep::Prefer(candidate) => {
                if self
                    .leader()
                    .is_some_and(|leader| *leader != name(candidate))
                {
                    let record = self.lease.record.preferring(Some(name(candidate)), None);
                    self.write(record, elector());
                }
            }
            PreemptionStep::Withdraw => {
                if self.leader().is_some() {
                    self.write(self.lease.record.preferring(None, None), elector());
                }
            }
            PreemptionStep::MakeRoom { releases } => self.make_room(releases),
            PreemptionStep::Accept => {
                if !self.lease.record.is_unaccepted_grant() {
                    return;
                }
                self.now = self.now.after(Duration::from_millis(100));
                let record = LeaseRecord {
                    duration_seconds: Some(15),
                    renew_time: Some(self.wall()),
                    token: Some(Token(self.lease.version)),
                    token_term: Some(self.lease.record.term),
                    ..self.lease.record.clone()
                };
                let role = record.holder.as_ref().map_or_else(elector, holder);
                self.write(record, role);
            }
            PreemptionStep::FailAndGrant if self.lease.record.is_unaccepted_grant() => {
                self.now = self.now.after(Duration::from_secs(60));
                for candidate in 0..4 {
                    self.ack(&name(candidate));
                }
                self.play(PreemptionStep::Decide);
                self.play(PreemptionStep::Accept);
            }
            PreemptionStep::FailAndGrant => {}
        }
    }

    fn make_room(&mut self, releases: bool) {
        let Some(leader) = self.leader().cloned() else {
            return;
        };
        let record = &self.lease.record;
        let next = match record.preferred_holder.clone() {
            Some(preferred) if !releases && preferred != leader => {
                record.granted(preferred, Duration::from_secs(5), self.wall())
            }
            _ if self.preferred.is_some() || self.withdrawals > 0 => record.released(self.wall()),
            _ => return,
        };
        self.write(next, holder(&leader));
    }

    fn change(&mut self, candidate: u8, minor: u8) {
        let name = name(candidate);
        let version = format!("1.{minor}.0");
        let spec =
            CandidateSpec::parse("1.9.0", &version, StrategyName::OLDEST_EMULATION_VERSION).into();
        let known = self.known(&name);
        if known.as_ref().is_some_and(|known| known.spec == spec) {
            return;
        }
        self.note_news(&name, PreferredNews::Changed);
        self.revision += 1;
        let known = known.unwrap_or_else(|| self.created(&name));
        self.show(CandidateRecord { spec, ..known });
    }

    /// The next revision of a candidate is seen.
    fn show(&mut self, mut candidate: CandidateRecord) {
        self.revision += 1;
        candidate.version = ResourceVersion(self.revision);
        let (now, news) = (self.now, NewsSource::Watch);
        self.recording
            .candidate(now, &candidate, news, &self.election);
        self.election.handle_candidate(now, candidate, news);
    }

    fn ack(&mut self, name: &Identity) {
        let Some(known) = self.known(name) else {
            return;
        };
        self.revision += 1;
        let renew = Some(known.ping.map_or(self.wall(), |ping| ping.max(self.wall())));
        self.show(CandidateRecord { renew, ..known });
    }

    /// Delivers the pings that the elector would write now.
    fn ping(&mut self) {
        let decision = self.election.step(self.now, self.wall(), &self.settings);
        for effect in decision.effects {
            if let Effect::Ping { name, ping, .. } = effect
                && let Some(known) = self.known(&name)
            {
                let ping = Some(ping);
                self.show(CandidateRecord { ping, ..known });
            }
        }
    }

    fn note_news(&mut self, name: &Identity, happened: PreferredNews) {
        if self.lease.record.preferred_holder.as_ref() == Some(name)
            && let Some((_, news)) = &mut self.preferred
        {
            *news = (*news).max(Some(happened));
        }
    }

    /// A revision of the Lease is written by this writer and seen.
    fn write(&mut self, record: LeaseRecord, role: WriterRole) {
        self.show_lease(record);
        self.recording.written(self.now, &self.lease, role);
    }

    /// A revision of the Lease is seen.
    fn show_lease(&mut self, record: LeaseRecord) {
        self.revision += 1;
        let before = std::mem::replace(&mut self.lease.record, record);
        self.lease.version = ResourceVersion(self.revision);
        let after = &self.lease.record;
        if (&before.holder, before.term) != (&after.holder, after.term) {
            (self.preferred, self.withdrawals, self.withdrawn) = (None, 0, None);
        } else if before.preferred_holder.is_some() && after.preferred_holder.is_none() {
            self.withdrawals += 1;
        }
        if before.preferred_holder != after.preferred_holder {
            self.withdrawn = after.preferred_holder.is_none().then_some(self.now);
            self.preferred = after.preferred_holder.as_ref().map(|_| (self.now, None));
        }
        self.election
            .handle_lease(self.now, self.lease.clone(), NewsSource::Watch);
    }

    /// The write of the Lease that the elector decides on.
    fn decided(&self) -> Option<LeaseWrite> {
        let decision = self.election.step(self.now, self.wall(), &self.settings);
        let mut effects = decision.effects.into_iter();
        effects.find_map(|effect| match effect {
            Effect::Write(write) => Some(write),
            _ => None,
        })
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let Some(write) = self.decided() else {
            return Ok(());
        };
        let (before, after) = (&self.lease.record, &write.record);
        if before.term != after.term || before.preferred_holder == after.preferred_holder {
            return Ok(());
        }
        if after.preferred_holder.is_none() {
            let (written, news) = self.preferred.unwrap_or_default();
            let at_once = match news {
                Some(PreferredNews::Gone) => true,
                Some(PreferredNews::Changed) => self.withdrawals == 0,
                None => false,
            };
            let doublings = self.withdrawals.min(8);
            let patience = Duration::from_secs(2 << doublings);
            prop_assert!(
                at_once || self.now.since(written) >= patience,
                "R16: withdrawn too early"
            );
            return Ok(());
        }
        let patience = Duration::from_secs(2 << self.withdrawals.min(8));
        let rested = |at| self.now.since(at) >= patience;
        prop_assert!(
            self.withdrawals < 2 || self.withdrawn.is_none_or(rested),
            "R16: preferred too early after a withdrawal"
        );
        self.recording
            .check_write(self.now, &self.lease, &write, &self.election)
    }

    fn leader(&self) -> Option<&Identity> {
        let record = &self.lease.record;
        record.holder.as_ref().filter(|_| record.has_token())
    }

    fn known(&self, name: &Identity) -> Option<CandidateRecord> {
        let mut known = self.election.candidates();
        known.find(|known| known.name == *name).cloned()
    }

    fn created(&self, name: &Identity) -> CandidateRecord {
        let version = ResourceVersion(self.revision);
        let uid = Uid::new(self.revision.to_string());
        CandidateRecord {
            uid,
            ..candidate(name.clone(), version, self.wall(), "1.9.0")
        }
    }

    /// A time that no record carries yet.
    fn wall(&self) -> Timestamp {
        let micros = self.now.since_epoch().as_micros() + u128::from(self.revision);
        Timestamp::from_micros(i64::try_from(micros).unwrap()).unwrap()
    }
}

fn elector() -> WriterRole {
    WriterRole::Elector(ElectorSight {
        preemptions: None,
        answers: Vec::new(),
        blind: Vec::new(),
    })
}

fn holder(name: &Identity) -> WriterRole {
    WriterRole::Holder {
        identity: name.clone(),
        terms: TermSource::Granted,
    }
}

fn name(candidate: u8) -> Identity {
    Identity::new(format!("c{candidate}")).unwrap()
}
