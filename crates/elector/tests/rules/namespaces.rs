//! An elector of several namespaces: each is listed by itself, and what one list says is said of that one alone.

use elector::{Config, Event, LeadershipChange, Scope};
use serde_json::json;
use tokio::time::Instant;

use crate::stage::{Bend, Stage};
use crate::{Running, millis, pass, seconds};

const LISTS: [&str; 4] = [
    "namespaces/a/leases?",
    "namespaces/b/leases?",
    "namespaces/a/leasecandidates?",
    "namespaces/b/leasecandidates?",
];

fn both() -> Config {
    Config {
        scope: Scope::Namespaces(["a".into(), "b".into()].into()),
        ..Config::default()
    }
}

/// A lease that anybody may be granted at once, since its holder let it go.
async fn released(stage: &Stage, namespace: &str) {
    let spec = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
    stage.put_lease(namespace, "l", spec).await;
}

/// Makes the elector list the leases or the candidates of a namespace anew, and nothing else.
async fn relist(stage: &Stage, watch: &'static str) {
    let start = Instant::now();
    // A watch is opened anew every 30 s, and this one is told that its history is forgotten.
    stage.bend(watch, Bend::Refused(410));
    let refused = [watch, "watch=true"];
    while stage.asked_since(start, &refused).is_empty() {
        pass(millis(1)).await;
    }
    stage.straighten();
}

/// No effect before all first lists are complete, those of every namespace.
#[tokio::test(start_paused = true)]
async fn nothing_is_written_before_both_kinds_are_listed_in_every_namespace() {
    for slow in LISTS {
        let stage = Stage::new();
        let mut candidates = Vec::new();
        for namespace in ["a", "b"] {
            released(&stage, namespace).await;
            candidates.push(stage.candidate(namespace, "x", "l", "1.0.0").await);
        }
        let start = Instant::now();
        stage.bend(slow, Bend::Late(seconds(4)));
        let elector = Running::start(&stage, both());
        pass(millis(3_990)).await;
        // What is on its way comes late all the same.
        stage.straighten();
        assert_eq!(elector.lives(), 0, "{slow}");
        let writes = stage.asked_since(start, &[]);
        let writes: Vec<_> = writes
            .iter()
            .filter(|asked| !asked.what.starts_with("GET"))
            .collect();
        assert!(writes.is_empty(), "{slow}: {writes:?}");
        for namespace in ["a", "b"] {
            assert!(
                stage.held_by(namespace, "l", "x").await < seconds(1),
                "{slow}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_one_namespace_takes_nothing_from_another() {
    let stage = Stage::new();
    let elector = Running::start(&stage, both());
    pass(seconds(20)).await;
    let kept = stage.keep("b", "l", "plain");
    let _candidate = stage.candidate("b", "y", "l", "1.0.0").await;
    pass(seconds(5)).await;
    let start = Instant::now();
    relist(&stage, "namespaces/a/leases?").await;
    relist(&stage, "namespaces/a/leasecandidates?").await;
    pass(seconds(5)).await;
    let posts = stage.asked_since(start, &["POST"]);
    assert!(posts.is_empty(), "{posts:?}");
    let deleted = |event: &Event| {
        matches!(
            event,
            Event::LeadershipChanged(LeadershipChange { holder: None, .. })
        )
    };
    assert_eq!(elector.count(deleted), 0);
    // Its candidate is known still, and its stop-watch has never been started anew: by now it has all it takes.
    drop(kept);
    let waited = stage.held_by("b", "l", "y").await;
    assert!(
        waited > seconds(12) && waited < millis(15_100),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_list_of_its_own_namespace_does_not_show_is_gone() {
    let stage = Stage::new();
    let elector = Running::start(&stage, both());
    pass(seconds(20)).await;
    for namespace in ["a", "b"] {
        stage.renew(namespace, "l", "plain").await;
        let name = (namespace, "x");
        stage
            .register(name, "l", "1.0.0", "OldestEmulationVersion")
            .await;
    }
    pass(seconds(1)).await;
    let start = Instant::now();
    relist(&stage, "namespaces/a/leases?").await;
    // Between the end of the watch and the list.
    stage.delete_lease("a", "l").await;
    pass(seconds(2)).await;
    let posts = stage.asked_since(start, &["POST"]);
    assert!(
        posts
            .iter()
            .all(|post| post.what.contains("namespaces/a/leases"))
            && !posts.is_empty(),
        "{posts:?}"
    );
    let deleted = |event: &Event| {
        matches!(event, Event::LeadershipChanged(LeadershipChange { holder: None, lease, .. })
            if lease.namespace.as_ref() == "a")
    };
    assert_eq!(elector.count(deleted), 1);
}

/// The proof that a name was absent starts over after a relist (R6), and only where that was made.
#[tokio::test(start_paused = true)]
async fn a_list_of_one_namespace_starts_the_proof_of_absence_over_there_and_nowhere_else() {
    let stage = Stage::new();
    let _elector = Running::start(&stage, both());
    pass(seconds(40)).await;
    relist(&stage, "namespaces/a/leases?").await;
    pass(seconds(2)).await;
    let _new = [
        stage.candidate("a", "x", "l", "1.0.0").await,
        stage.candidate("b", "x", "l", "1.0.0").await,
    ];
    assert!(stage.held_by("b", "l", "x").await < millis(100));
    pass(seconds(12)).await;
    assert_eq!(stage.holder("a", "l").await.as_deref(), Some(""));
    let waited = stage.held_by("a", "l", "x").await;
    assert!(waited < seconds(4), "{waited:?}");
}
