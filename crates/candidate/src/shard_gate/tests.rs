//! A gate over terms that the tests make.

use std::sync::Mutex;
use std::time::Duration;

use elector_protocol::Instant;
use elector_protocol::holder::{Loss, StopReason};
use elector_protocol::shard::{ShardField, ShardLayout};
use futures::FutureExt as _;
use tokio::sync::Notify;

use super::*;
use crate::candidate::Candidate;
use crate::cluster::Cluster;
use crate::config::{Config, Mode};
use crate::group::Parts;
use crate::leader_gate::LeaderGate;
use crate::test_term::TestTerm;

/// An object of which nothing counts but its key.
#[derive(Debug, PartialEq, Eq)]
struct Keyed {
    uid: String,
    namespace: &'static str,
}

type Book = Arc<Mutex<Vec<String>>>;

fn key(object: &Keyed) -> ObjectKey<'_> {
    ObjectKey::new(&object.uid).in_namespace(object.namespace)
}

fn layout(field: ShardField) -> ShardLayout {
    ShardLayout::new(field, 4).unwrap()
}

/// An object in that range.
fn object_in(index: usize) -> Arc<Keyed> {
    let objects = (0..).map(|number| Keyed {
        uid: format!("uid-{number}"),
        namespace: "ns",
    });
    let layout = layout(ShardField::Uid);
    let mut objects = objects
        .filter(|object| usize::from(layout.index_of(key(object).hash(ShardField::Uid))) == index);
    Arc::new(objects.next().unwrap())
}

/// A group of four ranges in which this process leads all of them, until a test says otherwise.
fn group(parts: Parts, field: ShardField) -> (Vec<TestTerm>, GroupHandle) {
    let term = |index| {
        let lease = layout(field).lease_name("maps", index);
        let config = Config::new(lease, "1.0.0").identity("me");
        TestTerm::of(config).unwrap()
    };
    let terms: Vec<_> = (0..4).map(term).collect();
    let handles = terms.iter().map(TestTerm::handle);
    let group = GroupHandle::new(parts, handles);
    (terms, group)
}

fn by_uid() -> (Vec<TestTerm>, GroupHandle) {
    group(Parts::by_uid(4), ShardField::Uid)
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// The work of each part, spawned.
fn lead(gate: &ShardGate, term: &TestTerm) -> tokio::task::JoinHandle<Result<(), Infallible>> {
    tokio::spawn(gate.lead(term.leadership()))
}

#[test]
fn an_object_belongs_to_the_part_that_is_led() {
    let (terms, group) = by_uid();
    let objects: Vec<_> = (0..4).map(object_in).collect();
    for (index, object) in objects.iter().enumerate() {
        assert!(group.owns(key(object)));
        let leadership = group.leadership(key(object)).unwrap();
        assert_eq!(leadership.lease().name(), format!("maps-{index}-of-4"));
    }
    // Asked to stop, it still leads what runs, and owns nothing any more.
    terms[2].stop(StopReason::ShutDown);
    assert!(terms[2].leadership().is_leader());
    assert!(!group.owns(key(&objects[2])));
    assert!(group.leadership(key(&objects[2])).is_none());
    // By the clock alone.
    terms[3].expire_after(Duration::ZERO);
    assert!(!group.owns(key(&objects[3])));
    let ends = [0, 3].map(|index| terms[index].leadership().deadline());
    assert!(
        ends[1] > Some(Instant::default()) && ends[0] > ends[1],
        "{ends:?}"
    );
    assert!(group.owns(key(&objects[0])) && group.owns(key(&objects[1])));
}

#[test]
fn objects_of_one_namespace_belong_together() {
    let (_terms, group) = group(Parts::by_namespace(4), ShardField::Namespace);
    let lease = |uid: &str, namespace: &str| {
        let key = ObjectKey::new(uid).in_namespace(namespace);
        group.leadership(key).unwrap().lease().clone()
    };
    for namespace in ["", "a", "shop", "kube-system"] {
        assert_eq!(lease("1", namespace), lease("2", namespace));
    }
    let leases = (0..50).map(|number| lease("1", &format!("{number}-namespace")));
    let leases: std::collections::BTreeSet<_> = leases.collect();
    assert_eq!(leases.len(), 4);
    // The last two letters reach the upper bits of the hash no more.
    let alike = (10..99).map(|number| lease("1", &format!("namespace-{number}")));
    let alike: std::collections::BTreeSet<_> = alike.collect();
    assert_eq!(alike.len(), 1);
}

#[test]
fn named_parts_own_no_objects() {
    let parts = Parts::named(["a", "b", "c", "d"]);
    let (_terms, group) = group(parts, ShardField::Uid);
    assert!(!group.owns(ObjectKey::new("uid")));
    assert!(group.leadership(ObjectKey::new("uid")).is_none());
}

#[tokio::test(start_paused = true)]
async fn each_object_is_reconciled_in_the_term_of_its_part_and_the_rest_is_observed() {
    let (terms, group) = by_uid();
    let gate = ShardGate::new(&group);
    let reconcile = |_, _: Arc<()>, leadership: Leadership| {
        futures::future::ready(Ok::<_, Infallible>(leadership.lease().name().to_owned()))
    };
    let observe =
        |object: Arc<Keyed>, _| futures::future::ready(Ok(format!("observed {}", object.uid)));
    let mut reconciler = gate.observing_reconciler(key, reconcile, observe);
    let (_one, _three) = (lead(&gate, &terms[1]), lead(&gate, &terms[3]));
    settle().await;
    for index in 0..4 {
        let object = object_in(index);
        let answer = reconciler(Arc::clone(&object), Arc::new(())).await.unwrap();
        match index {
            1 | 3 => assert_eq!(answer, format!("maps-{index}-of-4")),
            _ => assert_eq!(answer, format!("observed {}", object.uid)),
        }
    }
    // The gate is shut by the clock, also where the work has not been polled since.
    terms[1].expire_after(Duration::ZERO);
    let answer = reconciler(object_in(1), Arc::new(())).await.unwrap();
    assert!(answer.starts_with("observed"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_part_is_given_away_when_its_own_reconciles_have_ended() {
    let (terms, group) = by_uid();
    let gate = ShardGate::new(&group);
    let (release, book) = (Arc::new(Notify::new()), Book::default());
    let (released, log) = (Arc::clone(&release), Arc::clone(&book));
    let reconcile = move |_, _: Arc<()>, leadership: Leadership| {
        let (released, log) = (Arc::clone(&released), Arc::clone(&log));
        async move {
            released.notified().await;
            log.lock()
                .unwrap()
                .push(leadership.lease().name().to_owned());
            Ok::<_, Infallible>("reconciled")
        }
    };
    let mut reconciler = gate.reconciler(key, reconcile, || "idle");
    let (zero, one) = (lead(&gate, &terms[0]), lead(&gate, &terms[1]));
    settle().await;
    let running = tokio::spawn(reconciler(object_in(0), Arc::new(())));
    settle().await;
    for term in &terms[..2] {
        term.stop(StopReason::ShutDown);
    }
    settle().await;
    assert!(!zero.is_finished(), "a reconcile of the part runs");
    assert!(one.is_finished(), "none of this one does");
    let answer = reconciler(object_in(0), Arc::new(())).await.unwrap();
    assert_eq!(answer, "idle", "nothing begins any more");
    release.notify_waiters();
    assert_eq!(running.await.unwrap(), Ok("reconciled"));
    settle().await;
    assert!(zero.is_finished());
    assert_eq!(*book.lock().unwrap(), ["maps-0-of-4"]);
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_gained_is_reconciled_once_and_is_owned_by_then() {
    let (terms, group) = by_uid();
    let gate = ShardGate::new(&group);
    let all: Vec<_> = (0..4).map(object_in).collect();
    let (mut starts, cached) = (gate.starts().boxed(), all.clone());
    let mut gained = gate.gained(key, move || cached.clone()).boxed();
    assert!(starts.next().now_or_never().is_none());
    for part in [2, 0] {
        let _work = lead(&gate, &terms[part]);
        assert_eq!(starts.next().await, Some(()));
        let object = gained.next().await.unwrap();
        assert_eq!(object, all[part]);
        assert!(group.owns(key(&object)));
        settle().await;
        assert!(starts.next().now_or_never().is_none());
        assert!(gained.next().now_or_never().is_none());
    }
    // A list of other ranges is complete: what is led is reconciled, and nothing else.
    for part in [1, 3] {
        terms[part].stop(StopReason::Lost(Loss::Deleted));
    }
    group.lists().send_modify(|count| *count += 1);
    assert_eq!(starts.next().await, Some(()));
    let objects = [gained.next().await.unwrap(), gained.next().await.unwrap()];
    assert_eq!(
        objects.each_ref().map(|object| object.uid.clone()),
        [0, 2].map(|part| all[part].uid.clone())
    );
    assert!(gained.next().now_or_never().is_none());
}

#[tokio::test]
async fn a_lease_of_another_group_is_refused() {
    let (_terms, group) = by_uid();
    let other = TestTerm::of(Config::new("other", "1.0.0").identity("me")).unwrap();
    let ended = lead(&ShardGate::new(&group), &other).await;
    let panic = ended.unwrap_err().into_panic();
    let text = panic.downcast_ref::<String>().unwrap();
    assert_eq!(text, "default/other is no lease of this group");
}

#[tokio::test]
async fn what_a_program_keeps_can_be_printed() {
    let (terms, group) = by_uid();
    let (handle, guard) = (terms[1].handle(), terms[1].leadership());
    let _task = guard.spawn(std::future::pending::<()>());
    let config = Config::new("maps-1-of-4", "1.0.0").mode(Mode::Disabled);
    let candidate = Candidate::new(config, Cluster::none()).unwrap();
    for (printed, shown) in [
        (format!("{guard:?}"), "running: 1"),
        (format!("{handle:?}"), "maps-1-of-4"),
        (format!("{:?}", handle.status()), "token: Some(1)"),
        (format!("{group:?}"), "maps-1-of-4"),
        (format!("{:?}", LeaderGate::new()), "running"),
        (format!("{:?}", ShardGate::new(&group)), "maps-1-of-4"),
        (format!("{candidate:?}"), "maps-1-of-4"),
        (format!("{:?}", Cluster::none()), "has_thread: false"),
    ] {
        assert!(printed.contains(shown), "{printed}");
    }
}
