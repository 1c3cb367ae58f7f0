//! A lease that processes of ours share with plain client-go ones.

use std::sync::Arc;

use serde_json::json;

use super::acquisition::{a_acquires, signed};
use super::histories::{Continued, event, held, key, lease, participants, wire, with};
use crate::{
    Beginning, EntryContent, EventKind, GuaranteeLevel, History, HistoryEntry, Implementation,
    Invariant, LeaseChangeKind, LeaseVerdict, RecordedEnd, verify,
};

/// A plain client-go process takes the lease of `a`, whose token it leaves in place, and lets go.
fn go_takes(at: f64) -> Vec<HistoryEntry> {
    let let_go = json!({
        "holderIdentity": "", "leaseTransitions": 2, "leaseDurationSeconds": 1,
        "acquireTime": wire(at + 2.0), "renewTime": wire(at + 2.0),
    });
    a_acquires().then([
        event(4.0, "a", EventKind::Killed),
        lease(at, 13, &held("go", 2, 15, at, at), Some((10, 1))),
        lease(at + 2.0, 14, &let_go, Some((10, 1))),
    ])
}

/// The recording of a plain lease: nothing tells that there were no candidates.
fn midway(entries: &[HistoryEntry]) -> LeaseVerdict {
    let history = History::from(entries.to_vec()).with_beginning(Beginning::Midway);
    let mut participants = participants();
    participants.add(key(), "go-2", Implementation::ClientGo);
    verify(&history, &participants).leases[&key()].clone()
}

#[test]
fn a_plain_client_that_shares_the_lease_is_judged_as_client_go() {
    let taken = midway(&go_takes(18.4));
    assert_eq!(taken.breaches, []);
    assert_eq!(taken.extent.changes[&LeaseChangeKind::Take], 1);
    assert_eq!(taken.terms[0].end, RecordedEnd::Replaced);
    assert_eq!(taken.terms[1].accepted, Some(taken.terms[1].granted));
    let early = midway(&go_takes(10.0));
    assert_eq!(early.breaches[0].level, GuaranteeLevel::AsClientGo);
    assert!(
        early.breaches[0]
            .message
            .starts_with("taken 6.700 s after a renewed")
    );

    // Its like takes at once what it let go. To one of ours that record is unproven, since it has a token.
    let again = |name, token| {
        let entry = lease(20.6, 15, &held(name, 3, 15, 20.6, 20.6), Some(token));
        let entry = if name == "b" { signed(entry) } else { entry };
        midway(&go_takes(18.4).then([entry])).breaches
    };
    assert_eq!(again("go-2", (10, 1)), []);
    let ours = again("b", (14, 3));
    assert!(
        ours[0]
            .message
            .starts_with("acquired 2.200 s after go renewed"),
        "{ours:?}"
    );
    // A lease with a strategy is an elector's to grant.
    let mut strategic = go_takes(18.4);
    for entry in &mut strategic {
        if let EntryContent::Lease(_, lease) = &mut entry.content {
            let lease = Arc::make_mut(lease);
            lease.spec.strategy = Some("OldestEmulationVersion".to_owned());
        }
    }
    let expected = GuaranteeLevel::Promised;
    assert_eq!(midway(&strategic).breaches[0].level, expected);
}

#[test]
fn a_client_go_process_that_takes_what_it_let_go_is_not_early() {
    let entry = lease(20.6, 16, &held("go", 3, 15, 20.6, 20.6), Some((10, 1)));
    let mut history = go_takes(18.4).then([entry]);
    assert_eq!(midway(&history).breaches, []);
    // Nor where labels were changed meanwhile.
    let relabelled = with(history[history.len() - 2].clone(), |lease| {
        lease.metadata.resource_version = Some("15".to_owned());
    });
    history.insert(history.len() - 1, relabelled);
    assert_eq!(midway(&history).breaches, []);
}

#[test]
fn a_lease_that_its_holders_acquire_needs_no_recorded_candidates() {
    assert_eq!(midway(&a_acquires()).unjudged, []);
    // One that an elector serves does.
    let granted = lease(18.4, 13, &held("b", 2, 5, 18.4, 18.4), None);
    let served = midway(&a_acquires().then([granted]));
    let invariants = served.unjudged.iter().map(|unjudged| unjudged.invariant);
    let expected = [Invariant::S7, Invariant::S11];
    assert_eq!(invariants.collect::<Vec<_>>(), expected);
}
