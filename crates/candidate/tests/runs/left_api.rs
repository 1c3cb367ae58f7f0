//! The clean-up in an API that is left: what this process registered there is deleted, and nothing else.

use elector_api::LeaseCandidate;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::strategy;
use elector_protocol::Identity;
use elector_runtime::Clock as _;
use elector_testing::OneLease;

use crate::{CUSTOM, RunningCandidate, V1BETA1, config, leader, obedient, pass, start};

/// Longer than a candidate takes to notice a better API.
const NOTICED: u64 = 90_000;

/// Registers `me` as an earlier or another life of that name does.
fn register(cluster: &OneLease) {
    let identity = Identity::new("me").unwrap();
    let mut object = LeaseCandidate::named(CUSTOM, &OneLease::key(), &identity);
    object.spec.emulation_version = "1.0.0".to_owned();
    object.spec.binary_version = "1.0.0".to_owned();
    let object = object
        .with_strategy(strategy::OLDEST_EMULATION_VERSION)
        .with_renewal(cluster.clock().wall());
    cluster.register_object(CUSTOM, &object);
}

async fn custom_leader(cluster: &OneLease) -> RunningCandidate {
    let running = leader(cluster, config(), obedient).await;
    pass(1_000).await;
    running
}

/// An elector may have pinged it since it was seen last: that is the same object, and no elector would collect it.
#[tokio::test(start_paused = true)]
async fn a_candidate_with_an_unseen_ping_is_deleted_in_the_api_that_is_left() {
    let cluster = OneLease::new(&[CUSTOM]);
    let running = custom_leader(&cluster).await;
    cluster.faults().freeze_watches(true);
    cluster.ping(CUSTOM, "me");
    cluster.serve(&[V1BETA1, CUSTOM]);
    pass(NOTICED).await;
    assert!(cluster.candidate(V1BETA1).is_some());
    assert!(cluster.candidate(CUSTOM).is_none());
    assert!(running.guard().is_leader() && !running.is_disturbed());
}

/// Another life of the name may have come in the meantime.
#[tokio::test(start_paused = true)]
async fn another_object_of_the_same_name_is_left_where_it_is() {
    let cluster = OneLease::new(&[CUSTOM]);
    let _running = custom_leader(&cluster).await;
    cluster.faults().freeze_watches(true);
    cluster.delete_candidate(CUSTOM);
    register(&cluster);
    let other = cluster.candidate(CUSTOM);
    cluster.serve(&[V1BETA1, CUSTOM]);
    pass(NOTICED).await;
    assert!(cluster.candidate(V1BETA1).is_some());
    assert_eq!(cluster.candidate(CUSTOM), other);
}

#[tokio::test(start_paused = true)]
async fn what_this_process_never_wrote_is_not_its_to_delete() {
    let cluster = OneLease::new(&[CUSTOM]);
    register(&cluster);
    let other = cluster.candidate(CUSTOM);
    let forbidden = Rule::new(Fault::Refuse(403)).verb(RequestVerb::Update);
    cluster.inject(forbidden);
    let running = start(&cluster, config(), obedient);
    pass(5_000).await;
    cluster.serve(&[V1BETA1, CUSTOM]);
    running.registered().await;
    pass(NOTICED).await;
    assert!(cluster.candidate(V1BETA1).is_some());
    assert_eq!(cluster.candidate(CUSTOM), other);
}

/// A server that refuses the deletion does not stop the leader, nor the candidate in the new API.
#[tokio::test(start_paused = true)]
async fn a_refused_deletion_in_the_api_that_is_left_disturbs_nothing() {
    let cluster = OneLease::new(&[CUSTOM]);
    let running = custom_leader(&cluster).await;
    let forbidden = Rule::new(Fault::Refuse(403)).verb(RequestVerb::Delete);
    cluster.inject(forbidden);
    cluster.serve(&[V1BETA1, CUSTOM]);
    pass(NOTICED).await;
    assert!(cluster.candidate(CUSTOM).is_some());
    cluster.ping(V1BETA1, "me");
    pass(1_000).await;
    let spec = cluster.candidate(V1BETA1).unwrap().spec;
    assert!(spec.renew_time >= spec.ping_time);
    assert!(running.guard().is_leader() && !running.is_disturbed());
}
