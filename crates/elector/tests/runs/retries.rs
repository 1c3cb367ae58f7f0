//! Writes that fail stay queued with a pause until the desired state is reached (decision 2), and no other lease waits.

use elector::Config;
use elector_apiserver::RequestVerb;
use elector_testing::{CANDIDATES, EmbeddedCluster, LEASES, millis, pass, seconds};
use serde_json::json;

use crate::{RunningElector, refuse};

/// The number of tries of a refused request in a minute.
async fn tries(cluster: &EmbeddedCluster, verb: &'static str, part: &'static str) -> usize {
    let start = cluster.now();
    pass(seconds(60)).await;
    cluster.heal();
    cluster.requests_since(start, &[verb, part]).len()
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_creation_is_refused_is_created_as_soon_as_it_can_be() {
    for code in [403, 429, 500] {
        let cluster = EmbeddedCluster::new();
        let _elector = RunningElector::start(&cluster, Config::default());
        pass(seconds(20)).await;
        cluster.inject(refuse(code).verb(RequestVerb::Create));
        let _candidate = cluster.candidate("default", "a", "l", "1.0.0");
        let tries = tries(&cluster, "POST", "leases").await;
        // 5 ms, doubling to 5 s.
        assert!((15..=30).contains(&tries), "{code}: {tries}");
        assert!(
            cluster.held_by("default", "l", "a").await < millis(5_500),
            "{code}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_ping_that_is_refused_is_written_as_soon_as_it_can_be() {
    for code in [403, 409, 500] {
        let cluster = EmbeddedCluster::new();
        let _elector = RunningElector::start(&cluster, Config::default());
        pass(seconds(20)).await;
        let _candidate = cluster.candidate("default", "a", "l", "1.0.0");
        pass(seconds(10)).await;
        // It is not fresh any more, so it has to be pinged before it is granted the lease again.
        cluster.inject(refuse(code).resource(CANDIDATES).named("a"));
        let released = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
        cluster.put_lease("default", "l", released);
        let tries = tries(&cluster, "PATCH", "leasecandidates/a").await;
        assert!((5..=30).contains(&tries), "{code}: {tries}");
        assert!(
            cluster.held_by("default", "l", "a").await < millis(5_500),
            "{code}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_is_refused_is_written_as_soon_as_it_can_be() {
    for code in [403, 404, 409, 422, 429, 500] {
        let cluster = EmbeddedCluster::new();
        let _elector = RunningElector::start(&cluster, Config::default());
        pass(seconds(20)).await;
        let released = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
        cluster.put_lease("default", "l", released);
        cluster.inject(
            refuse(code)
                .verb(RequestVerb::Update)
                .resource(LEASES)
                .named("l"),
        );
        let _candidate = cluster.candidate("default", "a", "l", "1.0.0");
        let tries = tries(&cluster, "PUT", "leases/l").await;
        assert!((10..=30).contains(&tries), "{code}: {tries}");
        // A conflict is waited for by the watch, for two seconds.
        assert!(
            cluster.held_by("default", "l", "a").await < millis(7_500),
            "{code}"
        );
    }
}
