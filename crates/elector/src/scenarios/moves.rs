//! A cluster whose candidates come to be served by another API.

use crate::testkit::{
    CANDIDATES, FakeApi, LEASES, Log, Robot, Running, millis, pass, register, seconds,
};
use crate::{BuiltinController, Config};

const NATIVE: &str = "coordination.k8s.io/v1beta1";
const OLDER: &str = "coordination.k8s.io/v1alpha2";
const CUSTOM: &str = "elector.dev/v1alpha1";

fn holder(api: &FakeApi) -> String {
    api.holder("ns", "l").unwrap_or_default()
}

fn term(api: &FakeApi) -> Option<i32> {
    api.lease("ns", "l")?.spec.lease_transitions
}

/// Two candidates that have a leader, `a`, under these APIs.
async fn led(api: &FakeApi, apis: &[&'static str]) -> (Running, [Robot; 2]) {
    api.offer(apis);
    let elector = Running::start(api, Config::default());
    pass(seconds(20)).await;
    let robots = ["a", "b"].map(|name| Robot::start(api, "ns", name, "l", "1.0.0"));
    api.wait_for("a leader", seconds(5), |api| holder(api) == "a")
        .await;
    pass(seconds(5)).await;
    (elector, robots)
}

/// The leader crashes: the other one follows, so the elector sees the candidates where they are now.
async fn crash(api: &FakeApi, robots: [Robot; 2]) {
    let [a, _b] = robots;
    drop(a);
    api.wait_for("the next one", seconds(17), |api| holder(api) == "b")
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_better_api_is_followed_without_a_change_of_leader() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let (_elector, robots) = led(&api, &[CUSTOM]).await;
    let before = term(&api);
    for apis in [&[OLDER, CUSTOM] as &[_], &[NATIVE, OLDER, CUSTOM]] {
        api.offer(apis);
        pass(seconds(60)).await;
        assert_eq!((holder(&api).as_str(), term(&api)), ("a", before));
    }
    let moves = log.lines("candidates are served by another API");
    assert_eq!(moves.len(), 2, "{moves:?}");
    assert!(moves[1].contains(NATIVE), "{moves:?}");
    crash(&api, robots).await;
}

#[tokio::test(start_paused = true)]
async fn an_api_that_goes_is_left_at_once() {
    let api = FakeApi::new();
    let (_elector, robots) = led(&api, &[NATIVE, CUSTOM]).await;
    let before = term(&api);
    api.offer(&[CUSTOM]);
    pass(seconds(5)).await;
    api.state().requests.clear();
    pass(seconds(60)).await;
    let lists_custom =
        |request: &String| request.ends_with("/elector.dev/v1alpha1/leasecandidates");
    assert!(api.state().requests.iter().any(lists_custom));
    assert!(
        !api.state()
            .requests
            .iter()
            .any(|request| request.ends_with(CANDIDATES) && !lists_custom(request))
    );
    assert_eq!((holder(&api).as_str(), term(&api)), ("a", before));
    crash(&api, robots).await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_removed_and_comes_back_changes_nothing() {
    let (log, api) = (Log::capture(), FakeApi::new());
    let (_elector, robots) = led(&api, &[CUSTOM]).await;
    let before = term(&api);
    api.offer(&[]);
    pass(seconds(120)).await;
    assert_eq!((holder(&api).as_str(), term(&api)), ("a", before));
    let said = log.lines("neither coordination.k8s.io LeaseCandidate");
    let repeated = said.iter().filter(|line| line.contains("left_out="));
    let repeated = repeated.count();
    assert_eq!(said.len(), 1 + repeated, "{said:?}");
    assert!(repeated <= 2, "once a minute: {said:?}");
    api.offer(&[CUSTOM]);
    pass(seconds(30)).await;
    assert_eq!((holder(&api).as_str(), term(&api)), ("a", before));
    assert_eq!(log.lines("candidates are served by another API").len(), 0);
    crash(&api, robots).await;
}

/// While the candidates register again, one that is better than the leader may come first.
#[tokio::test(start_paused = true)]
async fn a_leader_is_asked_to_yield_only_once_it_has_registered_again() {
    let api = FakeApi::new();
    let (_elector, robots) = led(&api, &[CUSTOM]).await;
    drop(robots);
    let renew = |second: u64| {
        api.put(LEASES, "ns", "l", |object| {
            object["spec"]["renewTime"] = format!("2030-01-01T00:01:{second:02}.000000Z").into();
        });
    };
    renew(0);
    api.offer(&[NATIVE, CUSTOM]);
    let _better = Robot::start(&api, "ns", "better", "l", "0.9.0");
    let preferred = || api.lease("ns", "l").unwrap().spec.preferred_holder;
    for second in 1..20 {
        pass(seconds(3)).await;
        renew(second);
        assert_eq!((holder(&api).as_str(), preferred()), ("a", None));
    }
    register(&api, "ns", "a", "l", "1.0.0");
    api.wait_for("the preference", seconds(5), |_| {
        preferred().as_deref() == Some("better")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_the_built_in_controller_is_kept() {
    let api = FakeApi::new();
    api.offer(&[OLDER]);
    let config = Config {
        builtin: BuiltinController::Replace { host: "pod".into() },
        ..Config::default()
    };
    let _elector = Running::start(&api, config);
    pass(seconds(20)).await;
    let lock = || {
        let lock = api.lease("kube-system", "leader-election-controller");
        lock.unwrap().spec.holder_identity
    };
    let held = lock();
    assert!(
        held.as_ref()
            .is_some_and(|holder| holder.starts_with("elector_pod_")),
        "{held:?}"
    );
    api.offer(&[NATIVE, OLDER]);
    for _ in 0..6000 {
        pass(millis(10)).await;
        assert_eq!(lock(), held);
    }
    assert!(api.asked("GET", "v1beta1/leasecandidates") > 0);
}
