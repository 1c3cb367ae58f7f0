//! The API server is slow and answers with errors, or is away: what a leader survives, and when there is one again.

use std::time::Duration;

use elector_api::CandidateApi;
use elector_apiserver::Fault;
use elector_testkit::{eventually, pass, seconds};
use http::StatusCode;

use crate::cluster::{NAMES, VirtualCluster};

/// The fates of requests: each takes its time, and some fail.
#[derive(Debug)]
pub(crate) struct RequestDelays {
    random: u64,
}

/// The fate of one request.
#[derive(Debug, Default)]
pub(crate) struct RequestFate {
    pub(crate) there: Duration,
    pub(crate) back: Duration,
    pub(crate) fault: Option<Fault>,
}

/// R of the default timing: a third of its renew deadline.
const RENEW_INTERVAL: Duration = Duration::from_millis(3_334);

// === impl RequestDelays ===

impl RequestDelays {
    /// The time that one request in a hundred takes or more, there and back: a quarter of the default renew deadline.
    const SLOWEST: Duration = Duration::from_millis(2_500);

    /// The percentage of requests that fail.
    const ERRORS: u64 = 5;

    fn rough(seed: u64) -> Self {
        Self {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    pub(crate) fn draw(&mut self) -> RequestFate {
        // Exponential, as waiting in a queue is: a hundredth is above SLOWEST.
        let share = (self.random() % 1_000_000 + 1) as f64 / 1_000_000.0;
        let takes = Self::SLOWEST.mul_f64(-share.ln() / 100f64.ln());
        let there = takes.mul_f64((self.random() % 1_000) as f64 / 1_000.0);
        let fails = self.random() % 100 < Self::ERRORS;
        let faults = [
            Fault::DropBefore,
            Fault::DropAfter,
            Fault::Refuse(StatusCode::INTERNAL_SERVER_ERROR),
            Fault::RefuseAfter(StatusCode::GATEWAY_TIMEOUT),
            Fault::Refuse(StatusCode::TOO_MANY_REQUESTS),
        ];
        let which = usize::try_from(self.random() % 5).unwrap();
        RequestFate {
            there,
            back: takes - there,
            fault: fails.then_some(faults[which]),
        }
    }

    /// Xorshift.
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 8
    }
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_slow_answers_and_errors_costs_no_leadership() {
    for seed in 1..=2 {
        let cluster = VirtualCluster::new(&[CandidateApi::V1Beta1]);
        let _elector = cluster.elector();
        pass(seconds(20)).await;
        let _candidates = NAMES.map(|name| cluster.candidate(name));
        let leader = cluster.successor_of("", seconds(5)).await;
        cluster.delays(RequestDelays::rough(seed));
        for minute in 1..=60 {
            pass(seconds(60)).await;
            let found = (cluster.leader(), cluster.working().0);
            assert_eq!(
                found,
                ((leader.clone(), 1), 1),
                "seed {seed}, minute {minute}"
            );
        }
        assert_eq!(cluster.working().1, 1);
        cluster.verify_history();
    }
}

#[tokio::test(start_paused = true)]
async fn one_leads_within_two_renewals_after_ten_minutes_without_an_api_server() {
    for phase in 0..4 {
        let cluster = VirtualCluster::new(&[CandidateApi::V1Beta1]);
        let _elector = cluster.elector();
        pass(seconds(20)).await;
        let _candidates = NAMES.map(|name| cluster.candidate(name));
        cluster.successor_of("", seconds(5)).await;
        pass(seconds(phase)).await;
        cluster.faults().partition(true);
        pass(seconds(12)).await;
        assert_eq!(cluster.working().0, 0);
        pass(seconds(588)).await;
        cluster.faults().partition(false);
        let one_leads = eventually(|| cluster.working().0 > 0);
        let one_leads = tokio::time::timeout(2 * RENEW_INTERVAL, one_leads).await;
        assert!(one_leads.is_ok(), "no leader in time, phase {phase}");
        pass(seconds(60)).await;
        assert_eq!(cluster.leader().1, 2, "phase {phase}");
        assert_eq!(cluster.working().1, 1);
        cluster.verify_history();
    }
}
