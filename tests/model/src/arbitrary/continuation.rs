//! The continuation of an election without further news: it neither spins nor storms, and where candidates ack, one of
//! them leads in the end (L2).

use std::time::Duration;

use elector_protocol::elector::{Action, Decision, Effect, Election, NewsSource, Reason, Settings};
use elector_protocol::{
    CandidateRecord, Instant, LeaseRecord, LeaseSnapshot, Occupancy, ResourceVersion, Timestamp,
    Token, Uid,
};

use crate::arbitrary::time::wall;

/// The behaviour of server and candidates from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conditions {
    /// Every write fails.
    Refusing,
    /// Writes succeed, and no candidate acks or accepts.
    Silent,
    /// Writes succeed, candidates ack and accept at once, and renew.
    Responsive,
}

/// An election that goes on by itself.
struct Continuation<'a> {
    election: Election,
    now: Instant,
    version: u64,
    settings: &'a Settings,
}

/// The time of a request or a watch event.
const HOP: Duration = Duration::from_millis(2);
/// The time for which it is watched for storms.
const MINUTE: Duration = Duration::from_secs(60);

/// Checks every continuation of an election.
pub(crate) fn check(election: &Election, now: Instant, settings: &Settings) {
    let highest = election
        .candidates()
        .map(|candidate| candidate.version.0)
        .chain(election.lease().map(|lease| lease.version.0))
        .max()
        .unwrap_or(0);
    // Nothing is newer than the largest number that there is.
    let Some(version) = highest.checked_add(1).filter(|next| *next < u64::MAX / 2) else {
        return;
    };
    for conditions in [
        Conditions::Refusing,
        Conditions::Silent,
        Conditions::Responsive,
    ] {
        let mut continuation = Continuation {
            election: election.clone(),
            now,
            version,
            settings,
        };
        continuation.run(conditions);
    }
}

// === impl Continuation ===

impl Continuation<'_> {
    fn run(&mut self, conditions: Conditions) {
        let candidates = self.election.candidates().count();
        let (start, most) = (self.now, 48 + 16 * candidates);
        let mut writes = 0;
        if conditions == Conditions::Responsive {
            self.ack_pending();
        }
        for turn in 0..most {
            let decision = self.step();
            if self.now.since(start) <= MINUTE {
                writes += decision.effects.len();
                assert!(
                    writes <= most,
                    "{conditions:?}: {writes} writes in a minute"
                );
            }
            let wrote = conditions != Conditions::Refusing && self.write(&decision, conditions);
            if conditions == Conditions::Responsive && self.is_led() {
                return;
            }
            if wrote {
                // No reply comes in no time at all.
                self.now = self.now.after(HOP);
                continue;
            }
            let Some(at) = decision.wake_at() else { break };
            assert!(at > self.now, "{conditions:?}: {decision:?}");
            self.now = at;
            let spins = turn + 1 == most && self.now.since(start) < MINUTE;
            assert!(
                !spins,
                "{conditions:?}: {most} steps in a minute: {decision:?}"
            );
        }
        if conditions == Conditions::Responsive {
            let decision = self.step();
            assert!(
                !self.should_be_led(&decision),
                "nobody leads: {decision:?} {:?}",
                self.election
            );
        }
    }

    fn step(&self) -> Decision {
        self.election.step(self.now, wall(), self.settings)
    }

    /// True if a candidate that accepted holds the lease, and is content with that.
    fn is_led(&self) -> bool {
        let Some(lease) = self.election.lease() else {
            return false;
        };
        let Occupancy::Held(holder) = lease.record.occupancy() else {
            return false;
        };
        let mut candidates = self.election.candidates();
        candidates.any(|candidate| &candidate.name == holder)
            && matches!(self.step().reason, Reason::HolderIsBest(_))
    }

    /// True if a candidate that acks could lead.
    fn should_be_led(&self, decision: &Decision) -> bool {
        let ours = !matches!(
            decision.reason,
            Reason::StrategyConflict(_)
                | Reason::ForeignStrategy(_)
                | Reason::NotSynced
                | Reason::HolderCannotYield { .. }
        ) && decision.action() != Action::Leave;
        let ranking = self
            .election
            .ranking(self.now, wall(), self.settings)
            .candidates;
        let can_be_asked = |candidate: &CandidateRecord| {
            ranking
                .iter()
                .any(|one| one.eligible && one.name == candidate.name)
                && candidate.next_ping().is_some()
        };
        ours && self.election.candidates().any(can_be_asked)
    }

    /// Carries out what was decided. Says whether there was anything.
    fn write(&mut self, decision: &Decision, conditions: Conditions) -> bool {
        for effect in &decision.effects {
            match effect {
                Effect::Create(record) => {
                    let uid = Uid::new("born later");
                    self.lease(uid, record.clone(), NewsSource::Watch);
                }
                Effect::Write(write) => {
                    self.lease(
                        write.uid.clone(),
                        write.record.clone(),
                        NewsSource::OwnWrite,
                    );
                    if conditions == Conditions::Responsive {
                        self.accept(write.uid.clone(), &write.record);
                    }
                }
                Effect::Ping { name, ping, .. } => {
                    let found = self.election.candidates().find(|one| &one.name == name);
                    let Some(mut candidate) = found.cloned() else {
                        continue;
                    };
                    candidate.ping = Some(*ping);
                    candidate.version = self.next_version();
                    self.election.handle_candidate(
                        self.now,
                        candidate.clone(),
                        NewsSource::OwnWrite,
                    );
                    if conditions == Conditions::Responsive && candidate.is_pinged() {
                        self.now = self.now.after(HOP);
                        candidate.renew = Some(*ping);
                        candidate.version = self.next_version();
                        self.election
                            .handle_candidate(self.now, candidate, NewsSource::Watch);
                    }
                }
                Effect::Collect { name, .. } => self.election.handle_candidate_gone(name, None),
            }
        }
        !decision.effects.is_empty()
    }

    /// Every candidate that was pinged before acks.
    fn ack_pending(&mut self) {
        let asked = self.election.candidates().filter(|one| one.is_pinged());
        for mut candidate in asked.cloned().collect::<Vec<_>>() {
            candidate.renew = candidate.ping;
            candidate.version = self.next_version();
            self.election
                .handle_candidate(self.now, candidate, NewsSource::Watch);
        }
    }

    /// An electee accepts; a holder that is asked to hands over, and its successor accepts.
    fn accept(&mut self, uid: Uid, record: &LeaseRecord) {
        let mut record = record.clone();
        if let Some(to) = record.preferred_holder.clone() {
            record = record.granted(to, Duration::from_secs(5), wall());
            self.lease(uid.clone(), record.clone(), NewsSource::Watch);
        }
        if record.holder.is_none() || !record.is_unaccepted_grant() {
            return;
        }
        let token = Token(ResourceVersion(self.version));
        let accepted = LeaseRecord {
            duration_seconds: Some(15),
            renew_time: Some(
                Timestamp::from_micros(wall().as_micros() + 7)
                    .unwrap_or(Timestamp::MIN)
                    .differing_from(record.renew_time),
            ),
            token: Some(token),
            token_term: Some(record.term),
            ..record
        };
        self.lease(uid, accepted, NewsSource::Watch);
    }

    fn lease(&mut self, uid: Uid, record: LeaseRecord, news: NewsSource) {
        let snapshot = LeaseSnapshot {
            uid,
            version: self.next_version(),
            record,
            overrides: elector_protocol::OperatorOverrides::default(),
        };
        self.election.handle_lease(self.now, snapshot, news);
    }

    fn next_version(&mut self) -> ResourceVersion {
        self.version += 1;
        ResourceVersion(self.version)
    }
}
