//! Being known: what a server may say to a registration, and what becomes of it.

use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::{Error, Mode};
use elector_testing::{OneLease, eventually, seconds};

use crate::{CUSTOM, V1BETA1, config, obedient, pass, start};

fn refuse(code: u16) -> Rule {
    Rule::new(Fault::Refuse(code))
        .verb(RequestVerb::Create)
        .resource("leasecandidates")
}

/// The same object would be refused for ever.
#[tokio::test(start_paused = true)]
async fn a_registration_that_the_server_calls_invalid_ends_the_run() {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.faults().inject(refuse(422));
    let begun = cluster.now();
    let running = start(&cluster, config(), obedient);
    let error = running.result().await.unwrap_err();
    assert!(
        matches!(&error, Error::Registration { candidate, .. } if candidate.as_str() == "me"),
        "{error}"
    );
    assert!(cluster.now().since(begun) < seconds(1));
}

#[tokio::test(start_paused = true)]
async fn any_other_refusal_of_a_registration_is_waited_out() {
    for code in [401, 403, 404, 429, 500] {
        let cluster = OneLease::new(&[V1BETA1]);
        cluster.inject(refuse(code));
        let running = start(&cluster, config(), obedient);
        pass(20_000).await;
        assert!(!running.run.is_finished(), "{code}");
        cluster.heal();
        let healed = cluster.now();
        running.registered().await;
        // The longest pause.
        assert!(cluster.now().since(healed) <= seconds(5), "{code}");
    }
}

/// The watch would tell sooner or later; the answer to the write has reported already.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_deleted_during_its_acknowledgement_is_registered_again_at_once() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config(), obedient);
    running.registered().await;
    pass(2_000).await;
    cluster.slow(
        std::time::Duration::from_millis(100),
        std::time::Duration::ZERO,
    );
    let begun = cluster.now();
    cluster.ping(V1BETA1, "me");
    let answer = "PUT leasecandidates/me";
    eventually(|| {
        cluster
            .object_requests_since(begun)
            .iter()
            .any(|request| request.what == answer)
    })
    .await;
    cluster.faults().freeze_watches(true);
    cluster.slow(
        std::time::Duration::from_millis(1),
        std::time::Duration::ZERO,
    );
    cluster.delete_candidate(V1BETA1);
    let deleted = cluster.now();
    while cluster.candidate(V1BETA1).is_none() {
        assert!(cluster.now().since(deleted) < seconds(1));
        pass(1).await;
    }
}

/// Custom resources take fewer names than kube-apiserver's own.
#[tokio::test(start_paused = true)]
async fn a_name_that_the_served_api_does_not_take_ends_the_run() {
    for mode in [Mode::Elected, Mode::Auto] {
        let cluster = OneLease::new(&[CUSTOM]);
        let config = config().mode(mode).identity("Me_1");
        let ended = start(&cluster, config, obedient).result().await;
        let refused = matches!(&ended, Err(Error::Config(error)) if error.setting() == "identity");
        assert!(refused, "{ended:?}");
    }
}
