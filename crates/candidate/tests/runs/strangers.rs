//! A stranger that annotates the Lease all the time: what it costs a candidate (R2, R4, R10, R18).

use elector_candidate::Config;
use elector_protocol::{Identity, LeaseRecord};
use elector_testing::{BackgroundTask, OneLease, eventually, millis, seconds};

use crate::modes::plain;
use crate::{V1BETA1, config, elected, leader, obedient, pass, start};

/// The first record of the Lease, given the born one.
type FirstRecord = fn(&LeaseRecord) -> LeaseRecord;

fn stranger(cluster: &OneLease) -> BackgroundTask {
    cluster.annotate_all_the_time("default", "web")
}

#[tokio::test(start_paused = true)]
async fn a_free_lease_is_acquired_in_time() {
    let held = |record: &LeaseRecord| LeaseRecord {
        holder: Identity::new("other"),
        duration_seconds: Some(15),
        acquire_time: Some(elector_testing::TestCluster::start_time()),
        renew_time: Some(elector_testing::TestCluster::start_time()),
        ..record.clone()
    };
    let released =
        |record: &LeaseRecord| record.released(elector_testing::TestCluster::start_time());
    let born = LeaseRecord::clone;
    let cases: [(Config, FirstRecord, u64); 6] = [
        (plain("me"), born, 15),
        (plain("me"), released, 0),
        (plain("me"), held, 15),
        (config(), born, 20),
        (config(), released, 5),
        (config(), held, 20),
    ];
    for (config, before, wait) in cases {
        let cluster = OneLease::new(&[V1BETA1]);
        cluster.write(before);
        let _stranger = stranger(&cluster);
        let begun = cluster.now();
        start(&cluster, config, obedient).leads(1).await;
        let waited = cluster.now().since(begun);
        let expected = seconds(wait)..seconds(wait + 2);
        assert!(expected.contains(&waited), "{wait}: {waited:?}");
    }
}

/// An accept, renewals for a minute and a hand-over.
#[tokio::test(start_paused = true)]
async fn an_elected_leader_accepts_leads_on_and_hands_over_in_time() {
    let cluster = OneLease::new(&[V1BETA1]);
    let _stranger = stranger(&cluster);
    let begun = cluster.now();
    let running = leader(&cluster, elected(), obedient).await;
    assert!(cluster.now().since(begun) < seconds(2));
    pass(60_000).await;
    assert!(running.guard().is_leader() && !running.is_disturbed());
    let begun = cluster.now();
    cluster.prefer("other");
    eventually(|| cluster.record().holder == Identity::new("other")).await;
    assert!(cluster.now().since(begun) < seconds(2));
}

/// Each write loses to an annotation, and is answered long after the watch has shown that.
#[tokio::test(start_paused = true)]
async fn at_most_four_writes_are_under_way() {
    let cluster = OneLease::new(&[V1BETA1]);
    let _stranger = stranger(&cluster);
    let _running = start(&cluster, plain("me"), obedient);
    pass(1_000).await;
    cluster.faults().latency(millis(20), millis(500));
    cluster.faults().watch_latency(millis(1));
    cluster.write(|record| record.released(elector_testing::TestCluster::start_time()));
    let writes = || cluster.count_requests("PUT", "leases/web");
    eventually(|| writes() > 0).await;
    pass(100).await;
    assert_eq!(writes(), elector_protocol::MOST_WRITES_UNDER_WAY);
}
