//! Kubernetes Events on Leases: what is told of elections, how often, and that no election waits for it.

use std::time::Duration;

use elector::{Config, LeaderElection};
use elector_api::{EventObject, format_freeze};
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_protocol::elector::HoldBackCause;
use elector_testkit::{
    BackgroundTask, CapturedLog, LEASES, MemoryCluster, ScriptedCandidate, millis, pass, seconds,
};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::json;
use tokio::time::Instant;

use crate::operators::in_seconds;
use crate::{RunningElector, refuse};

/// An elector that records Events, of a pod of that name.
fn recording(host: &str) -> Config {
    Config {
        event_host: Some(host.to_owned()),
        ..Config::default()
    }
}

/// The Events of the namespace, in the order in which they were created.
async fn events(cluster: &MemoryCluster) -> Vec<Event> {
    let client = cluster.cluster_of("reader").client().clone();
    let api: Api<Event> = Api::namespaced(client, "ns");
    let mut events = api.list(&ListParams::default()).await.unwrap().items;
    events.sort_by_key(|event| event.metadata.name.clone());
    events
}

/// Type, reason and note of each.
async fn told(cluster: &MemoryCluster) -> Vec<String> {
    let line = |event: &Event| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let times = event.series.as_ref().map_or(1, |series| series.count);
        let (kind, reason) = (text(&event.type_), text(&event.reason));
        format!("{kind} {reason} x{times}: {}", text(&event.note))
    };
    events(cluster).await.iter().map(line).collect()
}

/// (R16) Told once, for as long as a better candidate waits.
#[tokio::test(start_paused = true)]
async fn a_frozen_lease_with_a_better_candidate_is_told_once() {
    let cluster = MemoryCluster::new();
    let _elector = RunningElector::start(&cluster, recording("pod"));
    pass(seconds(20)).await;
    let _old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.1.0");
    pass(seconds(10)).await;
    cluster.put(LEASES, "ns", "l", |lease| {
        lease["metadata"]["annotations"]["elector.dev/freeze"] =
            json!(format_freeze(in_seconds(Instant::now(), 3600)));
    });
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    pass(seconds(60)).await;
    let told = told(&cluster).await;
    let start = "Normal Frozen x1: best is better, but old is not asked to make room: the lease is frozen for another ";
    assert!(told.len() == 2 && told[1].starts_with(start), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn each_change_of_leader_is_an_event_on_its_lease() {
    let cluster = MemoryCluster::new();
    let _elector = RunningElector::start_seeded(&cluster, recording("pod"), 7);
    pass(seconds(20)).await;
    let _old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.1.0");
    pass(seconds(10)).await;
    let best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    pass(seconds(10)).await;
    drop(best);
    pass(seconds(30)).await;
    assert_eq!(
        told(&cluster).await,
        [
            "Normal Elected x1: old leads in term 1: the lease has no holder, and no former holder can lead any more; old is the only \
             candidate",
            "Normal HandedOver x1: best leads in term 2: old handed over",
            "Warning Expired x1: old leads in term 3: best has not renewed for 15s; old is the only one \
             that answers; better ones do not answer: best",
        ]
        .map(str::to_owned)
    );
    let lease = cluster.lease("ns", "l").unwrap();
    for event in events(&cluster).await {
        let regarding = event.regarding.unwrap();
        assert_eq!(regarding.kind.as_deref(), Some("Lease"));
        assert_eq!(regarding.name.as_deref(), Some("l"));
        assert_eq!(regarding.uid, lease.metadata.uid);
        assert_eq!(
            event.reporting_controller.as_deref(),
            Some("elector.dev/elector")
        );
        assert_eq!(
            event.reporting_instance.as_deref(),
            Some("elector_pod_0000000000000007")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_stands_in_the_way_is_told_once_for_as_long_as_it_does() {
    let cluster = MemoryCluster::new();
    let _elector = RunningElector::start(&cluster, recording("pod"));
    pass(seconds(20)).await;
    let candidates =
        ["a", "b"].map(|name| ScriptedCandidate::start(&cluster, "ns", name, "l", "1.0.0"));
    pass(seconds(5)).await;
    let conflict = |strategy: &'static str| {
        cluster.put("leasecandidates", "ns", "b", |object| {
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
    let told = told(&cluster).await;
    let conflicts: Vec<_> = told
        .iter()
        .filter(|line| line.contains("StrategyConflict"))
        .collect();
    assert_eq!(conflicts.len(), 1, "{told:#?}");
    assert!(
        conflicts[0].starts_with("Warning StrategyConflict x2: "),
        "{told:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn leases_of_the_builtin_controller_say_so_once() {
    let cluster = MemoryCluster::new();
    let renew =
        |second: u32| {
            cluster.put(LEASES, "kube-system", "leader-election-controller", |object| {
            object["spec"] = json!({
                "holderIdentity": "node-1", "leaseDurationSeconds": 15, "leaseTransitions": 2,
                "renewTime": format!("2026-01-01T00:00:{second:02}.000000Z"),
            });
        });
        };
    renew(0);
    let _elector = RunningElector::start(&cluster, recording("pod"));
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    for second in 1..30 {
        pass(seconds(2)).await;
        renew(second);
    }
    assert_eq!(
        told(&cluster).await,
        [
            "Normal BuiltinController x1: the built-in controller is electing: this lease is left to it while node-1 \
             renews its lock"
        ]
    );
}

/// (R23) The Event says until when, and why, for those who have nothing but objects.
#[tokio::test(start_paused = true)]
async fn a_preference_that_is_held_back_is_an_event_that_can_be_read() {
    let cluster = MemoryCluster::new();
    let _elector = RunningElector::start(&cluster, recording("pod"));
    pass(seconds(20)).await;
    let _steady = ScriptedCandidate::start(&cluster, "ns", "steady", "l", "2.0.0");
    pass(seconds(5)).await;
    let other = cluster.clone();
    let _restless = BackgroundTask::spawn(async move {
        for change in 0.. {
            other.register("ns", "restless", "l", &format!("1.{}.0", 1000 - change));
            for _ in 0..15 {
                pass(millis(200)).await;
                other.acknowledge_once(other.candidates(), "ns", "restless");
            }
        }
    });
    pass(seconds(120)).await;
    let held_back: Vec<_> = events(&cluster)
        .await
        .into_iter()
        .filter_map(|event| {
            let value = serde_json::to_value(event).unwrap();
            serde_json::from_value::<EventObject>(value)
                .unwrap()
                .hold_back()
        })
        .collect();
    let told = told(&cluster).await;
    let [held_back] = held_back.as_slice() else {
        panic!("it is told once: {told:#?}");
    };
    let notice = &held_back.notice;
    assert_eq!(notice.candidate.as_str(), "restless");
    assert_eq!(notice.because, HoldBackCause::NewSinceFailure);
    assert_eq!(
        held_back.uid.as_ref().map(ToString::to_string),
        cluster.lease("ns", "l").unwrap().metadata.uid
    );
    assert!(
        told.iter()
            .any(|line| line.starts_with("Warning NotAccepted")),
        "{told:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_changes_all_the_time_does_not_flood() {
    let (log, cluster) = (CapturedLog::capture(), MemoryCluster::new());
    let _elector = RunningElector::start(&cluster, recording("pod"));
    pass(seconds(20)).await;
    cluster.register("ns", "a", "l", "1.0.0");
    // Fifty times a second for two minutes, by a process of its own.
    for change in 0..6000 {
        cluster.put(LEASES, "ns", "l", |object| {
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
    assert!((1..=4).contains(&lines.len()), "{lines:#?}");
    let counted = lines.iter().any(|line| line.contains("left_out="));
    assert!(counted, "{lines:#?}");
    // Another namespace has its own.
    let _candidate = ScriptedCandidate::start(&cluster, "quiet", "b", "l", "1.0.0");
    pass(seconds(20)).await;
    assert_eq!(
        cluster
            .requests_with(&["POST", "/namespaces/quiet/events"])
            .len(),
        1
    );
}

/// The time until the candidates lead, where this befalls the Events.
async fn elected_within(fault: Option<Rule>) -> Duration {
    let cluster = MemoryCluster::new();
    if let Some(fault) = fault {
        cluster.inject(fault.verb(RequestVerb::Create).resource("events"));
    }
    let _elector = RunningElector::start(&cluster, recording("pod"));
    pass(seconds(20)).await;
    let start = cluster.now();
    let _candidates: Vec<_> = (0..20)
        .map(|index| {
            let (name, lease) = (format!("c-{index}"), format!("l-{index}"));
            ScriptedCandidate::start(&cluster, "ns", &name, &lease, "1.0.0")
        })
        .collect();
    cluster
        .wait_for("all leaders", seconds(30), |cluster| {
            (0..20).all(|index| {
                cluster.holder("ns", &format!("l-{index}")) == Some(format!("c-{index}"))
            })
        })
        .await;
    cluster.now().since(start)
}

#[tokio::test(start_paused = true)]
async fn no_election_waits_for_an_event() {
    let undisturbed = elected_within(None).await;
    for fault in [
        Rule::new(Fault::HangBefore),
        Rule::new(Fault::Delay(seconds(4))),
        refuse(403),
    ] {
        assert_eq!(elected_within(Some(fault)).await, undisturbed);
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_may_not_be_written_are_one_line() {
    let (log, cluster) = (CapturedLog::capture(), MemoryCluster::new());
    cluster.inject(refuse(403).resource("events"));
    let _elector = RunningElector::start(&cluster, recording("pod"));
    pass(seconds(20)).await;
    let _candidates: Vec<_> = (0..10)
        .map(|index| {
            ScriptedCandidate::start(
                &cluster,
                "ns",
                &format!("c-{index}"),
                &format!("l-{index}"),
                "1.0.0",
            )
        })
        .collect();
    pass(seconds(30)).await;
    let lines = log.lines("WARN");
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let text = "failed to create events.events.k8s.io in namespace ns: RBAC does not grant the verb create";
    assert!(lines[0].contains(text), "{lines:#?}");
}

/// The author of all Events is the elector that acts.
#[tokio::test(start_paused = true)]
async fn a_standby_writes_no_event() {
    let cluster = MemoryCluster::new();
    let start = |name: &'static str, seed| {
        let config = Config {
            leader_election: Some(LeaderElection::new(name)),
            ..recording(name)
        };
        let (clock, api) = (cluster.clock(), cluster.cluster_of(name));
        RunningElector::start_by(clock, api, config, seed)
    };
    let first = start("first", 1);
    pass(seconds(20)).await;
    let _second = start("second", 2);
    pass(seconds(20)).await;
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.1.0");
    pass(seconds(10)).await;
    first.stop().await;
    pass(seconds(10)).await;
    let _better = ScriptedCandidate::start(&cluster, "ns", "b", "l", "1.0.0");
    pass(seconds(10)).await;
    let authors: Vec<_> = events(&cluster)
        .await
        .into_iter()
        .map(|event| (event.reason.unwrap(), event.reporting_instance.unwrap()))
        .collect();
    let expected = [
        ("Elected", "elector_first_0000000000000001"),
        ("HandedOver", "elector_second_0000000000000002"),
    ];
    assert_eq!(
        authors,
        expected.map(|(reason, author)| (reason.to_owned(), author.to_owned()))
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_name_none_are_recorded() {
    let cluster = MemoryCluster::new();
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(20)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("a"));
    assert_eq!(events(&cluster).await, []);
}
