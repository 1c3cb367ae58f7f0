//! The API server is slow and answers with errors, or is away: what a leader survives, and when there is one again.

use std::time::Duration;

use elector_api::CandidateApi;
use elector_testing::{Fault, Rule, TestCluster, eventually, pass, seconds};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use crate::ElectedPrograms;

/// R of the default timing: a third of its renew deadline.
const RENEW_INTERVAL: Duration = Duration::from_millis(3_334);

/// The time that one request in a hundred takes or more, there and back: a quarter of the default renew deadline.
const SLOWEST: Duration = Duration::from_millis(2_500);

/// From now on each request takes its time, and one in twenty fails.
fn disturb(cluster: &TestCluster, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    cluster.before_requests(move |cluster, sent| {
        // Exponential, as waiting in a queue is: a hundredth is above SLOWEST.
        let share: f64 = 1.0 - random.random::<f64>();
        let takes = SLOWEST.mul_f64(-share.ln() / 100f64.ln());
        let request = takes.mul_f64(random.random());
        let faults = cluster.faults(&sent.client);
        faults.latency(request, takes - request);
        let fault = [
            Fault::DropBefore,
            Fault::DropAfter,
            Fault::Refuse(500),
            Fault::RefuseAfter(504),
            Fault::Refuse(429),
        ];
        let fault = fault.choose(&mut random).copied();
        if let Some(fault) = fault.filter(|_| random.random_ratio(1, 20)) {
            faults.inject(Rule::new(fault).times(1));
        }
        false
    });
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_slow_answers_and_errors_costs_no_leadership() {
    for seed in 1..=2 {
        let programs = ElectedPrograms::start(&[CandidateApi::V1Beta1]).await;
        let (leader, _) = programs.leader();
        disturb(&programs.cluster, seed);
        for minute in 1..=60 {
            pass(seconds(60)).await;
            assert_eq!(
                (programs.leader(), programs.working()),
                ((leader.clone(), 1), 1),
                "seed {seed}, minute {minute}"
            );
        }
        programs.assert_one_at_work();
    }
}

#[tokio::test(start_paused = true)]
async fn one_leads_within_two_renewals_after_ten_minutes_without_an_api_server() {
    for phase in 0..4 {
        let programs = ElectedPrograms::start(&[CandidateApi::V1Beta1]).await;
        pass(seconds(phase)).await;
        programs.faults().for_each(|faults| faults.partition(true));
        pass(seconds(12)).await;
        assert_eq!(programs.working(), 0);
        pass(seconds(588)).await;
        programs.faults().for_each(|faults| faults.partition(false));
        let one_leads = eventually(|| programs.working() > 0);
        let one_leads = tokio::time::timeout(2 * RENEW_INTERVAL, one_leads).await;
        assert!(one_leads.is_ok(), "no leader in time, phase {phase}");
        pass(seconds(60)).await;
        assert_eq!(programs.leader().1, 2, "phase {phase}");
        programs.assert_one_at_work();
    }
}
