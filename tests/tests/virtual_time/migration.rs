//! The API of LeaseCandidates changes under elector and candidates.

use std::time::Duration;

use elector_api::CandidateApi;
use elector_testing::{CANDIDATES, CUSTOM_CANDIDATES, pass, seconds};

use crate::ElectedPrograms;

const CUSTOM: CandidateApi = CandidateApi::Elector;
const V1BETA1: CandidateApi = CandidateApi::V1Beta1;
const V1ALPHA2: CandidateApi = CandidateApi::V1Alpha2;

/// Longer than a candidate takes to notice a better API.
const NOTICED: Duration = seconds(90);

/// The leader crashes at every phase of a change; there is a next one as soon as elector and candidates have met
/// again, and never are there two.
#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_change_is_survived() {
    for (from, to, best) in [
        (&[CUSTOM] as &[_], &[V1BETA1, CUSTOM] as &[_], CANDIDATES),
        (&[V1BETA1, CUSTOM], &[CUSTOM], CUSTOM_CANDIDATES),
        (&[V1BETA1], &[V1ALPHA2], CANDIDATES),
    ] {
        for phase in [0, 1, 5, 20, 45, 65] {
            let mut programs = ElectedPrograms::start(from).await;
            let (leader, _) = programs.leader();
            programs.cluster.restart_serving(to);
            pass(seconds(phase)).await;
            programs.candidates.remove(&*leader);
            let patience = NOTICED + seconds(20);
            let next = programs.successor_of(&leader, patience).await;
            pass(NOTICED).await;
            assert_eq!(programs.leader().0, next, "{to:?} {phase}");
            assert!(programs.registered(best) >= 2, "{to:?} {phase}");
            programs.assert_one_at_work();
        }
    }
}
