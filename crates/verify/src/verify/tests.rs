//! A judge that finds nothing is worse than none: each fault is committed once.

use std::sync::Arc;

use elector_api::{Rfc3339, parse_time};
use elector_protocol::{LeaseKey, ResourceVersion, Timestamp};
use serde_json::{Value, json};

use super::verify;
use crate::{Entry, Event, EventKind, History, Maker, Roster, What};

/// The beginning of these stories.
fn second(seconds: f64) -> Timestamp {
    let start = parse_time("2026-01-01T00:00:00Z").unwrap().as_micros();
    #[expect(clippy::cast_possible_truncation, reason = "a story takes minutes")]
    let offset = (seconds * 1e6) as i64;
    Timestamp::from_micros(start + offset).unwrap()
}

fn wire(seconds: f64) -> String {
    Rfc3339(second(seconds)).to_string()
}

fn event(at: f64, name: &str, kind: EventKind) -> Entry {
    Entry {
        at: second(at),
        what: What::Event(Event::new(name, kind)),
    }
}

fn candidate(at: f64, version: u64, name: &str, renewed: f64) -> Entry {
    let object = json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()},
        "spec": {"leaseName": "work", "renewTime": wire(renewed)},
    });
    let candidate = serde_json::from_value(object).unwrap();
    Entry {
        at: second(at),
        what: What::Candidate(name.to_owned(), Arc::new(candidate)),
    }
}

fn lease(at: f64, version: u64, spec: &Value, token: Option<(u64, i32)>) -> Entry {
    let mut annotations = serde_json::Map::new();
    if let Some((token, term)) = token {
        annotations.insert("elector.dev/token".to_owned(), token.to_string().into());
        annotations.insert("elector.dev/token-term".to_owned(), term.to_string().into());
    }
    let object = json!({
        "metadata": {
            "name": "work", "uid": "u", "resourceVersion": version.to_string(), "annotations": annotations,
        },
        "spec": spec,
    });
    let lease = serde_json::from_value(object).unwrap();
    Entry {
        at: second(at),
        what: What::Lease("work".to_owned(), Arc::new(lease)),
    }
}

fn held(holder: &str, term: i32, duration: i32, acquired: f64, renewed: f64) -> Value {
    json!({
        "holderIdentity": holder, "leaseTransitions": term, "leaseDurationSeconds": duration,
        "acquireTime": wire(acquired), "renewTime": wire(renewed),
    })
}

fn key() -> LeaseKey {
    LeaseKey::new("", "work")
}

fn roster() -> Roster {
    let mut roster = Roster::default();
    for (name, maker) in [
        ("a", Maker::Ours),
        ("b", Maker::Ours),
        ("go", Maker::ClientGo),
    ] {
        roster.enrol(key(), name, maker);
    }
    roster
}

fn judge(entries: &[Entry], roster: &Roster) -> Vec<String> {
    let verdict = verify(&History::from(entries.to_vec()), roster);
    verdict.faults().map(ToString::to_string).collect()
}

fn faults(entries: &[Entry]) -> Vec<String> {
    judge(entries, &roster())
}

#[track_caller]
fn assert_fault(entries: &[Entry], expected: &str) {
    let faults = faults(entries);
    assert!(
        faults.iter().any(|fault| fault.contains(expected)),
        "{faults:?}"
    );
}

/// Two candidates, a born record, `a` elected, accepted, and once renewed.
fn a_leads() -> Vec<Entry> {
    vec![
        candidate(0.0, 2, "a", 0.0),
        candidate(0.0, 3, "b", 0.0),
        lease(0.1, 10, &json!({"holderIdentity": ""}), None),
        lease(0.2, 11, &held("a", 1, 5, 0.2, 0.2), None),
        lease(0.3, 12, &held("a", 1, 15, 0.2, 0.3), Some((11, 1))),
        event(0.3, "a", EventKind::Leading),
        lease(3.3, 13, &held("a", 1, 15, 0.2, 3.3), Some((11, 1))),
    ]
}

fn and_then(mut story: Vec<Entry>, more: impl IntoIterator<Item = Entry>) -> Vec<Entry> {
    story.extend(more);
    story
}

#[test]
fn a_crash_and_a_hand_over_are_legal() {
    let crash = and_then(
        a_leads(),
        [
            event(4.0, "a", EventKind::Killed),
            candidate(13.4, 13, "b", 13.4),
            lease(18.4, 14, &held("b", 2, 5, 18.4, 18.4), None),
            lease(18.5, 15, &held("b", 2, 15, 18.4, 18.5), Some((14, 2))),
            event(18.5, "b", EventKind::Leading),
        ],
    );
    assert_eq!(faults(&crash), [""; 0]);

    let mut preferring = held("a", 1, 15, 0.2, 3.3);
    preferring["strategy"] = "OldestEmulationVersion".into();
    preferring["preferredHolder"] = "b".into();
    let mut granted = held("b", 2, 5, 4.1, 4.1);
    granted["strategy"] = "OldestEmulationVersion".into();
    let hand_over = and_then(
        a_leads(),
        [
            lease(4.0, 14, &preferring, Some((11, 1))),
            event(4.0, "a", EventKind::WorkStopped),
            lease(4.1, 15, &granted, None),
            lease(4.2, 16, &held("b", 2, 15, 4.1, 4.2), Some((15, 2))),
            event(4.2, "b", EventKind::Leading),
        ],
    );
    assert_eq!(faults(&hand_over), [""; 0]);
}

#[test]
fn two_of_ours_must_not_believe_at_once() {
    let story = and_then(
        a_leads(),
        [
            event(4.0, "b", EventKind::Leading),
            event(5.5, "a", EventKind::Lost),
        ],
    );
    assert_fault(&story, "a led for 1.500 s longer when b began");
    let client_go = and_then(a_leads(), [event(4.0, "go", EventKind::Leading)]);
    assert_eq!(faults(&client_go), [""; 0]);
    // Work that ends after the loss counts to its end.
    let late = [
        event(4.0, "a", EventKind::Lost),
        event(4.5, "a", EventKind::WorkStopped),
        event(4.2, "b", EventKind::Leading),
    ];
    assert_fault(&and_then(a_leads(), late), "a led for 0.300 s longer");
    // Nobody who leads to the end may be followed.
    assert_fault(
        &and_then(a_leads(), [event(4.0, "b", EventKind::Leading)]),
        "two believed at once",
    );
}

#[test]
fn a_live_record_must_not_be_granted() {
    let grant = |at: f64| {
        and_then(
            a_leads(),
            [
                candidate(at, 13, "b", at),
                lease(at, 14, &held("b", 2, 5, at, at), None),
            ],
        )
    };
    assert_fault(&grant(17.0), "granted 13.7");
    assert_eq!(faults(&grant(18.3)), [""; 0]);
}

#[test]
fn a_grant_needs_an_answer() {
    let silent = and_then(
        a_leads(),
        [lease(18.4, 14, &held("c", 2, 5, 18.4, 18.4), None)],
    );
    assert_fault(&silent, "granted to c, who is no candidate (R15)");
    let mut stale = a_leads();
    stale.remove(1);
    stale.insert(0, candidate(-10.0, 3, "b", -10.0));
    let stale = and_then(stale, [lease(18.4, 14, &held("b", 2, 5, 18.4, 18.4), None)]);
    assert_fault(&stale, "who last answered 28.4 s before (R15)");
}

#[test]
fn each_kind_of_illegal_write_is_found() {
    let token = Some((11, 1));
    for (after, expected) in [
        (
            lease(4.0, 14, &held("a", 2, 15, 0.2, 3.3), None),
            "S3: lease /work @14: a grant must",
        ),
        (
            lease(4.0, 14, &held("a", 1, 10, 0.2, 4.0), token),
            "S4: lease /work @14: a renewal must keep",
        ),
        (
            lease(4.0, 14, &held("a", 1, 30, 0.2, 3.3), token),
            "S4: lease /work @14: an elector",
        ),
        (
            lease(
                4.0,
                14,
                &json!({"holderIdentity": "", "leaseTransitions": 1}),
                token,
            ),
            "S6: lease /work @14: a release must",
        ),
    ] {
        assert_fault(&and_then(a_leads(), [after]), expected);
    }
}

#[test]
fn a_deleted_lease_is_owed_to_its_holder() {
    let again = |at: f64| {
        let gone = lease(4.0, 14, &held("a", 1, 15, 0.2, 3.3), Some((11, 1)));
        let What::Lease(name, last) = gone.what else {
            unreachable!()
        };
        and_then(
            a_leads(),
            [
                Entry {
                    at: gone.at,
                    what: What::LeaseGone(name, last),
                },
                event(4.1, "a", EventKind::Lost),
                lease(4.2, 15, &json!({"holderIdentity": ""}), None),
                candidate(at, 16, "b", at),
                lease(at, 17, &held("b", 1, 5, at, at), None),
            ],
        )
    };
    assert_fault(&again(17.0), "granted 13.700 s after a renewed");
    assert_eq!(faults(&again(18.3)), [""; 0]);
}

#[test]
fn who_leads_has_accepted() {
    let mut early = a_leads();
    // The event comes before the accept.
    early[5] = event(0.25, "a", EventKind::Leading);
    assert_fault(&early, "S2: lease /work: a led without having accepted");
}

#[test]
fn tokens_must_grow() {
    let again = lease(4.0, 14, &held("a", 1, 15, 0.2, 4.0), Some((10, 1)));
    let faults = faults(&and_then(a_leads(), [again]));
    assert!(
        faults
            .iter()
            .any(|fault| fault.contains("token 10 after 11")),
        "{faults:?}"
    );
}

#[test]
fn a_new_lease_names_nobody() {
    assert_fault(&[lease(0.0, 1, &held("a", 0, 15, 0.0, 0.0), None)], "R2");
    assert_fault(&[lease(0.0, 1, &json!({}), None)], "must be an empty text");
    assert_fault(
        &[lease(
            0.0,
            1,
            &json!({"holderIdentity": "", "leaseDurationSeconds": 5}),
            None,
        )],
        "R2",
    );
    assert_eq!(
        faults(&[lease(0.0, 1, &held("go", 0, 15, 0.0, 0.0), None)]),
        [""; 0]
    );
}

#[test]
fn what_a_stranger_wrote_is_nobodys_fault() {
    let story = [lease(0.0, 1, &held("a", 0, 15, 0.0, 0.0), None)];
    let mut roster = Roster::default();
    roster.enrol(key(), "a", Maker::Ours);
    assert_eq!(judge(&story, &roster).len(), 1);
    roster.foreign(ResourceVersion(1));
    assert_eq!(judge(&story, &roster), [""; 0]);
    // Nor is a lease that nobody here is about.
    assert_eq!(judge(&story, &Roster::default()), [""; 0]);
}
