//! The API of LeaseCandidates changes under elector and candidates.

use std::collections::BTreeSet;
use std::time::Duration;

use elector_api::CandidateApi;
use elector_testkit::{pass, seconds};

use crate::cluster::{NAMES, VirtualCluster};

const CUSTOM: CandidateApi = CandidateApi::Elector;
const V1BETA1: CandidateApi = CandidateApi::V1Beta1;
const V1ALPHA2: CandidateApi = CandidateApi::V1Alpha2;

/// Longer than a candidate takes to notice a better API.
const NOTICED: Duration = seconds(90);

#[tokio::test(start_paused = true)]
async fn whoever_leads_leads_on_through_every_change() {
    let cluster = VirtualCluster::new(&[CUSTOM]);
    let _elector = cluster.elector();
    pass(seconds(20)).await;
    let _candidates = NAMES.map(|name| cluster.candidate(name));
    let leader = cluster.successor_of("", seconds(5)).await;
    let all: BTreeSet<_> = NAMES.map(str::to_owned).into();
    let changes: [(&[CandidateApi], Option<CandidateApi>); 7] = [
        (&[V1ALPHA2, CUSTOM], Some(V1ALPHA2)),
        (&[V1BETA1, V1ALPHA2, CUSTOM], Some(V1BETA1)),
        (&[CUSTOM], Some(CUSTOM)),
        (&[], None),
        (&[CUSTOM], Some(CUSTOM)),
        (&[V1BETA1], Some(V1BETA1)),
        (&[V1BETA1, CUSTOM], Some(V1BETA1)),
    ];
    for (served, used) in changes {
        cluster.restart_serving(served);
        pass(NOTICED).await;
        assert_eq!(cluster.leader(), (leader.clone(), 1), "{served:?}");
        if let Some(used) = used {
            assert_eq!(cluster.registered(used).await, all, "{served:?}");
        }
        if used != Some(CUSTOM) && served.contains(&CUSTOM) {
            assert_eq!(
                cluster.registered(CUSTOM).await,
                BTreeSet::new(),
                "{served:?}"
            );
        }
    }
    assert_eq!(cluster.working().1, 1);
    cluster.verify_history();
}

/// The leader crashes at every phase of a change; there is a next one as soon as elector and candidates have met
/// again, and never are there two.
#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_change_is_survived() {
    for (from, to, best) in [
        (&[CUSTOM] as &[_], &[V1BETA1, CUSTOM] as &[_], V1BETA1),
        (&[V1BETA1, CUSTOM], &[CUSTOM], CUSTOM),
        (&[V1BETA1], &[V1ALPHA2], V1ALPHA2),
    ] {
        for phase in [0, 1, 5, 20, 45, 65] {
            let cluster = VirtualCluster::new(from);
            let _elector = cluster.elector();
            pass(seconds(20)).await;
            let mut candidates: Vec<_> = NAMES.map(|name| (name, cluster.candidate(name))).into();
            let leader = cluster.successor_of("", seconds(5)).await;
            cluster.restart_serving(to);
            pass(seconds(phase)).await;
            candidates.retain(|(name, _)| *name != leader);
            let patience = NOTICED + seconds(20);
            let next = cluster.successor_of(&leader, patience).await;
            assert_ne!(next, leader);
            pass(NOTICED).await;
            assert_eq!(cluster.leader().0, next, "{to:?} {phase}");
            assert!(cluster.registered(best).await.len() >= 2, "{to:?} {phase}");
            assert_eq!(cluster.working().1, 1, "{to:?} {phase}");
            cluster.verify_history();
        }
    }
}
