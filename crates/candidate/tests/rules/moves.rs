//! The farewell in an API that is left: what this process registered there is deleted, and nothing else.

use elector_apiserver::{Fault, Rule, Verb};
use http::StatusCode;

use crate::stage::{CUSTOM, Stage, V1BETA1};
use crate::{Running, config, leader, obedient, pass, start};

/// Longer than a candidate takes to notice a better API.
const NOTICED: u64 = 90_000;

async fn custom_leader(stage: &Stage) -> Running {
    let running = leader(stage, CUSTOM, config(), obedient).await;
    pass(1_000).await;
    running
}

/// An elector may have asked it since it was seen last: that is the same object, and nobody else would collect it.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_was_asked_unseen_is_deleted_in_the_api_that_is_left() {
    let stage = Stage::new(&[CUSTOM]).await;
    let running = custom_leader(&stage).await;
    stage.faults().freeze_watches(true);
    stage.ping(CUSTOM).await;
    stage.serve(&[V1BETA1, CUSTOM]);
    pass(NOTICED).await;
    assert!(stage.candidate(V1BETA1).await.is_some());
    assert!(stage.candidate(CUSTOM).await.is_none());
    assert!(running.guard().is_leader() && !running.is_disturbed());
}

/// Another life of the name may have come in the meantime.
#[tokio::test(start_paused = true)]
async fn another_object_of_the_same_name_is_left_where_it_is() {
    let stage = Stage::new(&[CUSTOM]).await;
    let _running = custom_leader(&stage).await;
    stage.faults().freeze_watches(true);
    stage.delete_candidate(CUSTOM).await;
    stage.register(CUSTOM, &config()).await;
    let other = stage.candidate(CUSTOM).await;
    stage.serve(&[V1BETA1, CUSTOM]);
    pass(NOTICED).await;
    assert!(stage.candidate(V1BETA1).await.is_some());
    assert_eq!(stage.candidate(CUSTOM).await, other);
}

#[tokio::test(start_paused = true)]
async fn what_this_process_never_wrote_is_not_its_to_delete() {
    let stage = Stage::new(&[CUSTOM]).await;
    stage.register(CUSTOM, &config()).await;
    let other = stage.candidate(CUSTOM).await;
    let forbidden = Rule::new(Fault::Refuse(StatusCode::FORBIDDEN)).verb(Verb::Update);
    stage.faults().inject(forbidden);
    let running = start(&stage, CUSTOM, config(), obedient);
    pass(5_000).await;
    stage.serve(&[V1BETA1, CUSTOM]);
    running.registered().await;
    pass(NOTICED).await;
    assert!(stage.candidate(V1BETA1).await.is_some());
    assert_eq!(stage.candidate(CUSTOM).await, other);
}

/// A server that refuses the farewell keeps nobody from leading, and from being a candidate in the new place.
#[tokio::test(start_paused = true)]
async fn a_farewell_that_is_refused_disturbs_nothing() {
    let stage = Stage::new(&[CUSTOM]).await;
    let running = custom_leader(&stage).await;
    let forbidden = Rule::new(Fault::Refuse(StatusCode::FORBIDDEN)).verb(Verb::Delete);
    stage.faults().inject(forbidden);
    stage.serve(&[V1BETA1, CUSTOM]);
    pass(NOTICED).await;
    assert!(stage.candidate(CUSTOM).await.is_some());
    stage.ping(V1BETA1).await;
    pass(1_000).await;
    let spec = stage.candidate(V1BETA1).await.unwrap().spec;
    assert!(spec.renew_time >= spec.ping_time);
    assert!(running.guard().is_leader() && !running.is_disturbed());
}
