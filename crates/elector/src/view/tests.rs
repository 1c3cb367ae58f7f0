//! The view without a client: lists, events, gaps, replies, in every order that two watches can bring them.

use std::time::Duration;

use elector_api::{FieldError, PackedLease};
use elector_protocol::elector::{Action, Settings};
use elector_protocol::{
    CandidateRecord, CandidateSpec, Identity, LeaseRecord, LeaseSnapshot, Timestamp, Uid,
};

use super::*;

mod leases;
mod limits;
mod namespaces;
mod partial_lists;
mod reads;

struct ViewScene {
    view: View,
    now: u64,
}

/// The version of a list below all that is known, so that only what was known before the gap can tell that it is old.
const LISTED: ResourceVersion = ResourceVersion(0);

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
        acquire_time: Timestamp::from_micros(0),
        renew_time: Timestamp::from_micros(renewed),
        ..LeaseRecord::default()
    }
}

fn lease(name: &str, version: u64, record: LeaseRecord) -> LeaseSeen {
    let version = ResourceVersion(version);
    let snapshot = LeaseSnapshot {
        uid: Uid::new("uid"),
        version,
        record,
        overrides: elector_protocol::OperatorOverrides::default(),
    };
    LeaseSeen {
        key: key(name),
        version: Some(version),
        object: PackedLease::new(Lease::default(), &snapshot),
        snapshot: Ok(snapshot),
        group: None,
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
        candidate: CandidateRecord {
            name: id(name),
            uid: Uid::new(name),
            version: ResourceVersion(version),
            created: Timestamp::MIN,
            ping: None,
            renew: Timestamp::from_micros(1),
            marked: true,
            announced: None,
            deleting: false,
            spec: CandidateSpec::parse("1.1.0", "1.0.0", "OldestEmulationVersion").into(),
        },
    }
}

impl ViewScene {
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
            view: View::new([None]),
            now: 1000,
        }
    }

    /// A lease and its candidate, of which replies tell after the watches have broken off.
    fn answered_after_a_gap() -> Self {
        let mut world = Self::synced();
        world.candidate(candidate("a", "l", 10));
        world.lease(lease("l", 11, held("a", 1)));
        world.view.handle_lease_gap(&None);
        world.view.handle_candidate_gap(&None);
        let now = time(world.now);
        let reply = lease("l", 20, held("a", 2));
        world.view.handle_lease_reply(now, reply);
        let mut answered = candidate("a", "l", 21);
        answered.candidate.renew = Timestamp::from_micros(5);
        world.view.handle_candidate_reply(now, answered);
        world
    }

    /// The revision that is known of the candidate of the lease `l`.
    fn known_candidate(&self) -> ResourceVersion {
        let election = self.view.election(&key("l")).unwrap().unwrap();
        election.candidates().next().unwrap().version
    }

    fn at(&self) -> Instant {
        time(self.now)
    }

    fn list_leases(&mut self, leases: Vec<LeaseSeen>) {
        self.view.handle_lease_gap(&None);
        self.view
            .handle_leases(time(self.now), &None, LISTED, leases)
            .unwrap();
    }

    fn list_candidates(&mut self, candidates: Vec<CandidateSeen>) {
        self.view.handle_candidate_gap(&None);
        self.view
            .handle_candidates(time(self.now), &None, LISTED, candidates);
    }

    fn lease(&mut self, seen: LeaseSeen) {
        self.view.handle_lease(time(self.now), seen);
    }

    fn candidate(&mut self, seen: CandidateSeen) {
        self.view.handle_candidate(time(self.now), seen);
    }

    fn lease_gone(&mut self, name: &str, version: Option<u64>) {
        let version = version.map(ResourceVersion);
        self.view
            .handle_lease_gone(time(self.now), &key(name), version);
    }

    fn candidate_gone(&mut self, name: &str, version: Option<u64>) {
        let version = version.map(ResourceVersion);
        self.view
            .handle_candidate_gone(time(self.now), &"ns".into(), &id(name), version);
    }

    /// True if a write of this revision finds the object that it carries over.
    fn has_object(&mut self, name: &str, version: u64) -> bool {
        let version = ResourceVersion(version);
        self.view.take_lease_object(&key(name), version).is_some()
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
        Some(
            election
                .step(self.at(), wall, &Settings::default())
                .action(),
        )
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
fn it_is_synced_when_every_namespace_has_listed_both_kinds() {
    let (a, b) = (Some("a".into()), Some("b".into()));
    let mut view = View::new([a.clone(), b.clone()]);
    view.handle_leases(time(1), &a, LISTED, vec![]).unwrap();
    view.handle_leases(time(1), &b, LISTED, vec![]).unwrap();
    view.handle_candidates(time(1), &a, LISTED, vec![]);
    assert!(!view.is_synced());
    view.handle_candidates(time(1), &b, LISTED, vec![]);
    assert!(view.is_synced());
}

#[test]
fn before_the_leases_are_listed_a_candidate_decides_nothing() {
    let mut world = ViewScene::new();
    world.list_candidates(vec![candidate("a", "l", 1)]);
    assert_eq!(world.action("l"), Some(Action::Wait));
    world.list_leases(vec![]);
    assert_eq!(world.dirty(), ["l"]);
    assert_eq!(world.action("l"), Some(Action::Create));
}

#[test]
fn a_candidate_that_names_another_lease_leaves_the_first() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "one", 10));
    world.candidate(candidate("a", "two", 11));
    let expected = (vec![], vec!["a".to_owned()]);
    assert_eq!((world.names("one"), world.names("two")), expected);
    assert_eq!(world.dirty(), ["one", "two"]);
    // An older revision does not bring it back, nor does an older deletion take it away.
    world.candidate(candidate("a", "one", 9));
    world.candidate_gone("a", Some(10));
    let expected = (vec![], vec!["a".to_owned()]);
    assert_eq!((world.names("one"), world.names("two")), expected);
    world.candidate_gone("a", Some(11));
    assert_eq!(world.names("two"), [""; 0], "the newest one does");
}

#[test]
fn a_part_that_leaves_a_group_which_has_not_looked_at_it_is_looked_at_by_the_next() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "l", 10));
    for (version, group) in [(11, "web"), (12, "db")] {
        let group = Some(group.into());
        let record = held("a", 1);
        world.lease(LeaseSeen {
            group,
            ..lease("l", version, record)
        });
        world.view.note_part(&key("l"));
    }
    let (at, settings) = (world.at(), Settings::default());
    let view = &mut world.view;
    view.touch_group(&key("l"));
    view.assign_groups(at, Timestamp::MIN, &settings);
    let news = view.next_group_news();
    assert_eq!(news.map(|news| news.after.parts), Some(1));
    view.guarded(&key("l"), |_| panic!("its memory is thrown away"));
    let news = view.next_group_news();
    assert_eq!(news.map(|news| news.after.parts), Some(0));
}

#[test]
fn a_list_does_not_undo_what_a_reply_brought_meanwhile() {
    let mut world = ViewScene::answered_after_a_gap();
    let now = time(world.now);
    world
        .view
        .handle_leases(now, &None, LISTED, vec![lease("l", 11, held("a", 1))])
        .unwrap();
    world
        .view
        .handle_candidates(now, &None, LISTED, vec![candidate("a", "l", 10)]);
    let expected = Some(ResourceVersion(20));
    assert_eq!(world.view.lease_version(&key("l")), expected);
    assert_eq!(world.known_candidate(), ResourceVersion(21));
    // An object that a list shows newer counts.
    let listed = vec![candidate("a", "l", 22)];
    world.view.handle_candidates(now, &None, LISTED, listed);
    assert_eq!(world.known_candidate(), ResourceVersion(22));
    // A list that was asked for after that shows what there is, also of a store that went back.
    world.list_candidates(vec![candidate("a", "l", 5)]);
    assert_eq!(world.known_candidate(), ResourceVersion(5));
}

#[test]
fn a_list_of_a_restored_store_undoes_what_a_reply_brought_before() {
    let mut world = ViewScene::answered_after_a_gap();
    let (now, at) = (time(world.now), ResourceVersion(1_000_000));
    let listed = vec![candidate("a", "l", 10)];
    world.view.handle_candidates(now, &None, at, listed);
    assert_eq!(world.known_candidate(), ResourceVersion(10));
    let listed = vec![lease("l", 11, held("a", 1))];
    let found = world.view.handle_leases(now, &None, at, listed);
    assert_eq!(found, Err(Restored));
}

#[test]
fn what_is_long_gone_is_forgotten() {
    let mut world = ViewScene::synced();
    world.candidate(candidate("a", "l", 10));
    world.lease(lease("l", 11, held("a", 1)));
    world.lease_gone("l", None);
    world.now += 3_600_000;
    world.view.forget(time(world.now));
    assert_eq!(world.view.elections.len(), 1, "a candidate is left");
    world.candidate_gone("a", None);
    world.now -= 1;
    world.view.forget(time(world.now));
    assert_eq!(world.view.elections.len(), 1, "a holder may be left");
    world.now += 1;
    world.view.forget(time(world.now));
    assert_eq!(world.view.elections.len(), 0);
}
