//! Reports in, lines out.

use elector_protocol::holder::Loss;
use elector_protocol::{ResourceVersion, Token};

use super::*;

/// A reporter who knows `a` and `b`, and the moment at which everything begins.
struct Desk {
    reporter: Reporter<Vec<u8>>,
    began: Instant,
}

impl Desk {
    fn new() -> Self {
        let began = Instant::now();
        let tell = Teller::new(Vec::new(), false);
        let mut reporter = Reporter::new(tell, LeaseKey::new("ns", "l"));
        reporter.cast = BTreeSet::from([id("a"), id("b")]);
        Self { reporter, began }
    }

    fn at(&self, millis: u64) -> Instant {
        self.began + Duration::from_millis(millis)
    }

    fn candidate(&mut self, millis: u64, name: &str, event: Event) {
        let what = Report::Candidate(id(name), event);
        let at = self.at(millis);
        self.reporter.hear(News { at, what }).unwrap();
    }

    fn elector(&mut self, millis: u64, event: elector::Event) {
        let what = Report::Elector(event);
        let at = self.at(millis);
        self.reporter.hear(News { at, what }).unwrap();
    }

    fn leading(&mut self, millis: u64, name: &str, term: i32) {
        let token = Token(ResourceVersion(7));
        let term = Term(term);
        self.candidate(millis, name, Event::Leading { term, token });
    }

    fn changed(&mut self, millis: u64, holder: Option<&str>, term: i32, reason: &str) {
        let change = LeadershipChange {
            lease: self.reporter.lease.clone(),
            holder: holder.map(id),
            term: Term(term),
            previous: None,
            reason: reason.to_owned(),
        };
        self.elector(millis, elector::Event::LeadershipChanged(change));
    }

    fn yields(&mut self, millis: u64, name: &str, to: &str) {
        let (term, to) = (Term(1), id(to));
        let reason = StopReason::HandOver { to };
        self.candidate(millis, name, Event::Stopping { term, reason });
        self.candidate(millis, name, Event::WorkStopped { term });
    }

    /// The lines so far, without their times.
    fn lines(self) -> Vec<String> {
        let text = String::from_utf8(self.reporter.tell.into_inner()).unwrap();
        text.lines().map(|line| line[9..].to_owned()).collect()
    }
}

fn id(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

#[test]
fn a_crash_and_a_hand_over_are_measured() {
    let mut desk = Desk::new();
    desk.changed(0, Some("a"), 1, "a is the only one");
    desk.leading(0, "a", 1);
    desk.reporter.crashed(&id("a"), desk.at(1000)).unwrap();
    assert_eq!(desk.reporter.leader(), None);
    desk.changed(6200, Some("b"), 2, "a has not renewed");
    desk.leading(6300, "b", 2);
    desk.yields(7000, "b", "a");
    desk.changed(7001, Some("a"), 3, "b handed over");
    desk.leading(7002, "a", 3);
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
    assert_eq!(desk.lines(), expected);
}

#[test]
fn a_reason_that_comes_late_is_told_late() {
    let mut desk = Desk::new();
    desk.leading(0, "a", 1);
    let explained = |desk: &Desk| desk.reporter.leader().unwrap().explained;
    assert!(!explained(&desk));
    // Of another term; it explains nothing.
    desk.changed(1, Some("a"), 2, "again");
    assert!(!explained(&desk));
    desk.changed(2, Some("a"), 1, "the best");
    assert!(explained(&desk));
    assert_eq!(desk.lines(), ["a leads, term 1", "why: the best"]);
}

#[test]
fn what_strangers_did_in_between_is_not_a_hand_over_of_ours() {
    let mut desk = Desk::new();
    desk.leading(0, "a", 1);
    desk.yields(1, "a", "me");
    desk.changed(2, Some("me"), 2, "a handed over");
    assert_eq!(desk.reporter.leader(), None);
    desk.changed(3000, None, 2, "me released it");
    desk.changed(3001, Some("a"), 3, "the lease is released");
    desk.leading(3001, "a", 3);
    let lines = desk.lines();
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
fn a_question_that_is_repeated_is_told_once() {
    let mut desk = Desk::new();
    let preferred = |because: &str| elector::Event::Preferred {
        lease: LeaseKey::new("ns", "l"),
        holder: id("a"),
        preferred: id("b"),
        reason: format!("b {because}"),
    };
    for because in ["is older", "is older", "is better"] {
        desk.elector(0, preferred(because));
    }
    let term = Term(1);
    let reason = StopReason::Lost(Loss::Deleted);
    desk.candidate(0, "a", Event::Stopping { term, reason });
    assert_eq!(
        desk.lines(),
        [
            "b is older",
            "b is better",
            "a stops its work: the lease was deleted"
        ]
    );
}
