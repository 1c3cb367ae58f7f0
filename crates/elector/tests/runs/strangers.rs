//! A stranger that annotates a Lease, once or all the time: what it costs an election (R2, R4, R6).

use std::time::Duration;

use elector::Config;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{
    BackgroundTask, CapturedLog, LEASES, ScriptedCandidate, TestCluster, millis, pass, seconds,
};
use serde_json::json;

use crate::RunningElector;

fn annotate(cluster: &TestCluster) {
    cluster.edit(LEASES, "ns", "l", |fields| {
        fields["metadata"]["annotations"]["stranger"] = "was here".into();
    });
}

/// (R6 a) The proof of absence outlives the conflict.
#[tokio::test(start_paused = true)]
async fn one_annotation_of_a_new_lease_costs_no_time_and_no_read() {
    let (cluster, _elector) = RunningElector::settled(TestCluster::new()).await;
    cluster.before_next_put(LEASES, annotate);
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "a").await < millis(100));
    assert!(!cluster.awaits_put());
    assert_eq!(cluster.count_requests("GET", "leases/l"), 0);
}

/// (R4) What the read shows may have been held since the watch fell silent.
#[tokio::test(start_paused = true)]
async fn an_unheld_lease_is_read_when_the_watch_is_silent_and_is_waited_for_anew() {
    let (cluster, _elector) = RunningElector::settled(TestCluster::new()).await;
    cluster.before_next_put(LEASES, |cluster| {
        cluster.faults("program").freeze_watches_of(LEASES);
        annotate(cluster);
    });
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(millis(1_900)).await;
    assert_eq!(cluster.count_requests("GET", "leases/l"), 0);
    pass(millis(200)).await;
    assert_eq!(cluster.count_requests("GET", "leases/l"), 1);
    assert_eq!(cluster.count_requests("PUT", "leases/l"), 1);
    let rest = cluster.held_by("ns", "l", "a").await;
    assert!((millis(14_800)..seconds(16)).contains(&rest), "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_lease_that_is_annotated_all_the_time_is_granted_in_time() {
    let (cluster, _elector) = RunningElector::settled(TestCluster::new()).await;
    let _stranger = cluster.annotate_all_the_time("ns", "l");
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    let waited = cluster.held_by("ns", "l", "a").await;
    assert!(waited < seconds(2), "{waited:?}");
    assert!(cluster.count_requests("PUT", "leases/l") > 3, "no race");
}

/// (R4) No object is kept of a Lease without candidates, so it is read for the grant. What that read shows is newer than
/// what was judged, and no gap: the watch brings it too.
#[tokio::test(start_paused = true)]
async fn a_new_lease_that_is_annotated_before_its_candidate_comes_is_granted_in_time() {
    let (cluster, _elector) = RunningElector::settled(TestCluster::new()).await;
    let _stranger = cluster.annotate_all_the_time("ns", "l");
    cluster.faults("program").latency(millis(2), millis(1));
    cluster.faults("program").watch_latency(millis(6));
    cluster.put_lease("ns", "l", json!({"holderIdentity": ""}));
    pass(seconds(1)).await;
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    let waited = cluster.held_by("ns", "l", "a").await;
    assert!(waited < seconds(2), "{waited:?}");
    assert_eq!(cluster.count_requests("GET", "leases/l"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unheld_lease_that_is_annotated_all_the_time_is_granted_in_time() {
    let released = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
    for (spec, longest) in [(json!({"holderIdentity": ""}), 15), (released, 0)] {
        let cluster = TestCluster::new();
        cluster.put_lease("ns", "l", spec);
        let _stranger = cluster.annotate_all_the_time("ns", "l");
        let _elector = RunningElector::start(&cluster, Config::default());
        let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
        let waited = cluster.held_by("ns", "l", "a").await;
        let expected = seconds(longest)..seconds(longest + 2);
        assert!(expected.contains(&waited), "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_lease_that_is_annotated_all_the_time_is_handed_over_and_follows_a_crash_in_time() {
    let (cluster, elector) = RunningElector::settled(TestCluster::new()).await;
    let _next = ScriptedCandidate::start(&cluster, "ns", "next", "l", "1.1.0");
    assert!(cluster.held_by("ns", "l", "next").await < seconds(1));
    let _stranger = cluster.annotate_all_the_time("ns", "l");
    let best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    let waited = cluster.held_by("ns", "l", "best").await;
    assert!(waited < seconds(2), "{waited:?}");
    let term = cluster.term("ns", "l");
    pass(seconds(60)).await;
    assert_eq!(cluster.term("ns", "l"), term, "a healthy leader leads on");
    drop(best);
    let waited = cluster.held_by("ns", "l", "next").await;
    assert!(waited < seconds(17), "{waited:?}");
    assert_eq!(elector.lives(), 1);
}

/// A lease that its holder has just released, with a candidate that is granted it at once. A write takes 2 ms to the server,
/// the watch 1 ms, and each answer `answer` ms.
struct ReleasedLease {
    cluster: TestCluster,
    log: CapturedLog,
    _running: (RunningElector, ScriptedCandidate),
}

// === impl ReleasedLease ===

impl ReleasedLease {
    async fn new(answer: u64) -> Self {
        let (log, cluster) = (CapturedLog::capture(), TestCluster::new());
        let elector = RunningElector::start(&cluster, Config::default());
        let holder = cluster.keep("ns", "l", "other");
        pass(seconds(20)).await;
        let candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
        pass(seconds(1)).await;
        drop(holder);
        cluster.faults("program").latency(millis(2), millis(answer));
        cluster.faults("program").watch_latency(millis(1));
        let released =
            json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3});
        cluster.put_lease("ns", "l", released);
        Self {
            cluster,
            log,
            _running: (elector, candidate),
        }
    }

    /// Annotates it after each of these numbers of milliseconds, again and again.
    fn annotate_after(&self, intervals: &'static [u64]) -> BackgroundTask {
        let cluster = self.cluster.clone();
        BackgroundTask::spawn(async move {
            for (count, interval) in intervals.iter().cycle().enumerate() {
                pass(millis(*interval)).await;
                cluster.edit(LEASES, "ns", "l", |fields| {
                    fields["metadata"]["annotations"]["stranger"] = count.to_string().into();
                });
            }
        })
    }

    /// It is granted in time and once, and no answer that comes later changes anything.
    async fn assert_granted_once(&self, within: Duration) {
        let waited = self.cluster.held_by("ns", "l", "a").await;
        assert!(waited < within, "{waited:?}");
        let writes = self.writes();
        pass(seconds(2)).await;
        assert_eq!(self.writes(), writes);
        assert_eq!(self.cluster.term("ns", "l"), Some(4));
        assert_eq!(self.cluster.count_requests("GET", "leases/l"), 0);
        assert_eq!(self.log.lines("WARN"), [""; 0]);
    }

    fn writes(&self) -> usize {
        self.cluster.count_requests("PUT", "leases/l")
    }
}

/// The first one is answered while the second is under way, and a candidate gives occasion to decide again.
#[tokio::test(start_paused = true)]
async fn the_answer_to_a_write_that_has_lost_does_not_send_the_one_after_it_twice() {
    let lease = ReleasedLease::new(20).await;
    pass(millis(2)).await;
    annotate(&lease.cluster);
    pass(millis(2)).await;
    let slow = Rule::new(Fault::Delay(millis(100))).verb(RequestVerb::Update);
    lease.cluster.inject(slow);
    lease.cluster.register("ns", "b", "l", "1.1.0");
    lease.assert_granted_once(millis(200)).await;
    assert_eq!(lease.writes(), 2);
}

/// (R2) Whatever is sent after an answer is sent 1 ms after the first of three annotations, and loses to the second.
#[tokio::test(start_paused = true)]
async fn a_write_that_has_lost_is_followed_by_another_one_before_its_answer() {
    let lease = ReleasedLease::new(20).await;
    let _stranger = lease.annotate_after(&[2, 2, 18]);
    lease.assert_granted_once(millis(100)).await;
    assert_eq!(lease.writes(), 3);
}
