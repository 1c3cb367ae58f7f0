//! Being known: what a server may say to a registration, and what becomes of it.

use elector_apiserver::{Fault, Rule, Verb};
use elector_candidate::RunError;
use http::StatusCode;

use crate::stage::{Stage, V1BETA1};
use crate::{config, eventually, obedient, pass, seconds, start};

fn refuse(code: StatusCode) -> Rule {
    Rule::new(Fault::Refuse(code))
        .verb(Verb::Create)
        .resource("leasecandidates")
}

/// The same object would be refused for ever.
#[tokio::test(start_paused = true)]
async fn a_registration_that_the_server_calls_invalid_ends_the_run() {
    let stage = Stage::new(&[V1BETA1]).await;
    stage
        .faults()
        .inject(refuse(StatusCode::UNPROCESSABLE_ENTITY));
    let begun = stage.now();
    let running = start(&stage, V1BETA1, config(), obedient);
    let error = running.result().await.unwrap_err();
    assert!(
        matches!(&error, RunError::Invalid(error) if error.code() == Some(422)),
        "{error}"
    );
    assert!(stage.now().since(begun) < seconds(1));
}

#[tokio::test(start_paused = true)]
async fn any_other_refusal_of_a_registration_is_waited_out() {
    for code in [
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
        StatusCode::NOT_FOUND,
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::INTERNAL_SERVER_ERROR,
    ] {
        let stage = Stage::new(&[V1BETA1]).await;
        stage.faults().inject(refuse(code));
        let running = start(&stage, V1BETA1, config(), obedient);
        pass(20_000).await;
        assert!(!running.run.is_finished(), "{code}");
        stage.faults().clear();
        let healed = stage.now();
        running.registered().await;
        // The longest pause.
        assert!(stage.now().since(healed) <= seconds(5), "{code}");
    }
}

/// The watch would tell sooner or later; that nobody is registered is known already.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_deleted_under_its_answer_is_registered_again_at_once() {
    let stage = Stage::new(&[V1BETA1]).await;
    let running = start(&stage, V1BETA1, config(), obedient);
    running.registered().await;
    pass(2_000).await;
    stage.slow(
        std::time::Duration::from_millis(100),
        std::time::Duration::ZERO,
    );
    let asked = stage.now();
    stage.ping(V1BETA1).await;
    let answer = "PUT leasecandidates/me";
    eventually(|| {
        stage
            .asked_since(asked)
            .iter()
            .any(|asked| asked.what == answer)
    })
    .await;
    stage.faults().freeze_watches(true);
    stage.slow(
        std::time::Duration::from_millis(1),
        std::time::Duration::ZERO,
    );
    stage.delete_candidate(V1BETA1).await;
    let deleted = stage.now();
    while stage.candidate(V1BETA1).await.is_none() {
        assert!(stage.now().since(deleted) < seconds(1));
        pass(1).await;
    }
}
