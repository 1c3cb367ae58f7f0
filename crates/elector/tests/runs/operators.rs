//! Operators' words in annotations, each read once; what they decide is decided in the protocol (R16).

use std::time::Duration;

use elector_api::{annotation, format_freeze, format_prefer};
use elector_protocol::{Identity, OperatorPreference, Timestamp};
use elector_testing::{CANDIDATES, LEASES, ScriptedCandidate, TestCluster, pass, seconds};
use serde_json::json;
use tokio::time::Instant;

use crate::RunningElector;

/// Annotates a Lease or a LeaseCandidate.
fn annotate(cluster: &TestCluster, plural: &str, name: &str, annotation: &str, value: &str) {
    cluster.edit(plural, "ns", name, |object| {
        let metadata = object["metadata"].as_object_mut().unwrap();
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations[annotation] = json!(value);
    });
}

/// It makes room at once, is not elected after a crash of the others, and leads again when it may. A value that means
/// nothing changes nothing.
#[tokio::test(start_paused = true)]
async fn a_leader_that_stands_down_makes_room_until_it_may_lead_again() {
    let (cluster, _elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    let next = ScriptedCandidate::start(&cluster, "ns", "next", "l", "1.1.0");
    cluster.held_by("ns", "l", "best").await;
    let stand_down = |value| annotate(&cluster, CANDIDATES, "best", annotation::STAND_DOWN, value);
    stand_down("yes");
    pass(seconds(30)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("best"));
    stand_down("true");
    assert!(cluster.held_by("ns", "l", "next").await < seconds(3));
    drop(next);
    pass(seconds(60)).await;
    assert_ne!(cluster.holder("ns", "l").as_deref(), Some("best"));
    stand_down("");
    assert!(cluster.held_by("ns", "l", "best").await < seconds(3));
}

/// A freeze keeps the leader for as long as it says, and a preference moves it; then the best leads. Values that cannot be
/// read change nothing.
#[tokio::test(start_paused = true)]
async fn words_on_a_lease_count_for_the_time_that_they_say() {
    let start = Instant::now();
    let in_seconds = |seconds| {
        let micros = Duration::from_secs(seconds).as_micros() + start.elapsed().as_micros();
        let micros = i64::try_from(micros).unwrap();
        Timestamp::from_micros(TestCluster::start_time().as_micros() + micros).unwrap()
    };
    let (cluster, _elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let _leader = ScriptedCandidate::start(&cluster, "ns", "leader", "l", "1.2.0");
    cluster.held_by("ns", "l", "leader").await;
    let say = |name, value: &str| annotate(&cluster, LEASES, "l", name, value);
    say(annotation::FREEZE, &format_freeze(in_seconds(60)));
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    let waited = cluster.held_by("ns", "l", "best").await;
    assert!(waited > seconds(58) && waited < seconds(63), "{waited:?}");
    say(annotation::FREEZE, "1h");
    say(annotation::PREFER, "leader");
    pass(seconds(60)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("best"));
    let preference = OperatorPreference {
        candidate: Identity::new("leader").unwrap(),
        until: in_seconds(60),
    };
    say(annotation::PREFER, &format_prefer(&preference));
    assert!(cluster.held_by("ns", "l", "leader").await < seconds(3));
    let back = cluster.held_by("ns", "l", "best").await;
    assert!(back > seconds(55) && back < seconds(63), "{back:?}");
}
