//! Properties of the elector's step on arbitrary histories: nothing panics, and every write is one that the rules
//! allow (S3–S7), judged by the checker of recorded histories, which shares no code with the step.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod arbitrary;
mod assigned;
mod gaps;
mod operators;
mod preemptions;

use std::collections::BTreeMap;
use std::time::Duration;

use elector_api::{CandidateApi, Carrier, Lease, LeaseCandidate};
use elector_protocol::elector::{
    Action, Decision, Effect, Election, NewsSource, PreferenceField, Reason, Settings,
};
use elector_protocol::{
    CandidateOrder, CandidateRecord, Contender, Identity, Instant, LeaseKey, LeaseRecord,
    LeaseSnapshot, LeaseWrite, OperatorOverrides, ResourceVersion, Timestamp, Uid,
};
use elector_verify::{
    CandidateAnswers, ElectorSight, EntryContent, History, Implementation, Limits, Participants,
    RecordedWriter, WriterRole, verify,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::TestCaseError;

use crate::arbitrary::{ElectionEvent, candidates, events, identities};

/// All that an elector was shown, as a recorder would have it.
struct RecordedElection {
    history: History,
    participants: Participants,
    /// When the elector began.
    start: Instant,
    lease: Option<LeaseSnapshot>,
    answers: BTreeMap<Identity, Answers>,
}

/// A candidate's answers, with their times.
#[derive(Default)]
struct Answers {
    /// The newest change of its renewal time.
    ack: Option<(Instant, ResourceVersion)>,
    /// Each ping of it.
    pings: Vec<(Instant, ResourceVersion)>,
}

fn drive(history: Vec<ElectionEvent>, settings: &Settings) -> Result<(), TestCaseError> {
    let start = Instant::from_epoch(Duration::from_secs(10));
    let mut election = Election::absent(start);
    let mut recording = RecordedElection::new(start, settings);
    let mut now = start;
    let mut version = 10;
    let mut overrides = OperatorOverrides::default();
    let wall = operators::wall();
    for event in history {
        version += 1;
        match event {
            // A process does not live until its clock overflows.
            ElectionEvent::Pass(duration) => {
                now = now.after(duration.min(Duration::from_secs(100_000)));
            }
            ElectionEvent::Lease { uid, record, news } => {
                let snapshot = LeaseSnapshot {
                    uid: Uid::new(uid.to_string()),
                    version: ResourceVersion(version),
                    record: on_the_wire(&record).record().unwrap_or_default(),
                    overrides: overrides.clone(),
                };
                recording.lease(now, &snapshot);
                election.handle_lease(now, snapshot, news);
            }
            ElectionEvent::LeaseGone(news) => {
                recording.gone(now, ResourceVersion(version));
                election.handle_lease_gone(now, Some(ResourceVersion(version)), news);
            }
            ElectionEvent::Candidate {
                mut candidate,
                news,
            } => {
                candidate.version = ResourceVersion(version);
                recording.candidate(now, &candidate, news, &election);
                election.handle_candidate(now, candidate, news);
            }
            ElectionEvent::CandidateGone(name) => election.handle_candidate_gone(&name, None),
            ElectionEvent::Created => election.handle_created(now),
            ElectionEvent::Applied => apply(
                &mut election,
                &mut recording,
                now,
                wall,
                &mut version,
                settings,
            ),
            ElectionEvent::Word(said) => {
                overrides = said;
                if let Some(mut snapshot) = election.lease().cloned() {
                    snapshot.version = ResourceVersion(version);
                    snapshot.overrides = overrides.clone();
                    recording.lease(now, &snapshot);
                    election.handle_lease(now, snapshot, NewsSource::Watch);
                }
            }
            ElectionEvent::Renewed => {
                if let Some(mut snapshot) = election.lease().cloned() {
                    snapshot.version = ResourceVersion(version);
                    snapshot.record.renew_time =
                        Some(wall.differing_from(snapshot.record.renew_time));
                    recording.lease(now, &snapshot);
                    election.handle_lease(now, snapshot, NewsSource::Watch);
                }
            }
        }
        let decision = election.step(now, wall, settings);
        prop_assert_eq!(
            &decision,
            &election.step(now, wall, settings),
            "a step repeats itself"
        );
        let _ = decision.reason.to_string();
        let _ = election.ranking(now, wall, settings);
        recording.check(now, &decision, &election)?;
    }
    Ok(())
}

/// The write of the present decision is applied by the server.
fn apply(
    election: &mut Election,
    recording: &mut RecordedElection,
    now: Instant,
    wall: Timestamp,
    version: &mut u64,
    settings: &Settings,
) {
    let overrides = election.lease().map(|known| known.overrides.clone());
    let overrides = overrides.unwrap_or_default();
    for effect in election.step(now, wall, settings).effects {
        *version += 1;
        match effect {
            Effect::Write(write) => {
                let snapshot = LeaseSnapshot {
                    uid: write.uid,
                    version: ResourceVersion(*version),
                    record: write.record,
                    overrides: overrides.clone(),
                };
                recording.lease(now, &snapshot);
                election.handle_lease(now, snapshot, NewsSource::OwnWrite);
            }
            Effect::Create(record) => {
                let snapshot = LeaseSnapshot {
                    uid: Uid::new("new"),
                    version: ResourceVersion(*version),
                    record,
                    overrides: OperatorOverrides::default(),
                };
                recording.lease(now, &snapshot);
                election.handle_lease(now, snapshot, NewsSource::Watch);
            }
            Effect::Ping { name, ping, .. } => {
                let found = election
                    .candidates()
                    .find(|candidate| candidate.name == name)
                    .cloned();
                if let Some(mut candidate) = found {
                    candidate.ping = Some(ping);
                    candidate.version = ResourceVersion(*version);
                    recording.candidate(now, &candidate, NewsSource::OwnWrite, election);
                    election.handle_candidate(now, candidate, NewsSource::OwnWrite);
                }
            }
            Effect::Collect { name, .. } => election.handle_candidate_gone(&name, None),
        }
    }
}

/// A Lease with that record.
fn on_the_wire(record: &LeaseRecord) -> Lease {
    Lease::named(&key()).with_record(record, Carrier::Annotations)
}

fn key() -> LeaseKey {
    LeaseKey::new("ns", "lease")
}

fn time(at: Instant) -> Timestamp {
    let micros = i64::try_from(at.since_epoch().as_micros()).unwrap();
    Timestamp::from_micros(micros).unwrap()
}

fn revision(uid: &Uid, version: ResourceVersion, record: &LeaseRecord) -> Lease {
    let mut lease = on_the_wire(record);
    lease.metadata.uid = Some(uid.to_string());
    lease.metadata.resource_version = Some(version.to_string());
    lease
}

// === impl RecordedElection ===

impl RecordedElection {
    fn new(start: Instant, settings: &Settings) -> Self {
        let mut participants = Participants::new(Limits {
            longest_lease: settings.timing.max_lease_duration,
            ..Limits::default()
        });
        participants.add(key(), "a", Implementation::Elector);
        Self {
            history: History::default(),
            participants,
            start,
            lease: None,
            answers: BTreeMap::new(),
        }
    }

    /// The Lease is as it is by any writer.
    fn lease(&mut self, now: Instant, snapshot: &LeaseSnapshot) {
        self.participants.add_foreign(snapshot.version);
        self.record(now, snapshot);
    }

    /// This writer made the Lease as it is.
    fn written(&mut self, now: Instant, snapshot: &LeaseSnapshot, role: WriterRole) {
        let writer = self.writer(now, role);
        self.participants.add_writer(snapshot.version, writer);
        self.record(now, snapshot);
    }

    fn writer(&self, now: Instant, role: WriterRole) -> RecordedWriter {
        RecordedWriter {
            role,
            born: time(self.start),
            sent: time(now),
            rate: 1.0,
            longest_lease: None,
        }
    }

    fn record(&mut self, now: Instant, snapshot: &LeaseSnapshot) {
        let lease = revision(&snapshot.uid, snapshot.version, &snapshot.record);
        let content = EntryContent::lease(lease, false);
        self.history.record(time(now), content);
        self.lease = Some(snapshot.clone());
    }

    fn gone(&mut self, now: Instant, version: ResourceVersion) {
        if let Some(last) = self.lease.take() {
            let lease = revision(&last.uid, version, &last.record);
            let content = EntryContent::lease(lease, true);
            self.history.record(time(now), content);
        }
    }

    fn candidate(
        &mut self,
        now: Instant,
        candidate: &CandidateRecord,
        news: NewsSource,
        election: &Election,
    ) {
        let known = election
            .candidates()
            .find(|known| known.name == candidate.name);
        let created = known.is_none_or(|known| known.uid != candidate.uid);
        let changed = known.is_some_and(|known| known.renew != candidate.renew);
        let alive = if created {
            news == NewsSource::Watch
        } else {
            changed && news != NewsSource::List
        };
        let pinged = created || known.is_some_and(|known| known.ping != candidate.ping);
        let mut object = LeaseCandidate::named(CandidateApi::Elector, &key(), &candidate.name);
        object.metadata.resource_version = Some(candidate.version.to_string());
        let content = EntryContent::candidate(object, false);
        self.history.record(time(now), content);
        let sighting = (now, candidate.version);
        let answers = self.answers.entry(candidate.name.clone()).or_default();
        if created {
            *answers = Answers::default();
        }
        if alive && candidate.renew.is_some() {
            answers.ack = Some(sighting);
        }
        if pinged {
            answers.pings.push(sighting);
        }
    }

    fn check(
        &self,
        now: Instant,
        decision: &Decision,
        election: &Election,
    ) -> Result<(), TestCaseError> {
        let writes = |effect: &&Effect| matches!(effect, Effect::Create(_) | Effect::Write(_));
        prop_assert!(
            decision.effects.iter().filter(writes).count() <= 1,
            "one lease write at most: {decision:?}"
        );
        if let Some(at) = decision.wake_at() {
            prop_assert!(at > now, "a deadline in the past would spin: {decision:?}");
        }
        let unnamed = match &decision.reason {
            Reason::AwaitAck(names) | Reason::NoAck(names) => names.is_empty(),
            Reason::BetterIsSilent { silent, .. } => silent.is_empty(),
            _ => false,
        };
        prop_assert!(!unnamed, "a list without a name: {decision:?}");
        for effect in &decision.effects {
            match effect {
                Effect::Create(record) => {
                    prop_assert!(self.lease.is_none());
                    prop_assert_eq!(record, &LeaseRecord::born(record.strategy.clone()));
                }
                Effect::Write(write) => {
                    let Some(known) = &self.lease else {
                        return Err(TestCaseError::fail("a write without a lease"));
                    };
                    prop_assert_eq!(
                        (&write.uid, write.version),
                        (&known.uid, known.version),
                        "R2"
                    );
                    operators::check_frozen(&known.overrides, &known.record, &write.record)?;
                    self.check_write(now, known, write, election)?;
                }
                Effect::Ping { name, ping, .. } => {
                    let candidate = election
                        .candidates()
                        .find(|candidate| &candidate.name == name)
                        .unwrap();
                    let renew = candidate.renew.unwrap();
                    let repeated = candidate.ping.and_then(Timestamp::next) == Some(*ping);
                    prop_assert!(
                        Some(*ping) == renew.next() || *ping == renew || repeated,
                        "R15: {effect:?}"
                    );
                }
                Effect::Collect { .. } => {}
            }
        }
        Ok(())
    }

    /// The write as the next revision of the history.
    fn check_write(
        &self,
        now: Instant,
        known: &LeaseSnapshot,
        write: &LeaseWrite,
        election: &Election,
    ) -> Result<(), TestCaseError> {
        let (before, after) = (&known.record, &write.record);
        let preferred = after.preferred_holder.as_ref();
        let prefers = before.preferred_holder != after.preferred_holder && preferred.is_some();
        if before.term == after.term && prefers {
            prop_assert!(before.holder.is_some() && after.strategy.is_some());
        }
        let chosen = preferred.or(after.holder.as_ref());
        let chosen = chosen.and_then(|name| self.answers.get_key_value(name));
        if before.term != after.term || prefers {
            let electable = |it: &CandidateRecord| {
                Some(&it.name) == chosen.map(|(name, _)| name) && it.spec.is_ok()
            };
            prop_assert!(election.candidates().any(electable));
        }
        let heard = |answers: &Answers| CandidateAnswers {
            ack: answers.ack.map(|(at, ack)| (ack, now.since(at))),
            pings: answers
                .pings
                .iter()
                .map(|(at, ping)| (*ping, time(*at)))
                .collect(),
        };
        let role = WriterRole::Elector(ElectorSight {
            preemptions: None,
            answers: chosen
                .map(|(_, answers)| heard(answers))
                .into_iter()
                .collect(),
            blind: Vec::new(),
        });
        let (mut history, mut participants) = (self.history.clone(), self.participants.clone());
        let version = ResourceVersion(u64::MAX);
        let lease = revision(&write.uid, version, after);
        history.record(time(now), EntryContent::lease(lease, false));
        participants.add_writer(version, self.writer(now, role));
        let verdict = verify(&history, &participants);
        // Other electors that are played here keep no rule.
        let mut breaches = verdict.leases.values().flat_map(|it| &it.breaches);
        let broken = breaches.find(|it| it.after == Some(version));
        prop_assert!(broken.is_none(), "{broken:?}: {before:?} -> {after:?}");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn every_write_is_one_that_the_rules_allow(history in vec(events(), 1..40), dropped in any::<bool>()) {
        let preference_field = if dropped { PreferenceField::Dropped } else { PreferenceField::Kept };
        drive(history, &Settings { preference_field, ..Settings::default() })?;
    }

    #[test]
    fn a_gap_of_the_watch_never_makes_an_elector_quicker(history in vec(gaps::steps(), 1..40)) {
        gaps::check(&history)?;
    }

    #[test]
    fn holders_are_asked_to_make_room_within_the_budget_and_not_after_failures(
        history in vec(preemptions::steps(), 1..80),
    ) {
        preemptions::check(&history)?;
    }

    #[test]
    fn the_order_is_total_and_permutation_proof(
        list in vec(candidates(), 1..6),
        incumbent in option::of(identities()),
        preferred in option::of(identities()),
        assigned in option::of(identities()),
        shift in 0..6usize,
        strategy in arbitrary::known_strategies(),
    ) {
        let ranking = strategy.strategy().unwrap();
        let mut unique: BTreeMap<Identity, &CandidateRecord> = BTreeMap::new();
        for candidate in &list {
            unique.insert(candidate.name.clone(), candidate);
        }
        let mut contenders: Vec<Contender<'_>> = unique
            .values()
            .filter_map(|candidate| Some(Contender { candidate, spec: candidate.offer().ok()? }))
            .filter(|contender| ranking.eligible(contender.spec).is_ok())
            .collect();
        let names = |sorted: &[Contender<'_>]| -> Vec<Identity> {
            sorted.iter().map(|contender| contender.candidate.name.clone()).collect()
        };
        let order = CandidateOrder {
            preferred: preferred.as_ref(),
            strategy: ranking,
            assigned: assigned.as_ref(),
            incumbent: incumbent.as_ref(),
        };
        let sorted = order.best_first(contenders.iter().copied());
        let length = contenders.len().max(1);
        if !contenders.is_empty() {
            contenders.rotate_left(shift % length);
        }
        contenders.reverse();
        let again = order.best_first(contenders.iter().copied());
        prop_assert_eq!(names(&sorted), names(&again));
        for pair in sorted.windows(2) {
            let reversed = order.best_first([pair[1], pair[0]]);
            prop_assert_eq!(&reversed[0].candidate.name, &pair[0].candidate.name, "any two agree with the whole");
            prop_assert!(!order.is_better(&pair[1], &pair[0]));
        }
        let first = sorted.first().map(|contender| &contender.candidate.name);
        if preferred.as_ref().is_some_and(|name| names(&sorted).contains(name)) {
            prop_assert_eq!(first, preferred.as_ref(), "what an operator prefers comes first");
            let better = |other: &Contender<'_>| order.is_better(&sorted[0], other);
            prop_assert!(sorted[1..].iter().all(better));
        }
    }
}

#[test]
fn an_action_without_effects_does_not_spin() {
    let election = Election::unknown();
    let decision = election.step(Instant::default(), Timestamp::MIN, &Settings::default());
    let expected = (Action::Wait, None);
    assert_eq!((decision.action(), decision.wake_at()), expected);
}
