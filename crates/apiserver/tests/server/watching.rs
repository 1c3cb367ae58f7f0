//! Watches, in process and on paused time.

use std::time::Duration;

use elector_apiserver::{ApiServer, Config, WallClock};
use http::{Method, StatusCode};
use serde_json::Value;
use tokio::time::Instant;

use crate::common::{LEASES, ask, client, create, get, hold, revision, watch};

fn server(change: impl FnOnce(&mut Config)) -> ApiServer {
    let mut config = Config {
        clock: WallClock::following_timers("2026-01-02T03:04:05Z".parse().unwrap()),
        ..Config::default()
    };
    change(&mut config);
    ApiServer::new(config)
}

fn event(happened: &str, name: &str, revision: u64) -> (String, String, u64) {
    (happened.to_owned(), name.to_owned(), revision)
}

#[tokio::test(start_paused = true)]
async fn what_happens_is_told_as_it_happens() {
    let server = server(|_| {});
    let client = client(&server, "me");
    let mut all = watch(&client, "").await;
    let mut one = watch(&client, "fieldSelector=metadata.name=b").await;
    let a = create(&client, "a").await;
    assert_eq!(all.event().await, event("ADDED", "a", a));
    let b = create(&client, "b").await;
    assert_eq!(all.event().await, event("ADDED", "b", b));
    assert_eq!(one.event().await, event("ADDED", "b", b));
    let held = hold(&client, "a", "x").await;
    assert_eq!(all.event().await, event("MODIFIED", "a", held));
    ask(&client, Method::DELETE, &format!("{LEASES}/a"), None)
        .await
        .unwrap();
    assert_eq!(all.event().await, event("DELETED", "a", held + 1));
    assert!(one.is_silent().await);
    assert!(all.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_before_the_end() {
    let server = server(|_| {});
    let client = client(&server, "me");
    let start = Instant::now();
    let mut frames = watch(
        &client,
        "allowWatchBookmarks=true&timeoutSeconds=90&resourceVersion=1",
    )
    .await;
    let mut seen = Vec::new();
    create(&client, "a").await;
    while let Some(frame) = frames.next().await {
        let frame = frame.unwrap();
        seen.push((
            frame["type"].as_str().unwrap().to_owned(),
            start.elapsed().as_secs(),
            revision(&frame["object"]),
        ));
    }
    let bookmark = |seconds| ("BOOKMARK".to_owned(), seconds, server.revision());
    assert_eq!(
        seen,
        [
            ("ADDED".to_owned(), 0, server.revision()),
            bookmark(60),
            bookmark(88)
        ]
    );
    assert_eq!(start.elapsed(), Duration::from_secs(90));
}

#[tokio::test(start_paused = true)]
async fn a_slow_watch_is_cut_off_with_an_error_and_memory_stays_bounded() {
    let server = server(|config| config.watch_queue = 3);
    let client = client(&server, "me");
    let slow = watch(&client, "").await;
    let first = create(&client, "a").await;
    for number in 0..100 {
        hold(&client, "a", &number.to_string()).await;
    }
    let frames = slow.rest().await;
    let revisions: Vec<_> = frames[..3]
        .iter()
        .map(|frame| revision(&frame["object"]))
        .collect();
    assert_eq!(revisions, [first, first + 1, first + 2]);
    assert_eq!(frames.len(), 4);
    let expected = (&Value::from("ERROR"), &Value::from(410));
    assert_eq!((&frames[3]["type"], &frames[3]["object"]["code"]), expected);
    // From where it was it can go on.
    let since = first + 2;
    let mut again = watch(&client, &format!("resourceVersion={since}")).await;
    assert_eq!(again.event().await, event("MODIFIED", "a", since + 1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_its_client_dropped_is_gone() {
    let server = server(|_| {});
    let client = client(&server, "me");
    for query in ["", "fieldSelector=metadata.name=b", "timeoutSeconds=5"] {
        let frames = watch(&client, query).await;
        assert_eq!(server.watches(), 1);
        drop(frames);
        assert_eq!(server.watches(), 0, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_answers_410() {
    let server = server(|config| config.history = 2);
    let client = client(&server, "me");
    let first = create(&client, "a").await;
    let (_, page) = get(&client, &format!("{LEASES}?limit=1")).await;
    assert!(page["metadata"]["continue"].is_null());
    create(&client, "b").await;
    create(&client, "c").await;
    let (_, page) = get(&client, &format!("{LEASES}?limit=1")).await;
    create(&client, "d").await;
    server.compact();

    let old = watch(&client, &format!("resourceVersion={first}"))
        .await
        .rest()
        .await;
    let message = format!("too old resource version: {first} ({})", server.revision());
    let expected = (&"ERROR".into(), &message.into());
    assert_eq!((&old[0]["type"], &old[0]["object"]["message"]), expected);
    assert_eq!(old.len(), 1);

    let exact = format!("{LEASES}?resourceVersion={first}&resourceVersionMatch=Exact");
    let (status, failure) = get(&client, &exact).await;
    let expected = (StatusCode::GONE, &"Expired".into());
    assert_eq!((status, &failure["reason"]), expected);

    let next = |token: &Value| format!("{LEASES}?continue={}", token.as_str().unwrap());
    let (status, failure) = get(&client, &next(&page["metadata"]["continue"])).await;
    assert_eq!(status, StatusCode::GONE);
    // The refusal says how to go on, with what is there now.
    let (status, rest) = get(&client, &next(&failure["metadata"]["continue"])).await;
    assert_eq!(status, StatusCode::OK);
    let names: Vec<_> = rest["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].clone())
        .collect();
    assert_eq!(names, ["b", "c", "d"]);
}
