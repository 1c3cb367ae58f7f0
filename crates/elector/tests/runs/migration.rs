//! A cluster whose candidates come to be served by another API.

use elector::{BuiltinController, Config};
use elector_api::CandidateApi;
use elector_testing::{
    CapturedLog, EmbeddedCluster, LEASES, ScriptedCandidate, millis, pass, seconds,
};

use crate::RunningElector;

const V1BETA1: CandidateApi = CandidateApi::V1Beta1;
const V1ALPHA2: CandidateApi = CandidateApi::V1Alpha2;
const CUSTOM: CandidateApi = CandidateApi::Elector;

fn holder(cluster: &EmbeddedCluster) -> String {
    cluster.holder("ns", "l").unwrap_or_default()
}

fn term(cluster: &EmbeddedCluster) -> Option<i32> {
    cluster.lease("ns", "l").object()?.spec.lease_transitions
}

/// Two candidates that have a leader, `a`, under these APIs.
async fn led(
    cluster: &EmbeddedCluster,
    apis: &[CandidateApi],
) -> (RunningElector, [ScriptedCandidate; 2]) {
    cluster.restart_serving(apis);
    let elector = RunningElector::start(cluster, Config::default());
    pass(seconds(20)).await;
    let candidates =
        ["a", "b"].map(|name| ScriptedCandidate::start(cluster, "ns", name, "l", "1.0.0"));
    cluster
        .wait_for("a leader", seconds(5), |cluster| holder(cluster) == "a")
        .await;
    pass(seconds(5)).await;
    (elector, candidates)
}

/// The leader crashes: the other one follows, so the elector sees the candidates where they are now.
async fn crash(cluster: &EmbeddedCluster, candidates: [ScriptedCandidate; 2]) {
    let [a, _b] = candidates;
    drop(a);
    cluster
        .wait_for("the next one", seconds(17), |cluster| {
            holder(cluster) == "b"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_better_api_is_followed_without_a_change_of_leader() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    let (_elector, candidates) = led(&cluster, &[CUSTOM]).await;
    let before = term(&cluster);
    for apis in [&[V1ALPHA2, CUSTOM] as &[_], &[V1BETA1, V1ALPHA2, CUSTOM]] {
        cluster.restart_serving(apis);
        pass(seconds(60)).await;
        assert_eq!((holder(&cluster).as_str(), term(&cluster)), ("a", before));
    }
    let moves = log.lines("candidates are served by another API");
    assert_eq!(moves.len(), 2, "{moves:?}");
    assert!(moves[1].contains(V1BETA1.api_version()), "{moves:?}");
    crash(&cluster, candidates).await;
}

#[tokio::test(start_paused = true)]
async fn an_api_that_goes_is_left_at_once() {
    let cluster = EmbeddedCluster::with_gate();
    let (_elector, candidates) = led(&cluster, &[V1BETA1, CUSTOM]).await;
    let before = term(&cluster);
    cluster.restart_serving(&[CUSTOM]);
    pass(seconds(5)).await;
    cluster.forget_requests();
    pass(seconds(60)).await;
    assert!(cluster.count_requests("GET", "/elector.dev/v1alpha1/leasecandidates") > 0);
    assert_eq!(cluster.count_requests("GET", "/v1beta1/leasecandidates"), 0);
    assert_eq!((holder(&cluster).as_str(), term(&cluster)), ("a", before));
    crash(&cluster, candidates).await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_removed_and_comes_back_changes_nothing() {
    let (log, cluster) = (CapturedLog::capture(), EmbeddedCluster::with_gate());
    let (_elector, candidates) = led(&cluster, &[CUSTOM]).await;
    let before = term(&cluster);
    cluster.restart_serving(&[]);
    pass(seconds(120)).await;
    assert_eq!((holder(&cluster).as_str(), term(&cluster)), ("a", before));
    let said = log.lines("neither coordination.k8s.io LeaseCandidate");
    let repeated = said.iter().filter(|line| line.contains("left_out="));
    let repeated = repeated.count();
    assert_eq!(said.len(), 1 + repeated, "{said:?}");
    assert!(repeated <= 2, "once a minute: {said:?}");
    cluster.restart_serving(&[CUSTOM]);
    pass(seconds(30)).await;
    assert_eq!((holder(&cluster).as_str(), term(&cluster)), ("a", before));
    assert_eq!(log.lines("candidates are served by another API").len(), 0);
    crash(&cluster, candidates).await;
}

/// While the candidates register again, one that is better than the leader may come first.
#[tokio::test(start_paused = true)]
async fn a_leader_is_asked_to_yield_only_once_it_has_registered_again() {
    let cluster = EmbeddedCluster::with_gate();
    let (_elector, candidates) = led(&cluster, &[CUSTOM]).await;
    drop(candidates);
    let renew = |second: u64| {
        cluster.put(LEASES, "ns", "l", |object| {
            object["spec"]["renewTime"] = format!("2030-01-01T00:01:{second:02}.000000Z").into();
        });
    };
    renew(0);
    cluster.restart_serving(&[V1BETA1, CUSTOM]);
    let _better = ScriptedCandidate::start(&cluster, "ns", "better", "l", "0.9.0");
    let preferred = || {
        cluster
            .lease("ns", "l")
            .object()
            .unwrap()
            .spec
            .preferred_holder
    };
    for second in 1..20 {
        pass(seconds(3)).await;
        renew(second);
        assert_eq!((holder(&cluster).as_str(), preferred()), ("a", None));
    }
    cluster.register("ns", "a", "l", "1.0.0");
    cluster
        .wait_for("the preference", seconds(5), |_| {
            preferred().as_deref() == Some("better")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_the_built_in_controller_is_kept() {
    let cluster = EmbeddedCluster::with_gate();
    cluster.restart_serving(&[V1ALPHA2]);
    let config = Config {
        builtin: BuiltinController::Replace { host: "pod".into() },
        ..Config::default()
    };
    let _elector = RunningElector::start(&cluster, config);
    pass(seconds(20)).await;
    let lock = || {
        let lock = cluster
            .lease("kube-system", "leader-election-controller")
            .object();
        lock.unwrap().spec.holder_identity
    };
    let held = lock();
    assert!(
        held.as_ref()
            .is_some_and(|holder| holder.starts_with("elector_pod_")),
        "{held:?}"
    );
    cluster.restart_serving(&[V1BETA1, V1ALPHA2]);
    for _ in 0..6000 {
        pass(millis(10)).await;
        assert_eq!(lock(), held);
    }
    assert!(cluster.count_requests("GET", "v1beta1/leasecandidates") > 0);
}
