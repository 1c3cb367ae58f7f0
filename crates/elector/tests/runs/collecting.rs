//! The collection of dead candidates: by which controller, and when (decision 9).

use elector::Config;
use elector_apiserver::RequestVerb;
use elector_testing::{CANDIDATES, CapturedLog, TestCluster, millis, pass, seconds};
use serde_json::json;

use crate::builtin::{BUILTIN, LOCK};
use crate::{RunningElector, refuse, replacing};

const FOREIGN: &str = "example.com/mine";

fn exists(cluster: &TestCluster, name: &str) -> bool {
    cluster.read(CANDIDATES, "default", name).is_some()
}

/// The built-in controller collects as long as it elects, candidates of other strategies too. While no controller is
/// in charge, none collects.
#[tokio::test(start_paused = true)]
async fn nothing_is_collected_while_the_built_in_controller_is_in_charge_or_may_be() {
    let cluster = TestCluster::new();
    let lock = cluster.keep("kube-system", LOCK, BUILTIN);
    let _elector = RunningElector::start(&cluster, Config::default());
    cluster.register_for("default", "dead", "l", "1.0.0", "OldestEmulationVersion");
    cluster.register_for("default", "foreign", "m", "1.0.0", FOREIGN);
    pass(seconds(45 * 60)).await;
    assert!(exists(&cluster, "dead") && exists(&cluster, "foreign"));
    // It lets its lock go, and might not have noticed yet.
    drop(lock);
    cluster.renew("kube-system", LOCK, BUILTIN);
    let spec = json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3});
    cluster.put_lease("kube-system", LOCK, spec);
    pass(millis(14_900)).await;
    assert!(exists(&cluster, "dead") && exists(&cluster, "foreign"));
    pass(seconds(1)).await;
    assert!(!exists(&cluster, "foreign"));
    // It has not been pinged before; that takes its time.
    pass(seconds(16 * 60)).await;
    assert!(!exists(&cluster, "dead"));
}

#[tokio::test(start_paused = true)]
async fn in_the_place_of_the_built_in_controller_dead_candidates_are_collected_and_living_ones_are_not()
 {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::new());
    let _elector = RunningElector::start_seeded(&cluster, replacing(), 1);
    let _alive = cluster.candidate("default", "alive", "l", "1.0.0");
    cluster.register_for("default", "dead", "l", "1.0.0", "OldestEmulationVersion");
    cluster.register_for("default", "foreign", "m", "1.0.0", FOREIGN);
    pass(seconds(29 * 60)).await;
    assert!(exists(&cluster, "dead") && exists(&cluster, "foreign"));
    cluster.inject(refuse(403).verb(RequestVerb::Delete));
    pass(seconds(3 * 60)).await;
    for name in ["dead", "foreign"] {
        let line = format!(
            "WARN failed to delete leasecandidates.coordination.k8s.io default/{name}: RBAC"
        );
        assert!(exists(&cluster, name) && !log.lines(&line).is_empty());
    }
    cluster.heal();
    pass(seconds(10)).await;
    assert!(!exists(&cluster, "dead") && !exists(&cluster, "foreign"));
    assert!(exists(&cluster, "alive"));
    assert_eq!(log.lines("collected a dead candidate").len(), 2);
}
