//! The view without a client: lists, events, gaps, replies, in every order that two watches can bring them.

use std::time::Duration;

use elector_api::FieldError;
use elector_protocol::elector::{Action, Effect, Settings};
use elector_protocol::{Candidate, CandidateSpec, LeaseRecord, LeaseSnapshot, Timestamp, Uid};

use super::*;

struct World {
    view: View,
    now: u64,
}

fn key(name: &str) -> LeaseKey {
    LeaseKey::new("ns", name)
}

fn id(name: &str) -> Identity {
    Identity::new(name).unwrap()
}

fn time(millis: u64) -> Instant {
    Instant::from_epoch(Duration::from_millis(millis))
}

fn held(holder: &str, renewed: i64) -> LeaseRecord {
    LeaseRecord {
        holder: Identity::new(holder),
        duration_seconds: Some(15),
        renew_time: Timestamp::from_micros(renewed),
        ..LeaseRecord::default()
    }
}

fn lease(name: &str, version: u64, record: LeaseRecord) -> LeaseSeen {
    let version = ResourceVersion(version);
    LeaseSeen {
        key: key(name),
        version: Some(version),
        snapshot: Ok(LeaseSnapshot {
            uid: Uid::new("uid"),
            version,
            record,
        }),
        object: Arc::new(Lease::default()),
    }
}

fn malformed(name: &str, version: u64) -> LeaseSeen {
    LeaseSeen {
        snapshot: Err(Malformed {
            kind: "Lease",
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            error: Box::new(FieldError::required("spec", "")),
        }),
        ..lease(name, version, LeaseRecord::default())
    }
}

fn candidate(name: &str, lease: &str, version: u64) -> CandidateSeen {
    CandidateSeen {
        lease: key(lease),
        candidate: Candidate {
            name: id(name),
            uid: Uid::new(name),
            version: ResourceVersion(version),
            created: Timestamp::MIN,
            ping: None,
            renew: Timestamp::from_micros(1),
            marked: true,
            announced: None,
            spec: CandidateSpec::parse("1.1.0", "1.0.0", "OldestEmulationVersion"),
        },
        object: Arc::new(LeaseCandidate::default()),
    }
}

impl World {
    /// Both first lists are complete and empty, at 1 s; now it is 101 s.
    fn synced() -> Self {
        let mut world = Self::new();
        world.list_leases(vec![]);
        world.list_candidates(vec![]);
        world.now = 101_000;
        world
    }

    fn new() -> Self {
        Self {
            view: View::new([Area::Everywhere]),
            now: 1000,
        }
    }

    fn at(&self) -> Instant {
        time(self.now)
    }

    fn list_leases(&mut self, leases: Vec<LeaseSeen>) {
        self.view.handle_lease_gap(&Area::Everywhere);
        self.view
            .handle_leases(time(self.now), &Area::Everywhere, leases)
            .unwrap();
    }

    fn list_candidates(&mut self, candidates: Vec<CandidateSeen>) {
        self.view.handle_candidate_gap(&Area::Everywhere);
        self.view
            .handle_candidates(time(self.now), &Area::Everywhere, candidates);
    }

    fn lease(&mut self, seen: LeaseSeen) {
        self.view.handle_lease(time(self.now), seen);
    }

    fn candidate(&mut self, seen: CandidateSeen) {
        self.view.handle_candidate(time(self.now), seen);
    }

    fn dirty(&mut self) -> Vec<String> {
        let keys: BTreeSet<_> = std::iter::from_fn(|| self.view.next_dirty()).collect();
        keys.iter().map(|key| key.name.to_string()).collect()
    }

    fn changes(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.view.next_change())
            .map(|change| format!("{change}: {}", change.reason))
            .collect()
    }

    fn action(&self, name: &str) -> Option<Action> {
        let election = self.view.election(&key(name))?.ok()?;
        let wall = Timestamp::from_micros(7_000_000).unwrap();
        Some(election.step(self.at(), wall, &Settings::default()).action)
    }

    fn names(&self, lease: &str) -> Vec<String> {
        let election = self.view.election(&key(lease));
        let names = election
            .into_iter()
            .flatten()
            .flat_map(Election::candidates);
        names.map(|candidate| candidate.name.to_string()).collect()
    }
}

#[test]
fn it_is_synced_when_every_area_has_listed_both_kinds() {
    let (a, b) = (Area::Namespace("a".into()), Area::Namespace("b".into()));
    let mut view = View::new([a.clone(), b.clone()]);
    view.handle_leases(time(1), &a, vec![]).unwrap();
    view.handle_leases(time(1), &b, vec![]).unwrap();
    view.handle_candidates(time(1), &a, vec![]);
    assert!(!view.is_synced());
    view.handle_candidates(time(1), &b, vec![]);
    assert!(view.is_synced());
}

#[test]
fn before_the_leases_are_listed_a_candidate_decides_nothing() {
    let mut world = World::new();
    world.list_candidates(vec![candidate("a", "l", 1)]);
    assert_eq!(world.action("l"), Some(Action::Wait));
    world.list_leases(vec![]);
    assert_eq!(world.dirty(), ["l"]);
    assert_eq!(world.action("l"), Some(Action::Create));
}

#[test]
fn a_new_deployment_is_granted_at_once_by_an_elector_that_has_been_up_for_long() {
    let mut world = World::synced();
    world.candidate(candidate("a", "l", 10));
    assert_eq!(world.action("l"), Some(Action::Create));
    world.view.handle_created(world.at(), &key("l"));
    assert_eq!(world.action("l"), Some(Action::Wait));
    world.lease(lease("l", 11, LeaseRecord::born(None)));
    assert_eq!(world.action("l"), Some(Action::Grant));
}

#[test]
fn a_relist_restarts_the_proof_of_absence() {
    let mut world = World::synced();
    world.list_leases(vec![]);
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, LeaseRecord::born(None)));
    assert_eq!(world.action("l"), Some(Action::Wait));
    world.now += 15_000;
    assert_ne!(world.action("l"), Some(Action::Wait));
}

#[test]
fn a_lease_found_by_a_relist_proves_nothing() {
    let mut world = World::synced();
    world.candidate(candidate("a", "l", 10));
    world.list_leases(vec![lease("l", 11, LeaseRecord::born(None))]);
    assert_eq!(world.action("l"), Some(Action::Wait));
}

#[test]
fn a_lease_without_candidates_is_not_stepped_but_its_stop_watch_runs() {
    let mut world = World::synced();
    world.lease(lease("l", 11, held("plain", 1)));
    assert_eq!((world.dirty(), world.action("l")), (vec![], None));
    assert_eq!(world.view.keys().count(), 0);
    world.now += 14_000;
    world.candidate(candidate("a", "l", 12));
    world.now += 1000;
    assert_eq!(world.action("l"), Some(Action::Grant));
    assert_eq!(world.changes(), [""; 0]);
}

#[test]
fn the_object_is_kept_for_leases_with_candidates_only_and_a_read_brings_it() {
    let mut world = World::synced();
    let record = held("plain", 1);
    world.lease(lease("l", 11, record.clone()));
    world.candidate(candidate("a", "l", 12));
    let version = ResourceVersion(11);
    assert!(world.view.lease_object(&key("l"), version).is_none());
    let read = lease("l", 11, record.clone());
    world
        .view
        .handle_lease_read(time(world.now), read, Some(version))
        .unwrap();
    assert!(world.view.lease_object(&key("l"), version).is_some());
    assert!(
        world
            .view
            .lease_object(&key("l"), ResourceVersion(10))
            .is_none()
    );
    world.lease(lease("l", 13, record));
    assert!(
        world
            .view
            .lease_object(&key("l"), ResourceVersion(13))
            .is_some()
    );
    world
        .view
        .handle_candidate_gone(&"ns".into(), &id("a"), None);
    assert!(
        world
            .view
            .lease_object(&key("l"), ResourceVersion(13))
            .is_none()
    );
}

#[test]
fn a_candidate_that_names_another_lease_leaves_the_first() {
    let mut world = World::synced();
    world.candidate(candidate("a", "one", 10));
    world.candidate(candidate("a", "two", 11));
    assert_eq!(
        (world.names("one"), world.names("two")),
        (vec![], vec!["a".to_owned()])
    );
    assert_eq!(world.dirty(), ["one", "two"]);
    // An older revision does not bring it back, nor does an older deletion take it away.
    world.candidate(candidate("a", "one", 9));
    world
        .view
        .handle_candidate_gone(&"ns".into(), &id("a"), Some(ResourceVersion(10)));
    assert_eq!(
        (world.names("one"), world.names("two")),
        (vec![], vec!["a".to_owned()])
    );
}

#[test]
fn a_candidate_missing_in_a_list_is_gone() {
    let mut world = World::synced();
    world.candidate(candidate("a", "l", 10));
    world.candidate(candidate("b", "l", 11));
    world.dirty();
    world.list_candidates(vec![candidate("b", "l", 11)]);
    assert_eq!(
        (world.names("l"), world.dirty()),
        (vec!["b".to_owned()], vec!["l".to_owned()])
    );
    // The list of another namespace says nothing about it.
    world
        .view
        .handle_candidates(time(world.now), &Area::Namespace("other".into()), vec![]);
    assert_eq!(world.names("l"), ["b"]);
}

#[test]
fn a_list_does_not_undo_what_a_reply_brought_meanwhile() {
    let mut world = World::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, held("a", 1)));
    world.view.handle_lease_gap(&Area::Everywhere);
    world.view.handle_candidate_gap(&Area::Everywhere);
    let now = time(world.now);
    world
        .view
        .handle_lease_reply(now, lease("l", 20, held("a", 2)));
    let mut answered = candidate("a", "l", 21);
    answered.candidate.renew = Timestamp::from_micros(5);
    world.view.handle_candidate_reply(now, answered);
    world
        .view
        .handle_leases(now, &Area::Everywhere, vec![lease("l", 11, held("a", 1))])
        .unwrap();
    world
        .view
        .handle_candidates(now, &Area::Everywhere, vec![candidate("a", "l", 10)]);
    assert_eq!(
        world.view.lease_version(&key("l")),
        Some(ResourceVersion(20))
    );
    let known = world
        .view
        .candidate_object(&"ns".into(), &id("a"), ResourceVersion(21));
    assert!(known.is_some());
}

#[test]
fn a_list_or_a_read_from_before_what_was_known_is_a_restored_store() {
    let mut world = World::synced();
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
    assert_eq!(
        world.view.handle_lease_read(now, old(), known),
        Err(Restored)
    );
    world.view.handle_lease_gap(&Area::Everywhere);
    assert_eq!(
        world
            .view
            .handle_leases(now, &Area::Everywhere, vec![old()]),
        Err(Restored)
    );
}

#[test]
fn what_a_read_shows_may_have_been_held_in_between() {
    let mut world = World::synced();
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
    let mut world = World::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, held("a", 1)));
    world
        .view
        .handle_lease_gone(time(world.now), &key("l"), Some(ResourceVersion(13)));
    world
        .view
        .handle_lease_reply(time(world.now), lease("l", 12, held("a", 2)));
    assert_eq!(world.view.lease_version(&key("l")), None);
    world
        .view
        .handle_candidate_gone(&"ns".into(), &id("a"), Some(ResourceVersion(15)));
    world
        .view
        .handle_candidate_reply(time(world.now), candidate("a", "l", 14));
    assert_eq!(world.names("l"), [""; 0]);
}

#[test]
fn a_malformed_lease_is_judged_by_nobody_and_the_next_revision_proves_nothing() {
    let mut world = World::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, LeaseRecord::born(None)));
    assert_eq!(world.action("l"), Some(Action::Grant));
    world.lease(malformed("l", 10));
    assert_eq!(
        world.action("l"),
        Some(Action::Grant),
        "an old event says nothing"
    );
    world.dirty();
    world.lease(malformed("l", 12));
    assert!(matches!(world.view.election(&key("l")), Some(Err(_))));
    assert_eq!(world.dirty(), ["l"]);
    // It may have named a holder.
    world.lease(lease("l", 13, LeaseRecord::born(None)));
    assert_eq!(world.action("l"), Some(Action::Ping));
    // Deleted while malformed: absent from now on.
    world.lease(malformed("l", 14));
    world
        .view
        .handle_lease_gone(time(world.now), &key("l"), Some(ResourceVersion(15)));
    assert_eq!(world.action("l"), Some(Action::Create));
}

#[test]
fn a_malformed_lease_in_a_list_does_not_hide_the_others() {
    let mut world = World::synced();
    world.candidate(candidate("a", "bad", 10));
    world.candidate(candidate("b", "good", 10));
    world.list_leases(vec![malformed("bad", 11), lease("good", 12, held("b", 1))]);
    assert!(matches!(world.view.election(&key("bad")), Some(Err(_))));
    assert_eq!(
        world.view.lease_version(&key("good")),
        Some(ResourceVersion(12))
    );
}

#[test]
fn each_change_of_leadership_is_told_once() {
    let mut world = World::new();
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
    // What changed while the watch was interrupted.
    world.list_leases(vec![lease("l", 9, held("a", 4))]);
    assert_eq!(world.changes(), ["a leads ns/l: a took it"]);
    world.list_leases(vec![]);
    world.list_leases(vec![]);
    assert_eq!(
        world.changes(),
        ["nobody leads ns/l: the lease was deleted"]
    );
}

#[test]
fn a_grant_of_ours_is_told_with_its_reason_whether_event_or_reply_comes_first() {
    for event_first in [true, false] {
        let mut world = World::synced();
        world.candidate(candidate("a", "l", 10));
        world.lease(lease("l", 11, LeaseRecord::born(None)));
        let election = world.view.election(&key("l")).unwrap().unwrap();
        let wall = Timestamp::from_micros(7_000_000).unwrap();
        let decision = election.step(world.at(), wall, &Settings::default());
        let [.., Effect::Write(write)] = decision.effects.as_slice() else {
            panic!("a grant is due: {decision:?}");
        };
        world
            .view
            .expect_grant(&key("l"), id("a"), write.record.term, "because".to_owned());
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
fn what_is_long_gone_is_forgotten() {
    let mut world = World::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, held("a", 1)));
    world
        .view
        .handle_lease_gone(time(world.now), &key("l"), None);
    world.now += 3_600_000;
    world.view.forget(time(world.now));
    assert_eq!(world.view.elections.len(), 1, "a candidate is left");
    world
        .view
        .handle_candidate_gone(&"ns".into(), &id("a"), None);
    world.now -= 1;
    world.view.forget(time(world.now));
    assert_eq!(world.view.elections.len(), 1, "a holder may be left");
    world.now += 1;
    world.view.forget(time(world.now));
    assert_eq!(world.view.elections.len(), 0);
}

#[test]
fn a_lease_that_made_the_code_fail_is_not_taken_for_absent() {
    let mut world = World::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, held("a", 1)));
    world.view.reset(&key("l"));
    world.candidate(candidate("a", "l", 12));
    assert_eq!(world.action("l"), Some(Action::Wait));
    world.lease(lease("l", 13, held("a", 2)));
    assert_ne!(world.action("l"), Some(Action::Wait));
}
