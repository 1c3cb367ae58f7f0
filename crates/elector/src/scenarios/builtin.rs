//! Beside the built-in controller, and in its place.

use http::Method;
use serde_json::json;

use crate::testkit::{FakeApi, LEASES, Log, Robot, Running, millis, pass, register, seconds};
use crate::{BuiltinController, Config, Scope};

const APISERVER: &str = "node-1_4f0c7f1e";

fn renew_lock(api: &FakeApi, second: u32) {
    api.put(
        LEASES,
        "kube-system",
        "leader-election-controller",
        |object| {
            object["spec"] = json!({
                "holderIdentity": APISERVER, "leaseDurationSeconds": 15, "leaseTransitions": 2,
                "renewTime": format!("2026-01-01T00:00:{second:02}.000000Z"),
            });
        },
    );
}

fn replacing() -> Config {
    Config {
        builtin: BuiltinController::Replace { host: "pod".into() },
        ..Config::default()
    }
}

fn lock_holder(api: &FakeApi) -> Option<String> {
    api.holder("kube-system", "leader-election-controller")
}

#[tokio::test(start_paused = true)]
async fn while_it_is_alive_its_leases_are_left_to_it_and_others_are_not() {
    let (log, api) = (Log::capture(), FakeApi::new());
    renew_lock(&api, 0);
    let _elector = Running::start(&api, Config::default());
    let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
    let _foreign = Robot::start(&api, "ns", "b", "foreign", "1.0.0");
    api.put("leasecandidates", "ns", "b", |object| {
        object["spec"]["strategy"] = json!("example.com/mine");
    });
    for second in 1..30 {
        pass(seconds(2)).await;
        renew_lock(&api, second);
    }
    assert!(api.lease("ns", "l").is_none());
    assert_eq!(api.holder("ns", "foreign").as_deref(), Some(""));
    let said = log.lines("the built-in controller is electing");
    assert_eq!(said.len(), 1);
    assert!(said[0].contains(APISERVER), "{said:?}");
    // Its API server stops.
    pass(millis(14_900)).await;
    assert!(api.lease("ns", "l").is_none());
    api.wait_for("a leader", seconds(1), |api| {
        api.holder("ns", "l").as_deref() == Some("a")
    })
    .await;
    assert_eq!(log.lines("the built-in controller is gone").len(), 1);
    // It comes back: the leader stays, and nothing is written any more.
    renew_lock(&api, 59);
    pass(millis(100)).await;
    let writes = api.state().writes.len();
    pass(seconds(14)).await;
    assert_eq!(api.state().writes.len(), writes);
    assert_eq!(log.lines("the built-in controller is electing").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn its_lock_is_taken_kept_and_let_go() {
    let (log, api) = (Log::capture(), FakeApi::new());
    renew_lock(&api, 0);
    let elector = Running::start(&api, replacing());
    let _robot = Robot::start(&api, "kube-system", "a", "l", "1.0.0");
    api.wait_for("the lock", millis(100), |api| {
        lock_holder(api).is_some_and(|holder| holder.starts_with("elector_pod_"))
    })
    .await;
    pass(millis(14_900)).await;
    assert!(
        api.lease("kube-system", "l").is_none(),
        "not before the built-in one has certainly stopped"
    );
    api.wait_for("the lease", millis(500), |api| {
        api.lease("kube-system", "l").is_some()
    })
    .await;
    pass(seconds(60)).await;
    assert_eq!(api.holder("kube-system", "l").as_deref(), Some("a"));
    let renewals = api
        .state()
        .writes
        .iter()
        .filter(|write| write.ends_with("leader-election-controller"))
        .count();
    assert!((20..30).contains(&renewals), "{renewals}");
    assert_eq!(log.lines("the built-in controller is replaced").len(), 1);
    elector.stop().await;
    assert_eq!(lock_holder(&api).as_deref(), Some(""));
}

#[tokio::test(start_paused = true)]
async fn losing_the_lock_stops_decisions_at_once() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let _elector = Running::start(&api, replacing());
    pass(seconds(20)).await;
    assert_eq!(
        log.lines("the built-in controller is replaced").len(),
        1,
        "without the gate there is nobody to wait for"
    );
    let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
    pass(seconds(1)).await;
    assert_eq!(api.holder("ns", "l").as_deref(), Some("a"));
    renew_lock(&api, 0);
    pass(millis(10)).await;
    let _other = Robot::start(&api, "ns", "b", "other", "1.0.0");
    pass(seconds(14)).await;
    assert!(api.lease("ns", "other").is_none());
    assert!(
        lock_holder(&api).unwrap().starts_with("elector_pod_"),
        "taken again"
    );
    pass(seconds(17)).await;
    assert!(api.lease("ns", "other").is_some());
}

#[tokio::test(start_paused = true)]
async fn losing_the_lock_gives_up_what_is_under_way() {
    let api = FakeApi::new();
    for index in 0..60 {
        register(&api, "ns", &format!("dead-{index}"), "l", "1.0.0");
    }
    api.state()
        .delays
        .push((Method::PUT, "leasecandidates", seconds(1)));
    let _elector = Running::start(&api, replacing());
    let asked = |api: &FakeApi| {
        let state = api.state();
        let pings = state.requests.iter();
        pings
            .filter(|request| request.starts_with("PUT") && request.contains("/leasecandidates/"))
            .count()
    };
    while asked(&api) < 10 {
        pass(millis(10)).await;
    }
    renew_lock(&api, 0);
    pass(millis(10)).await;
    let at_once = asked(&api);
    assert!(
        at_once < 30,
        "only so many are asked side by side: {at_once}"
    );
    pass(seconds(10)).await;
    assert_eq!(asked(&api), at_once);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_elected_for_the_lock_itself() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let _elector = Running::start(&api, replacing());
    let _robot = Robot::start(
        &api,
        "kube-system",
        "a",
        "leader-election-controller",
        "1.0.0",
    );
    pass(seconds(60)).await;
    assert!(lock_holder(&api).unwrap().starts_with("elector_pod_"));
    assert_eq!(log.lines("is the lock of the built-in controller").len(), 1);
}

fn one_namespace() -> Config {
    Config {
        scope: Scope::Namespaces(["ns".into()].into()),
        ..Config::default()
    }
}

/// The lock may not be read: one line names the Role that is missing, and its coming is enough.
#[tokio::test(start_paused = true)]
async fn the_role_that_the_lock_needs_is_named_once_and_its_coming_heals() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let lock = "namespaces/kube-system/leases";
    api.state()
        .refusals
        .push((Method::GET, lock, 403, "Forbidden"));
    let _elector = Running::start(&api, one_namespace());
    let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
    pass(seconds(50)).await;
    assert!(api.lease("ns", "l").is_none());
    let lines = log.lines("WARN");
    assert_eq!(lines.len(), 1, "{lines:?}");
    for part in [
        "failed to list leases.coordination.k8s.io kube-system/leader-election-controller",
        "a Role in the namespace kube-system grants list and watch of leases.coordination.k8s.io with the \
         resourceName leader-election-controller",
    ] {
        assert!(lines[0].contains(part), "{lines:?}");
    }
    api.state().refusals.clear();
    api.wait_for("a leader", seconds(20), |api| {
        api.holder("ns", "l").as_deref() == Some("a")
    })
    .await;
}

/// The built-in controller does not see custom resources: whether its lock can be read is all the same.
#[tokio::test(start_paused = true)]
async fn with_custom_candidates_the_lock_is_not_asked_for() {
    for config in [
        one_namespace(),
        Config {
            scope: Scope::Namespaces(["ns".into()].into()),
            ..replacing()
        },
    ] {
        let (log, api) = (Log::capture(), FakeApi::new());
        api.offer(&["elector.dev/v1alpha1"]);
        renew_lock(&api, 0);
        let lock = "namespaces/kube-system/leases";
        api.state()
            .refusals
            .push((Method::GET, lock, 403, "Forbidden"));
        let _elector = Running::start(&api, config);
        let _robot = Robot::start(&api, "ns", "a", "l", "1.0.0");
        api.wait_for("a leader", seconds(20), |api| {
            api.holder("ns", "l").as_deref() == Some("a")
        })
        .await;
        let about_the_lock = |request: &&String| request.contains("kube-system");
        let state = api.state();
        let asked: Vec<_> = state.requests.iter().filter(about_the_lock).collect();
        assert_eq!(asked, [""; 0]);
        assert_eq!(log.lines("WARN"), [""; 0]);
    }
}
