//! News of leases, and the changes of leadership in it.

use elector_api::Lease;
use elector_protocol::elector::{Action, Effect, Settings};
use elector_protocol::{LeaseRecord, Timestamp};
use serde_json::json;

use super::{LISTED, ViewScene, candidate, held, id, key, lease, malformed, time};
use crate::leadership_change::ExpectedGrant;
use crate::view::{LeaseSeen, LeaseVersion, ResourceVersion, Restored};

#[test]
fn a_lease_found_by_a_relist_proves_nothing() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "l", 10));
    world.list_leases(vec![lease("l", 11, LeaseRecord::born(None))]);
    assert_eq!(world.action("l"), Some(Action::Wait));
}

#[test]
fn a_lease_without_candidates_is_not_stepped_but_its_stop_watch_runs() {
    let mut world = ViewScene::synced();
    world.lease(lease("l", 11, held("plain", 1)));
    assert_eq!((world.dirty(), world.action("l")), (vec![], None));
    assert_eq!(world.view.keys().len(), 0);
    world.now += 14_000;
    world.candidate(candidate("a", "l", 12));
    world.now += 1000;
    assert_eq!(world.action("l"), Some(Action::Grant));
    assert_eq!(world.changes(), [""; 0]);
}

#[test]
fn the_object_is_kept_for_leases_with_candidates_only_and_a_read_brings_it() {
    let mut world = ViewScene::synced();
    let record = held("plain", 1);
    world.lease(lease("l", 11, record.clone()));
    world.candidate(candidate("a", "l", 12));
    assert!(!world.has_object("l", 11));
    let known = Some(ResourceVersion(11));
    let read = lease("l", 11, record.clone());
    world
        .view
        .handle_lease_read(time(world.now), read, known)
        .unwrap();
    assert!(world.has_object("l", 11));
    assert!(!world.has_object("l", 10));
    world.lease(lease("l", 13, record));
    assert!(world.has_object("l", 13));
    world.candidate_gone("a", None);
    assert!(!world.has_object("l", 13));
}

#[test]
fn a_revision_is_seen_once_its_object_is_at_hand() {
    let mut world = ViewScene::synced();
    let seen = |world: &ViewScene, version: u64| {
        let (key, version) = (key("l"), Some(ResourceVersion(version)));
        world.view.has_seen(&LeaseVersion { key, version })
    };
    assert!(!seen(&world, 11));
    world.lease(lease("l", 11, held("plain", 1)));
    assert!(seen(&world, 10) && seen(&world, 11) && !seen(&world, 12));
    world.candidate(candidate("a", "l", 12));
    assert!(!seen(&world, 11));
    world.lease(lease("l", 13, held("plain", 1)));
    assert!(seen(&world, 13) && !seen(&world, 14));
}

#[test]
fn leases_are_named_in_their_order() {
    let mut world = ViewScene::synced();
    let names = ["d", "b", "e", "a", "c"];
    for (version, name) in (10..).zip(names) {
        world.candidate(candidate(&format!("of-{name}"), name, version));
    }
    let keys = world.view.keys();
    assert_eq!(
        keys,
        ["a", "b", "c", "d", "e"]
            .map(key)
            .iter()
            .collect::<Vec<_>>()
    );
}

/// (R2) What is written carries over the whole object, so a large one is read, and kept for this one write.
#[test]
fn a_large_object_is_kept_from_a_read_to_the_write() {
    let large = |version: u64| {
        let text = "x".repeat(100_000);
        let object = json!({
            "metadata": {
                "namespace": "ns", "name": "l", "uid": "uid", "resourceVersion": version.to_string(),
                "annotations": {"large": text},
            },
            "spec": {"holderIdentity": "plain", "leaseDurationSeconds": 15, "leaseTransitions": version},
        });
        Lease::from_value(object)
    };
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(LeaseSeen::of(large(11)));
    assert!(!world.has_object("l", 11));
    let (now, known) = (time(world.now), Some(ResourceVersion(11)));
    let read = LeaseSeen::whole(large(11));
    world.view.handle_lease_read(now, read, known).unwrap();
    // The watch is behind, and brings the same revision again.
    world.lease(LeaseSeen::of(large(11)));
    assert!(world.has_object("l", 11));
    assert!(!world.has_object("l", 11), "taken for one write");
    let read = LeaseSeen::whole(large(12));
    world.view.handle_lease_read(now, read, known).unwrap();
    world.lease(LeaseSeen::of(large(13)));
    assert!(!world.has_object("l", 12) && !world.has_object("l", 13));
}

#[test]
fn a_list_or_a_read_from_before_what_was_known_is_a_restored_store() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 20, held("a", 2)));
    let (now, known) = (time(world.now), Some(ResourceVersion(20)));
    let old = || lease("l", 11, held("a", 1));
    // Sent before the revision was known: merely slow.
    assert_eq!(
        world
            .view
            .handle_lease_read(now, old(), Some(ResourceVersion(11))),
        Ok(())
    );
    let expected = Err(Restored);
    assert_eq!(world.view.handle_lease_read(now, old(), known), expected);
    world.view.handle_lease_gap(&None);
    let expected = Err(Restored);
    assert_eq!(
        world.view.handle_leases(now, &None, LISTED, vec![old()]),
        expected
    );
}

#[test]
fn what_a_read_shows_may_have_been_held_in_between() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, LeaseRecord::born(None)));
    assert_eq!(world.action("l"), Some(Action::Grant));
    let blanked = lease("l", 13, LeaseRecord::born(None));
    world
        .view
        .handle_lease_read(time(world.now), blanked, Some(ResourceVersion(11)))
        .unwrap();
    assert_eq!(world.action("l"), Some(Action::Wait));
}

#[test]
fn a_reply_does_not_bring_back_what_was_deleted() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, held("a", 1)));
    world.lease_gone("l", Some(13));
    world
        .view
        .handle_lease_reply(time(world.now), lease("l", 12, held("a", 2)));
    assert_eq!(world.view.lease_version(&key("l")), None);
    world.candidate_gone("a", Some(15));
    world
        .view
        .handle_candidate_reply(time(world.now), candidate("a", "l", 14));
    assert_eq!(world.names("l"), [""; 0]);
}

#[test]
fn a_malformed_lease_is_not_judged_and_the_next_revision_proves_nothing() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, LeaseRecord::born(None)));
    assert_eq!(world.action("l"), Some(Action::Grant));
    world.lease(malformed("l", 10));
    let expected = Some(Action::Grant);
    assert_eq!(world.action("l"), expected, "an old event says nothing");
    world.dirty();
    world.lease(malformed("l", 12));
    assert!(matches!(world.view.election(&key("l")), Some(Err(_))));
    assert_eq!(world.dirty(), ["l"]);
    // It may have named a holder.
    world.lease(lease("l", 13, LeaseRecord::born(None)));
    assert_eq!(world.action("l"), Some(Action::Wait));
    // Deleted while malformed: absent from now on.
    world.lease(malformed("l", 14));
    world.lease_gone("l", Some(15));
    assert_eq!(world.action("l"), Some(Action::Create));
}

#[test]
fn a_malformed_lease_in_a_list_does_not_hide_the_others() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "bad", 10));
    world.candidate(candidate("b", "good", 10));
    world.list_leases(vec![malformed("bad", 11), lease("good", 12, held("b", 1))]);
    assert!(matches!(world.view.election(&key("bad")), Some(Err(_))));
    let expected = Some(ResourceVersion(12));
    assert_eq!(world.view.lease_version(&key("good")), expected);
}

#[test]
fn each_change_of_leadership_is_reported_once() {
    let mut world = ViewScene::new();
    world.list_candidates(vec![candidate("a", "l", 1), candidate("b", "l", 2)]);
    world.list_leases(vec![lease("l", 3, held("a", 1))]);
    assert_eq!(
        world.changes(),
        [""; 0],
        "whoever leads at start led before"
    );
    world.lease(lease("l", 4, held("a", 2)));
    world.lease(lease("l", 5, held("b", 3)));
    world.lease(lease("l", 5, held("b", 3)));
    world
        .view
        .handle_lease_reply(time(world.now), lease("l", 5, held("b", 3)));
    assert_eq!(world.changes(), ["b leads ns/l: b took it"]);
    // A change while the watch was interrupted.
    world.list_leases(vec![lease("l", 9, held("a", 4))]);
    assert_eq!(world.changes(), ["a leads ns/l: a took it"]);
    world.list_leases(vec![]);
    world.list_leases(vec![]);
    let expected = ["ns/l has no leader: the lease was deleted"];
    assert_eq!(world.changes(), expected);
}

#[test]
fn a_holder_after_a_pause_still_has_a_predecessor() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, held("a", 1)));
    let released = held("a", 1).released(Timestamp::from_micros(2).unwrap());
    world.lease(lease("l", 12, released));
    world.lease(lease("l", 13, held("b", 3)));
    let previous: Vec<_> = std::iter::from_fn(|| world.view.next_change())
        .map(|change| change.previous)
        .collect();
    assert_eq!(previous, [None, Some(id("a")), Some(id("a"))]);
}

#[test]
fn a_grant_of_ours_is_reported_with_its_reason_whether_event_or_reply_comes_first() {
    for event_first in [true, false] {
        let mut world = ViewScene::synced();
        world.candidate(candidate("a", "l", 10));
        world.lease(lease("l", 11, LeaseRecord::born(None)));
        let election = world.view.election(&key("l")).unwrap().unwrap();
        let wall = Timestamp::from_micros(7_000_000).unwrap();
        let decision = election.step(world.at(), wall, &Settings::default());
        let [.., Effect::Write(write)] = decision.effects.as_slice() else {
            panic!("a grant is due: {decision:?}");
        };
        let mut expected = ExpectedGrant::of(&decision.reason, &write.record).unwrap();
        assert_eq!((&expected.to, expected.term), (&id("a"), write.record.term));
        expected.reason = "because".to_owned();
        world.view.expect_grant(&key("l"), expected);
        let written = lease("l", 12, write.record.clone());
        if event_first {
            world.lease(written.clone());
            world.view.handle_lease_reply(time(world.now), written);
        } else {
            world
                .view
                .handle_lease_reply(time(world.now), written.clone());
            world.lease(written);
        }
        assert_eq!(world.changes(), ["a leads ns/l: because"]);
    }
}

#[test]
fn a_lease_that_made_the_code_fail_is_not_taken_for_absent() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "l", 10));
    world.candidate(candidate("b", "other", 10));
    world.lease(lease("l", 11, held("a", 1)));
    world.view.guarded(&key("l"), |_| panic!("half way"));
    // Those that named it are forgotten with it, and the others are not.
    let left = world.view.candidate_index.get("ns", &id("b"));
    assert!(left.is_some() && world.view.candidate_index.len() == 1);
    let expected = [(key("l"), "half way".to_owned())];
    assert_eq!(world.view.take_panics(), expected);
    world.candidate(candidate("a", "l", 12));
    assert_eq!(world.action("l"), Some(Action::Wait));
    world.lease(lease("l", 13, held("a", 2)));
    assert_ne!(world.action("l"), Some(Action::Wait));
}
