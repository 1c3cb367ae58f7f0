//! Kubernetes Events on Leases: what is reported of elections, how often, and that no election waits for it.

use elector::Config;
use elector_api::{CandidateApi, EventObject};
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_protocol::elector::HoldBackCause;
use elector_testing::{CapturedLog, LEASES, ScriptedCandidate, TestCluster, millis, pass, seconds};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::json;

use crate::leader_election::electing;
use crate::restless::{Restlessness, restless};
use crate::{RunningElector, refuse};

/// An elector that records Events, of a pod of that name.
pub(crate) fn recording(host: &str) -> Config {
    Config {
        event_host: Some(host.to_owned()),
        ..Config::default()
    }
}

/// The same of one of several.
fn electing_and_recording(host: &str) -> Config {
    Config {
        leader_election: electing(host).leader_election,
        ..recording(host)
    }
}

/// The Events of the namespace, in the order in which they were created.
async fn events(cluster: &TestCluster) -> Vec<Event> {
    let client = cluster.connect("reader").client().clone();
    let api: Api<Event> = Api::namespaced(client, "ns");
    let mut events = api.list(&ListParams::default()).await.unwrap().items;
    events.sort_by_key(|event| event.metadata.name.clone());
    events
}

/// Type, reason and note of each.
pub(crate) async fn reported(cluster: &TestCluster) -> Vec<String> {
    let line = |event: &Event| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let times = event.series.as_ref().map_or(1, |series| series.count);
        let (kind, reason) = (text(&event.type_), text(&event.reason));
        format!("{kind} {reason} x{times}: {}", text(&event.note))
    };
    events(cluster).await.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn each_change_of_leader_is_an_event_on_its_lease() {
    let cluster = TestCluster::with_gate();
    let _elector = RunningElector::start_seeded(&cluster, recording("pod"), 7);
    pass(seconds(20)).await;
    let _old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.1.0");
    pass(seconds(10)).await;
    let best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    pass(seconds(10)).await;
    drop(best);
    pass(seconds(30)).await;
    assert_eq!(
        reported(&cluster).await,
        [
            "Normal Elected x1: old leads in term 1: the lease is unheld and no former holder can still lead; old is the only \
             candidate",
            "Normal HandedOver x1: best leads in term 2: old handed over",
            "Warning Expired x1: old leads in term 3: best has not renewed for 15s; old is the only one \
             that answers; better ones do not answer: best",
        ]
        .map(str::to_owned)
    );
    let lease = cluster.lease("ns", "l").object().unwrap();
    for event in events(&cluster).await {
        let regarding = event.regarding.unwrap();
        assert_eq!(regarding.kind.as_deref(), Some("Lease"));
        assert_eq!(regarding.name.as_deref(), Some("l"));
        assert_eq!(regarding.uid, lease.metadata.uid);
        let by = [event.reporting_controller, event.reporting_instance].map(Option::unwrap);
        assert_eq!(by, ["elector.dev/elector", "elector_pod_0000000000000007"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_obstacle_is_reported_once_for_as_long_as_it_stands() {
    let cluster = TestCluster::with_gate();
    let _elector = RunningElector::start(&cluster, recording("pod"));
    pass(seconds(20)).await;
    let candidates =
        ["a", "b"].map(|name| ScriptedCandidate::start(&cluster, "ns", name, "l", "1.0.0"));
    pass(seconds(5)).await;
    let conflict = |strategy: &'static str| {
        cluster.edit("leasecandidates", "ns", "b", |object| {
            object["spec"]["strategy"] = json!(strategy);
        });
    };
    for _ in 0..2 {
        conflict("example.com/mine");
        // All that is decided in ten minutes.
        pass(seconds(600)).await;
        conflict("OldestEmulationVersion");
        pass(seconds(60)).await;
    }
    drop(candidates);
    let lines = reported(&cluster).await;
    let mut conflicts = lines.iter().filter(|it| it.contains("StrategyConflict"));
    let conflict = conflicts.next().unwrap();
    assert!(conflict.starts_with("Warning StrategyConflict x2: "));
    assert_eq!(conflicts.next(), None, "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn an_obstacle_is_reported_again_for_new_candidates_and_by_an_elector_that_acts_again() {
    let cluster = TestCluster::with_gate();
    let _elector = RunningElector::start_client(&cluster, "one", electing_and_recording("one"));
    pass(seconds(20)).await;
    for _ in 0..3 {
        cluster.register_for("ns", "a", "l", "1.0.0", "example.com/mine");
        pass(seconds(60)).await;
        cluster.delete("leasecandidates", "ns", "a");
        pass(seconds(5)).await;
    }
    cluster.register_for("ns", "a", "l", "1.0.0", "example.com/mine");
    pass(seconds(60)).await;
    let cut_off = Rule::new(Fault::HangBefore).verb(RequestVerb::Update);
    cluster.faults("one").inject(cut_off);
    pass(seconds(20)).await;
    cluster.faults("one").clear();
    pass(seconds(20)).await;
    let lines = reported(&cluster).await;
    let reports = lines.iter().map(|it| &it[..28]);
    // The first is about a Lease that is not there yet.
    let expected = [
        "Normal ForeignStrategy x1: s",
        "Normal ForeignStrategy x4: s",
    ];
    assert_eq!(Vec::from_iter(reports), expected);
}

/// (R23) The Event says until when, and why, for those who have nothing but objects.
#[tokio::test(start_paused = true)]
async fn a_preference_that_is_held_back_is_an_event_that_can_be_read() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    cluster.serve(&[CandidateApi::V1Alpha2]);
    let _elector = RunningElector::start(&cluster, recording("pod"));
    pass(seconds(20)).await;
    let _steady = ScriptedCandidate::start(&cluster, "ns", "steady", "l", "2.0.0");
    pass(seconds(5)).await;
    let _restless = restless(&cluster, Restlessness::Versions);
    pass(seconds(120)).await;
    let events = events(&cluster).await;
    let mut related = events.iter().filter(|event| event.related.is_some());
    let preference = related.next().unwrap();
    let api = preference.related.as_ref().unwrap().api_version.as_deref();
    assert_eq!(api, Some("coordination.k8s.io/v1alpha2"));
    assert_eq!(preference.action.as_deref(), Some("Prefer"));
    let events = events.into_iter();
    let events = events.map(|event| serde_json::to_value(event).unwrap());
    let events = events.map(|event| serde_json::from_value::<EventObject>(event).unwrap());
    let held_back: Vec<_> = events.filter_map(|event| event.hold_back()).collect();
    let lines = reported(&cluster).await;
    let [held_back] = held_back.as_slice() else {
        panic!("it is reported once: {lines:#?}");
    };
    let notice = &held_back.notice;
    assert_eq!(notice.candidate.as_str(), "restless");
    assert_eq!(notice.because, HoldBackCause::NewSinceFailure);
    let uid = cluster.lease("ns", "l").object().unwrap().metadata.uid;
    assert_eq!(held_back.uid.as_ref().map(ToString::to_string), uid);
    let lines_of = |text| log.lines(text).len();
    assert!(lines_of("no better candidate is preferred for ns/l: ") > 0);
    let is_failure = |line: &String| line.starts_with("Warning NotAccepted");
    assert!(lines.iter().any(is_failure), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_changes_all_the_time_does_not_flood() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    // The one that stands by records none, so it leaves none out.
    let start = |name| RunningElector::start_client(&cluster, name, electing_and_recording(name));
    let _electors = ["one", "two"].map(start);
    pass(seconds(20)).await;
    cluster.register("ns", "a", "l", "1.0.0");
    // Fifty times a second for two minutes, by a process of its own.
    for change in 0..6000 {
        cluster.edit(LEASES, "ns", "l", |object| {
            object["spec"] = json!({
                "holderIdentity": format!("h-{}", change % 2), "leaseDurationSeconds": 15,
                "leaseTransitions": change, "acquireTime": "2026-01-01T00:00:00.000000Z",
                "renewTime": "2026-01-01T00:00:00.000000Z",
            });
        });
        pass(millis(20)).await;
    }
    pass(seconds(1)).await;
    let count = events(&cluster).await.len();
    // A burst, and one each five seconds.
    assert!((100..=125).contains(&count), "{count}");
    let lines = log.lines("left out Events of leases in namespace ns: too many");
    assert!((1..=3).contains(&lines.len()), "{lines:#?}");
    let counted = lines.iter().any(|line| line.contains("left_out="));
    assert!(counted, "{lines:#?}");
    // Another namespace has its own.
    let _candidate = ScriptedCandidate::start(&cluster, "quiet", "b", "l", "1.0.0");
    pass(seconds(20)).await;
    let quiet = cluster.requests_with(&["POST", "/namespaces/quiet/events"]);
    assert_eq!(quiet.len(), 1);
}

/// Events that are answered late, never or with a refusal: elections go on, and the refusal is one line.
#[tokio::test(start_paused = true)]
async fn no_election_waits_for_an_event() {
    for fault in [
        Rule::new(Fault::HangBefore),
        Rule::new(Fault::Delay(seconds(4))),
        refuse(403),
    ] {
        let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
        cluster.inject(fault.verb(RequestVerb::Create).resource("events"));
        let _elector = RunningElector::start(&cluster, recording("pod"));
        pass(seconds(20)).await;
        let names: Vec<_> = (0..20).map(|index| format!("c-{index}")).collect();
        let start = |name: &String| ScriptedCandidate::start(&cluster, "ns", name, name, "1.0.0");
        let _candidates: Vec<_> = names.iter().map(start).collect();
        pass(millis(200)).await;
        for name in &names {
            assert_eq!(cluster.holder("ns", name).as_ref(), Some(name));
        }
        pass(seconds(30)).await;
        let lines = log.lines("WARN");
        let text = "failed to create events.events.k8s.io in namespace ns: ";
        assert!(lines.len() <= 1, "{lines:#?}");
        assert!(lines.iter().all(|line| line.contains(text)), "{lines:#?}");
    }
}

/// The server hangs with the first Event of a thousand and more.
#[tokio::test(start_paused = true)]
async fn events_that_wait_are_no_more_than_a_thousand_and_those_left_out_are_counted() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    let hang = Rule::new(Fault::HangBefore).verb(RequestVerb::Create);
    cluster.inject(hang.resource("events"));
    let _elector = RunningElector::start(&cluster, recording("pod"));
    pass(seconds(20)).await;
    for index in 0..1100 {
        let (namespace, name) = (format!("ns-{}", index % 11), format!("c{index}"));
        cluster.register_for(&namespace, &name, &name, "1.0.0", "example.com/mine");
    }
    pass(seconds(64)).await;
    let line = "WARN left out Events of leases: 1000 wait to be written";
    // Beside those that wait, one is under way.
    assert_eq!(
        log.lines("wait to be written"),
        [line.to_owned(), format!("{line} left_out=98")]
    );
}
