//! Reports in, lines out.

use elector::ChangeCause;
use elector_protocol::holder::Loss;

use super::*;

/// A reporter that knows `a` and `b`, and the time at which everything begins.
struct ReporterTest {
    reporter: Reporter<Vec<u8>>,
    began: Instant,
}

impl ReporterTest {
    fn new() -> Self {
        let began = Instant::now();
        let narration = Narration::new(Vec::new(), false);
        let mut reporter = Reporter::new(narration, LeaseKey::new("ns", "l"));
        reporter.participants = BTreeSet::from([id("a"), id("b")]);
        Self { reporter, began }
    }

    fn at(&self, millis: u64) -> Instant {
        self.began + Duration::from_millis(millis)
    }

    fn candidate(&mut self, millis: u64, name: &str, event: Event) {
        let what = ParticipantReport::Candidate(id(name), event);
        let at = self.at(millis);
        self.reporter.handle(TimedReport { at, what }).unwrap();
    }

    fn elector(&mut self, millis: u64, event: elector::Event) {
        let what = ParticipantReport::Elector(event);
        let at = self.at(millis);
        self.reporter.handle(TimedReport { at, what }).unwrap();
    }

    fn leading(&mut self, millis: u64, name: &str, term: i32) {
        let leading = Event::leading(term, 7, TermOrigin::Granted);
        self.candidate(millis, name, leading);
    }

    fn changed(&mut self, millis: u64, holder: Option<&str>, term: i32, reason: &str) {
        let change = LeadershipChange {
            lease: self.reporter.lease.clone(),
            holder: holder.map(id),
            term: Term(term),
            previous: None,
            cause: ChangeCause::Elected,
            reason: reason.to_owned(),
        };
        self.elector(millis, elector::Event::LeadershipChanged(change));
    }

    fn yields(&mut self, millis: u64, name: &str, to: &str) {
        let (term, to) = (1, id(to));
        let reason = StopReason::HandOver { to };
        self.candidate(millis, name, Event::stopping(term, reason));
        self.candidate(millis, name, Event::work_stopped(term));
    }

    /// The lines so far, without their times.
    fn lines(self) -> Vec<String> {
        let text = String::from_utf8(self.reporter.narration.into_inner()).unwrap();
        text.lines().map(|line| line[9..].to_owned()).collect()
    }
}

fn id(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

#[test]
fn a_crash_and_a_hand_over_are_measured() {
    let mut test = ReporterTest::new();
    test.changed(0, Some("a"), 1, "a is the only one");
    test.leading(0, "a", 1);
    test.reporter.crashed(&id("a"), test.at(1000)).unwrap();
    assert_eq!(test.reporter.leader(), None);
    test.changed(6200, Some("b"), 2, "a has not renewed");
    test.leading(6300, "b", 2);
    test.yields(7000, "b", "a");
    test.changed(7001, Some("a"), 3, "b handed over");
    test.leading(7002, "a", 3);
    assert_eq!(test.reporter.most_at_work(), 1);
    let expected = [
        "a leads, term 1",
        "why: a is the only one",
        "a crashes: dropped in the middle of its work, with nothing released",
        "b leads, term 2",
        "why: a has not renewed",
        "5.3 s after a crashed",
        "b stops its work and makes room for a",
        "a leads, term 3",
        "why: b handed over",
        "hand-over in 2.0 ms",
    ];
    assert_eq!(test.lines(), expected);
}

#[test]
fn a_reason_that_comes_late_is_told_late() {
    let mut test = ReporterTest::new();
    test.leading(0, "a", 1);
    let explained = |test: &ReporterTest| test.reporter.leader().unwrap().explained;
    assert!(!explained(&test));
    // Of another term; it explains nothing.
    test.changed(1, Some("a"), 2, "again");
    assert!(!explained(&test));
    test.changed(2, Some("a"), 1, "the best");
    assert!(explained(&test));
    assert_eq!(test.lines(), ["a leads, term 1", "why: the best"]);
}

#[test]
fn what_strangers_did_in_between_is_not_a_hand_over_of_ours() {
    let mut test = ReporterTest::new();
    test.leading(0, "a", 1);
    test.yields(1, "a", "me");
    test.changed(2, Some("me"), 2, "a handed over");
    assert_eq!(test.reporter.leader(), None);
    test.changed(3000, None, 2, "me released it");
    test.changed(3001, Some("a"), 3, "the lease is released");
    test.leading(3001, "a", 3);
    let lines = test.lines();
    assert_eq!(
        lines[2..],
        [
            "me leads ns/l, term 2",
            "why: a handed over",
            "nobody leads ns/l: me released it",
            "a leads, term 3",
            "why: the lease is released"
        ]
    );
}

#[test]
fn a_request_to_make_room_that_is_repeated_is_told_once() {
    let mut test = ReporterTest::new();
    let preferred = |because: &str| elector::Event::Preferred {
        lease: LeaseKey::new("ns", "l"),
        holder: id("a"),
        preferred: id("b"),
        reason: format!("b {because}"),
    };
    for because in ["is older", "is older", "is better"] {
        test.elector(0, preferred(because));
    }
    let reason = StopReason::Lost(Loss::Deleted);
    test.candidate(0, "a", Event::stopping(1, reason));
    assert_eq!(
        test.lines(),
        [
            "b is older",
            "b is better",
            "a stops its work: the lease was deleted"
        ]
    );
}
