//! Short histories to be judged, and words for what happens in them.

use std::sync::Arc;

use elector_api::{Lease, Rfc3339, parse_time};
use elector_protocol::{LeaseKey, ResourceVersion, Timestamp, Token};
use serde_json::{Value, json};

use crate::{
    EntryContent, Event, EventKind, History, HistoryEntry, Implementation, Participants, Verdict,
    verify,
};

/// The beginning of these histories.
pub(super) fn second(seconds: f64) -> Timestamp {
    let start = parse_time("2026-01-01T00:00:00Z").unwrap().as_micros();
    #[expect(clippy::cast_possible_truncation, reason = "a history takes minutes")]
    let offset = (seconds * 1e6) as i64;
    Timestamp::from_micros(start + offset).unwrap()
}

pub(super) fn wire(seconds: f64) -> String {
    Rfc3339(second(seconds)).to_string()
}

pub(super) fn event(at: f64, name: &str, kind: EventKind) -> HistoryEntry {
    HistoryEntry {
        at: second(at),
        content: EntryContent::Event(Event::new(name, kind)),
    }
}

pub(super) fn candidate(at: f64, version: u64, name: &str, renewed: f64) -> HistoryEntry {
    let object = json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": version.to_string()},
        "spec": {"leaseName": "work", "renewTime": wire(renewed)},
    });
    let candidate = serde_json::from_value(object).unwrap();
    HistoryEntry {
        at: second(at),
        content: EntryContent::Candidate(name.to_owned(), Arc::new(candidate)),
    }
}

pub(super) fn lease(
    at: f64,
    version: u64,
    spec: &Value,
    token: Option<(u64, i32)>,
) -> HistoryEntry {
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
    HistoryEntry {
        at: second(at),
        content: EntryContent::Lease("work".to_owned(), Arc::new(lease)),
    }
}

pub(super) fn held(holder: &str, term: i32, duration: i32, acquired: f64, renewed: f64) -> Value {
    json!({
        "holderIdentity": holder, "leaseTransitions": term, "leaseDurationSeconds": duration,
        "acquireTime": wire(acquired), "renewTime": wire(renewed),
    })
}

pub(super) fn key() -> LeaseKey {
    LeaseKey::new("", "work")
}

pub(super) fn participants() -> Participants {
    let mut participants = Participants::default();
    for (name, implementation) in [
        ("a", Implementation::Elector),
        ("b", Implementation::Elector),
        ("go", Implementation::ClientGo),
    ] {
        participants.add(key(), name, implementation);
    }
    participants
}

pub(super) fn verdict(entries: &[HistoryEntry]) -> Verdict {
    verify(&History::from(entries.to_vec()), &participants())
}

pub(super) fn messages(entries: &[HistoryEntry], participants: &Participants) -> Vec<String> {
    let verdict = verify(&History::from(entries.to_vec()), participants);
    verdict
        .promised_breaches()
        .map(ToString::to_string)
        .collect()
}

pub(super) fn breaches(entries: &[HistoryEntry]) -> Vec<String> {
    messages(entries, &participants())
}

#[track_caller]
pub(super) fn assert_breach(entries: &[HistoryEntry], expected: &str) {
    let breaches = breaches(entries);
    assert!(
        breaches
            .iter()
            .any(|broken_rule| broken_rule.contains(expected)),
        "{breaches:?}"
    );
}

/// Two candidates, a born record, `a` elected, accepted, and once renewed.
pub(super) fn a_leads() -> Vec<HistoryEntry> {
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

/// `a` leads, crashes after 3.3, and `b` follows.
pub(super) fn a_crashes() -> Vec<HistoryEntry> {
    a_leads().then([
        event(4.0, "a", EventKind::Killed),
        candidate(13.4, 13, "b", 13.4),
        lease(18.4, 14, &held("b", 2, 5, 18.4, 18.4), None),
        lease(18.5, 15, &held("b", 2, 15, 18.4, 18.5), Some((14, 2))),
        event(18.6, "b", EventKind::Leading),
    ])
}

/// A history that goes on.
pub(super) trait Continued {
    /// The same, and what happens next.
    fn then(self, more: impl IntoIterator<Item = HistoryEntry>) -> Self;
}

impl Continued for Vec<HistoryEntry> {
    fn then(mut self, more: impl IntoIterator<Item = HistoryEntry>) -> Self {
        self.extend(more);
        self
    }
}

/// The event with a term and its token, as ours have it.
pub(super) fn of_term(mut entry: HistoryEntry, term: i64, token: u64) -> HistoryEntry {
    if let EntryContent::Event(event) = &mut entry.content {
        event.term = Some(term);
        event.token = Some(Token(ResourceVersion(token)));
    }
    entry
}

/// The same entry with more in its Lease.
pub(super) fn with(mut entry: HistoryEntry, change: impl FnOnce(&mut Lease)) -> HistoryEntry {
    if let EntryContent::Lease(_, lease) = &mut entry.content {
        change(Arc::make_mut(lease));
    }
    entry
}

/// The same entry of a Lease that was created then.
pub(super) fn created(entry: HistoryEntry, at: f64) -> HistoryEntry {
    let object = json!({"metadata": {"creationTimestamp": wire(at)}});
    let dated = Lease::from_value(object).metadata.creation_timestamp;
    with(entry, |lease| lease.metadata.creation_timestamp = dated)
}

/// The object is deleted; its last revision is that of this entry.
pub(super) fn gone(entry: HistoryEntry) -> HistoryEntry {
    let content = match entry.content {
        EntryContent::Lease(name, last) => EntryContent::LeaseGone(name, last),
        EntryContent::Candidate(name, last) => EntryContent::CandidateGone(name, last),
        content => unreachable!("{content}"),
    };
    let at = entry.at;
    HistoryEntry { at, content }
}
