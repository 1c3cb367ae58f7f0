//! The ends of a watch, and the cost of each: the server's own end, an early one, one without a word, and silence.

use super::*;

/// A watch that tells one version so much later, and ends.
fn watched_for(seconds: u64, end: WatchEnd) -> Reply {
    let bookmark = json!({"type": "BOOKMARK", "object": mark("12")});
    Reply::Lines(vec![(Duration::from_secs(seconds), bookmark)], end)
}

/// The requests of a watch in the first 40 s after a list at version 10, and what it reported after the list.
async fn after_list(replies: impl IntoIterator<Item = Reply>) -> (Vec<String>, Vec<String>) {
    let script = Script::new(std::iter::once(list("10", &[])).chain(replies));
    let mut watch = whole(&script);
    words(&mut watch, 3).await;
    let events = events_in(&mut watch, Duration::from_secs(40)).await;
    let short = |line: &String| match () {
        () if line.contains("watch=true") => {
            format!("watch from {}", line.rsplit('=').next().unwrap())
        }
        () if line.contains("limit=1") && !line.contains("limit=128") => "probe".to_owned(),
        () => "list".to_owned(),
    };
    (
        script.lines().iter().map(short).collect(),
        events.iter().map(word).collect(),
    )
}

/// The server ends a watch when the seconds are over that it was asked for, give or take what clocks differ.
#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_in_time_is_opened_again_without_asking_for_the_version() {
    for seconds in [29, 30] {
        let end = watched_for(seconds, WatchEnd::Close);
        let (requests, told) = after_list([end, Reply::Lines(vec![], WatchEnd::Silence)]).await;
        assert_eq!(requests, ["list", "watch from 10", "watch from 12"]);
        assert_eq!(told, [""; 0]);
    }
}

/// A connection that broke looks like one that was closed, so an early end may be that of a server that is restored.
/// The question costs one small request, and neither a line of the log nor a pause.
#[tokio::test(start_paused = true)]
async fn after_an_early_end_the_store_is_asked_for_its_version() {
    for end in [WatchEnd::Close, WatchEnd::UnexpectedEnd] {
        for seconds in [0, 1, 28] {
            let script = Script::new([
                list("10", &[]),
                watched_for(seconds, end),
                list("12", &[]),
                Reply::Lines(vec![line("ADDED", lease("a", 13))], WatchEnd::Silence),
            ]);
            let mut watch = whole(&script);
            words(&mut watch, 3).await;
            let start = Instant::now();
            assert_eq!(words(&mut watch, 1).await, ["applied a"]);
            assert_eq!(start.elapsed(), Duration::from_secs(seconds.max(1) + 1));
            let lines = script.lines();
            assert!(lines[2].contains("limit=1"), "{lines:#?}");
            assert!(lines[3].ends_with("resourceVersion=12"), "{lines:#?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_restored_behind_an_early_end_is_told() {
    let script = Script::new([
        list("10", &[]),
        watched_for(20, WatchEnd::UnexpectedEnd),
        list("8", &[]),
        list("8", &[lease("a", 7)]),
    ]);
    let words = words(&mut whole(&script), 7).await;
    let restored = ["gap", "rewound 12 to 8", "listed a at 8", "synced"];
    assert_eq!(words[3..], restored);
}

/// A server that lets no watch live is one that fails.
#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_has_failed() {
    let (requests, told) = after_list([
        Reply::Lines(vec![], WatchEnd::Close),
        list("10", &[]),
        Reply::Lines(vec![], WatchEnd::Silence),
    ])
    .await;
    let expected = ["list", "watch from 10", "probe", "watch from 10"];
    assert_eq!(requests[..4], expected);
    let failed = "failed to watch leases.coordination.k8s.io in all namespaces: https://script is unreachable: \
                  the watch ended as soon as it was open";
    assert_eq!(told[0], failed);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_at_once_is_asked_ever_less_often() {
    let pair = |_| [Reply::Lines(vec![], WatchEnd::Close), list("10", &[])];
    let (requests, told) = after_list((0..100).flat_map(pair)).await;
    let openings = requests
        .iter()
        .filter(|request| request.starts_with("watch"));
    let openings = openings.count();
    assert!((20..=30).contains(&openings), "{openings}");
    assert_eq!(told.len(), openings);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_early_is_not_asked_in_a_loop() {
    for seconds in [0, 1] {
        let pair = |_| [watched_for(seconds, WatchEnd::Close), list("12", &[])];
        let (requests, told) = after_list((0..100).flat_map(pair)).await;
        let openings = requests
            .iter()
            .filter(|request| request.starts_with("watch"));
        assert_eq!(openings.count(), 40);
        assert_eq!(told, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_given_up_in_time() {
    let script = Script::new([list("1", &[]), Reply::Lines(vec![], WatchEnd::Silence)]);
    let mut watch = whole(&script);
    words(&mut watch, 3).await;
    let start = Instant::now();
    assert_eq!(
        words(&mut watch, 1).await,
        [
            "failed to watch leases.coordination.k8s.io in all namespaces: no answer from https://script in 35s"
        ]
    );
    assert_eq!(start.elapsed(), Duration::from_secs(35));
}
