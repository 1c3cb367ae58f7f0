//! Thousands of candidates may look for one API, and all of them were started by one roll-out.

use super::tests::{PERIOD, absent, api_discovery};
use super::*;
use crate::testing::{Reply, Script};

#[tokio::test(start_paused = true)]
async fn those_that_start_together_do_not_ask_together() {
    let mut times = Vec::new();
    for seed in [0, 64, 128, 255, 256] {
        let script = Script::new([absent()]);
        let mut api_discovery = api_discovery(&script, CandidateApi::Elector, seed);
        let minute = Duration::from_secs(60);
        assert!(
            tokio::time::timeout(minute, api_discovery.next())
                .await
                .is_err()
        );
        times.push(script.seen()[0].at.as_millis());
    }
    // Up to a quarter of 30 s later.
    assert_eq!(times, [30_000, 31_875, 33_750, 37_471, 30_000]);
}

#[tokio::test(start_paused = true)]
async fn those_that_wait_for_one_server_do_not_ask_together() {
    let mut times = Vec::new();
    for seed in [0, 128, 255] {
        let script = Script::new([Reply::Break, Reply::Break]);
        let mut api_discovery = ApiDiscovery::new(script.cluster(), PERIOD, seed);
        let second = Duration::from_secs(1);
        let found = tokio::time::timeout(second, api_discovery.next()).await;
        assert!(found.is_err());
        times.push(script.seen()[1].at.as_millis());
    }
    assert_eq!(times, [250, 282, 313]);
}
