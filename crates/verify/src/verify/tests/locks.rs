//! The locks of electors, for which electors need not wait as work does.

use elector_protocol::LeaseKey;
use serde_json::json;

use super::acquisition::{a_acquires, acquired, followed};
use super::histories::{Continued, event, gone, held, key, lease, of_term, participants};
use crate::{
    EventKind, History, HistoryEntry, LeaseChangeKind, LeasePurpose, Limits, Participants,
    RecordedEnd, verify,
};

#[test]
fn electors_need_not_wait_for_their_own_locks_as_work_does() {
    let judged = |entries: Vec<HistoryEntry>, purpose| {
        let mut participants: Participants = participants();
        participants.add_lock(key(), purpose);
        let history = History::from(entries);
        let verdict = verify(&history, &participants);
        verdict.leases[&key()].clone()
    };
    // Deleted while `a` holds it, and acquired at once, without a wait for what was there.
    let deleted = || {
        let last = lease(4.0, 13, &held("a", 1, 15, 0.2, 3.3), Some((10, 1)));
        a_acquires().then([
            gone(last),
            lease(4.1, 14, &json!({"holderIdentity": ""}), None),
            acquired(4.2, 15, "b", 1, 14),
            of_term(event(4.2, "b", EventKind::Leading), 1, 14),
            event(4.3, "a", EventKind::Lost),
        ])
    };
    let live = || followed(5.0);
    for (purpose, entries, breaches) in [
        (LeasePurpose::Work, deleted(), 1),
        (LeasePurpose::ElectorLock, deleted(), 0),
        (LeasePurpose::BuiltinLock, deleted(), 0),
        (LeasePurpose::Work, live(), 1),
        (LeasePurpose::ElectorLock, live(), 1),
        (LeasePurpose::BuiltinLock, live(), 0),
    ] {
        let found = judged(entries, purpose);
        assert_eq!(found.breaches.len(), breaches, "{purpose:?} {found:?}");
        let displaced = found.extent.changes.get(&LeaseChangeKind::Displace);
        assert_eq!(displaced.is_some(), breaches == 0, "{purpose:?}");
        assert!(displaced.is_none() || found.terms[0].end != RecordedEnd::Overwritten);
    }
    assert_eq!(
        judged(deleted(), LeasePurpose::ElectorLock).excused.len(),
        1
    );
}

#[test]
fn the_locks_of_electors_are_known_by_their_names() {
    let participants = Participants::deduce(&History::default(), Limits::default());
    for (namespace, name, purpose) in [
        ("elector-system", "elector", LeasePurpose::ElectorLock),
        (
            "kube-system",
            "leader-election-controller",
            LeasePurpose::BuiltinLock,
        ),
        ("default", "elector", LeasePurpose::Work),
    ] {
        assert_eq!(
            participants.purpose(&LeaseKey::new(namespace, name)),
            purpose
        );
    }
}
