//! Elections as users see them.

use std::collections::BTreeSet;

use elector::{ChangeCause, Config, Event, LeadershipChange, Scope};
use elector_protocol::{Identity, LeaseKey, Term};
use elector_testkit::{
    CANDIDATES, CapturedLog, LEASES, MemoryCluster, ScriptedCandidate, millis, pass, seconds,
};
use serde_json::json;

use crate::RunningElector;

#[tokio::test(start_paused = true)]
async fn a_cold_start_is_granted_at_once_by_an_elector_that_has_been_up() {
    let (log, cluster) = (CapturedLog::capture(), MemoryCluster::new());
    let elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _candidates =
        ["a", "b"].map(|name| ScriptedCandidate::start(&cluster, "ns", name, "l", "1.1.0"));
    let _better = ScriptedCandidate::start(&cluster, "ns", "c", "l", "1.0.0");
    cluster
        .wait_for("a leader", millis(100), |cluster| {
            cluster
                .holder("ns", "l")
                .is_some_and(|holder| !holder.is_empty())
        })
        .await;
    pass(seconds(60)).await;
    let lease = cluster.lease("ns", "l").unwrap();
    assert_eq!(lease.spec.holder_identity.as_deref(), Some("c"));
    let changes = log.lines("leadership changed");
    assert_eq!(
        changes,
        [
            "INFO leadership changed lease=ns/l holder=\"c\" term=1 previous=\"\" reason=\"the lease is unheld and \
          nobody can lead any more; c has the older emulation version 1.0.0 (not 1.1.0)\""
        ]
    );
    elector.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_fresh_elector_waits_for_a_holder_that_it_may_not_have_seen() {
    let cluster = MemoryCluster::new();
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(millis(15_000)).await;
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some(""));
    cluster
        .wait_for("a leader", millis(200), |cluster| {
            cluster.holder("ns", "l").as_deref() == Some("a")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_better_candidate_is_handed_the_lease_and_a_crash_costs_no_more_than_the_duration() {
    let (log, cluster) = (CapturedLog::capture(), MemoryCluster::new());
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.1.0");
    pass(seconds(10)).await;
    let best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    cluster
        .wait_for("the hand-over", millis(100), |cluster| {
            cluster.holder("ns", "l").as_deref() == Some("best")
        })
        .await;
    pass(seconds(10)).await;
    drop(best);
    cluster
        .wait_for("the take-over", millis(15_100), |cluster| {
            cluster.holder("ns", "l").as_deref() == Some("old")
        })
        .await;
    let told: Vec<_> = log
        .lines("leadership changed")
        .iter()
        .map(|line| line.split("l holder=").nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(
        told[1].starts_with("\"best\" term=2 previous=\"old\" reason=\"old handed over"),
        "{told:?}"
    );
    assert!(
        told[2].starts_with(
            "\"old\" term=3 previous=\"best\" reason=\"best has not renewed for 15s; old"
        ),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_observer_is_told_of_each_leader_and_the_reason() {
    let cluster = MemoryCluster::new();
    let elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.1.0");
    pass(seconds(10)).await;
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    pass(seconds(10)).await;
    let (lease, id) = (LeaseKey::new("ns", "l"), |name: &str| {
        Identity::new(name).unwrap()
    });
    let change = |holder, term, previous: Option<&str>, cause, reason: &str| {
        Event::LeadershipChanged(LeadershipChange {
            lease: lease.clone(),
            holder: Some(id(holder)),
            term: Term(term),
            previous: previous.map(id),
            cause,
            reason: reason.to_owned(),
        })
    };
    let expected = [
        Event::Listed { leases: 0 },
        change(
            "old",
            1,
            None,
            ChangeCause::Elected,
            "the lease has no holder, and no former holder can lead any more; old is the only candidate",
        ),
        Event::Preferred {
            lease: lease.clone(),
            holder: id("old"),
            preferred: id("best"),
            reason: "old is asked to make room: best has the older emulation version 1.0.0 (not \
                     1.1.0)"
                .to_owned(),
        },
        change(
            "best",
            2,
            Some("old"),
            ChangeCause::HandedOver,
            "old handed over",
        ),
    ];
    assert_eq!(elector.events(), expected);
}

#[tokio::test(start_paused = true)]
async fn two_electors_at_once_do_not_fight() {
    let cluster = MemoryCluster::new();
    let _electors =
        [1, 2].map(|seed| RunningElector::start_seeded(&cluster, Config::default(), seed));
    pass(seconds(20)).await;
    let _candidates =
        ["a", "b", "c"].map(|name| ScriptedCandidate::start(&cluster, "ns", name, "l", "1.0.0"));
    pass(seconds(120)).await;
    let lease = cluster.lease("ns", "l").unwrap();
    assert_eq!(lease.spec.lease_transitions, Some(1));
    // The POST and the grant, and nothing else.
    let writes: Vec<_> = cluster
        .writes()
        .iter()
        .filter(|write| write.contains("leases/"))
        .cloned()
        .collect();
    assert_eq!(writes, ["POST leases/ns/l", "PUT leases/ns/l"]);
}

#[tokio::test(start_paused = true)]
async fn a_plain_holder_without_a_candidate_is_left_alone_and_followed_when_it_is_gone() {
    let cluster = MemoryCluster::new();
    let _elector = RunningElector::start(&cluster, Config::default());
    let renew = |second: u32| {
        cluster.put(LEASES, "ns", "l", |object| {
            object["metadata"]["labels"] = json!({"kept": "yes"});
            object["spec"] = json!({
                "holderIdentity": "plain", "leaseDurationSeconds": 15, "leaseTransitions": 4,
                "renewTime": format!("2026-01-01T00:00:{second:02}.000000Z"), "unknownField": 1,
            });
        });
    };
    renew(0);
    pass(seconds(1)).await;
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    for second in 1..20 {
        renew(second);
        pass(seconds(5)).await;
    }
    assert_eq!(cluster.holder("ns", "l").as_deref(), Some("plain"));
    pass(millis(10_200)).await;
    let lease = cluster.lease("ns", "l").unwrap();
    assert_eq!(lease.spec.holder_identity.as_deref(), Some("a"));
    assert_eq!(lease.spec.lease_transitions, Some(5));
    assert_eq!(lease.metadata.labels.unwrap()["kept"], "yes");
    // This server drops what it does not know; the request carried it.
    let grant = cluster.requests_with(&["PUT", "leases/l"]).pop().unwrap();
    assert_eq!(grant.body["spec"]["unknownField"], 1);
}

#[tokio::test(start_paused = true)]
async fn where_the_server_drops_the_fields_annotations_carry_the_signals_and_this_is_said_once() {
    let (log, cluster) = (CapturedLog::capture(), MemoryCluster::without_gate());
    let _elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.1.0");
    pass(seconds(10)).await;
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    cluster
        .wait_for("the hand-over", millis(100), |cluster| {
            cluster.holder("ns", "l").as_deref() == Some("best")
        })
        .await;
    let lease = cluster.read(LEASES, "ns", "l").unwrap();
    assert_eq!(
        lease["metadata"]["annotations"]["elector.dev/strategy"],
        "OldestEmulationVersion"
    );
    assert_eq!(log.lines("annotations").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_reads_no_annotation_is_asked_to_make_room_where_the_server_keeps_the_field()
{
    for (cluster, is_asked) in [
        (MemoryCluster::new(), true),
        (MemoryCluster::without_gate(), false),
    ] {
        let _elector = RunningElector::start(&cluster, Config::default());
        pass(seconds(20)).await;
        let _old = ScriptedCandidate::start_unmarked(&cluster, "ns", "old", "l", "1.1.0");
        pass(seconds(10)).await;
        let _best = ScriptedCandidate::start_unmarked(&cluster, "ns", "best", "l", "1.0.0");
        pass(seconds(60)).await;
        let record = cluster.lease("ns", "l").unwrap().record().unwrap();
        assert_eq!(
            (record.holder, record.term),
            (Identity::new("old"), Term(1))
        );
        assert_eq!(record.preferred_holder.is_some(), is_asked);
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_in_scope_is_touched() {
    let cluster = MemoryCluster::new();
    for namespace in ["kube-node-lease", "kube-system", "a", "b"] {
        cluster.register(namespace, "x", "l", "1.0.0");
    }
    let leases = |names: &[&str]| {
        names
            .iter()
            .map(ToString::to_string)
            .collect::<BTreeSet<_>>()
    };
    let led = |config: Config| {
        let cluster = cluster.clone();
        async move {
            let elector = RunningElector::start(&cluster, config);
            pass(seconds(20)).await;
            elector.stop().await;
            let created = cluster.writes();
            cluster.forget_requests();
            for namespace in ["kube-system", "a", "b"] {
                if cluster.lease(namespace, "l").is_some() {
                    cluster.delete(LEASES, namespace, "l");
                }
            }
            let posts = created
                .iter()
                .filter_map(|write| write.strip_prefix("POST leases/"));
            posts.map(str::to_owned).collect::<BTreeSet<_>>()
        }
    };
    assert_eq!(led(Config::default()).await, leases(&["a/l", "b/l"]));
    let system = Config {
        system_namespaces: true,
        ..Config::default()
    };
    assert_eq!(led(system).await, leases(&["a/l", "b/l", "kube-system/l"]));
    let only_b = Config {
        scope: Scope::Namespaces(["b".into()].into()),
        ..Config::default()
    };
    assert_eq!(led(only_b).await, leases(&["b/l"]));
}

#[tokio::test(start_paused = true)]
async fn a_dead_candidate_is_pinged_once_more_and_collected() {
    let cluster = MemoryCluster::new();
    let _elector = RunningElector::start(&cluster, Config::default());
    let _alive = ScriptedCandidate::start(&cluster, "ns", "alive", "l", "1.0.0");
    cluster.register("ns", "dead", "l", "1.0.0");
    pass(seconds(31 * 60)).await;
    assert!(cluster.read(CANDIDATES, "ns", "dead").is_none());
    assert!(cluster.read(CANDIDATES, "ns", "alive").is_some());
    let deletes: Vec<_> = cluster
        .writes()
        .iter()
        .filter(|write| write.starts_with("DELETE"))
        .cloned()
        .collect();
    assert_eq!(deletes, ["DELETE leasecandidates/ns/dead"]);
}

/// It got a DELETE and an info line at every renewal of its lease.
#[tokio::test(start_paused = true)]
async fn a_dead_candidate_with_a_finalizer_is_deleted_once() {
    let (log, cluster) = (CapturedLog::capture(), MemoryCluster::new());
    let _elector = RunningElector::start(&cluster, Config::default());
    let _alive = ScriptedCandidate::start(&cluster, "ns", "alive", "l", "1.0.0");
    cluster.register("ns", "dead", "l", "1.0.0");
    cluster.put(CANDIDATES, "ns", "dead", |object| {
        object["metadata"]["finalizers"] = json!(["example.com/keep"]);
    });
    pass(seconds(60 * 60)).await;
    let object = cluster.read(CANDIDATES, "ns", "dead").unwrap();
    assert!(object["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(cluster.count_requests("DELETE", "leasecandidates/dead"), 1);
    assert_eq!(log.lines("collected a dead candidate").len(), 1);
}
