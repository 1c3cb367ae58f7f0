//! Properties of the elector's step on arbitrary histories: nothing panics, and every write is one that the rules
//! allow (S3–S6), judged by an oracle that shares no code with the step.

#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

mod arbitrary;
mod gaps;
mod operators;
mod preemptions;

use std::collections::BTreeMap;
use std::time::Duration;

use elector_protocol::elector::{
    Actor, Decision, Effect, Election, Move, NewsSource, PreferenceField, Reason, Settings, audit,
};
use elector_protocol::{
    CandidateOrder, CandidateRecord, Contender, Identity, Instant, LeaseRecord, LeaseSnapshot,
    OperatorWord, ResourceVersion, Timestamp, Uid,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::TestCaseError;

use crate::arbitrary::{ElectionEvent, candidates, events, identities};

/// The oracle's memory: when each fact that a write depends on was first seen.
#[derive(Default)]
struct Oracle {
    lease: Option<(LeaseSnapshot, Instant)>,
    /// When the name became absent, also where the present object was added since and stayed unheld.
    absent_since: Option<Instant>,
    unheld_since: Option<Instant>,
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

/// An election, what the oracle saw of it, and the server that both watch.
struct CheckedElection<'a> {
    election: Election,
    oracle: Oracle,
    now: Instant,
    version: u64,
    word: OperatorWord,
    settings: &'a Settings,
}

fn drive(history: Vec<ElectionEvent>, settings: &Settings) -> Result<(), TestCaseError> {
    let start = Instant::from_epoch(Duration::from_secs(10));
    let oracle = Oracle {
        absent_since: Some(start),
        ..Oracle::default()
    };
    let mut checked = CheckedElection {
        election: Election::absent(start),
        oracle,
        now: start,
        version: 10,
        word: OperatorWord::default(),
        settings,
    };
    for event in history {
        checked.version += 1;
        checked.play(event);
        let decision = checked.step();
        prop_assert_eq!(&decision, &checked.step(), "a step repeats itself");
        let _ = decision.reason.to_string();
        let CheckedElection {
            election,
            oracle,
            now,
            ..
        } = &checked;
        let _ = election.ranking(*now, operators::wall(), settings);
        oracle.check(*now, &decision, settings, election)?;
    }
    Ok(())
}

impl CheckedElection<'_> {
    fn step(&self) -> Decision {
        self.election
            .step(self.now, operators::wall(), self.settings)
    }

    fn play(&mut self, event: ElectionEvent) {
        match event {
            // A process does not live until its clock overflows.
            ElectionEvent::Pass(duration) => {
                self.now = self.now.after(duration.min(Duration::from_secs(100_000)));
            }
            ElectionEvent::Lease { uid, record, news } => {
                self.show(Uid::new(uid.to_string()), record, news);
            }
            ElectionEvent::LeaseGone(news) => {
                if self.oracle.lease.take().is_some() || news == NewsSource::List {
                    self.oracle.absent_since = Some(self.now);
                }
                let version = Some(ResourceVersion(self.version));
                self.election.handle_lease_gone(self.now, version, news);
            }
            ElectionEvent::Candidate { candidate, news } => self.show_candidate(candidate, news),
            ElectionEvent::CandidateGone(name) => self.election.handle_candidate_gone(&name, None),
            ElectionEvent::Created => self.election.handle_created(self.now),
            ElectionEvent::Applied => {
                for effect in self.step().effects {
                    self.version += 1;
                    self.apply(effect);
                }
            }
            ElectionEvent::Word(word) => {
                self.word = word;
                if let Some(known) = self.election.lease().cloned() {
                    self.show(known.uid, known.record, NewsSource::Watch);
                }
            }
            ElectionEvent::Renewed => {
                if let Some(LeaseSnapshot {
                    uid, mut record, ..
                }) = self.election.lease().cloned()
                {
                    record.renew_time = Some(operators::wall().differing_from(record.renew_time));
                    self.show(uid, record, NewsSource::Watch);
                }
            }
        }
    }

    /// The server applies a write.
    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Write(write) => self.show(write.uid, write.record, NewsSource::OwnWrite),
            Effect::Create(record) => {
                let word = std::mem::take(&mut self.word);
                self.show(Uid::new("new"), record, NewsSource::Watch);
                self.word = word;
            }
            Effect::Ping { name, ping, .. } => {
                let is_pinged = |candidate: &&CandidateRecord| candidate.name == name;
                let found = self.election.candidates().find(is_pinged).cloned();
                if let Some(mut candidate) = found {
                    candidate.ping = Some(ping);
                    self.show_candidate(candidate, NewsSource::OwnWrite);
                }
            }
            Effect::Collect { name, .. } => self.election.handle_candidate_gone(&name, None),
        }
    }

    /// The present version of the Lease becomes known.
    fn show(&mut self, uid: Uid, record: LeaseRecord, news: NewsSource) {
        let snapshot = LeaseSnapshot {
            uid,
            version: ResourceVersion(self.version),
            record,
            word: self.word.clone(),
        };
        self.oracle.lease(self.now, &snapshot, news);
        self.election.handle_lease(self.now, snapshot, news);
    }

    /// The present version of a candidate becomes known.
    fn show_candidate(&mut self, mut candidate: CandidateRecord, news: NewsSource) {
        candidate.version = ResourceVersion(self.version);
        self.oracle
            .candidate(self.now, &candidate, news, &self.election);
        self.election.handle_candidate(self.now, candidate, news);
    }
}

impl Oracle {
    fn lease(&mut self, now: Instant, snapshot: &LeaseSnapshot, news: NewsSource) {
        let held = snapshot.record.holder.is_some();
        let key = |s: &LeaseSnapshot| {
            let r = &s.record;
            (
                s.uid.clone(),
                r.holder.clone(),
                r.term,
                r.renew_time,
                r.duration_seconds,
            )
        };
        // A list shows what is there, not what was: an unheld record may have been held in between.
        let unbroken = held || news != NewsSource::List;
        let since = match &self.lease {
            Some((known, since)) if key(known) == key(snapshot) && unbroken => *since,
            _ => now,
        };
        self.unheld_since = match &self.lease {
            None if news == NewsSource::Watch && !held => self.absent_since,
            Some((known, _)) if known.uid == snapshot.uid && !held && news != NewsSource::List => {
                self.unheld_since
            }
            _ => None,
        };
        self.absent_since = None;
        self.lease = Some((snapshot.clone(), since));
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
        settings: &Settings,
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
                    let Some((known, since)) = &self.lease else {
                        return Err(TestCaseError::fail("a write without a lease"));
                    };
                    prop_assert_eq!(
                        (&write.uid, write.version),
                        (&known.uid, known.version),
                        "R2"
                    );
                    operators::check_frozen(&known.word, &known.record, &write.record)?;
                    self.check_write(
                        now,
                        &known.record,
                        &write.record,
                        now.since(*since),
                        settings,
                        election,
                    )?;
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

    fn check_write(
        &self,
        now: Instant,
        before: &LeaseRecord,
        after: &LeaseRecord,
        unchanged: Duration,
        settings: &Settings,
        election: &Election,
    ) -> Result<(), TestCaseError> {
        let longest = settings.timing.max_lease_duration;
        // A round of pings begins when the record is late, or unheld.
        let (electee, round) = match audit(before, after, &Actor::Elector) {
            Ok(Move::Signal) => {
                if after.preferred_holder != before.preferred_holder
                    && let Some(preferred) = &after.preferred_holder
                {
                    prop_assert!(before.holder.is_some() && after.strategy.is_some());
                    self.check_acked(now, preferred, None)?;
                }
                return Ok(());
            }
            Ok(Move::GrantExpired) => {
                let least = before.duration().unwrap_or(longest);
                prop_assert!(
                    unchanged >= least,
                    "R4: granted after {unchanged:?} of {least:?}"
                );
                (&after.holder, unchanged - least * 2 / 3)
            }
            Ok(Move::GrantUnheld) => {
                let released = before.duration_seconds.is_some_and(|seconds| seconds <= 1)
                    && before.token.is_none();
                let proven = self
                    .unheld_since
                    .is_some_and(|since| now.since(since) >= longest);
                prop_assert!(released || proven || unchanged >= longest, "R6: {before:?}");
                (&after.holder, unchanged)
            }
            other => {
                return Err(TestCaseError::fail(format!(
                    "{other:?}: {before:?} -> {after:?}"
                )));
            }
        };
        let electee = electee.as_ref().unwrap();
        prop_assert!(
            election
                .candidates()
                .any(|candidate| &candidate.name == electee && candidate.spec.is_ok())
        );
        self.check_acked(now, electee, Some(round))
    }

    /// R15: it acked less than 5 s ago, or in a revision later than a ping of a round that began this long ago.
    fn check_acked(
        &self,
        now: Instant,
        name: &Identity,
        round: Option<Duration>,
    ) -> Result<(), TestCaseError> {
        let answers = self.answers.get(name);
        let Some((answers, (acked, version))) = answers.and_then(|it| Some((it, it.ack?))) else {
            return Err(TestCaseError::fail(format!("{name} has never acked")));
        };
        let fresh = now.since(acked) < Duration::from_secs(5);
        let mut pings = answers.pings.iter();
        let asked =
            pings.any(|(pinged, ping)| Some(now.since(*pinged)) <= round && *ping < version);
        prop_assert!(fresh || asked, "R15: the ack of {name} is stale");
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
        gaps::compare(&history)?;
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
