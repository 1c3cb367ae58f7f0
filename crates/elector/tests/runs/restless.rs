//! An account that may write LeaseCandidates and no Lease: what it can do to a lease by acking and never accepting (R23).

use std::time::Duration;

use elector::Config;
use elector_protocol::{ElectorTiming, Identity};
use elector_testing::{BackgroundTask, ScriptedCandidate, TestCluster, millis, pass, seconds};

use crate::RunningElector;

/// The fate of a lease in ten minutes.
#[derive(Clone, Copy, Debug, Default)]
struct WorkRecord {
    /// For how long no candidate worked.
    without_work: Duration,
    /// The number of spans.
    gaps: usize,
}

/// The change of the account's candidate every three seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Restlessness {
    /// It changes the version of one candidate.
    Versions,
    /// It deletes its candidate and creates one of another name.
    Names,
    /// The same, and the next candidate is there before the last one is gone.
    OverlappingNames,
}

/// The accept window of a hand-over, and the time to notice its end.
const ACCEPT_WINDOW: Duration = millis(5_100);

/// Keeps a better candidate registered that acks every ping and changes every three seconds.
pub(crate) fn restless(cluster: &TestCluster, how: Restlessness) -> BackgroundTask {
    let cluster = cluster.clone();
    BackgroundTask::spawn(async move {
        let mut before: Option<String> = None;
        for change in 0.. {
            // Better with each change, so that any candidate but the newest is worse.
            let version = format!("1.{}.0", 1000 - change);
            let name = match how {
                Restlessness::Versions => "restless".to_owned(),
                Restlessness::Names | Restlessness::OverlappingNames => {
                    format!("restless-{change}")
                }
            };
            let last = before.replace(name.clone()).filter(|last| *last != name);
            if let (Some(last), Restlessness::Names) = (&last, how) {
                cluster.delete(cluster.candidates(), "ns", last);
            }
            cluster.register("ns", &name, "l", &version);
            for _ in 0..15 {
                pass(millis(200)).await;
                cluster.acknowledge_once(cluster.candidates(), "ns", &name);
            }
            if let (Some(last), Restlessness::OverlappingNames) = (&last, how) {
                cluster.delete(cluster.candidates(), "ns", last);
            }
        }
    })
}

/// Ten minutes of a lease with one good candidate and a restless one.
async fn ten_minutes(how: Restlessness, timing: ElectorTiming) -> WorkRecord {
    let cluster = TestCluster::with_gate();
    let config = Config {
        timing,
        ..Config::default()
    };
    let elector = RunningElector::start(&cluster, config);
    pass(seconds(20)).await;
    let _steady = ScriptedCandidate::start(&cluster, "ns", "steady", "l", "2.0.0");
    pass(seconds(5)).await;
    assert!(steady_works(&cluster));
    let _restless = restless(&cluster, how);
    let step = millis(50);
    let mut work = WorkRecord::default();
    let mut worked = true;
    for _ in 0..seconds(600).as_millis() / step.as_millis() {
        pass(step).await;
        let works = steady_works(&cluster);
        work.gaps += usize::from(worked && !works);
        work.without_work += if works { Duration::ZERO } else { step };
        worked = works;
    }
    elector.stop().await;
    work
}

/// True if the good candidate holds the lease and has accepted it.
fn steady_works(cluster: &TestCluster) -> bool {
    let record = cluster
        .lease("ns", "l")
        .object()
        .map(|lease| lease.record().unwrap());
    record.is_some_and(|record| {
        record.holder == Identity::new("steady") && !record.is_unaccepted_grant()
    })
}

#[tokio::test(start_paused = true)]
async fn an_account_that_changes_its_candidate_costs_one_accept_window_in_ten_minutes() {
    for how in [
        Restlessness::Versions,
        Restlessness::Names,
        Restlessness::OverlappingNames,
    ] {
        let work = ten_minutes(how, ElectorTiming::default()).await;
        assert_eq!(work.gaps, 1, "{how:?} {work:?}");
        assert!(work.without_work <= ACCEPT_WINDOW, "{how:?} {work:?}");
    }
}

/// The same account, where pre-emptions hardly count: the lease is without work for most of the time.
#[tokio::test(start_paused = true)]
async fn without_the_hold_back_the_lease_is_without_work_most_of_the_time() {
    for how in [Restlessness::Versions, Restlessness::Names] {
        let timing = ElectorTiming {
            passed_over: seconds(1),
            passed_over_max: seconds(1),
            preemptions: ElectorTiming::PREEMPTIONS_MAX,
            preemption_window: seconds(1),
            ..ElectorTiming::default()
        };
        let work = ten_minutes(how, timing).await;
        assert!(work.without_work >= seconds(300), "{how:?} {work:?}");
    }
}
