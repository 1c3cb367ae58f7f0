//! The collection of dead candidates: by which controller, and when (decision 9).

use elector::Config;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{CANDIDATES, EmbeddedCluster, millis, pass, seconds};
use http::StatusCode;
use serde_json::json;
use tokio::time::Instant;

use crate::{RunningElector, replacing};

const BUILTIN: &str = "node-1_4f0c7f1e";
const LOCK: &str = "leader-election-controller";
const FOREIGN: &str = "example.com/mine";

async fn exists(cluster: &EmbeddedCluster, name: &str) -> bool {
    cluster.read(CANDIDATES, "default", name).is_some()
}

/// The built-in controller collects as long as it elects, candidates of other strategies too. While no controller is
/// in charge, none collects.
#[tokio::test(start_paused = true)]
async fn nothing_is_collected_while_the_built_in_controller_is_in_charge_or_may_be() {
    let cluster = EmbeddedCluster::new();
    let lock = cluster.keep("kube-system", LOCK, BUILTIN);
    let _elector = RunningElector::start(&cluster, Config::default());
    cluster.register_for("default", "dead", "l", "1.0.0", "OldestEmulationVersion");
    cluster.register_for("default", "foreign", "m", "1.0.0", FOREIGN);
    pass(seconds(45 * 60)).await;
    assert!(exists(&cluster, "dead").await && exists(&cluster, "foreign").await);
    // It lets its lock go, and might not have noticed yet.
    drop(lock);
    cluster.renew("kube-system", LOCK, BUILTIN);
    let spec = json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3});
    cluster.put_lease("kube-system", LOCK, spec);
    pass(millis(14_900)).await;
    assert!(exists(&cluster, "dead").await && exists(&cluster, "foreign").await);
    pass(seconds(1)).await;
    assert!(!exists(&cluster, "foreign").await);
    // It has not been pinged before; that takes its time.
    pass(seconds(16 * 60)).await;
    assert!(!exists(&cluster, "dead").await);
}

#[tokio::test(start_paused = true)]
async fn in_the_place_of_the_built_in_controller_dead_candidates_are_collected_and_living_ones_are_not()
 {
    let cluster = EmbeddedCluster::new();
    let elector = RunningElector::start_seeded(&cluster, replacing(), 1);
    let _alive = cluster.candidate("default", "alive", "l", "1.0.0");
    cluster.register_for("default", "dead", "l", "1.0.0", "OldestEmulationVersion");
    cluster.register_for("default", "foreign", "m", "1.0.0", FOREIGN);
    pass(seconds(29 * 60)).await;
    assert!(exists(&cluster, "dead").await && exists(&cluster, "foreign").await);
    pass(seconds(3 * 60)).await;
    assert!(!exists(&cluster, "dead").await && !exists(&cluster, "foreign").await);
    assert!(exists(&cluster, "alive").await);
    elector.stop().await;
}

/// The lock is lost while a candidate becomes collectable; it is collected once the lock is had for long enough.
#[tokio::test(start_paused = true)]
async fn an_elector_that_lost_the_lock_collects_nothing_until_it_is_in_charge_again() {
    let cluster = EmbeddedCluster::new();
    let _elector = RunningElector::start_seeded(&cluster, replacing(), 1);
    pass(seconds(20)).await;
    cluster.register_for("default", "foreign", "m", "1.0.0", FOREIGN);
    let start = cluster.now();
    pass(seconds(30 * 60) - millis(500)).await;
    assert!(exists(&cluster, "foreign").await);
    cluster.renew("kube-system", LOCK, BUILTIN);
    let lost = Instant::now();
    pass(millis(14_500)).await;
    let deletes = cluster.requests_since(start, &["DELETE"]);
    assert!(deletes.is_empty(), "{deletes:?}");
    pass(seconds(3)).await;
    assert!(!exists(&cluster, "foreign").await, "{:?}", lost.elapsed());
}

/// A collection that fails is tried again, as anything else is.
#[tokio::test(start_paused = true)]
async fn a_collection_that_was_refused_is_tried_again() {
    let cluster = EmbeddedCluster::new();
    let _elector = RunningElector::start(&cluster, Config::default());
    cluster.register_for("default", "foreign", "m", "1.0.0", FOREIGN);
    cluster.inject(
        Rule::new(Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR)).verb(RequestVerb::Delete),
    );
    let start = cluster.now();
    pass(seconds(31 * 60)).await;
    let tries = cluster.requests_since(start, &["DELETE"]).len();
    // 5 ms, doubling to 5 s.
    assert!((5..40).contains(&tries), "{tries}");
    cluster.heal();
    pass(seconds(6)).await;
    assert!(!exists(&cluster, "foreign").await);
}

/// Beside the built-in controller, candidates that disagree are left to it as well: it alone pings them.
#[tokio::test(start_paused = true)]
async fn candidates_that_disagree_are_left_to_the_built_in_controller() {
    let cluster = EmbeddedCluster::new();
    let lock = cluster.keep("kube-system", LOCK, BUILTIN);
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(5)).await;
    cluster.register_for("default", "a", "l", "1.0.0", "OldestEmulationVersion");
    cluster.register_for("default", "b", "l", "1.0.0", FOREIGN);
    let start = cluster.now();
    pass(seconds(120)).await;
    for verb in ["PUT", "PATCH"] {
        let requests = cluster.requests_since(start, &[verb]);
        assert!(requests.is_empty(), "{requests:?}");
    }
    // Alone it pings them: a dead one must not block the other.
    drop(lock);
    pass(seconds(60)).await;
    let requests = cluster.requests_since(start, &["PATCH", "leasecandidates/"]);
    assert_eq!(requests.len(), 2, "{requests:?}");
}
