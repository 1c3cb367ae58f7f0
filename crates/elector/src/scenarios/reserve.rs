//! Leaders that cannot be asked to make room, with and without leave to reserve their lease.

use std::sync::{Arc, Mutex};

use crate::testkit::{FakeApi, Log, Robot, Running, made, millis, pass, seconds};
use crate::{Config, Event};

const PLACEHOLDER: &str = "elector.dev:reserved-from:old";

fn reserving() -> Config {
    Config {
        reserve: true,
        ..Config::default()
    }
}

fn holder(api: &FakeApi) -> String {
    api.holder("ns", "l").unwrap_or_default()
}

fn term(api: &FakeApi) -> Option<i32> {
    api.lease("ns", "l")?.spec.lease_transitions
}

/// A server that drops `spec.preferredHolder`, or keeps it where its gate is on, and a client-go candidate of a newer
/// version that leads there.
async fn led(api: &FakeApi, gate: bool) -> Robot {
    api.state().gate = gate;
    pass(seconds(20)).await;
    let old = Robot::start_unmarked(api, "ns", "old", "l", "1.1.0");
    api.wait_for("a leader", seconds(5), |api| holder(api) == "old")
        .await;
    pass(seconds(10)).await;
    old
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_be_asked_is_reserved_from_for_its_lease_duration() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let _elector = Running::start(&api, reserving());
    let _old = led(&api, false).await;
    let _best = Robot::start_unmarked(&api, "ns", "best", "l", "1.0.0");
    api.wait_for("the reservation", millis(100), |api| {
        holder(api) == PLACEHOLDER
    })
    .await;
    pass(millis(14_900)).await;
    assert_eq!((holder(&api).as_str(), term(&api)), (PLACEHOLDER, Some(2)));
    api.wait_for("the best one", millis(150), |api| holder(api) == "best")
        .await;
    pass(seconds(60)).await;
    assert_eq!((holder(&api).as_str(), term(&api)), ("best", Some(3)));
    assert_eq!(
        log.lines("leadership changed")[1..],
        [
            "INFO leadership changed lease=ns/l holder=\"\" term=2 previous=\"old\" reason=\"old cannot be asked to \
          yield, so the lease is reserved for 15s, until it must have stopped: best has the older emulation version \
          1.0.0 (not 1.1.0)\"",
            "INFO leadership changed lease=ns/l holder=\"best\" term=3 previous=\"old\" reason=\"the lease was \
          reserved for 15s, and old cannot lead any more; best has the older emulation version 1.0.0 (not 1.1.0)\""
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn without_leave_to_reserve_such_a_leader_stays() {
    let api = FakeApi::new();
    let _elector = Running::start(&api, Config::default());
    let _old = led(&api, false).await;
    let _best = Robot::start_unmarked(&api, "ns", "best", "l", "1.0.0");
    for _ in 0..60 {
        pass(seconds(1)).await;
        assert_eq!((holder(&api).as_str(), term(&api)), ("old", Some(1)));
    }
}

#[tokio::test(start_paused = true)]
async fn where_the_server_keeps_the_preference_nothing_is_reserved() {
    let api = FakeApi::new();
    let _elector = Running::start(&api, reserving());
    let _old = led(&api, true).await;
    let _best = Robot::start_unmarked(&api, "ns", "best", "l", "1.0.0");
    let preferred = |api: &FakeApi| {
        let lease = api.lease("ns", "l").unwrap();
        lease.record().unwrap().preferred_holder.is_some()
    };
    api.wait_for("the preference", seconds(1), preferred).await;
}

#[tokio::test(start_paused = true)]
async fn an_elector_that_starts_over_a_placeholder_waits_for_all_of_it() {
    let api = FakeApi::new();
    let first = Running::start(&api, reserving());
    let _old = led(&api, false).await;
    let _best = Robot::start(&api, "ns", "best", "l", "1.0.0");
    api.wait_for("the reservation", seconds(1), |api| {
        holder(api) == PLACEHOLDER
    })
    .await;
    pass(seconds(5)).await;
    first.stop().await;
    let _second = Running::start(&api, Config::default());
    pass(millis(14_900)).await;
    assert_eq!(holder(&api), PLACEHOLDER);
    api.wait_for("the best one", millis(200), |api| holder(api) == "best")
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_told_as_a_time_without_leader() {
    let api = FakeApi::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&seen);
    let _elector = Running::spawn(made(&api, reserving()).observed_by(move |event| {
        if let Event::LeadershipChanged(change) = event {
            let holder = change.holder.as_ref().map(ToString::to_string);
            events.lock().unwrap().push((holder, change.term.0));
        }
    }));
    let _old = led(&api, false).await;
    let _best = Robot::start(&api, "ns", "best", "l", "1.0.0");
    pass(seconds(20)).await;
    let told = seen.lock().unwrap().clone();
    let expected = [(Some("old"), 1), (None, 2), (Some("best"), 3)];
    assert_eq!(
        told,
        expected.map(|(holder, term)| (holder.map(str::to_owned), term))
    );
}
