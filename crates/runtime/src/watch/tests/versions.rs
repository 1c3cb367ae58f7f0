//! Which version a watch goes on from, and what it takes for a store that went back (R4).

use super::*;

/// The next words, but for failures.
async fn news(watch: &mut Watch<Lease>, count: usize) -> Vec<String> {
    let mut news = Vec::new();
    while news.len() < count {
        let word = word(&watch.next().await);
        if !word.starts_with("failed") {
            news.push(word);
        }
    }
    news
}

/// Lets the watch go on for so long, and asserts that it tells nothing.
async fn is_silent(watch: &mut Watch<Lease>, time: Duration) {
    tokio::select! {
        biased;
        event = watch.next() => panic!("{}", word(&event)),
        () = tokio::time::sleep(time) => {}
    }
}

/// A store in which nothing happens stays at its version.
#[tokio::test(start_paused = true)]
async fn a_list_at_the_version_of_before_is_no_store_that_went_back() {
    let script = Script::new([
        list("10", &[lease("a", 3)]),
        failure(410, "Expired", "too old"),
        list("10", &[lease("a", 3)]),
        Reply::Lines(vec![], WatchEnd::Break),
        list("10", &[]),
        Reply::Lines(vec![line("MODIFIED", lease("a", 11))], WatchEnd::Silence),
    ]);
    let seen = news(&mut whole(&script), 7).await.join(", ");
    let expected = "gap, listed a at 10, synced, gap, listed a at 10, synced, applied a";
    assert_eq!(seen, expected);
}

/// Everything that shows a version counts: a list, an event, a deletion, a bookmark.
#[tokio::test(start_paused = true)]
async fn whatever_showed_the_highest_version_a_store_below_it_went_back() {
    for shown in [
        line("MODIFIED", lease("a", 120)),
        line("DELETED", lease("a", 120)),
        line("BOOKMARK", mark("120")),
    ] {
        let older = line("MODIFIED", lease("b", 110));
        let script = Script::new([
            list("100", &[lease("a", 90)]),
            Reply::Lines(vec![shown, older], WatchEnd::Break),
            list("119", &[]),
            list("119", &[]),
            Reply::Lines(vec![], WatchEnd::Silence),
        ]);
        let mut watch = whole(&script);
        let mut words = news(&mut watch, 7).await;
        words.retain(|word| word.starts_with("rewound"));
        assert_eq!(words, ["rewound 120 to 119"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_the_last_deletion_or_bookmark() {
    for last in [
        line("DELETED", lease("a", 12)),
        line("BOOKMARK", mark("12")),
    ] {
        let script = Script::new([
            list("10", &[lease("a", 3)]),
            Reply::Lines(
                vec![line("MODIFIED", lease("a", 11)), last],
                WatchEnd::Close,
            ),
            list("12", &[]),
        ]);
        let mut watch = whole(&script);
        events_in(&mut watch, Duration::from_secs(5)).await;
        let lines = script.lines();
        assert!(lines[3].ends_with("resourceVersion=12"), "{lines:#?}");
    }
}

/// A server that is busy or down has forgotten nothing; one that refuses a watch otherwise is listed anew.
#[tokio::test(start_paused = true)]
async fn only_what_the_server_forgot_or_refuses_costs_a_list() {
    let refused = |code| failure(code, "Reason", "why");
    for code in [429, 500, 503, 504] {
        let script = Script::new([
            list("10", &[]),
            refused(code),
            list("10", &[]),
            Reply::Lines(vec![line("ADDED", lease("a", 11))], WatchEnd::Silence),
        ]);
        let words = news(&mut whole(&script), 4).await;
        let expected = ["gap", "listed  at 10", "synced", "applied a"];
        assert_eq!(words, expected, "{code}");
        assert!(script.lines()[2].contains("limit=1"), "{code}");
    }
    for code in [400, 404, 410, 422] {
        let script = Script::new([
            list("10", &[]),
            refused(code),
            list("11", &[lease("a", 11)]),
        ]);
        let words = news(&mut whole(&script), 5).await;
        assert_eq!(words[3..], ["gap", "listed a at 11"], "{code}");
    }
}

/// A process that may list and not watch sees what lists show; admission that refuses a watch once forgets nothing.
#[tokio::test(start_paused = true)]
async fn a_watch_without_the_right_is_listed_anew_where_a_process_lists_unwatched() {
    let right = "User \"u\" cannot watch resource \"leases\"";
    for (lists_unwatched, message, lists) in [
        (true, right, true),
        (true, "exceeded quota", false),
        (false, right, false),
    ] {
        let script = Script::new([
            list("10", &[]),
            failure(403, "Forbidden", message),
            list("11", &[lease("a", 11)]),
            Reply::Lines(vec![line("ADDED", lease("b", 12))], WatchEnd::Silence),
        ]);
        let options = WatchOptions {
            lists_unwatched,
            ..WatchOptions::elector(1)
        };
        let mut watch = watch_leases(&script.cluster(), &Scope::Cluster, &options);
        let words = news(&mut watch, 4).await;
        let expected = if lists { "gap" } else { "applied b" };
        assert_eq!(words[3], expected, "{lists_unwatched} {message}");
    }
}

/// Zero would mean the server's own choice, of half an hour and more.
#[tokio::test(start_paused = true)]
async fn the_shortest_watch_lasts_a_second() {
    let script = Script::new([list("10", &[]), Reply::Lines(vec![], WatchEnd::Silence)]);
    let options = WatchOptions {
        timeout: Duration::from_millis(500),
        ..WatchOptions::elector(1)
    };
    let mut watch = watch_leases(&script.cluster(), &Scope::Cluster, &options);
    news(&mut watch, 3).await;
    is_silent(&mut watch, Duration::from_secs(1)).await;
    assert!(
        script.lines()[1].contains("timeoutSeconds=1&"),
        "{:?}",
        script.lines()
    );
}
