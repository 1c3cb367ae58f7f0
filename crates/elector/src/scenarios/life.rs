//! Starting, stopping, and a store that goes back in time.

use http::Method;
use tokio::runtime::Handle;

use crate::testkit::{FakeApi, Log, Robot, Running, millis, pass, seconds};
use crate::{BuiltinController, Config};

#[tokio::test(start_paused = true)]
async fn a_stop_takes_no_time_whatever_is_under_way() {
    let api = FakeApi::new();
    let elector = Running::start(&api, Config::default());
    pass(seconds(20)).await;
    api.state().mute.push("leases/l");
    let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
    pass(millis(100)).await;
    assert!(
        api.state()
            .requests
            .iter()
            .any(|request| request.starts_with("PUT") && request.ends_with("leases/l"))
    );
    assert_eq!(elector.stop().await, millis(0));
}

#[tokio::test(start_paused = true)]
async fn a_stop_takes_less_than_two_seconds_even_if_the_lock_cannot_be_released() {
    let api = FakeApi::new();
    let config = Config {
        builtin: BuiltinController::Replace { host: "pod".into() },
        ..Config::default()
    };
    let elector = Running::start(&api, config);
    pass(seconds(20)).await;
    api.state()
        .delays
        .push((Method::PUT, "leader-election-controller", seconds(100)));
    pass(seconds(1)).await;
    let stopped = elector.stop().await;
    assert!(stopped > seconds(1) && stopped < seconds(2), "{stopped:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_starts_and_stops_leave_nothing_behind() {
    let api = FakeApi::new();
    let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
    pass(seconds(1)).await;
    let before = Handle::current().metrics().num_alive_tasks();
    for turn in 0..100 {
        let elector = Running::start(&api, Config::default());
        pass(millis(turn * 5)).await;
        elector.stop().await;
    }
    // What the server still does for requests that nobody waits for.
    pass(seconds(1)).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), before);
    let requests = api.state().requests.len();
    pass(seconds(60)).await;
    assert_eq!(api.state().requests.len(), requests);
}

#[tokio::test(start_paused = true)]
async fn a_restart_while_somebody_leads_changes_nothing() {
    let api = FakeApi::new();
    let elector = Running::start(&api, Config::default());
    pass(seconds(20)).await;
    let _robots = ["a", "b"].map(|name| Robot::start(&api, "ns", name, "l", "1.0.0"));
    pass(seconds(20)).await;
    let term = api.lease("ns", "l").unwrap().spec.lease_transitions;
    elector.stop().await;
    let _elector = Running::start(&api, Config::default());
    pass(seconds(120)).await;
    assert_eq!(api.lease("ns", "l").unwrap().spec.lease_transitions, term);
}

#[tokio::test(start_paused = true)]
async fn a_restored_store_makes_it_start_anew() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let _elector = Running::start(&api, Config::default());
    pass(seconds(20)).await;
    let backup = api.backup();
    let robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
    pass(seconds(30)).await;
    drop(robot);
    pass(millis(10)).await;
    api.restore(backup);
    let _robot = Robot::start(&api, "ns", "b", "l", "1.0.0");
    pass(seconds(3)).await;
    assert_eq!(
        log.lines("the store went back to an older version").len(),
        1
    );
    assert_eq!(
        api.holder("ns", "l").as_deref(),
        Some(""),
        "absence is not proven any more"
    );
    api.wait_for("a leader", seconds(20), |api| {
        api.holder("ns", "l").as_deref() == Some("b")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_elector_asks_for_nothing_but_its_watches() {
    let api = FakeApi::new();
    let _elector = Running::start(&api, Config::default());
    pass(seconds(20)).await;
    let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
    pass(seconds(10)).await;
    api.state().requests.clear();
    pass(seconds(600)).await;
    let requests = api.state().requests.clone();
    // Three watches, opened every 30 s.
    assert!(
        requests.iter().all(|request| request.starts_with("GET")),
        "{requests:?}"
    );
    assert!((57..=63).contains(&requests.len()), "{}", requests.len());
}
