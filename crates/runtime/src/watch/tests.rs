use serde_json::{Value, json};
use tokio::time::Instant;

use std::time::Duration;

use elector_protocol::LeaseKey;

use super::*;
use crate::testing::{Reply, Script, WatchEnd, failure};

mod ends;
mod pages;
mod versions;

const LEASES: &str = "/apis/coordination.k8s.io/v1/leases?";
const NOT_NODES: &str = "&fieldSelector=metadata.namespace%21%3Dkube-node-lease";

fn lease(name: &str, version: u64) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version.to_string()}})
}

fn list(version: &str, items: &[Value]) -> Reply {
    Reply::Json(
        200,
        json!({"kind": "LeaseList", "metadata": {"resourceVersion": version}, "items": items}),
    )
}

#[expect(clippy::needless_pass_by_value, reason = "json! literals read better")]
fn line(kind: &str, object: Value) -> (Duration, Value) {
    (
        Duration::from_secs(1),
        json!({"type": kind, "object": object}),
    )
}

fn mark(version: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"resourceVersion": version}})
}

/// A watch event in few words.
fn word(event: &WatchEvent<Lease>) -> String {
    let place = |namespace: &Option<Arc<str>>| {
        namespace
            .as_ref()
            .map(|name| format!(" in {name}"))
            .unwrap_or_default()
    };
    let name = |lease: &Lease| lease.key().name.to_string();
    match event {
        WatchEvent::Gap { namespace } => format!("gap{}", place(namespace)),
        WatchEvent::Rewound { seen, now, .. } => format!("rewound {seen} to {now}"),
        WatchEvent::Listed {
            namespace,
            version,
            items,
        } => {
            let names: Vec<_> = items.iter().map(name).collect();
            format!(
                "listed {} at {version}{}",
                names.join("+"),
                place(namespace)
            )
        }
        WatchEvent::Synced => "synced".to_owned(),
        WatchEvent::Applied(lease) => format!("applied {}", name(lease)),
        WatchEvent::Deleted(lease) => format!("deleted {}", name(lease)),
        WatchEvent::Failed(error) => format!("failed to {error}"),
    }
}

/// The events of a watch in that time.
async fn events_in(watch: &mut Watch<Lease>, time: Duration) -> Vec<WatchEvent<Lease>> {
    let mut events = Vec::new();
    let read = async {
        loop {
            events.push(watch.next().await);
        }
    };
    let _ = tokio::time::timeout(time, read).await;
    events
}

async fn words(watch: &mut Watch<Lease>, count: usize) -> Vec<String> {
    let mut words = Vec::new();
    for _ in 0..count {
        words.push(word(&watch.next().await));
    }
    words
}

fn whole(script: &Script) -> Watch<Lease> {
    watch_leases(
        &script.cluster(),
        &Scope::Cluster,
        &WatchOptions::elector(1),
    )
}

#[tokio::test(start_paused = true)]
async fn a_list_is_followed_by_its_changes() {
    let script = Script::new([
        list("10", &[lease("a", 3), json!(7), lease("b", 9)]),
        Reply::Lines(
            vec![
                line("MODIFIED", lease("a", 11)),
                line("BOOKMARK", mark("15")),
                line("DELETED", lease("b", 16)),
                line(
                    "ADDED",
                    json!({"metadata": {"name": "bad", "resourceVersion": "17"}, "spec": 1}),
                ),
                line("BOOKMARK", mark("20")),
            ],
            WatchEnd::Close,
        ),
        list("20", &[]),
    ]);
    let mut watch = whole(&script);
    let seen = words(&mut watch, 6).await.join(", ");
    let expected = "gap, listed a++b at 10, synced, applied a, deleted b, applied bad";
    assert_eq!(seen, expected);
    // The next one continues after the last event, and no gap is reported.
    tokio::select! {
        biased;
        event = watch.next() => panic!("{event:?}"),
        () = tokio::time::sleep(Duration::from_secs(3)) => {}
    }
    let list = |limit| format!("GET {LEASES}{NOT_NODES}&limit={limit}");
    let watch = |version: u64| {
        format!(
            "GET {LEASES}&watch=true&timeoutSeconds=30{NOT_NODES}&allowWatchBookmarks=true&resourceVersion={version}"
        )
    };
    assert_eq!(script.lines(), [list(128), watch(10), list(1), watch(20)]);
}

#[tokio::test(start_paused = true)]
async fn forgotten_history_means_a_gap_and_a_list() {
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"});
    let script = Script::new([
        list("10", &[lease("a", 3), lease("b", 4)]),
        failure(410, "Expired", "too old resource version"),
        list("20", &[lease("a", 3)]),
        Reply::Lines(vec![line("ERROR", gone)], WatchEnd::Close),
        list("30", &[]),
    ]);
    let seen = words(&mut whole(&script), 9).await.join(", ");
    assert_eq!(
        seen,
        "gap, listed a+b at 10, synced, gap, listed a at 20, synced, gap, listed  at 30, synced"
    );
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_continues_without_a_gap() {
    let script = Script::new([
        list("10", &[]),
        Reply::Lines(vec![line("ADDED", lease("a", 12))], WatchEnd::Break),
        Reply::Break,
        list("14", &[]),
        Reply::Lines(vec![line("MODIFIED", lease("a", 13))], WatchEnd::Silence),
    ]);
    let failed = "leases.coordination.k8s.io in all namespaces: https://script is unreachable:";
    assert_eq!(
        words(&mut whole(&script), 7).await,
        [
            "gap",
            "listed  at 10",
            "synced",
            "applied a",
            &format!("failed to watch {failed} broken pipe"),
            &format!("failed to list {failed} connection reset"),
            "applied a",
        ]
    );
    // The store was asked for its version, twice, before the watch went on.
    let lines = script.lines();
    let holds = lines[2].contains("limit=1") && lines[3].contains("limit=1");
    assert!(holds, "{lines:#?}");
    assert!(lines[4].ends_with("resourceVersion=12"), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_restored_store_is_told_before_its_list() {
    let script = Script::new([
        list("100", &[lease("a", 90)]),
        Reply::Lines(vec![line("MODIFIED", lease("a", 120))], WatchEnd::Break),
        list("80", &[]),
        list("81", &[lease("a", 70)]),
        Reply::Lines(vec![], WatchEnd::Silence),
    ]);
    let words = words(&mut whole(&script), 9).await;
    let expected = ["gap", "rewound 120 to 81", "listed a at 81", "synced"];
    assert_eq!(words[5..], expected, "{words:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_given_up_in_time() {
    let script = Script::new([]);
    let mut watch = whole(&script);
    let seen = words(&mut watch, 2).await.join(", ");
    assert_eq!(
        seen,
        "gap, failed to list leases.coordination.k8s.io in all namespaces: no answer from https://script in 30s"
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusing_server_is_asked_ever_less_often() {
    let script = Script::new((0..100).map(|_| {
        failure(
            403,
            "Forbidden",
            "User \"u\" cannot list resource \"leases\"",
        )
    }));
    let mut watch = whole(&script);
    let words = words(&mut watch, 51).await;
    assert_eq!(
        words[50],
        "failed to list leases.coordination.k8s.io in all namespaces: \
         RBAC does not grant the verb list: User \"u\" cannot list resource \"leases\""
    );
    // With a cap of 2 s and jitter down to a half.
    let elapsed = script.seen()[49].at;
    let holds = elapsed > Duration::from_secs(45) && elapsed < Duration::from_secs(100);
    assert!(holds, "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lists_and_breaks_watches_is_listed_ever_less_often() {
    let pair = |_| [list("1", &[]), failure(410, "Expired", "too old")];
    let script = Script::new((0..1000).flat_map(pair));
    let mut watch = whole(&script);
    events_in(&mut watch, Duration::from_secs(100)).await;
    let requests = script.lines().len();
    assert!((100..=220).contains(&requests), "{requests}");
}

#[tokio::test(start_paused = true)]
async fn several_namespaces_are_complete_when_each_is() {
    let script = Script::new([
        list("10", &[lease("a", 1)]),
        list("11", &[lease("b", 2)]),
        Reply::Lines(vec![line("ADDED", lease("c", 12))], WatchEnd::Silence),
        failure(410, "Expired", "too old"),
        list("13", &[lease("d", 3)]),
    ]);
    assert_eq!(Scope::of_namespaces([""; 0]), Scope::Cluster);
    let scope = Scope::of_namespaces(["x", "y"]);
    let options = WatchOptions {
        labels: Some("a=b".to_owned()),
        ..WatchOptions::elector(1)
    };
    let mut watch = watch_leases(&script.cluster(), &scope, &options);
    let words = words(&mut watch, 9).await;
    assert_eq!(
        words.iter().filter(|word| *word == "synced").count(),
        2,
        "{words:#?}"
    );
    let synced = words.iter().position(|word| word == "synced").unwrap();
    let listed = |place: &str| {
        words
            .iter()
            .position(|word| word.starts_with("listed") && word.ends_with(place))
            .unwrap()
    };
    let holds = synced > listed("in x") && synced > listed("in y");
    assert!(holds, "{words:#?}");
    let holds = |line: &String| {
        let mut places = ["x", "y"]
            .map(|it| format!("/namespaces/{it}/leases?"))
            .into_iter();
        places.any(|place| line.contains(&place)) && line.contains("labelSelector=a%3Db")
    };
    assert!(script.lines().iter().all(holds), "{:#?}", script.lines());
}

#[tokio::test(start_paused = true)]
async fn one_candidate_is_watched_by_name_in_its_own_api() {
    let candidate =
        json!({"metadata": {"namespace": "ns", "name": "c", "uid": "u", "resourceVersion": "1"}});
    let script = Script::new([
        list("10", std::slice::from_ref(&candidate)),
        Reply::Lines(vec![line("MODIFIED", candidate)], WatchEnd::Silence),
    ]);
    let scope = Scope::Object(LeaseKey::new("ns", "c"));
    let options = WatchOptions::candidate(1);
    let mut watch: Watch<LeaseCandidate> =
        watch_candidates(&script.cluster(), CandidateApi::Elector, &scope, &options);
    let mut apis = Vec::new();
    for _ in 0..4 {
        match watch.next().await {
            WatchEvent::Listed { items, .. } => apis.extend(items.iter().map(|item| item.api)),
            WatchEvent::Applied(item) => apis.push(item.api),
            _ => {}
        }
    }
    assert_eq!(apis, [CandidateApi::Elector; 2]);
    let path = "GET /apis/elector.dev/v1alpha1/namespaces/ns/leasecandidates?";
    let lines = script.lines();
    assert_eq!(lines[0], format!("{path}&fieldSelector=metadata.name%3Dc"));
    assert!(lines[1].starts_with(&format!(
        "{path}&watch=true&timeoutSeconds=290&fieldSelector=metadata.name%3Dc"
    )));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_read_means_a_list() {
    let script = Script::new([
        list("10", &[]),
        Reply::Lines(vec![line("NONSENSE", json!({}))], WatchEnd::Silence),
        list("11", &[]),
    ]);
    let words = words(&mut whole(&script), 7).await;
    assert_eq!(
        words[3..],
        [
            "failed to watch leases.coordination.k8s.io in all namespaces: unreadable answer from https://script: \
             it is neither an object nor a status",
            "gap",
            "listed  at 11",
            "synced"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_without_a_version_is_refused() {
    let script = Script::new([Reply::Json(200, json!({"metadata": {}, "items": []}))]);
    assert_eq!(
        words(&mut whole(&script), 2).await[1],
        "failed to list leases.coordination.k8s.io in all namespaces: unreadable answer from https://script: \
         the list's resourceVersion \"\" is no integer"
    );
}

/// API servers store any nesting a writer puts into managedFields, and JSON readers stop at 128 levels: one such
/// object in any namespace ended every list, and with it every election.
#[tokio::test(start_paused = true)]
async fn an_object_nested_deeper_than_json_readers_go_hides_no_other() {
    let nested = (0..1000).fold(json!({}), |inner, _| json!({"f:x": inner}));
    let mut deep = lease("deep", 5);
    deep["metadata"]["managedFields"] = json!([{"manager": "x", "fieldsV1": nested}]);
    let script = Script::new([
        list("10", &[lease("a", 3), deep.clone(), lease("b", 9)]),
        Reply::Lines(
            vec![
                line("MODIFIED", deep.clone()),
                line("MODIFIED", lease("a", 11)),
                line("DELETED", deep),
            ],
            WatchEnd::Silence,
        ),
    ]);
    let seen = words(&mut whole(&script), 6).await[1..].join(", ");
    let expected = "listed a+deep+b at 10, synced, applied deep, applied a, deleted deep";
    assert_eq!(seen, expected);
}
