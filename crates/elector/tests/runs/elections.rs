//! Elections as users see them.

use std::collections::BTreeSet;

use elector::{ChangeCause, Config, Event, LeadershipChange, Scope};
use elector_protocol::{Identity, LeaseKey, Term};
use elector_testing::{CapturedLog, LEASES, ScriptedCandidate, TestCluster, millis, pass, seconds};

use crate::RunningElector;

/// A first election, a hand-over and a fail-over: each is one line in the log, and one event for the observer.
#[tokio::test(start_paused = true)]
async fn each_change_of_leader_is_reported_with_its_reason() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    let elector = RunningElector::start(&cluster, Config::default());
    pass(seconds(20)).await;
    let _old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.1.0");
    assert!(cluster.held_by("ns", "l", "old").await < millis(100));
    pass(seconds(10)).await;
    let best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    assert!(cluster.held_by("ns", "l", "best").await < millis(100));
    pass(seconds(10)).await;
    drop(best);
    assert!(cluster.held_by("ns", "l", "old").await < millis(15_100));
    let id = |name: &str| Identity::new(name).unwrap();
    let change = |holder, term, previous: Option<&str>, cause, reason: &str| {
        Event::LeadershipChanged(LeadershipChange {
            lease: LeaseKey::new("ns", "l"),
            holder: Some(id(holder)),
            term: Term(term),
            previous: previous.map(id),
            cause,
            reason: reason.to_owned(),
        })
    };
    let first =
        "the lease is unheld and no former holder can still lead; old is the only candidate";
    let expired = "best has not renewed for 15s; old is the only one that answers; better ones do not answer: best";
    let expected = [
        Event::Listed { leases: 0 },
        change("old", 1, None, ChangeCause::Elected, first),
        Event::Preferred {
            lease: LeaseKey::new("ns", "l"),
            holder: id("old"),
            preferred: id("best"),
            reason:
                "old is asked to make room: best has the older emulation version 1.0.0 (not 1.1.0)"
                    .to_owned(),
        },
        change(
            "best",
            2,
            Some("old"),
            ChangeCause::HandedOver,
            "old handed over",
        ),
        change("old", 3, Some("best"), ChangeCause::Expired, expired),
    ];
    pass(millis(10)).await;
    assert_eq!(elector.events(), expected);
    assert_eq!(
        log.lines("leadership changed"),
        [
            format!("INFO leadership changed lease=ns/l holder=\"old\" term=1 previous=\"\" reason=\"{first}\""),
            "INFO leadership changed lease=ns/l holder=\"best\" term=2 previous=\"old\" reason=\"old handed over\"".to_owned(),
            format!("INFO leadership changed lease=ns/l holder=\"old\" term=3 previous=\"best\" reason=\"{expired}\""),
        ]
    );
    // No name was given under which Events would be recorded.
    assert_eq!(cluster.requests_with(&["/events"]), []);
}

/// Where the server drops the fields, annotations carry the signals, which is said once; a leader that reads no
/// annotation is asked where the server keeps the field alone.
#[tokio::test(start_paused = true)]
async fn a_leader_is_asked_to_make_room_by_what_it_can_read() {
    for (keeps_field, reads_annotation) in [(false, true), (true, false), (false, false)] {
        let log = CapturedLog::capture();
        let cluster = match keeps_field {
            true => TestCluster::with_gate(),
            false => TestCluster::new(),
        };
        let start = match reads_annotation {
            true => ScriptedCandidate::start,
            false => ScriptedCandidate::start_unmarked,
        };
        let _elector = RunningElector::start(&cluster, Config::default());
        pass(seconds(20)).await;
        let _old = start(&cluster, "ns", "old", "l", "1.1.0");
        pass(seconds(10)).await;
        let _best = start(&cluster, "ns", "best", "l", "1.0.0");
        pass(seconds(60)).await;
        let record = cluster.lease("ns", "l").object().unwrap().record().unwrap();
        let holder = if reads_annotation { "best" } else { "old" };
        assert_eq!(record.holder, Identity::new(holder));
        assert_eq!(record.preferred_holder.is_some(), keeps_field);
        assert_eq!(log.lines("annotations").len(), usize::from(!keeps_field));
        if !keeps_field {
            let lease = cluster.read(LEASES, "ns", "l").unwrap();
            let strategy = &lease["metadata"]["annotations"]["elector.dev/strategy"];
            assert_eq!(strategy, "OldestEmulationVersion");
        }
    }
}

/// A lease considers 64 candidates, and a Deployment that is killed again and again leaves more behind.
#[tokio::test(start_paused = true)]
async fn more_dead_candidates_than_a_lease_considers_do_not_keep_the_living_from_leading() {
    let cluster = TestCluster::with_gate();
    for index in 0..100 {
        cluster.register("ns", &format!("dead-{index}"), "l", "1.0.0");
    }
    let _alive = ScriptedCandidate::start(&cluster, "ns", "alive", "l", "1.0.0");
    let _elector = RunningElector::start(&cluster, Config::default());
    // A lease that was never seen is left alone for 15 s; three rounds of 5 s (R15), and one for the rest.
    let took = cluster.held_by("ns", "l", "alive").await;
    assert!(took < seconds(36), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn two_electors_at_once_do_not_fight() {
    let cluster = TestCluster::with_gate();
    let _electors =
        [1, 2].map(|seed| RunningElector::start_seeded(&cluster, Config::default(), seed));
    pass(seconds(20)).await;
    let _candidates =
        ["a", "b", "c"].map(|name| ScriptedCandidate::start(&cluster, "ns", name, "l", "1.0.0"));
    pass(seconds(120)).await;
    let lease = cluster.lease("ns", "l").object().unwrap();
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
async fn only_what_is_in_scope_is_touched() {
    let cluster = TestCluster::with_gate();
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
                if cluster.lease(namespace, "l").object().is_some() {
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
