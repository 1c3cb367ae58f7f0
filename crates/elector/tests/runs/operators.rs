//! Operators' words in annotations.

use std::time::Duration;

use elector::Config;
use elector_api::{annotation, format_freeze, format_prefer};
use elector_protocol::{Identity, OperatorPreference, Timestamp};
use elector_testing::{CANDIDATES, EmbeddedCluster, LEASES, ScriptedCandidate, pass, seconds};
use serde_json::json;
use tokio::time::Instant;

use crate::RunningElector;

fn annotate(cluster: &EmbeddedCluster, candidate: &str, stand_down: Option<&str>) {
    cluster.put(CANDIDATES, "ns", candidate, |object| {
        let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
        match stand_down {
            Some(value) => annotations.insert("elector.dev/stand-down".to_owned(), json!(value)),
            None => annotations.remove("elector.dev/stand-down"),
        };
    });
}

/// (R16) It makes room at once, is not elected after a crash of the others, and leads again when it may.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_told_to_stand_down_makes_room() {
    let cluster = EmbeddedCluster::with_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "best").await < seconds(1));
    let next = ScriptedCandidate::start(&cluster, "ns", "next", "l", "1.1.0");
    pass(seconds(30)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("best"));
    annotate(&cluster, "best", Some("true"));
    assert!(cluster.held_by("ns", "l", "next").await < seconds(3));
    drop(next);
    pass(seconds(60)).await;
    assert_ne!(cluster.holder("ns", "l").as_deref(), Some("best"));
    annotate(&cluster, "best", None);
    assert!(cluster.held_by("ns", "l", "best").await < seconds(3));
}

/// A leader that nobody can follow is worth more than none.
#[tokio::test(start_paused = true)]
async fn the_only_candidate_leads_on_although_it_is_told_to_stand_down() {
    let cluster = EmbeddedCluster::with_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _only = ScriptedCandidate::start(&cluster, "ns", "only", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "only").await < seconds(1));
    let term = cluster.term("ns", "l");
    annotate(&cluster, "only", Some("true"));
    pass(seconds(120)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("only"));
    assert_eq!(cluster.term("ns", "l"), term);
}

/// A value that means nothing changes nothing.
#[tokio::test(start_paused = true)]
async fn a_value_that_is_not_known_is_ignored() {
    let cluster = EmbeddedCluster::with_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "best").await < seconds(1));
    let _next = ScriptedCandidate::start(&cluster, "ns", "next", "l", "1.1.0");
    pass(seconds(10)).await;
    annotate(&cluster, "best", Some("yes"));
    pass(seconds(60)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("best"));
}

/// The wall clock of the electors, so many seconds from now.
/// So long after the start of a test that began then.
pub(crate) fn in_seconds(start: Instant, seconds: u64) -> Timestamp {
    let passed = start.elapsed() + Duration::from_secs(seconds);
    let micros = i64::try_from(passed.as_micros()).unwrap();
    Timestamp::from_micros(EmbeddedCluster::start().as_micros() + micros).unwrap()
}

fn say(cluster: &EmbeddedCluster, name: &str, value: &str) {
    cluster.put(LEASES, "ns", "l", |lease| {
        let metadata = lease["metadata"].as_object_mut().unwrap();
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations[name] = json!(value);
    });
}

fn prefer(candidate: &str, until: Timestamp) -> String {
    let candidate = Identity::new(candidate).unwrap();
    format_prefer(&OperatorPreference { candidate, until })
}

/// (R16) It is moved when the freeze is over, and a crash of the leader is made good meanwhile.
#[tokio::test(start_paused = true)]
async fn a_frozen_lease_keeps_its_leader_until_the_time_that_was_said() {
    let start = Instant::now();
    let cluster = EmbeddedCluster::with_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let leader = ScriptedCandidate::start(&cluster, "ns", "leader", "l", "1.2.0");
    assert!(cluster.held_by("ns", "l", "leader").await < seconds(1));
    say(
        &cluster,
        annotation::FREEZE,
        &format_freeze(in_seconds(start, 120)),
    );
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    let _next = ScriptedCandidate::start(&cluster, "ns", "next", "l", "1.1.0");
    pass(seconds(60)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("leader"));
    assert!(cluster.held_by("ns", "l", "best").await > seconds(58));
    assert!(
        cluster.term("ns", "l") == Some(2),
        "{:?}",
        cluster.term("ns", "l")
    );

    say(
        &cluster,
        annotation::FREEZE,
        &format_freeze(in_seconds(start, 3600)),
    );
    drop(leader);
    let better = ScriptedCandidate::start(&cluster, "ns", "better", "l", "0.9.0");
    pass(seconds(30)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("best"));
    drop(_best);
    assert!(cluster.held_by("ns", "l", "better").await < seconds(30));
    drop(better);
}

/// (R16) It leads for the time that was said, and the best leads before and after.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_an_operator_prefers_leads_for_that_time() {
    let start = Instant::now();
    let cluster = EmbeddedCluster::with_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "best").await < seconds(1));
    let _other = ScriptedCandidate::start(&cluster, "ns", "other", "l", "1.1.0");
    pass(seconds(10)).await;
    say(
        &cluster,
        annotation::PREFER,
        &prefer("nobody", in_seconds(start, 600)),
    );
    pass(seconds(10)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("best"));
    say(
        &cluster,
        annotation::PREFER,
        &prefer("other", in_seconds(start, 60)),
    );
    assert!(cluster.held_by("ns", "l", "other").await < seconds(3));
    let back = cluster.held_by("ns", "l", "best").await;
    assert!(back > seconds(55) && back < seconds(63), "{back:?}");
}

/// Values that cannot be read change nothing, and neither do those whose time is over.
#[tokio::test(start_paused = true)]
async fn words_that_are_malformed_or_over_are_ignored() {
    let start = Instant::now();
    let cluster = EmbeddedCluster::with_gate();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _other = ScriptedCandidate::start(&cluster, "ns", "other", "l", "1.1.0");
    assert!(cluster.held_by("ns", "l", "other").await < seconds(1));
    for (name, value) in [
        (annotation::FREEZE, "1h".to_owned()),
        (annotation::PREFER, "other".to_owned()),
    ] {
        say(&cluster, name, &value);
    }
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "best").await < seconds(3));
    say(
        &cluster,
        annotation::FREEZE,
        &format_freeze(in_seconds(start, 0)),
    );
    say(
        &cluster,
        annotation::PREFER,
        &prefer("other", in_seconds(start, 0)),
    );
    pass(seconds(30)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("best"));
}
