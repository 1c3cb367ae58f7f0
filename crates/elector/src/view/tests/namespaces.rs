//! Lists of several namespaces, each of which speaks for itself alone.

use std::sync::Arc;

use elector_protocol::elector::{Action, Settings};
use elector_protocol::{LeaseRecord, Timestamp};

use super::{LISTED, candidate, held, id, lease, time};
use crate::view::{CandidateSeen, LeaseKey, LeaseSeen, ResourceVersion, Restored, View};

fn watched(name: &str) -> Option<Arc<str>> {
    Some(name.into())
}

fn key(namespace: &str) -> LeaseKey {
    LeaseKey::new(namespace, "l")
}

fn lease_in(namespace: &str, version: u64, record: LeaseRecord) -> LeaseSeen {
    LeaseSeen {
        key: key(namespace),
        ..lease("l", version, record)
    }
}

fn candidate_in(namespace: &str, version: u64) -> CandidateSeen {
    CandidateSeen {
        lease: key(namespace),
        ..candidate("x", "l", version)
    }
}

/// A view of the namespaces `a` and `b`, each with a lease of `x` and its candidate, listed at 1 s.
fn both() -> View {
    let mut view = View::new([watched("a"), watched("b")]);
    for (namespace, version) in [("a", 10), ("b", 11)] {
        let seen = vec![lease_in(namespace, version, held("x", 1))];
        view.handle_leases(time(1_000), &watched(namespace), LISTED, seen)
            .unwrap();
        let seen = vec![candidate_in(namespace, version)];
        view.handle_candidates(time(1_000), &watched(namespace), LISTED, seen);
    }
    while view.next_dirty().is_some() {}
    view
}

fn candidates(view: &View, namespace: &str) -> usize {
    let election = view.election(&key(namespace));
    let candidates = election.map(|election| election.unwrap().candidates().count());
    candidates.unwrap_or_default()
}

#[test]
fn a_list_takes_what_it_does_not_show_from_its_own_namespace_alone() {
    let mut view = both();
    view.handle_lease_gap(&watched("a"));
    view.handle_leases(time(2_000), &watched("a"), LISTED, vec![])
        .unwrap();
    assert_eq!(view.lease_version(&key("a")), None);
    assert_eq!(view.lease_version(&key("b")), Some(ResourceVersion(11)));
    assert_eq!(view.next_dirty(), Some(key("a")));
    assert_eq!(view.next_dirty(), None);
    view.handle_candidate_gap(&watched("b"));
    view.handle_candidates(time(2_000), &watched("b"), LISTED, vec![]);
    assert_eq!((candidates(&view, "a"), candidates(&view, "b")), (1, 0));
}

/// A list must not be older than what was known before *it* was asked for (R4).
#[test]
fn a_gap_of_one_namespace_does_not_make_a_slow_list_of_another_a_restored_store() {
    let mut view = both();
    view.handle_lease_gap(&watched("b"));
    view.handle_lease_reply(time(2_000), lease_in("b", 20, held("x", 2)));
    view.handle_lease_gap(&watched("a"));
    let slow = vec![lease_in("b", 11, held("x", 1))];
    assert_eq!(
        view.handle_leases(time(2_000), &watched("b"), LISTED, slow),
        Ok(())
    );
    assert_eq!(view.lease_version(&key("b")), Some(ResourceVersion(20)));
    view.handle_lease_gap(&watched("b"));
    let old = vec![lease_in("b", 11, held("x", 1))];
    assert_eq!(
        view.handle_leases(time(2_000), &watched("b"), LISTED, old),
        Err(Restored)
    );
}

/// The proof of absence (R6) is that of the namespace in which the name is.
#[test]
fn a_name_is_absent_since_the_list_of_its_own_namespace() {
    for relisted in ["a", "b"] {
        let mut view = View::new([watched("a"), watched("b")]);
        for namespace in ["a", "b"] {
            view.handle_leases(time(1_000), &watched(namespace), LISTED, vec![])
                .unwrap();
            view.handle_candidates(time(1_000), &watched(namespace), LISTED, vec![]);
        }
        view.handle_lease_gap(&watched(relisted));
        view.handle_leases(time(20_000), &watched(relisted), LISTED, vec![])
            .unwrap();
        for namespace in ["a", "b"] {
            view.handle_candidate(time(21_000), candidate_in(namespace, 30));
            let born = LeaseRecord::born(None);
            view.handle_lease(time(21_000), lease_in(namespace, 31, born));
            let election = view.election(&key(namespace)).unwrap().unwrap();
            let wall = Timestamp::from_micros(7_000_000).unwrap();
            let action = election
                .step(time(21_000), wall, &Settings::default())
                .action();
            let expected = if namespace == relisted {
                Action::Wait
            } else {
                Action::Grant
            };
            assert_eq!(action, expected, "{namespace}, {relisted} was listed again");
        }
        let name = id("x");
        view.handle_candidate_gone(time(9), &"a".into(), &name, None);
        assert_eq!((candidates(&view, "a"), candidates(&view, "b")), (0, 1));
    }
}
