//! A cluster whose candidates come to be served by another API.

use elector::Config;
use elector_api::CandidateApi;
use elector_testing::{CapturedLog, ScriptedCandidate, TestCluster, millis, pass, seconds};

use crate::{RunningElector, replacing};

const V1BETA1: CandidateApi = CandidateApi::V1Beta1;
const V1ALPHA2: CandidateApi = CandidateApi::V1Alpha2;
const CUSTOM: CandidateApi = CandidateApi::Elector;

/// A better API comes, one that was in use goes, and the only one goes and comes back. The elector follows without a change
/// of leader, and sees the candidates where they are: after a crash of the leader the other one follows.
#[tokio::test(start_paused = true)]
async fn another_api_is_followed_without_a_change_of_leader() {
    for (apis, steps, moves) in [
        (
            &[CUSTOM] as &[_],
            &[&[V1ALPHA2, CUSTOM] as &[_], &[V1BETA1, V1ALPHA2, CUSTOM]] as &[&[_]],
            2,
        ),
        (&[V1BETA1, CUSTOM], &[&[CUSTOM]], 1),
        (&[CUSTOM], &[&[], &[CUSTOM]], 0),
    ] {
        let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
        cluster.restart_serving(apis);
        let _elector = RunningElector::start(&cluster, Config::default());
        pass(seconds(20)).await;
        let start = |name| ScriptedCandidate::start(&cluster, "ns", name, "l", "1.0.0");
        let (leader, _other) = (start("a"), start("b"));
        assert!(cluster.held_by("ns", "l", "a").await < seconds(5));
        pass(seconds(5)).await;
        let term = cluster.term("ns", "l");
        for step in steps {
            cluster.restart_serving(step);
            // A better API is looked for twice a minute, and a watch lasts as long.
            pass(seconds(60)).await;
            cluster.forget_requests();
            pass(seconds(40)).await;
            assert_eq!(cluster.holder("ns", "l").as_deref(), Some("a"));
            assert_eq!(cluster.term("ns", "l"), term);
            let Some(served) = step.first() else {
                continue;
            };
            for api in [V1BETA1, V1ALPHA2, CUSTOM] {
                let path = format!("/{}/leasecandidates", api.api_version());
                let listed = cluster.count_requests("GET", &path) > 0;
                assert_eq!(listed, api == *served, "{api} of {step:?}");
            }
        }
        let moved = log.lines("candidates are served by another API");
        assert_eq!(moved.len(), moves, "{moved:?}");
        let absent = log.lines("neither coordination.k8s.io LeaseCandidate");
        assert_eq!(absent.is_empty(), moves > 0, "{absent:?}");
        assert!(absent.len() <= 3, "once, and a count a minute: {absent:?}");
        drop(leader);
        assert!(cluster.held_by("ns", "l", "b").await < seconds(17));
    }
}

#[tokio::test(start_paused = true)]
async fn the_lock_of_the_built_in_controller_is_kept() {
    let cluster = TestCluster::with_gate();
    cluster.restart_serving(&[V1ALPHA2]);
    let _elector = RunningElector::start(&cluster, replacing());
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
    for _ in 0..600 {
        pass(millis(100)).await;
        assert_eq!(lock(), held);
    }
    assert!(cluster.count_requests("GET", "v1beta1/leasecandidates") > 0);
}
