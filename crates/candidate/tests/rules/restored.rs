//! A store that was restored from a backup under a candidate: its revisions say nothing of what was known (R4).

use std::time::Duration;

use elector_candidate::TermEnd;
use elector_protocol::holder::Loss;
use elector_protocol::{Identity, Instant};

use crate::stage::{Stage, V1BETA1};
use crate::{Running, config, leader, obedient, pass, seconds};

const PUT: &str = "PUT leases/web";

/// A leader in a store that has gone through many revisions, and when it renewed last, a moment ago.
async fn old_leader(stage: &Stage) -> (Running, Instant) {
    stage.make_revisions(100).await;
    let running = leader(stage, V1BETA1, config(), obedient).await;
    let accepted = stage.last(PUT);
    while stage.last(PUT) == accepted {
        pass(1).await;
    }
    pass(100).await;
    (running, stage.last(PUT))
}

/// The restored record names this process, with its token and its term: it is a record of another life all the same.
#[tokio::test(start_paused = true)]
async fn a_holder_steps_down_at_once_when_a_list_is_below_what_was_seen_and_needs_a_new_grant() {
    let stage = Stage::new(&[V1BETA1]).await;
    let (running, renewed) = old_leader(&stage).await;
    let before = stage.faults();
    stage.restore().await;
    let restored = stage.now();
    before.break_watches();
    let (end, at) = running.end().await;
    assert_eq!(end, TermEnd::Lost(Loss::StoreRestored));
    assert!(
        at.since(restored) <= Duration::from_millis(1_500),
        "{:?}",
        at.since(restored)
    );
    assert_eq!(
        stage.last(PUT),
        renewed,
        "the watch has told, and no renewal"
    );
    pass(30_000).await;
    assert_eq!(stage.record().await.holder, Identity::new("me"));
    assert_eq!(
        stage.last(PUT),
        renewed,
        "nothing is written to a term of before"
    );
    stage.grant("me").await;
    running.leads(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_holder_steps_down_when_a_read_after_a_conflict_is_below_what_was_seen() {
    let stage = Stage::new(&[V1BETA1]).await;
    let (running, renewed) = old_leader(&stage).await;
    stage.restore().await;
    let (end, at) = running.end().await;
    assert_eq!(end, TermEnd::Lost(Loss::StoreRestored));
    // With the next renewal.
    assert!(at.since(renewed) <= Duration::from_millis(3_400));
    let last = stage.last(PUT);
    pass(30_000).await;
    assert_eq!(stage.last(PUT), last);
}

/// A backup that is older than the candidate.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_the_restored_store_does_not_hold_is_registered_again_at_once() {
    let stage = Stage::new(&[V1BETA1]).await;
    let (_running, _) = old_leader(&stage).await;
    let before = stage.faults();
    stage.restore().await;
    let restored = stage.now();
    before.break_watches();
    while stage.candidate(V1BETA1).await.is_none() {
        assert!(stage.now().since(restored) <= seconds(2));
        pass(1).await;
    }
}
