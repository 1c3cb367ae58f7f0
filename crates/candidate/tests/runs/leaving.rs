//! The time until a candidate that does not lead ends when it is asked to.

use std::time::Duration;

use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::{Config, Event, Mode};
use elector_testing::{OneLease, eventually};

use crate::{RunOutcome, RunningCandidate, V1BETA1, config, obedient, pass, start};

const AT_ONCE: Duration = Duration::from_millis(100);

fn with_mode(mode: Mode) -> Config {
    config().mode(mode)
}

/// Ends it, which must take no longer than that, and must not have led.
async fn ends(cluster: &OneLease, mut running: RunningCandidate, state: &str) {
    let told = cluster.now();
    running.shut_down();
    let expected = RunOutcome::ShutDown(None);
    assert_eq!(running.outcome().await, expected, "{state}");
    let took = cluster.now().since(told);
    assert!(took <= AT_ONCE, "{state}: {took:?}");
}

/// P-L5: nothing is waited for but answers of a server that answers.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_waits_ends_at_once_in_every_state() {
    for mode in [Mode::Auto, Mode::Elected, Mode::Plain] {
        // Before it has done anything, and while its first requests are under way.
        for millis in [0, 1, 2, 3, 5, 10] {
            let cluster = OneLease::new(&[V1BETA1]);
            let running = start(&cluster, with_mode(mode), obedient);
            pass(millis).await;
            ends(&cluster, running, &format!("{mode} after {millis} ms")).await;
            assert_eq!(cluster.candidate(V1BETA1), None);
        }

        let cluster = OneLease::new(&[V1BETA1]);
        cluster.grant("other");
        let running = start(&cluster, with_mode(mode), obedient);
        pass(3_000).await;
        ends(&cluster, running, &format!("{mode} behind a leader")).await;
        assert_eq!(cluster.candidate(V1BETA1), None);

        // The object that it waits for goes away under its eyes, just before and just after it is asked.
        for millis in [0, 1, 2, 5, 1_000] {
            let cluster = OneLease::new(&[V1BETA1]);
            cluster.grant("other");
            let running = start(&cluster, with_mode(mode), obedient);
            pass(3_000).await;
            cluster.delete_lease();
            pass(millis).await;
            ends(
                &cluster,
                running,
                &format!("{mode}, the Lease gone for {millis} ms"),
            )
            .await;
        }
    }
}

/// In the time that an elector has, and in the one that a last holder may still believe.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_waits_for_a_free_lease_to_be_its_own_ends_at_once() {
    for mode in [Mode::Auto, Mode::Plain] {
        for seconds in [1, 4, 10, 14] {
            let cluster = OneLease::new(&[V1BETA1]);
            let running = start(&cluster, with_mode(mode), obedient);
            pass(seconds * 1_000).await;
            ends(&cluster, running, &format!("{mode}, free for {seconds} s")).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_without_a_server_that_answers_ends_at_once_before_it_has_registered() {
    for mode in [Mode::Auto, Mode::Elected, Mode::Plain] {
        for millis in [0, 1, 100, 7_000, 60_000] {
            let cluster = OneLease::new(&[V1BETA1]);
            cluster.inject(Rule::new(Fault::HangBefore));
            let running = start(&cluster, with_mode(mode), obedient);
            pass(millis).await;
            ends(
                &cluster,
                running,
                &format!("{mode}, silent for {millis} ms"),
            )
            .await;
        }
        // One that can read and not write has nothing to take back either.
        let cluster = OneLease::new(&[V1BETA1]);
        for verb in [RequestVerb::Create, RequestVerb::Update] {
            let status = 403;
            cluster.inject(Rule::new(Fault::Refuse(status)).verb(verb));
        }
        let running = start(&cluster, with_mode(mode), obedient);
        pass(60_000).await;
        ends(&cluster, running, &format!("{mode}, without rights")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_rests_after_a_failure_ends_at_once() {
    for mode in [Mode::Plain, Mode::Disabled] {
        let cluster = OneLease::new(&[V1BETA1]);
        let config = with_mode(mode).retry_work(true);
        let running = start(&cluster, config, |_| async { Err("disk full") });
        let failed = |event: &Event| matches!(event, Event::WorkFailed { .. });
        eventually(|| running.count(failed) > 2).await;
        ends(&cluster, running, &format!("{mode}, in a pause")).await;
    }
}
