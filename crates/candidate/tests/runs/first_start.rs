//! The first start of a candidate, where no Lease exists: how long it takes, and what is told of it (R6, R18).

use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_candidate::{Event, Waiting};
use elector_protocol::StrategyName;
use elector_testing::{CapturedLog, LEASES, OneLease, millis, seconds};

use crate::modes::{is_about, plain};
use crate::{RunningCandidate, V1BETA1, config, obedient, pass, start};

/// The waits that a candidate reported, in order.
fn waits(running: &RunningCandidate) -> Vec<Waiting> {
    let events = running.events.lock().unwrap();
    let waits = events.iter().filter_map(|(event, _)| match event {
        Event::Waiting(waiting) => Some(waiting.clone()),
        _ => None,
    });
    waits.collect()
}

/// The Lease is created unheld, and taken once it is certain that no other process believes, and that no elector acts.
#[tokio::test(start_paused = true)]
async fn a_first_start_is_announced_at_once_and_once_and_lasts_as_long_as_it_says() {
    let own = StrategyName::oldest_emulation_version();
    for (config, strategy, wait) in [(plain("me"), None, 15), (config(), Some(own), 20)] {
        let log = CapturedLog::capture();
        let cluster = OneLease::new(&[V1BETA1]);
        cluster.delete_lease();
        let begun = cluster.now();
        let running = start(&cluster, config, obedient);
        pass(1_000).await;
        let born = cluster.record();
        assert!(born.holder.is_none() && born.duration_seconds.is_none());
        assert_eq!(born.strategy, strategy);
        let told = waits(&running);
        assert_eq!(told.len(), 1, "{told:?}");
        let unproven = "a process whose Lease was deleted or emptied may still lead";
        assert!(told[0].reason().starts_with(unproven), "{told:?}");
        assert_eq!(told[0].at_most(), Some(seconds(wait)));
        let status = running.handle.status().waiting().unwrap();
        assert_eq!(status.reason(), told[0].reason());
        let left = status.at_most().unwrap();
        assert!(is_about(left, seconds(wait - 1)), "{status}");
        running.leads(1).await;
        let waited = cluster.now().since(begun);
        assert!(is_about(waited, seconds(wait)), "{waited:?}");
        assert_eq!(cluster.record().strategy, strategy);
        assert_eq!(running.handle.status().waiting(), None);
        assert_eq!(waits(&running), told);
        let lines = log.lines("waiting");
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(unproven), "{lines:?}");
        assert!(lines[0].ends_with(&format!("at_most={wait}s")), "{lines:?}");
    }
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.delete_lease();
    let begun = cluster.now();
    let at_once = plain("me").absent_lease_grace(seconds(0));
    start(&cluster, at_once, obedient).leads(1).await;
    assert!(cluster.now().since(begun) < millis(200));
}

#[tokio::test(start_paused = true)]
async fn a_standby_tells_of_each_holder_once_and_of_the_time_that_an_elector_has() {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.grant("other");
    let running = start(&cluster, config(), obedient);
    pass(1_000).await;
    for _ in 0..5 {
        cluster.write(|record| {
            let mut renewed = record.clone();
            (renewed.duration_seconds, renewed.renew_time) =
                (Some(15), Some(elector_testing::TestCluster::start_time()));
            renewed
        });
        pass(3_000).await;
    }
    let of = |waits: &[Waiting]| -> Vec<String> {
        waits.iter().map(|it| it.reason().to_owned()).collect()
    };
    assert_eq!(of(&waits(&running)), ["other holds the lease"]);
    cluster.write(|record| record.released(elector_testing::TestCluster::start_time()));
    running.leads(1).await;
    let told = waits(&running);
    let free = "the lease is free, and an elector may grant it";
    assert_eq!(of(&told), ["other holds the lease", free]);
    assert_eq!(told[1].at_most(), Some(seconds(5)));
}

/// Also where it is the wait of before the term.
#[tokio::test(start_paused = true)]
async fn a_wait_after_a_term_is_told_anew() {
    let cluster = OneLease::new(&[V1BETA1]);
    cluster.delete_lease();
    let running = start(&cluster, plain("me"), obedient);
    running.leads(1).await;
    cluster.delete_lease();
    running.leads(2).await;
    let told = waits(&running);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0].reason(), told[1].reason());
}

#[tokio::test(start_paused = true)]
async fn a_missing_right_is_named_at_the_first_start_with_the_mode_that_needs_it() {
    let candidates = "leasecandidates.coordination.k8s.io";
    let leases = "leases.coordination.k8s.io";
    for (config, mode, refused, resource) in [
        (config(), "auto", "leasecandidates", candidates),
        (crate::elected(), "elected", "leasecandidates", candidates),
        (config(), "auto", LEASES, leases),
        (plain("me"), "plain", LEASES, leases),
    ] {
        let log = CapturedLog::capture();
        let cluster = OneLease::new(&[V1BETA1]);
        cluster.delete_lease();
        let refusal = Rule::new(Fault::Refuse(403));
        cluster.inject(refusal.verb(RequestVerb::Create).resource(refused));
        let _running = start(&cluster, config, obedient);
        pass(2_000).await;
        let lines = log.lines("needs the right");
        assert_eq!(lines.len(), 1, "{lines:?}");
        let right =
            format!("mode {mode} needs the right to create {resource} in namespace default");
        assert!(lines[0].contains(&right), "{lines:?}");
    }
    let (log, cluster) = (CapturedLog::capture(), OneLease::new(&[V1BETA1]));
    let failure = Rule::new(Fault::Refuse(500));
    cluster.inject(failure.verb(RequestVerb::Create));
    let _running = start(&cluster, config(), obedient);
    pass(2_000).await;
    assert!(!log.lines("failed to create").is_empty());
    assert_eq!(log.lines("needs the right"), [""; 0], "it lacks none");
}
