//! Lists in pages: bounded in bytes, and of one version or none.

use super::*;

/// A page after which there are more.
fn page(version: &str, items: &[Value], token: &str) -> Reply {
    let metadata = json!({"resourceVersion": version, "continue": token});
    Reply::Json(
        200,
        json!({"kind": "LeaseList", "metadata": metadata, "items": items}),
    )
}

/// A lease with an annotation of so many bytes.
fn large(name: &str, bytes: usize) -> Value {
    let mut large = lease(name, 3);
    large["metadata"]["annotations"] = json!({"x": "y".repeat(bytes)});
    large
}

/// The limits that were asked for, as long as lists were.
fn limits(script: &Script) -> Vec<u32> {
    let limit = |line: String| {
        let (_, rest) = line.split_once("&limit=")?;
        rest.split('&').next()?.parse().ok()
    };
    script.lines().into_iter().map_while(limit).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_in_pages_is_told_whole() {
    let script = Script::new([
        page("10", &[lease("a", 3)], "one"),
        page("10", &[], "two/+"),
        list("10", &[lease("b", 4)]),
        Reply::Lines(vec![line("MODIFIED", lease("a", 11))], WatchEnd::Silence),
    ]);
    let expected = ["gap", "listed a+b at 10", "synced", "applied a"];
    assert_eq!(words(&mut whole(&script), 4).await, expected);
    let lines = script.lines();
    let list = format!("GET {LEASES}{NOT_NODES}");
    assert_eq!(
        lines[..3],
        [
            format!("{list}&limit=128"),
            format!("{list}&limit=256&continue=one"),
            format!("{list}&limit=512&continue=two%2F%2B"),
        ]
    );
    assert!(lines[3].ends_with("resourceVersion=10"), "{lines:?}");
}

/// The server forgets a version after some minutes. What a list lacks counts as gone, so half of one is none.
#[tokio::test(start_paused = true)]
async fn a_list_that_fails_on_the_way_begins_again() {
    let expired = "The provided continue parameter is too old";
    let no_version = json!({"metadata": {"resourceVersion": ""}, "items": [lease("c", 12)]});
    for (second, why) in [
        (failure(410, "Expired", expired), "answered 410 Expired"),
        (Reply::Break, "connection reset"),
        (Reply::Text(200, "{\"items\": [{}, "), "unreadable answer"),
        (Reply::Text(200, "7"), "expected a list of objects"),
        (Reply::Text(200, "{\"items\": 7}"), "expected objects"),
        (Reply::Json(200, no_version), "is no integer"),
        (
            list("12", &[lease("c", 12)]),
            "a page is of version 12, the first one of 10",
        ),
    ] {
        let script = Script::new([
            page("10", &[lease("a", 3), lease("b", 4)], "one"),
            second,
            page("20", &[lease("b", 4)], "other"),
            list("20", &[lease("d", 15)]),
        ]);
        let words = words(&mut whole(&script), 4).await;
        let holds = words[1].starts_with("failed to list") && words[1].contains(why);
        assert!(holds, "{words:?}");
        assert_eq!(words[2..], ["listed b+d at 20", "synced"]);
        let lines = script.lines();
        assert!(!lines[2].contains("continue="), "{lines:?}");
        assert!(lines[3].contains("continue=other"), "{lines:?}");
    }
}

/// One page is in memory at a time, and a tenant can fill its objects from one page to the next.
#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_large_is_asked_for_in_smaller_ones() {
    let many: Vec<_> = (0..5).map(|_| large("a", 2 << 20)).collect();
    let script = Script::new([
        page("10", &[lease("first", 3)], "one"),
        list("10", &many),
        list("10", &many),
        page("10", &many[..3], "two"),
        list("10", &many[3..]),
        Reply::Lines(vec![], WatchEnd::Silence),
    ]);
    let words = words(&mut whole(&script), 3).await;
    // Those of the pages that were given up are not counted twice.
    assert_eq!(words[1..], ["listed first+a+a+a+a+a at 10", "synced"]);
    // Once it fits, the page has that size until its objects are small again.
    assert_eq!(limits(&script), [128, 256, 128, 64, 64]);
    let lines = script.lines();
    let holds = lines[1..4].iter().all(|line| line.contains("continue=one"));
    assert!(holds, "{lines:?}");
}

/// No object is too large, and no page is of less than one.
#[tokio::test(start_paused = true)]
async fn a_page_of_one_object_is_read_whatever_its_size() {
    let huge = large("a", 9 << 20);
    let script = Script::new(
        (0..7)
            .map(|_| list("10", &[huge.clone(), huge.clone()]))
            .chain([
                page("10", std::slice::from_ref(&huge), "one"),
                page("10", &[], "two"),
                list("10", std::slice::from_ref(&huge)),
                list("10", std::slice::from_ref(&huge)),
                Reply::Lines(vec![], WatchEnd::Silence),
            ]),
    );
    let words = words(&mut whole(&script), 3).await;
    assert_eq!(words[1..], ["listed a+a at 10", "synced"]);
    assert_eq!(limits(&script), [128, 64, 32, 16, 8, 4, 2, 1, 1, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn pages_of_small_objects_grow_to_a_bound() {
    let pages = (0..8).map(|_| page("10", &[lease("a", 3)], "more"));
    let script = Script::new(pages.chain([list("10", &[])]));
    words(&mut whole(&script), 3).await;
    let expected = [128, 256, 512, 1024, 2048, 4096, 4096, 4096, 4096];
    assert_eq!(limits(&script), expected);
}

#[tokio::test(start_paused = true)]
async fn a_list_without_items_is_empty() {
    for items in [Value::Null, json!([])] {
        let body = json!({"metadata": {"resourceVersion": "10"}, "items": items});
        let script = Script::new([Reply::Json(200, body)]);
        let words = words(&mut whole(&script), 3).await;
        assert_eq!(words[1..], ["listed  at 10", "synced"]);
    }
}

/// The number of objects that were read, and nothing of them.
#[derive(Debug, Default)]
struct Count(usize);

impl Extend<Lease> for Count {
    fn extend<I: IntoIterator<Item = Lease>>(&mut self, leases: I) {
        self.0 += leases.into_iter().count();
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_may_be_gathered_in_something_small() {
    let script = Script::new([
        page("10", &[lease("a", 3), lease("b", 4)], "one"),
        Reply::Break,
        page("10", &[lease("a", 3), lease("b", 4)], "one"),
        list("10", &[lease("c", 5)]),
    ]);
    let (cluster, options) = (script.cluster(), WatchOptions::elector(1));
    let mut watch: Watch<Lease, Count> = watch_leases(&cluster, &Scope::Cluster, &options);
    loop {
        if let WatchEvent::Listed { items, .. } = watch.next().await {
            assert_eq!(items.0, 3);
            break;
        }
    }
}

/// All namespaces are asked for at once, and however many they are, few pages are in memory.
#[tokio::test(start_paused = true)]
async fn few_pages_are_read_at_a_time() {
    // An answer that takes a second to read.
    let slow = || Reply::Lines(vec![line("ADDED", json!({}))], WatchEnd::Close);
    let script = Script::new((0..100).map(|_| slow()));
    let names: Vec<_> = (0..100).map(|number| format!("ns-{number}")).collect();
    let scope = Scope::of_namespaces(names);
    let mut watch: Watch<Lease> =
        watch_leases(&script.cluster(), &scope, &WatchOptions::elector(1));
    let events = events_in(&mut watch, Duration::from_millis(1050)).await;
    let failed = events
        .iter()
        .filter(|event| matches!(event, WatchEvent::Failed(_)));
    assert_eq!((script.lines().len(), failed.count()), (100, READERS));
}
