//! Histories whose recorder knows the writers: their clocks, and what electors had heard and seen.

use std::time::Duration;

use elector_api::{annotation, format_prefer};
use elector_protocol::{Identity, OperatorPreference, ResourceVersion, Timestamp};
use serde_json::{Value, json};

use super::acquisition::{a_acquires, acquired, followed};
use super::histories::{
    Continued, a_leads, breaches, gone, held, key, lease, messages, participants, second,
};
use crate::{
    CandidateAnswers, ElectorSight, History, HistoryEntry, LeasePurpose, Participants, RecordedEnd,
    RecordedWriter, TermSource, WriterRole, verify,
};

fn elector(answers: CandidateAnswers) -> WriterRole {
    WriterRole::Elector(ElectorSight {
        preemptions: None,
        answers: vec![answers],
        blind: Vec::new(),
    })
}

fn holder(name: &str, terms: TermSource) -> WriterRole {
    let identity = Identity::new(name).unwrap();
    WriterRole::Holder { identity, terms }
}

/// The answers with an ack of version 6 and this age, and a ping of that version and time.
fn answers(age: f64, ping: Option<(u64, f64)>) -> CandidateAnswers {
    let pings = ping.into_iter();
    CandidateAnswers {
        ack: Some((ResourceVersion(6), Duration::from_secs_f64(age))),
        pings: pings
            .map(|(version, at)| (ResourceVersion(version), second(at)))
            .collect(),
    }
}

/// The participants, and this writer of the revision of that version.
fn written(version: u64, sent: f64, rate: f64, role: WriterRole) -> Participants {
    let mut participants = participants();
    add_writer(&mut participants, version, sent, rate, role);
    participants
}

fn add_writer(
    participants: &mut Participants,
    version: u64,
    sent: f64,
    rate: f64,
    role: WriterRole,
) {
    let writer = RecordedWriter {
        role,
        born: second(0.0),
        sent: second(sent),
        rate,
        longest_lease: None,
    };
    participants.add_writer(ResourceVersion(version), writer);
}

#[track_caller]
fn assert_judged(entries: &[HistoryEntry], participants: &Participants, expected: &str) {
    let found = messages(entries, participants);
    let as_expected = match expected {
        "" => found.is_empty(),
        expected => found.iter().any(|found| found.contains(expected)),
    };
    assert!(as_expected, "{expected:?}: {found:?}");
}

/// The last renewal is of 3.3, and the record late 10 s after it.
#[test]
fn a_grant_is_judged_by_the_clock_of_its_writer_and_the_answers_that_it_had_heard() {
    let early = "S3: lease /work @14: granted after";
    let unanswered = "S7: lease /work @14: chose b, which had not answered";
    for (at, rate, answers, expected) in [
        (18.3, 1.0, answers(1.0, None), ""),
        (18.2, 1.0, answers(1.0, None), early),
        (17.0, 1.1, answers(1.0, None), ""),
        (19.0, 0.95, answers(1.0, None), early),
        (18.3, 1.0, CandidateAnswers::default(), unanswered),
        (18.3, 1.0, answers(4.9, None), ""),
        (18.3, 1.0, answers(5.0, None), unanswered),
        // An ack counts longer where it came after a ping of the round.
        (30.0, 1.0, answers(9.0, Some((5, 13.3))), ""),
        (30.0, 1.0, answers(9.0, Some((5, 13.2))), unanswered),
        (30.0, 1.0, answers(9.0, Some((7, 13.3))), unanswered),
        (30.0, 2.0, answers(9.0, Some((5, 8.3))), ""),
    ] {
        let grant = lease(at, 14, &held("b", 2, 5, at, at), None);
        let participants = written(14, at, rate, elector(answers));
        assert_judged(&a_leads().then([grant]), &participants, expected);
    }
}

#[test]
fn a_preferred_candidate_has_answered_just_now_and_the_holder_is_one() {
    let mut preferring = held("a", 1, 15, 0.2, 3.3);
    preferring["preferredHolder"] = "b".into();
    let asked = lease(4.0, 14, &preferring, Some((11, 1)));
    // While a preference stands, an elector that has heard nothing may write another signal.
    preferring["strategy"] = "OldestEmulationVersion".into();
    let signal = lease(4.1, 15, &preferring, Some((11, 1)));
    let history = a_leads().then([asked, signal]);
    let mut no_candidate = history.clone();
    no_candidate.remove(0);
    let ping = Some((5, 3.9));
    for (history, age, expected) in [
        (&history, 4.9, ""),
        (&history, 5.0, "S7: lease /work @14: chose b"),
        (&no_candidate, 4.9, "S11: lease /work @14: a, which is no"),
    ] {
        let mut participants = written(14, 4.0, 1.0, elector(answers(age, ping)));
        let deaf = elector(CandidateAnswers::default());
        add_writer(&mut participants, 15, 4.1, 1.0, deaf);
        assert_judged(history, &participants, expected);
    }
}

/// `b` acquires this number of seconds after a stranger wrote this record at 1.0.
fn acquired_after(seconds: f64, terms: TermSource, before: &Value, expected: &str) {
    let at = 1.0 + seconds;
    let mut participants = written(11, at, 1.0, holder("b", terms));
    participants.add_foreign(ResourceVersion(10));
    let history = [lease(1.0, 10, before, None), acquired(at, 11, "b", 1, 10)];
    assert_judged(&history, &participants, expected);
}

#[test]
fn an_acquisition_waits_by_the_clock_of_its_writer_and_for_electors_where_there_may_be_some() {
    let auto = TermSource::GrantedOrAcquired(Duration::from_secs(5));
    let (elected, plain) = (TermSource::Granted, TermSource::Acquired);
    let early = "S3: lease /work @11: acquired after";
    let taken = held("x", 0, 15, 1.0, 1.0);
    acquired_after(15.0, plain, &taken, "");
    acquired_after(14.0, plain, &taken, early);
    acquired_after(20.0, auto, &taken, "");
    acquired_after(19.0, auto, &taken, early);
    acquired_after(60.0, elected, &taken, "which is to be elected (R18)");
    let released = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
    acquired_after(0.0, plain, &released, "");
    acquired_after(4.0, auto, &released, early);
    acquired_after(5.0, auto, &released, "");
    // There was no Lease for the second before, as the writer saw.
    let emptied = json!({"holderIdentity": ""});
    acquired_after(13.0, plain, &emptied, early);
    acquired_after(14.0, plain, &emptied, "");
}

/// R6: the last holder of an earlier Lease, or of this one before a stranger emptied it, may believe for that long.
#[test]
fn an_unheld_record_is_free_once_its_writer_has_seen_no_holder_for_the_longest_lease() {
    let last = |version| lease(4.0, version, &held("a", 0, 15, 0.2, 3.3), None);
    let unheld = |at| lease(at, 14, &json!({"holderIdentity": ""}), None);
    let deleted = || vec![last(12), gone(last(13)), unheld(15.0)];
    let emptied = || vec![last(12), unheld(4.0)];
    let early = "S3: lease /work @15: acquired after";
    let (known, longer) = (None, Some(Duration::from_secs(20)));
    for (before, born, at, longest_lease, expected) in [
        (deleted(), 0.0, 18.9, known, early),
        (deleted(), 0.0, 19.0, known, ""),
        (deleted(), 0.0, 23.9, longer, early),
        (deleted(), 0.0, 24.0, longer, ""),
        (deleted(), 10.0, 24.9, known, early),
        (deleted(), 10.0, 25.0, known, ""),
        (emptied(), -20.0, 18.9, known, early),
        (emptied(), -20.0, 19.0, known, ""),
        (emptied(), -20.0, 23.9, longer, early),
    ] {
        let mut participants = participants();
        participants.add_foreign(ResourceVersion(12));
        participants.add_foreign(ResourceVersion(14));
        let writer = RecordedWriter {
            role: holder("b", TermSource::Acquired),
            born: second(born),
            sent: second(at),
            rate: 1.0,
            longest_lease,
        };
        participants.add_writer(ResourceVersion(15), writer);
        let history = before.then([acquired(at, 15, "b", 1, 14)]);
        assert_judged(&history, &participants, expected);
    }
}

/// R20, where the recorder knows which life of a name writes. A stranger writes the preference.
#[test]
fn a_term_is_resumed_by_the_life_that_wrote_its_record_and_that_nobody_is_preferred_to() {
    let early = "S3: lease /work @14: acquired";
    for (born, preferred, expected) in [(3.3, "a", ""), (3.4, "a", early), (0.0, "b", early)] {
        let mut last = held("a", 1, 15, 0.2, 3.3);
        last["preferredHolder"] = preferred.into();
        let signal = lease(4.0, 13, &last, Some((10, 1)));
        let history = a_acquires().then([signal, acquired(10.0, 14, "a", 2, 13)]);
        let mut participants = participants();
        participants.add_foreign(ResourceVersion(13));
        let writer = RecordedWriter {
            role: holder("a", TermSource::Acquired),
            born: second(born),
            sent: second(10.0),
            rate: 1.0,
            longest_lease: None,
        };
        participants.add_writer(ResourceVersion(14), writer);
        assert_judged(&history, &participants, expected);
        let terms = &verify(&History::from(history), &participants).leases[&key()].terms;
        let (first, next) = (&terms[0].end, &terms[1]);
        let is_resumed = *first == RecordedEnd::Replaced && next.accepted == Some(next.granted);
        assert_eq!(is_resumed, expected.is_empty(), "{terms:?}");
    }
}

#[test]
fn a_plain_process_accepts_no_grant() {
    let auto = TermSource::GrantedOrAcquired(Duration::from_secs(5));
    for (terms, expected) in [(auto, ""), (TermSource::Acquired, "accepted a grant (R18)")] {
        let participants = written(12, 0.3, 1.0, holder("a", terms));
        assert_judged(&a_leads(), &participants, expected);
    }
}

#[test]
fn an_elector_leaves_the_lock_of_the_built_in_controller_to_another_elector_for_a_while() {
    let early = "S3: lease /work @13: acquired after";
    for (purpose, seconds, expected) in [
        (LeasePurpose::BuiltinLock, 0.1, ""),
        (LeasePurpose::ElectorLock, 15.0, ""),
        (LeasePurpose::ElectorLock, 14.0, early),
    ] {
        let role = holder("b", TermSource::Acquired);
        let mut participants = written(13, 3.3 + seconds, 1.0, role);
        participants.add_lock(key(), purpose);
        // The moves alone count here.
        let mut history = followed(seconds);
        history.retain(|entry| entry.content.version().is_some());
        assert_judged(&history, &participants, expected);
    }
    let elector_name = Identity::of_elector("host", 7);
    let of_elector = held(elector_name.as_str(), 0, 15, 1.0, 1.0);
    let unheld = json!({"holderIdentity": ""});
    let early = "S3: lease /work @11: acquired after";
    for (before, purpose, seconds, expected) in [
        (&of_elector, LeasePurpose::BuiltinLock, 5.0, ""),
        (&of_elector, LeasePurpose::BuiltinLock, 4.9, early),
        (&unheld, LeasePurpose::BuiltinLock, 0.0, ""),
        (&unheld, LeasePurpose::ElectorLock, 0.0, ""),
        (&unheld, LeasePurpose::Work, 0.0, early),
    ] {
        let at = 1.0 + seconds;
        let role = holder("b", TermSource::Acquired);
        let mut participants = written(11, at, 1.0, role);
        participants.add_lock(key(), purpose);
        participants.add_foreign(ResourceVersion(10));
        let history = [lease(1.0, 10, before, None), acquired(at, 11, "b", 1, 10)];
        assert_judged(&history, &participants, expected);
    }
}

#[test]
fn no_process_replaces_a_record_that_it_cannot_read() {
    let born = lease(0.1, 10, &json!({"holderIdentity": ""}), None);
    let role = elector(CandidateAnswers::default());
    assert_judged(&[born], &written(10, 0.1, 1.0, role), "");
    let mut unreadable = held("a", 1, 15, 0.2, 3.3);
    unreadable["leaseDurationSeconds"] = "soon".into();
    let unreadable = lease(4.0, 14, &unreadable, Some((11, 1)));
    let grant = lease(30.0, 15, &held("b", 2, 5, 30.0, 30.0), None);
    let mut participants = written(15, 30.0, 1.0, elector(answers(1.0, None)));
    participants.add_foreign(ResourceVersion(14));
    let expected = "S3: lease /work @15: a record that cannot be read was replaced";
    let history = a_leads().then([unreadable.clone(), grant]);
    assert_judged(&history, &participants, expected);
    // Since when the record after it stands is not known, so that the round of pings may have begun at any time.
    let readable = lease(4.1, 15, &held("x", 1, 15, 4.1, 4.1), None);
    let grant = lease(5.0, 16, &held("b", 2, 5, 5.0, 5.0), None);
    let history = a_leads().then([unreadable, readable, grant]);
    for (ping, expected) in [(Some((5, 1.0)), ""), (None, "S7: lease /work @16: chose b")] {
        let mut participants = written(16, 5.0, 1.0, elector(answers(9.0, ping)));
        participants.add_foreign(ResourceVersion(14));
        participants.add_foreign(ResourceVersion(15));
        assert_judged(&history, &participants, expected);
    }
}

/// The next record is not held against the one before.
#[test]
fn a_participant_that_writes_what_cannot_be_read_is_found_once() {
    let mut unreadable = held("a", 1, 15, 0.2, 3.3);
    unreadable["leaseDurationSeconds"] = "soon".into();
    let history = a_leads().then([
        lease(4.0, 14, &unreadable, Some((11, 1))),
        lease(4.2, 15, &held("a", 0, 15, 0.2, 4.2), Some((14, 0))),
    ]);
    let found = breaches(&history);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("S3: lease /work @14"), "{found:?}");
}

/// A lease whose holder is asked to make room again and again.
struct HandOvers {
    entries: Vec<HistoryEntry>,
    participants: Participants,
    /// Times of which its elector saw nothing.
    blind: Vec<(Timestamp, Timestamp)>,
    /// Its budget of pre-emptions.
    preemptions: Option<u8>,
    now: f64,
    version: u64,
    term: i32,
    token: Option<(u64, i32)>,
    spec: Value,
}

impl HandOvers {
    /// Led by `a` since long.
    fn new() -> Self {
        let mut this = Self {
            entries: Vec::new(),
            participants: participants(),
            blind: Vec::new(),
            preemptions: None,
            now: 100.0,
            version: 0,
            term: 0,
            token: None,
            spec: json!({"holderIdentity": ""}),
        };
        this.write(None);
        this.lead("a");
        this
    }

    /// Writes the record, as an elector or as this candidate.
    fn write(&mut self, by: Option<&str>) {
        self.write_as_stranger();
        let role = match by {
            Some(name) => holder(name, TermSource::Granted),
            None => WriterRole::Elector(ElectorSight {
                preemptions: self.preemptions,
                answers: vec![answers(1.0, None)],
                blind: self.blind.clone(),
            }),
        };
        add_writer(&mut self.participants, self.version, self.now, 1.0, role);
    }

    fn write_as_stranger(&mut self) {
        self.version += 1;
        let entry = lease(self.now, self.version, &self.spec, self.token);
        self.entries.push(entry);
    }

    fn grant(&mut self, to: &str, by: Option<&str>) {
        self.term += 1;
        self.spec = held(to, self.term, 5, self.now, self.now);
        self.token = None;
        self.write(by);
    }

    /// An elector grants the lease, and the electee accepts.
    fn lead(&mut self, name: &str) {
        self.grant(name, None);
        self.accept(name);
    }

    fn accept(&mut self, name: &str) {
        self.spec = held(name, self.term, 15, self.now, self.now + 0.1);
        self.token = Some((self.version, self.term));
        self.write(Some(name));
    }

    /// This number of seconds later the elector prefers `b`, and `a` hands over at once. Returns whether that was
    /// wrong.
    fn hand_over(&mut self, after: f64) -> bool {
        let is_wrong = self.signal(after, "preferredHolder", "b");
        self.grant("b", Some("a"));
        is_wrong
    }

    /// This number of seconds later the elector writes this signal. Returns whether that was wrong.
    fn signal(&mut self, after: f64, field: &str, value: &str) -> bool {
        self.now += after;
        self.spec[field] = value.into();
        self.write(None);
        let version = format!("R23: lease /work @{}", self.version);
        let found = messages(&self.entries, &self.participants);
        found.iter().any(|found| found.starts_with(&version))
    }

    /// The successor accepts, and makes room for `a`.
    fn succeed(&mut self) {
        self.accept("b");
        let released = json!({
            "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": self.term,
        });
        (self.spec, self.token) = (released, None);
        self.write(Some("b"));
        self.lead("a");
    }
}

#[test]
fn an_elector_prefers_no_candidate_for_a_minute_after_a_hand_over_in_vain() {
    for (seconds, wrong) in [(60.0, false), (59.9, true)] {
        let mut lease = HandOvers::new();
        assert!(!lease.hand_over(10.0));
        lease.lead("a");
        assert_eq!(lease.hand_over(seconds), wrong);
    }
}

#[test]
fn an_elector_has_three_holders_make_room_within_the_window_and_six_for_an_operator() {
    // A stranger that changes the record hides what its term was before, and one that leaves it does not.
    for (fourth, is_blind, of_stranger, wrong) in [
        (398.0, false, None, true),
        (596.0, false, None, true),
        (598.0, false, None, false),
        (398.0, true, None, false),
        (398.0, false, Some(15), true),
        (398.0, false, Some(20), false),
    ] {
        let mut lease = HandOvers::new();
        for _ in 0..3 {
            assert!(!lease.hand_over(1.0));
            lease.succeed();
        }
        if is_blind {
            lease.blind.push((second(100.0), second(102.5)));
        }
        if let Some(duration) = of_stranger {
            lease.spec["leaseDurationSeconds"] = duration.into();
            lease.write_as_stranger();
        }
        let is_wrong = lease.signal(fourth, "preferredHolder", "b");
        assert_eq!(is_wrong, wrong, "{fourth}");
        // An elector that saw them all prefers nobody by another signal.
        lease.blind.clear();
        assert!(!lease.signal(1.0, "strategy", "OldestEmulationVersion"));
    }
    for budget in [1, 2, 5] {
        let mut lease = HandOvers::new();
        lease.preemptions = Some(budget);
        for number in 0..=budget {
            assert_eq!(
                lease.hand_over(1.0),
                number == budget,
                "{number} of {budget}"
            );
            lease.succeed();
        }
    }
    let mut worded = HandOvers::new();
    let word = |entry: &mut HistoryEntry| {
        if let crate::EntryContent::Lease(_, lease) = &mut entry.content {
            let lease = std::sync::Arc::make_mut(lease);
            let annotations = lease.metadata.annotations.get_or_insert_default();
            let preference = OperatorPreference {
                candidate: Identity::new("b").unwrap(),
                until: second(5000.0),
            };
            annotations.insert(annotation::PREFER.to_owned(), format_prefer(&preference));
        }
    };
    for number in 0..7 {
        worded.entries.last_mut().map(word);
        assert_eq!(worded.hand_over(1.0), number == 6, "{number}");
        worded.succeed();
    }
}
