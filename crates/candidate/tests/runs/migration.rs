//! LeaseCandidates come to be served by another API.

use elector_api::CandidateApi;
use elector_candidate::Event;
use elector_testing::{OneLease, eventually};
use serde_json::Value;

use crate::{CUSTOM, RunOutcome, V1ALPHA1, V1BETA1, config, leader, obedient, pass, start};

fn spec(cluster: &OneLease, api: CandidateApi) -> Option<Value> {
    Some(cluster.candidate_fields(api, "me")?["spec"].clone())
}

#[tokio::test(start_paused = true)]
async fn a_leader_registers_in_a_better_api_and_leads_on() {
    let cluster = OneLease::new(&[CUSTOM]);
    let running = leader(&cluster, config(), obedient).await;
    let term = cluster.record().term;
    for (served, now, wish) in [
        ([V1ALPHA1, CUSTOM], V1ALPHA1, "preferredStrategies"),
        ([V1BETA1, CUSTOM], V1BETA1, "strategy"),
    ] {
        let before = cluster.server().revision();
        cluster.restart_serving(&served);
        // It asks every 60 to 75 s.
        pass(20_000).await;
        eventually(|| spec(&cluster, now).is_some_and(|spec| !spec[wish].is_null())).await;
        assert!(cluster.server().revision() > before);
        // An object that it left behind would be collected by nothing else.
        eventually(|| spec(&cluster, CUSTOM).is_none()).await;
    }
    pass(60_000).await;
    assert!(running.guard().is_leader() && !running.is_disturbed());
    assert_eq!(cluster.record().term, term);
    assert_eq!(running.count(|event| *event == Event::Registered), 3);
    // It answers in the new place, and a clean end leaves nothing there.
    cluster.ping(V1BETA1, "me");
    eventually(|| {
        let spec = spec(&cluster, V1BETA1).unwrap();
        spec["renewTime"].as_str() >= spec["pingTime"].as_str()
    })
    .await;
    running.releases().await;
    assert_eq!(spec(&cluster, V1BETA1), None);
}

/// At first nothing is left; then another API comes, or the definition of before.
#[tokio::test(start_paused = true)]
async fn a_leader_whose_api_goes_registers_in_what_comes() {
    for before in [V1BETA1, CUSTOM] {
        let cluster = OneLease::new(&[before]);
        let running = leader(&cluster, config(), obedient).await;
        cluster.restart_serving(&[]);
        pass(300_000).await;
        assert_eq!(spec(&cluster, CUSTOM), None);
        cluster.restart_serving(&[CUSTOM]);
        eventually(|| spec(&cluster, CUSTOM).is_some()).await;
        pass(60_000).await;
        assert!(running.guard().is_leader() && !running.is_disturbed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_custom_resource_can_have_stays_a_leader_unregistered() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config().identity("Me_1"), obedient);
    running.registered().await;
    cluster.grant("Me_1");
    running.leads(1).await;
    cluster.restart_serving(&[CUSTOM]);
    pass(120_000).await;
    assert!(running.guard().is_leader() && !running.is_disturbed());
    assert_eq!(cluster.candidate_fields(CUSTOM, "Me_1"), None);
    // Back home it is heard of again.
    cluster.restart_serving(&[V1BETA1, CUSTOM]);
    cluster.ping(V1BETA1, "Me_1");
    eventually(|| {
        let spec = cluster.candidate_fields(V1BETA1, "Me_1").unwrap()["spec"].clone();
        spec["renewTime"].as_str() >= spec["pingTime"].as_str()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_leaving_does_not_move() {
    let cluster = OneLease::new(&[CUSTOM]);
    let mut running = start(&cluster, config(), obedient);
    running.registered().await;
    cluster.faults().partition(true);
    running.shut_down();
    pass(1_000).await;
    cluster.heal();
    cluster.restart_serving(&[V1BETA1, CUSTOM]);
    assert_eq!(running.outcome().await, RunOutcome::ShutDown(None));
    pass(120_000).await;
    assert_eq!(spec(&cluster, V1BETA1), None);
}
