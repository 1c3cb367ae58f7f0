//! The extent of a check, its unjudged parts, and its clocks.

use std::time::Duration;

use elector_protocol::ResourceVersion;
use serde_json::json;

use super::histories::{
    Continued, a_crashes, a_leads, candidate, created, event, gone, held, key, lease, participants,
    second, verdict,
};
use crate::{
    Beginning, EventKind, History, HistoryEntry, Invariant, LeaseChangeKind, LeaseVerdict,
    Participants, RecordedEnd, TermRecord, verify,
};

fn lease_verdict_of(history: &History, participants: &Participants) -> LeaseVerdict {
    verify(history, participants).leases[&key()].clone()
}

fn unjudged(lease_verdict: &LeaseVerdict) -> Vec<Invariant> {
    lease_verdict
        .unjudged
        .iter()
        .map(|unjudged| unjudged.invariant)
        .collect()
}

#[test]
fn terms_and_moves_are_counted() {
    let lease_verdict = verdict(&a_crashes()).leases[&key()].clone();
    assert_eq!(lease_verdict.unjudged, []);
    let extent = &lease_verdict.extent;
    assert_eq!((extent.revisions, extent.terms, extent.leaders), (6, 2, 2));
    let changes = [
        (LeaseChangeKind::Create, 1),
        (LeaseChangeKind::GrantUnheld, 1),
        (LeaseChangeKind::GrantExpired, 1),
        (LeaseChangeKind::Accept, 2),
        (LeaseChangeKind::Renew, 1),
    ];
    assert_eq!(extent.changes, changes.into());
    assert_eq!(extent.longest_gap, Duration::from_millis(15_200));
    assert!(extent.traced);
    assert_eq!(extent.from, Some(second(0.1)));
    assert_eq!(extent.covered, Duration::from_millis(18_500));
    let ends: Vec<_> = lease_verdict
        .terms
        .iter()
        .map(|term_record| {
            (
                term_record.holder.as_str(),
                term_record.renewals,
                &term_record.end,
            )
        })
        .collect();
    assert_eq!(
        ends,
        [
            ("a", 1, &RecordedEnd::Replaced),
            ("b", 0, &RecordedEnd::Lasts)
        ]
    );
}

#[test]
fn a_grant_that_is_not_accepted_is_no_leadership() {
    let mut history = a_leads();
    history.truncate(4);
    let history = history.then([
        candidate(5.1, 12, "b", 5.1),
        lease(5.3, 13, &held("b", 2, 5, 5.3, 5.3), None),
    ]);
    let lease_verdict = verdict(&history).leases[&key()].clone();
    assert_eq!(
        (lease_verdict.extent.terms, lease_verdict.terms.len()),
        (0, 2)
    );
    assert_eq!(lease_verdict.breaches, []);
}

/// Electors with the flag `--reserve`, which went, wrote such a placeholder over a holder of client-go's.
#[test]
fn a_lease_that_was_reserved_is_judged_like_one_that_expires() {
    let judged = |duration, granted| {
        let reserved = held("elector.dev:reserved-from:go", 2, duration, 4.0, 4.0);
        verdict(&[
            candidate(0.0, 2, "go", 0.0),
            candidate(0.0, 3, "a", 0.0),
            lease(0.1, 10, &json!({"holderIdentity": ""}), None),
            lease(0.2, 11, &held("go", 1, 5, 0.2, 0.2), None),
            lease(1.3, 12, &held("go", 1, 15, 0.2, 1.3), None),
            lease(4.0, 13, &reserved, Some((12, 2))),
            candidate(granted - 1.0, 14, "a", granted - 1.0),
            lease(granted, 15, &held("a", 3, 5, granted, granted), None),
        ])
        .leases[&key()]
            .clone()
    };
    let lease_verdict = judged(15, 19.0);
    assert_eq!(lease_verdict.breaches, []);
    assert_eq!(lease_verdict.extent.changes[&LeaseChangeKind::Reserve], 1);
    let ends = |term: &TermRecord| (term.holder.clone(), term.end.clone());
    assert_eq!(
        lease_verdict.terms.iter().map(ends).collect::<Vec<_>>(),
        [
            ("go".to_owned(), RecordedEnd::Replaced),
            ("a".to_owned(), RecordedEnd::Lasts)
        ]
    );
    for (duration, granted) in [(14, 19.0), (15, 17.0)] {
        assert_eq!(judged(duration, granted).breaches.len(), 1);
    }
}

#[test]
fn a_revision_that_was_recorded_twice_counts_once() {
    let mut twice = Vec::new();
    for entry in a_crashes() {
        twice.extend([entry.clone(), entry]);
    }
    twice.retain({
        let mut events = 0;
        move |entry| {
            let event = matches!(entry.content, crate::EntryContent::Event(_));
            events += usize::from(event);
            !event || events % 2 == 0
        }
    });
    let lease_verdict = verdict(&twice).leases[&key()].clone();
    assert_eq!(lease_verdict.extent.revisions, 6);
    assert_eq!(lease_verdict.breaches, []);
}

#[test]
fn a_recording_that_begins_in_the_midst_judges_what_follows() {
    // From the first renewal on.
    let later = a_crashes().split_off(6);
    let midst = History::from(later).with_beginning(Beginning::Midway);
    let lease_verdict = lease_verdict_of(&midst, &participants());
    assert_eq!(lease_verdict.breaches, []);
    assert_eq!(unjudged(&lease_verdict), [Invariant::S3]);
    assert_eq!(lease_verdict.extent.changes[&LeaseChangeKind::Found], 1);
    // A grant of a record of unknown age.
    let mut clocks = participants();
    clocks.limits.clock_difference = None;
    assert_eq!(lease_verdict_of(&midst, &clocks).breaches, []);
    // A record that says nothing might as well have been created then.
    let born = a_crashes().split_off(2);
    let born = lease_verdict_of(
        &History::from(born).with_beginning(Beginning::Midway),
        &participants(),
    );
    assert_eq!(
        (
            born.unjudged.len(),
            born.extent.changes[&LeaseChangeKind::Create]
        ),
        (0, 1)
    );
    // From nothing, it would be a Lease that was created with a holder.
    let nothing = midst.with_beginning(Beginning::Empty);
    assert_eq!(
        lease_verdict_of(&nothing, &participants()).breaches.len(),
        1
    );
}

#[test]
fn what_happened_in_a_gap_is_not_judged() {
    let without_the_grant = |mut entries: Vec<HistoryEntry>| {
        // The grant and the accept that end the term of `a` were not recorded.
        entries.retain(|entry| {
            !entry
                .content
                .version()
                .is_some_and(|version| (13..15).contains(&version.0))
        });
        History::from(entries)
    };
    let broken = lease_verdict_of(&without_the_grant(a_crashes()), &participants());
    assert!(!broken.breaches.is_empty());
    let mut history = without_the_grant(a_crashes());
    history.gap_before(ResourceVersion(15));
    let lease_verdict = lease_verdict_of(&history, &participants());
    assert_eq!(lease_verdict.breaches, []);
    assert_eq!(unjudged(&lease_verdict), [Invariant::S3]);
    let expected = "what happened in 1 gap of the recording, the first before revision @15";
    assert_eq!(lease_verdict.unjudged[0].why, expected);
    let ends: Vec<_> = lease_verdict
        .terms
        .iter()
        .map(|term_record| (term_record.holder.as_str(), &term_record.end))
        .collect();
    let expected = [("a", &RecordedEnd::Unseen), ("b", &RecordedEnd::Lasts)];
    assert_eq!(ends, expected);
    // A record that follows a gap may be older than its recording.
    let mut clocks = participants();
    clocks.limits.clock_difference = None;
    for (gap, expected) in [(14, 0), (9, 1)] {
        let mut history = History::from(a_leads().then([
            lease(10.0, 14, &held("a", 1, 15, 0.2, 4.0), Some((11, 1))),
            candidate(20.0, 15, "b", 20.0),
            lease(20.1, 16, &held("b", 2, 5, 20.1, 20.1), None),
        ]));
        history.gap_before(ResourceVersion(gap));
        assert_eq!(lease_verdict_of(&history, &clocks).breaches.len(), expected);
    }
    // A breach that a gap cannot explain is found all the same.
    let mut later = a_crashes();
    later.push(lease(20.0, 16, &held("b", 2, 3, 18.4, 20.0), Some((14, 2))));
    let mut later = without_the_grant(later);
    later.gap_before(ResourceVersion(15));
    assert_eq!(
        lease_verdict_of(&later, &participants()).breaches[0].invariant,
        Invariant::S10
    );
}

#[test]
fn a_lease_that_was_created_meanwhile_is_judged_from_its_creation() {
    let held = || lease(8.0, 12, &held("a", 1, 15, 7.9, 8.0), None);
    let deleted = gone(lease(7.0, 11, &json!({"holderIdentity": ""}), None));
    for (entries, expected) in [
        (vec![created(held(), 1.0)], 0),
        (vec![created(held(), 2.0)], 1),
        (vec![deleted, held()], 1),
    ] {
        let history = History::from(vec![candidate(0.0, 2, "a", 0.0)].then(entries));
        let history = history.with_beginning(Beginning::Midway);
        let breaches = lease_verdict_of(&history, &participants()).breaches;
        assert_eq!(breaches.len(), expected, "{breaches:?}");
    }
}

#[test]
fn what_was_not_recorded_is_not_judged() {
    let leases = a_crashes()
        .into_iter()
        .filter(|entry| matches!(entry.content, crate::EntryContent::Lease(..)));
    let history = History::from(leases.collect::<Vec<_>>()).with_beginning(Beginning::Midway);
    let lease_verdict = lease_verdict_of(&history, &participants());
    assert_eq!(lease_verdict.breaches, []);
    assert!(!lease_verdict.extent.traced);
    let expected = [Invariant::S7, Invariant::S11, Invariant::S2, Invariant::S9];
    assert_eq!(unjudged(&lease_verdict), expected);

    let nothing = lease_verdict_of(&History::default(), &participants());
    assert_eq!(unjudged(&nothing), [Invariant::S1]);

    let go = [lease(0.1, 10, &held("go", 0, 15, 0.1, 0.2), None)];
    let lease_verdict = verdict(&go).leases[&key()].clone();
    let expected = [Invariant::S1, Invariant::S2, Invariant::S9];
    assert_eq!(unjudged(&lease_verdict), expected);
}

/// A crash of `a`, whose clock is ten minutes ahead of all others; `b` follows after `seconds`.
fn skewed(seconds: f64) -> Vec<HistoryEntry> {
    let ahead = 600.0;
    vec![
        candidate(0.0, 2, "a", 0.0),
        lease(0.1, 10, &json!({"holderIdentity": ""}), None),
        lease(0.2, 11, &held("a", 1, 5, 0.2, 0.2), None),
        lease(0.3, 12, &held("a", 1, 15, 0.2, ahead), Some((11, 1))),
        event(0.3, "a", EventKind::Leading),
        event(0.4, "a", EventKind::Killed),
        candidate(seconds, 13, "b", seconds),
        lease(seconds, 14, &held("b", 2, 5, seconds, seconds), None),
    ]
}

#[test]
fn times_of_two_clocks_are_not_compared() {
    let mut participants = participants();
    let breaches = |history, participants: &Participants| {
        lease_verdict_of(&History::from(history), participants)
            .breaches
            .len()
    };
    assert!(breaches(skewed(15.4), &participants) > 0);
    participants.limits.clock_difference = None;
    assert_eq!(breaches(skewed(15.4), &participants), 0);
    // Granted too early by the one clock of the recording, were it for the first digit after the point.
    participants.limits.recording_delay = Duration::from_millis(100);
    assert_eq!(breaches(skewed(15.3), &participants), 0);
    assert_eq!(breaches(skewed(14.0), &participants), 1);
    // An elector whose clock runs a tenth faster waits no longer.
    participants.limits.drift = 1.1;
    assert_eq!(breaches(skewed(14.0), &participants), 0);
}

#[test]
fn absence_counts_from_the_record_that_was_deleted() {
    let mut participants = participants();
    participants.limits.clock_difference = None;
    let again = |at: f64| {
        let last = lease(4.0, 14, &held("a", 1, 15, 0.2, 3.3), Some((11, 1)));
        a_leads().then([
            gone(last),
            event(4.1, "a", EventKind::Lost),
            lease(at, 15, &json!({"holderIdentity": ""}), None),
            candidate(at, 16, "b", at),
            lease(at + 0.1, 17, &held("b", 1, 5, at + 0.1, at + 0.1), None),
        ])
    };
    let breaches = |at| {
        lease_verdict_of(&History::from(again(at)), &participants)
            .breaches
            .len()
    };
    assert_eq!(breaches(18.4), 0);
    assert_eq!(breaches(10.0), 1);
}
