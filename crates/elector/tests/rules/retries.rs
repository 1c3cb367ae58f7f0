//! Writes that fail stay queued with a pause until the desired state is reached (decision 2), and no other lease waits.

use elector::Config;
use serde_json::json;
use tokio::time::Instant;

use crate::stage::{Bend, Stage};
use crate::{Running, millis, pass, seconds};

/// How often an elector tries in a minute what is refused.
async fn tries(stage: &Stage, verb: &'static str, part: &'static str) -> usize {
    let start = Instant::now();
    pass(seconds(60)).await;
    stage.straighten();
    stage.asked_since(start, &[verb, part]).len()
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_creation_is_refused_is_created_as_soon_as_it_can_be() {
    for code in [403, 429, 500] {
        let stage = Stage::new();
        let _elector = Running::start(&stage, Config::default());
        pass(seconds(20)).await;
        stage.bend("POST", Bend::Refused(code));
        let _candidate = stage.candidate("default", "a", "l", "1.0.0").await;
        let tries = tries(&stage, "POST", "leases").await;
        // 5 ms, doubling to 5 s.
        assert!((15..=30).contains(&tries), "{code}: {tries}");
        assert!(
            stage.held_by("default", "l", "a").await < millis(5_500),
            "{code}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_refused_is_asked_as_soon_as_it_can_be() {
    for code in [403, 409, 500] {
        let stage = Stage::new();
        let _elector = Running::start(&stage, Config::default());
        pass(seconds(20)).await;
        let _candidate = stage.candidate("default", "a", "l", "1.0.0").await;
        pass(seconds(10)).await;
        // It is not fresh any more, so it has to be asked before it is granted the lease again.
        stage.bend("leasecandidates/a", Bend::Refused(code));
        let released = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
        stage.put_lease("default", "l", released).await;
        let tries = tries(&stage, "PUT", "leasecandidates/a").await;
        assert!((5..=30).contains(&tries), "{code}: {tries}");
        assert!(
            stage.held_by("default", "l", "a").await < millis(5_500),
            "{code}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_is_refused_is_written_as_soon_as_it_can_be() {
    for code in [403, 404, 409, 422, 429, 500] {
        let stage = Stage::new();
        let _elector = Running::start(&stage, Config::default());
        pass(seconds(20)).await;
        let released = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
        stage.put_lease("default", "l", released).await;
        stage.bend(
            "PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/l",
            Bend::Refused(code),
        );
        let _candidate = stage.candidate("default", "a", "l", "1.0.0").await;
        let tries = tries(&stage, "PUT", "leases/l").await;
        assert!((10..=30).contains(&tries), "{code}: {tries}");
        assert!(
            stage.held_by("default", "l", "a").await < millis(5_500),
            "{code}"
        );
    }
}
