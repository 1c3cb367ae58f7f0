//! Faults, in process and on paused time.

use std::time::Duration;

use elector_apiserver::{ApiServer, Config, Fault, RequestVerb, Rule};
use http::{Method, StatusCode};
use kube::Client;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::common::{LEASES, ask, client, create, get, hold, holder, revision, watch};

/// Asks for a lease and gives up after a second. The status, or nothing where no answer came.
async fn post(client: &Client, name: &str) -> Option<StatusCode> {
    let post = ask(
        client,
        Method::POST,
        LEASES,
        Some(json!({"metadata": {"name": name}})),
    );
    let answer = timeout(Duration::from_secs(1), post).await.ok()?;
    answer.ok().map(|(status, _)| status)
}

#[tokio::test(start_paused = true)]
async fn answers_are_lost_before_and_after_the_commit() {
    let server = ApiServer::new(Config::default());
    let (me, other) = (client(&server, "me"), client(&server, "other"));
    for (fault, name, answered, committed) in [
        (Fault::DropBefore, "before", None, false),
        (Fault::DropAfter, "after", None, true),
        (
            Fault::Refuse(429),
            "refused",
            Some(StatusCode::TOO_MANY_REQUESTS),
            false,
        ),
        (
            Fault::RefuseAfter(500),
            "lied",
            Some(StatusCode::INTERNAL_SERVER_ERROR),
            true,
        ),
        // The client gives up.
        (Fault::HangBefore, "hanging-before", None, false),
        (Fault::HangAfter, "hanging-after", None, true),
    ] {
        server
            .faults("me")
            .inject(Rule::new(fault).verb(RequestVerb::Create).times(1));
        assert_eq!(
            post(&other, &format!("other-{name}")).await,
            Some(StatusCode::CREATED),
            "{fault:?}"
        );
        assert_eq!(post(&me, name).await, answered, "{fault:?}");
        assert_eq!(holder(&other, name).await.is_some(), committed, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_the_commit_strikes_only_where_something_was_committed() {
    let server = ApiServer::new(Config::default());
    let me = client(&server, "me");
    assert_eq!(post(&me, "there").await, Some(StatusCode::CREATED));
    let faults = server.faults("me");
    for (name, strikes) in [("there", vec![]), ("new", vec![7])] {
        let refused = Rule::new(Fault::RefuseAfter(409)).labelled(7);
        faults.inject(refused.verb(RequestVerb::Create).times(1));
        assert_eq!(post(&me, name).await, Some(StatusCode::CONFLICT));
        assert_eq!(faults.take_strikes(), strikes, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn ways_take_time_and_a_request_outlives_its_client() {
    let server = ApiServer::new(Config::default());
    let (me, other) = (client(&server, "me"), client(&server, "other"));
    let second = Duration::from_secs(1);
    for (request, answer, name, answered) in [
        (second / 4, second / 4, "slow", Some(StatusCode::CREATED)),
        // The client gives up; what it sent arrives all the same.
        (3 * second, second, "too-slow", None),
        (second / 4, 3 * second, "late-answer", None),
    ] {
        server.faults("me").latency(request, answer);
        assert_eq!(post(&me, name).await, answered, "{name}");
        let early = holder(&other, name).await.is_some();
        assert_eq!(early, request < second, "{name}");
        sleep(4 * second).await;
        assert!(holder(&other, name).await.is_some(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn watches_get_events_later_and_in_order() {
    let server = ApiServer::new(Config::default());
    let (me, other) = (client(&server, "me"), client(&server, "other"));
    let watch_latency = Duration::from_millis(500);
    server.faults("me").watch_latency(watch_latency);
    let mut frames = watch(&me, "").await;
    let start = Instant::now();
    let first = create(&other, "a").await;
    sleep(Duration::from_millis(100)).await;
    let second = hold(&other, "a", "x").await;
    let expected = (first, watch_latency);
    assert_eq!((frames.event().await.2, start.elapsed()), expected);
    let expected = (second, watch_latency + Duration::from_millis(100));
    assert_eq!((frames.event().await.2, start.elapsed()), expected);
}

/// A late one after its client gave up, and a repeated one after it was answered.
#[tokio::test(start_paused = true)]
async fn a_request_can_arrive_late_and_twice() {
    let later = Duration::from_secs(30);
    for fault in [Fault::Late(later), Fault::Repeat(later)] {
        let server = ApiServer::new(Config::default());
        let me = client(&server, "me");
        server
            .faults("me")
            .inject(Rule::new(fault).verb(RequestVerb::Create).times(1));
        let start = Instant::now();
        if fault == Fault::Late(later) {
            assert_eq!(post(&me, "a").await, None);
        }
        assert_eq!(post(&me, "a").await, Some(StatusCode::CREATED));
        assert_eq!(start.elapsed(), Duration::ZERO);
        ask(&me, Method::DELETE, &format!("{LEASES}/a"), None)
            .await
            .unwrap();
        sleep(later - Duration::from_secs(1)).await;
        assert_eq!(holder(&me, "a").await, None);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(holder(&me, "a").await.as_deref(), Some(""));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_can_be_made_what_no_request_makes_it() {
    let server = ApiServer::new(Config::default());
    let me = client(&server, "me");
    let created = create(&me, "a").await;
    let garbage = |fields: &mut serde_json::Map<String, serde_json::Value>| {
        fields["spec"] = json!({"leaseDurationSeconds": "soon"});
    };
    assert!(!server.corrupt("leases", ("default", "b"), garbage));
    assert!(server.corrupt("leases", ("default", "a"), garbage));
    let (_, lease) = get(&me, &format!("{LEASES}/a")).await;
    assert_eq!(lease["spec"]["leaseDurationSeconds"], "soon");
    assert_eq!(revision(&lease), created + 1);
}

#[tokio::test(start_paused = true)]
async fn watches_are_frozen_closed_and_broken() {
    let server = ApiServer::new(Config::default());
    let (me, other) = (client(&server, "me"), client(&server, "other"));
    let switches = server.faults("me");
    let (mut mine, mut theirs) = (watch(&me, "").await, watch(&other, "").await);

    switches.freeze_watches(true);
    let first = create(&me, "a").await;
    let second = hold(&me, "a", "x").await;
    assert!(mine.is_silent().await);
    assert_eq!(theirs.event().await.2, first);
    switches.freeze_watches(false);
    let expected = (first, second);
    assert_eq!((mine.event().await.2, mine.event().await.2), expected);

    switches.close_watches();
    assert!(mine.next().await.is_none());
    let mut mine = watch(&me, &format!("resourceVersion={second}")).await;
    assert!(mine.is_silent().await);
    switches.break_watches();
    assert!(mine.next().await.unwrap().is_err());
    assert_eq!(theirs.event().await.2, second);
    assert!(theirs.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn a_client_may_be_served_by_an_older_cache() {
    let server = ApiServer::new(Config::default());
    let (me, other) = (client(&server, "me"), client(&server, "other"));
    let switches = server.faults("me");
    let old = create(&other, "a").await;
    let mut open = watch(&me, &format!("resourceVersion={old}")).await;
    switches.hold_cache(Some(old));
    let new = create(&other, "b").await;
    assert!(open.is_silent().await);

    let list = async |client: &Client, query: &str| {
        let (status, list) = get(client, &format!("{LEASES}?{query}")).await;
        assert_eq!(status, StatusCode::OK);
        (revision(&list), list["items"].as_array().map(Vec::len))
    };
    assert_eq!(list(&me, "resourceVersion=0").await, (old, Some(1)));
    assert_eq!(list(&other, "resourceVersion=0").await, (new, Some(2)));
    // A consistent read does not come from the cache.
    assert_eq!(list(&me, "").await, (new, Some(2)));
    // The cache has not got there, and says so after three seconds.
    let newer = format!("{LEASES}?resourceVersion={new}");
    let (status, _) = get(&me, &newer).await;
    assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
    let (status, _) = get(&me, &format!("{LEASES}/b?resourceVersion=0")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);

    // It reconnects, and sees an older world than it saw before.
    switches.close_watches();
    assert!(open.next().await.is_none());
    let mut again = watch(&me, "").await;
    assert_eq!(again.event().await.2, old);
    assert!(again.is_silent().await);
    switches.hold_cache(None);
    assert_eq!(again.event().await.2, new);
}

#[tokio::test(start_paused = true)]
async fn a_partition_swallows_everything_until_it_heals() {
    let server = ApiServer::new(Config::default());
    let (me, other) = (client(&server, "me"), client(&server, "other"));
    let switches = server.faults("me");
    let mut frames = watch(&me, "").await;
    switches.partition(true);
    let start = Instant::now();
    assert_eq!(post(&me, "a").await, None);
    assert_eq!(start.elapsed(), Duration::from_secs(1));
    let b = create(&other, "b").await;
    assert!(frames.is_silent().await);
    switches.partition(false);
    assert_eq!(frames.event().await.2, b);
    sleep(Duration::from_secs(10)).await;
    // The request into the partition was lost.
    assert_eq!(holder(&other, "a").await, None);
    assert_eq!(post(&me, "a").await, Some(StatusCode::CREATED));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_request_is_answered_later() {
    let server = ApiServer::new(Config::default());
    let me = client(&server, "me");
    let delay = Duration::from_millis(700);
    let rule = |namespace| Rule::new(Fault::Delay(delay)).namespace(namespace);
    server.faults("me").inject(rule("elsewhere"));
    let begun = Instant::now();
    assert_eq!(post(&me, "a").await, Some(StatusCode::CREATED));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    server.faults("me").inject(rule("default"));
    assert_eq!(post(&me, "b").await, Some(StatusCode::CREATED));
    assert_eq!(begun.elapsed(), delay);
}

#[tokio::test(start_paused = true)]
async fn the_watches_of_one_resource_can_be_frozen() {
    let server = ApiServer::new(Config::default());
    let me = client(&server, "me");
    let mut leases = watch(&me, "").await;
    server.faults("me").freeze_watches_of("leasecandidates");
    create(&me, "a").await;
    assert_eq!(leases.event().await.1, "a");
    server.faults("me").freeze_watches_of("leases");
    create(&me, "b").await;
    assert!(leases.is_silent().await);
    server.faults("me").freeze_watches(false);
    assert_eq!(leases.event().await.1, "b");
}
