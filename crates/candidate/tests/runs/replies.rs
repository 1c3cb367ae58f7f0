//! Answers to writes of the Lease: conflicts, lost answers, refusals, and how long an attempt may take (R8, R10).

use std::time::Duration;

use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::TermEnd;
use elector_protocol::CandidateTiming;
use elector_protocol::holder::Loss;
use elector_testing::{OneLease, SentRequest, eventually, seconds};
use http::StatusCode;

use crate::{V1BETA1, config, leader, obedient, pass};

const PUT: &str = "PUT leases/web";
const GET: &str = "GET leases/web";

/// Requests for the Lease, in their order.
fn lease_requests(requests: &[SentRequest]) -> Vec<&str> {
    let what = requests.iter().map(|request| request.what.as_str());
    what.filter(|what| [PUT, GET].contains(what)).collect()
}

/// A write that was applied although its answer says otherwise.
fn lie() -> Rule {
    Rule::new(Fault::RefuseAfter(StatusCode::GATEWAY_TIMEOUT))
        .verb(RequestVerb::Update)
        .resource("leases")
        .times(1)
}

/// A 409 alone is not a loss (R10): the Lease is read, and where the record is one's own earlier write, belief counts
/// from when that write was sent, and not from the attempt that met it.
#[tokio::test(start_paused = true)]
async fn a_conflict_with_ones_own_renewal_is_read_and_belief_counts_from_the_send_of_that_one() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, config(), obedient).await;
    pass(1_000).await;
    cluster.faults().freeze_watches(true);
    cluster.inject(lie());
    let start = cluster.now();
    eventually(|| lease_requests(&cluster.object_requests_since(start)).ends_with(&[GET])).await;
    let requests = cluster.object_requests_since(start);
    assert_eq!(lease_requests(&requests), [PUT, PUT, GET]);
    pass(10).await;
    assert_eq!(
        running.guard().deadline(),
        Some(requests[0].at.after(seconds(10)))
    );
    assert!(requests[1].at.since(requests[0].at) >= Duration::from_millis(250));
    pass(60_000).await;
    assert!(running.guard().is_leader() && !running.is_disturbed());
}

/// The reply to one's own write is authoritative (R10).
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_answered_with_not_found_ends_the_term_without_a_read() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, config(), obedient).await;
    cluster.faults().freeze_watches(true);
    let start = cluster.now();
    let rule = Rule::new(Fault::Refuse(StatusCode::NOT_FOUND)).verb(RequestVerb::Update);
    cluster.inject(rule.times(1));
    let (end, at) = running.end().await;
    assert_eq!(end, TermEnd::Lost(Loss::Deleted));
    assert!(at.since(start) <= Duration::from_millis(3_400));
    assert_eq!(lease_requests(&cluster.object_requests_since(start)), [PUT]);
}

/// A refusal says that nothing was applied, and nothing about the holder.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_refused_is_no_loss_and_needs_no_read() {
    for refused in [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::FORBIDDEN,
        StatusCode::UNPROCESSABLE_ENTITY,
    ] {
        let cluster = OneLease::new(&[V1BETA1]);
        let running = leader(&cluster, config(), obedient).await;
        let start = cluster.now();
        let rule = Rule::new(Fault::Refuse(refused)).verb(RequestVerb::Update);
        cluster.inject(rule);
        pass(9_000).await;
        assert!(
            running.guard().is_leader() && !running.is_disturbed(),
            "{refused}"
        );
        let requests = cluster.object_requests_since(start);
        assert!(
            lease_requests(&requests).iter().all(|what| *what == PUT),
            "{requests:?}"
        );
        // 250 ms, doubling to 2 s.
        assert!(
            (4..=7).contains(&lease_requests(&requests).len()),
            "{requests:?}"
        );
        cluster.heal();
        pass(30_000).await;
        assert!(
            running.guard().is_leader() && !running.is_disturbed(),
            "{refused}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_attempt_is_given_up_after_its_own_timeout_and_repeated() {
    let cluster = OneLease::new(&[V1BETA1]);
    let _running = leader(&cluster, config(), obedient).await;
    let start = cluster.now();
    cluster.faults().partition(true);
    eventually(|| cluster.object_requests_since(start).len() == 3).await;
    let requests = cluster.object_requests_since(start);
    assert_eq!(lease_requests(&requests), [PUT; 3]);
    // A request timeout of 2 s, far below that of the connection, and a pause.
    for (pair, pause) in requests.windows(2).zip([250, 500]) {
        let apart = pair[1].at.since(pair[0].at);
        let expected = seconds(2) + Duration::from_millis(pause);
        assert!(
            apart >= expected && apart < expected + Duration::from_millis(20),
            "{apart:?}"
        );
    }
}

/// A request sent under a belief is not waited for beyond it: the next grant would wait with it.
#[tokio::test(start_paused = true)]
async fn no_attempt_outlasts_the_belief_under_which_it_was_sent() {
    let cluster = OneLease::new(&[V1BETA1]);
    let timing = CandidateTiming {
        request_timeout: seconds(6),
        ..CandidateTiming::of(seconds(30), seconds(20))
    };
    let mut config = config();
    config.timing = timing;
    let running = leader(&cluster, config, obedient).await;
    let accepted = cluster.last(PUT);
    cluster.slow(seconds(1_000), Duration::ZERO);
    let (end, at) = running.end().await;
    assert_eq!(end, TermEnd::Lost(Loss::DeadlinePassed));
    assert_eq!(at.since(accepted), seconds(20));
    // The third attempt was sent a moment ago.
    assert!(at.since(cluster.last(PUT)) < seconds(1));
    cluster.slow(Duration::from_millis(1), Duration::ZERO);
    cluster.grant("me");
    let granted = cluster.now();
    running.leads(2).await;
    assert!(cluster.now().since(granted) <= Duration::from_millis(600));
}
