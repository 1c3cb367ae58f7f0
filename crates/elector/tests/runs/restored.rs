//! A store that was restored from a backup under an elector: it starts over as a new process (R4).

use elector::Config;
use elector_apiserver::Faults;
use elector_testing::{BackgroundTask, CapturedLog, TestCluster, millis, pass, seconds};
use serde_json::json;

use crate::RunningElector;

/// An elector that has been up for long in a store of many revisions, with a lease, a candidate for it and the lock of a
/// built-in controller that is gone.
async fn old_elector(cluster: &TestCluster) -> (RunningElector, BackgroundTask) {
    cluster.make_revisions(200);
    let elector = RunningElector::start(cluster, Config::default());
    pass(seconds(20)).await;
    cluster.renew("default", "l", "plain");
    let lock = json!({"holderIdentity": "node-1_4f0c", "leaseDurationSeconds": 1, "renewTime": "2026-01-01T00:00:00.000000Z"});
    cluster.put_lease("kube-system", "leader-election-controller", lock);
    let candidate = cluster.candidate("default", "a", "l", "1.0.0");
    pass(seconds(2)).await;
    assert_eq!(elector.lives(), 1);
    (elector, candidate)
}

/// Each of the three watches can be the first to meet the older store, and its connection ends in the middle, or as if
/// the server had closed it.
#[tokio::test(start_paused = true)]
async fn whichever_watch_meets_an_older_store_the_elector_starts_anew() {
    for watch in [
        "coordination.k8s.io/v1/leases?",
        "v1beta1/leasecandidates?",
        "namespaces/kube-system/leases?",
    ] {
        for end in [Faults::break_watches, Faults::close_watches] {
            let (log, cluster) = (CapturedLog::capture(), TestCluster::new());
            let (elector, _candidate) = old_elector(&cluster).await;
            cluster.reroute(watch);
            end(&cluster.faults("program"));
            pass(seconds(3)).await;
            assert_eq!(elector.lives(), 2, "{watch}");
            let lines = log.lines("the store was restored to an older version");
            assert_eq!(lines.len(), 1, "{watch}");
        }
    }
}

/// An earlier sight of a record counts for nothing: it may have been renewed since, in the store that is gone.
#[tokio::test(start_paused = true)]
async fn a_stop_watch_of_before_a_restore_expires_no_holder() {
    let cluster = TestCluster::new();
    let empty = cluster.backup();
    let (elector, _candidate) = old_elector(&cluster).await;
    pass(seconds(10)).await;
    // The record that it has seen for 12 s, to the letter.
    let record = cluster.lease("default", "l").object().unwrap();
    cluster.restore(&empty);
    cluster.copy(&record);
    cluster.register_for("default", "b", "l", "1.0.0", "OldestEmulationVersion");
    cluster.faults("program").break_watches();
    let _answers = cluster.acknowledge("default", "b");
    pass(seconds(13)).await;
    assert_eq!(elector.lives(), 2);
    assert_eq!(cluster.holder("default", "l").as_deref(), Some("plain"));
    cluster.held_by("default", "l", "b").await;
}

/// A watch may be open for long, and a write meets the restored store first: the read after its conflict tells. So does
/// the read of a Lease whose object was not kept, since no candidate named it.
#[tokio::test(start_paused = true)]
async fn a_read_that_is_below_what_was_seen_starts_the_elector_anew() {
    for (kept, expected) in [(true, &["PUT", "GET"] as &[_]), (false, &["GET"])] {
        let cluster = TestCluster::new();
        let empty = cluster.backup();
        cluster.make_revisions(200);
        let elector = RunningElector::start(&cluster, Config::default());
        pass(seconds(20)).await;
        if kept {
            cluster.renew("default", "l", "plain");
            cluster.register("default", "silent", "l", "1.0.0");
            pass(millis(100)).await;
        }
        cluster.renew("default", "l", "plain");
        let seen = cluster.now();
        pass(seconds(12)).await;
        cluster.register("default", "fresh", "l", "1.0.0");
        pass(seconds(1)).await;
        let record = cluster.lease("default", "l").object().unwrap();
        cluster.restore(&empty);
        cluster.copy(&record);
        pass(millis(1_900)).await;
        assert_eq!(elector.lives(), 1);
        // Its watches are silent, and it grants when the 15 s of the record that it knows are over.
        pass(seconds(2)).await;
        let requests = cluster.requests_since(seen, &["leases/l"]);
        let verbs: Vec<_> = requests.iter().map(|request| &request.what[..3]).collect();
        assert_eq!(verbs, expected);
        assert_eq!(elector.lives(), 2);
        let holder = cluster.holder("default", "l");
        assert_eq!(holder.as_deref(), Some("plain"));
    }
}
