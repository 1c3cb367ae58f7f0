//! Answers to writes of the Lease: conflicts, lost answers, refusals, and how long an attempt may take (R8, R10).

use std::time::Duration;

use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::{TermEnd, Timing};
use elector_protocol::holder::Loss;
use elector_testing::{OneLease, SentRequest, eventually, seconds};

use crate::{V1BETA1, config, leader, obedient, pass};

const PUT: &str = "PUT leases/web";
const GET: &str = "GET leases/web";

/// Requests for the Lease, in their order.
fn lease_requests(requests: &[SentRequest]) -> Vec<&str> {
    let what = requests.iter().map(|request| request.what.as_str());
    what.filter(|what| [PUT, GET].contains(what)).collect()
}

/// A refusal says that nothing was applied, and nothing about the holder.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_refused_is_no_loss_and_needs_no_read() {
    for refused in [429, 403, 422] {
        let cluster = OneLease::new(&[V1BETA1]);
        let running = leader(&cluster, config(), obedient).await;
        let start = cluster.now();
        let rule = Rule::new(Fault::Refuse(refused)).verb(RequestVerb::Update);
        cluster.inject(rule);
        pass(9_000).await;
        let holds = running.guard().is_leader() && !running.is_disturbed();
        assert!(holds, "{refused}");
        let requests = cluster.object_requests_since(start);
        let holds = lease_requests(&requests).iter().all(|what| *what == PUT);
        assert!(holds, "{requests:?}");
        // 250 ms, doubling to 2 s.
        let holds = (4..=7).contains(&lease_requests(&requests).len());
        assert!(holds, "{requests:?}");
        cluster.heal();
        pass(30_000).await;
        let holds = running.guard().is_leader() && !running.is_disturbed();
        assert!(holds, "{refused}");
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
        let holds = apart >= expected && apart < expected + Duration::from_millis(20);
        assert!(holds, "{apart:?}");
    }
}

/// A server that answers after the time of a request, where no watch tells of what was applied: each attempt is kept, and
/// its late answer counts from when it was sent (R22).
#[tokio::test(start_paused = true)]
async fn a_server_that_answers_late_costs_nothing_below_half_the_renew_deadline() {
    for (timing, request, answer, least) in [
        (Timing::default(), 3_000, 0, 18),
        (Timing::default(), 0, 3_000, 18),
        (Timing::default(), 2_400, 2_400, 18),
        (Timing::slow_server(), 0, 5_000, 24),
        (Timing::many_leases(), 0, 9_000, 6),
    ] {
        let cluster = OneLease::new(&[V1BETA1]);
        let running = leader(&cluster, config().timing(timing), obedient).await;
        let (start, [request, answer]) =
            (cluster.now(), [request, answer].map(Duration::from_millis));
        cluster.slow(request, answer);
        cluster.faults().freeze_watches(true);
        pass(60_000).await;
        assert!(running.guard().is_leader() && !running.is_disturbed());
        let requests = cluster.object_requests_since(start);
        let puts = lease_requests(&requests)
            .iter()
            .filter(|what| **what == PUT)
            .count();
        assert!((least..=40).contains(&puts), "{timing:?}: {puts}");
    }
}

/// A request sent under a belief is not waited for beyond it: the next grant would wait with it.
#[tokio::test(start_paused = true)]
async fn no_attempt_outlasts_the_belief_under_which_it_was_sent() {
    let cluster = OneLease::new(&[V1BETA1]);
    // The sixth attempt is sent a third of a second before the deadline, and would take two.
    let deadline = Duration::from_millis(17_300);
    let timing = Timing::new(seconds(30), deadline).retry_period(Duration::from_millis(250));
    let running = leader(&cluster, config().timing(timing), obedient).await;
    let accepted = cluster.last(PUT);
    cluster.slow(seconds(1_000), Duration::ZERO);
    let (end, at) = running.end().await;
    assert_eq!(end, TermEnd::Lost(Loss::DeadlinePassed));
    assert_eq!(at.since(accepted), deadline);
    assert!(at.since(cluster.last(PUT)) < Duration::from_millis(500));
    cluster.slow(Duration::from_millis(1), Duration::ZERO);
    cluster.grant("me");
    let granted = cluster.now();
    running.leads(2).await;
    assert!(cluster.now().since(granted) <= Duration::from_millis(600));
}
