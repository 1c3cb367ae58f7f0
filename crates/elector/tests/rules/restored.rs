//! A store that was restored from a backup under an elector: it starts over as a new process (R4).

use elector::Config;
use serde_json::json;
use tokio::time::Instant;

use crate::stage::{Deed, OLDEST, Stage};
use crate::{Running, millis, pass, seconds};

/// An elector that has been up for long in a store of many revisions, with a lease, a candidate for it and the lock of a
/// built-in controller that is gone.
async fn old_elector(stage: &Stage) -> (Running, Deed) {
    stage.make_revisions(200).await;
    let elector = Running::start(stage, Config::default());
    pass(seconds(20)).await;
    stage.renew("default", "l", "plain").await;
    let lock = json!({"holderIdentity": "node-1_4f0c", "leaseDurationSeconds": 1, "renewTime": "2026-01-01T00:00:00.000000Z"});
    stage
        .put_lease("kube-system", "leader-election-controller", lock)
        .await;
    let candidate = stage.candidate("default", "a", "l", "1.0.0").await;
    pass(seconds(2)).await;
    assert_eq!(elector.lives(), 1);
    (elector, candidate)
}

/// Each of the three watches can be the first to meet the older store.
#[tokio::test(start_paused = true)]
async fn whichever_watch_meets_an_older_store_the_elector_starts_anew() {
    for watch in [
        "coordination.k8s.io/v1/leases?",
        "v1beta1/leasecandidates?",
        "namespaces/kube-system/leases?",
    ] {
        let stage = Stage::new();
        let (elector, _candidate) = old_elector(&stage).await;
        stage.reroute(watch);
        stage.faults().break_watches();
        pass(seconds(3)).await;
        assert_eq!(elector.lives(), 2, "{watch}");
    }
}

/// What it saw of a record before counts for nothing: it may have been renewed since, in the store that is gone.
#[tokio::test(start_paused = true)]
async fn a_stop_watch_of_before_expires_nobody_in_a_restored_store() {
    let stage = Stage::new();
    let (elector, _candidate) = old_elector(&stage).await;
    pass(seconds(10)).await;
    // The record that it has seen for 12 s, to the letter.
    let record = stage.lease("default", "l").await.unwrap();
    let before = stage.empty();
    stage.copy(&record).await;
    stage.register(("default", "b"), "l", "1.0.0", OLDEST).await;
    before.break_watches();
    let _answers = stage.answers("default", "b");
    pass(seconds(13)).await;
    assert_eq!(elector.lives(), 2);
    assert_eq!(stage.holder("default", "l").await.as_deref(), Some("plain"));
    stage.held_by("default", "l", "b").await;
}

/// A watch may be open for long, and a write meets the restored store first: the read after its conflict tells. So does
/// the read of a Lease whose object was not kept, since no candidate named it.
#[tokio::test(start_paused = true)]
async fn a_read_that_is_below_what_was_seen_starts_the_elector_anew() {
    for (kept, expected) in [(true, &["PUT", "GET"] as &[_]), (false, &["GET"])] {
        let stage = Stage::new();
        stage.make_revisions(200).await;
        let elector = Running::start(&stage, Config::default());
        pass(seconds(20)).await;
        if kept {
            let silent = ("default", "silent");
            stage.register(silent, "l", "1.0.0", OLDEST).await;
        }
        stage.renew("default", "l", "plain").await;
        let seen = Instant::now();
        pass(seconds(12)).await;
        let fresh = ("default", "fresh");
        stage.register(fresh, "l", "1.0.0", OLDEST).await;
        pass(seconds(1)).await;
        let record = stage.lease("default", "l").await.unwrap();
        let _before = stage.empty();
        stage.copy(&record).await;
        pass(millis(1_900)).await;
        assert_eq!(elector.lives(), 1);
        // Its watches are silent, and it grants when the 15 s of the record that it knows are over.
        pass(seconds(2)).await;
        let requests = stage.asked_since(seen, &["leases/l"]);
        let verbs: Vec<_> = requests.iter().map(|asked| &asked.what[..3]).collect();
        assert_eq!(verbs, expected);
        assert_eq!(elector.lives(), 2);
        let holder = stage.holder("default", "l").await;
        assert_eq!(holder.as_deref(), Some("plain"));
    }
}

/// A store that has not changed is no older one, however often it is listed.
#[tokio::test(start_paused = true)]
async fn a_list_at_the_same_revision_starts_nobody_anew() {
    let stage = Stage::new();
    let elector = Running::start(&stage, Config::default());
    pass(seconds(20)).await;
    for _ in 0..5 {
        stage.compact();
        stage.faults().break_watches();
        pass(seconds(40)).await;
    }
    assert_eq!(elector.lives(), 1);
    stage.renew("default", "l", "plain").await;
    pass(millis(100)).await;
}
