//! The elector that acts, and those that do not.

use elector::{BuiltinController, Config, Event};
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_protocol::Term;
use elector_testing::{
    CANDIDATES, CapturedLog, LEASES, ScriptedCandidate, TestCluster, millis, pass, seconds,
};

use super::{Replica, electing, lock, lock_holder};

/// A free lock is taken at once, by one: a Lease without a holder is made, and its record taken by compare-and-swap.
#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_both_say_so() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    let start = cluster.now();
    let first = Replica::start(&cluster, "first");
    pass(seconds(3)).await;
    assert!(first.leads(), "{}", lock_holder(&cluster));
    let writes = first.writes_since(start);
    assert_eq!(writes.len(), 2, "{writes:?}");
    let key = lock();
    let (namespace, name) = (&key.namespace, &key.name);
    let lease = cluster.lease(namespace, name).object().unwrap();
    assert_eq!(lease.spec.lease_duration_seconds, Some(15));
    assert_eq!(lease.spec.lease_transitions, Some(1));
    assert_eq!(lease.spec.strategy, None, "no elector elects it");
    let second = Replica::start(&cluster, "second");
    pass(seconds(60)).await;
    assert!(first.leads());
    let leading = Event::Leading {
        lease: lock(),
        term: Term(1),
    };
    assert_eq!(first.last_role(), Some(leading));
    assert!(second.says_that_it_stands_by());
    let expected = ["INFO leading the electors lease=elector-system/elector term=1"];
    assert_eq!(log.lines("leading the electors"), expected);
    let holder = lock_holder(&cluster);
    let expected = format!(
        "INFO standing by lease=elector-system/elector reason=\"{holder} holds the lease\""
    );
    assert_eq!(log.lines("standing by"), [expected]);
}

/// Elections, hand-overs, pings, collections, Events and the lock of the built-in controller: all of it is written by the
/// elector that acts, and the other one knows it all.
#[tokio::test(start_paused = true)]
async fn a_standby_writes_nothing() {
    for builtin in [
        BuiltinController::Respect,
        BuiltinController::Replace { host: "pod".into() },
    ] {
        let cluster = TestCluster::with_gate();
        let start = cluster.now();
        let config = |name: &str| Config {
            builtin: builtin.clone(),
            event_host: Some(name.to_owned()),
            ..electing(name)
        };
        let active = Replica::start_with(&cluster, "active", config("active"));
        pass(seconds(3)).await;
        let standby = Replica::start_with(&cluster, "standby", config("standby"));
        pass(seconds(20)).await;
        let _old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.2.0");
        pass(seconds(10)).await;
        let best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
        cluster.held_by("ns", "l", "best").await;
        pass(seconds(5)).await;
        drop(best);
        cluster.held_by("ns", "l", "old").await;
        // Long enough for the dead candidate to be pinged anew and to be collected.
        pass(seconds(40 * 60)).await;
        assert!(cluster.read(CANDIDATES, "ns", "best").is_none());
        assert!(active.leads());
        let acts = active.acts_since(start);
        let events = acts.iter().filter(|act| act.path().ends_with("/events"));
        assert!(acts.len() > 5 && events.count() > 2);
        assert_eq!(standby.writes_since(start), []);
    }
}

/// Also where the lock is free and others may take it, an elector that has not seen everything yet leaves it to them.
#[tokio::test(start_paused = true)]
async fn an_elector_that_cannot_list_does_not_take_the_lock() {
    let cluster = TestCluster::with_gate();
    let start = cluster.now();
    let refuse = Rule::new(Fault::Refuse(403)).verb(RequestVerb::List);
    let _ = cluster.connect("blind");
    cluster.faults("blind").inject(refuse.resource(CANDIDATES));
    let blind = Replica::start(&cluster, "blind");
    pass(seconds(60)).await;
    assert_eq!(blind.writes_since(start), []);
    let seeing = Replica::start(&cluster, "seeing");
    pass(seconds(3)).await;
    assert!(seeing.leads());
    assert!(seeing.says_that_it_leads());
}

/// A rolling restart starts a new elector before it ends the one that acts: the lock goes to the one that has watched.
#[tokio::test(start_paused = true)]
async fn an_elector_that_has_just_begun_leaves_the_lock_to_one_that_has_watched() {
    let cluster = TestCluster::with_gate();
    let (active, watching) = Replica::pair(&cluster, "watching").await;
    // The server is slow for the one that has watched.
    cluster.faults("watching").latency(millis(50), millis(50));
    let new = Replica::start(&cluster, "new");
    pass(millis(100)).await;
    active.elector.stop().await;
    pass(seconds(1)).await;
    assert!(watching.leads(), "{}", lock_holder(&cluster));
    assert!(new.says_that_it_stands_by());
}

/// A candidate for a lock is refused, as its election would unseat the elector that holds it.
#[tokio::test(start_paused = true)]
async fn no_candidate_leads_by_a_lock() {
    let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
    let config = Config {
        builtin: BuiltinController::Replace { host: "pod".into() },
        ..electing("active")
    };
    let active = Replica::start_with(&cluster, "active", config);
    pass(seconds(20)).await;
    for (namespace, lock, owners) in [
        ("elector-system", "elector", "electors"),
        (
            "kube-system",
            "leader-election-controller",
            "built-in controller",
        ),
    ] {
        let holder = cluster.holder(namespace, lock);
        let _candidate = ScriptedCandidate::start(&cluster, namespace, "hostile", lock, "0.0.1");
        pass(seconds(120)).await;
        assert_eq!(cluster.holder(namespace, lock), holder);
        let refused = log.lines(&format!(
            "failed to admit LeaseCandidate {namespace}/hostile: {namespace}/{lock} is the lock of the {owners}"
        ));
        assert_eq!(refused.len(), 1, "{refused:?}");
    }
    assert!(active.leads());
}

/// Without the right to read or to write the lock, one line names what is missing and what helps, and another elector
/// acts.
#[tokio::test(start_paused = true)]
async fn a_lock_that_may_not_be_had_is_one_line_with_what_helps() {
    for (verb, named) in [
        (
            RequestVerb::List,
            "list leases.coordination.k8s.io elector-system/elector",
        ),
        (
            RequestVerb::Create,
            "create leases.coordination.k8s.io elector-system/elector",
        ),
        (
            RequestVerb::Update,
            "update leases.coordination.k8s.io elector-system/elector",
        ),
    ] {
        let (log, cluster) = (CapturedLog::capture(), TestCluster::with_gate());
        let _ = cluster.connect("limited");
        let refuse = Rule::new(Fault::Refuse(403)).verb(verb);
        let refuse = refuse.resource(LEASES).namespace("elector-system");
        cluster.faults("limited").inject(refuse);
        let limited = Replica::start(&cluster, "limited");
        pass(seconds(30)).await;
        assert!(!limited.leads());
        let lines = log.lines("WARN failed to");
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(named), "{lines:?}");
        assert!(
            lines[0].contains(
                "this elector stands by until a Role in the namespace elector-system grants create of \
                 leases.coordination.k8s.io, and get, list, watch and update of those with the resourceName elector, \
                 such as that of manifests/base/rbac.yaml"
            ),
            "{lines:?}"
        );
        let other = Replica::start(&cluster, "other");
        pass(seconds(3)).await;
        // A lock that another elector has created needs no right to create.
        let both = verb == RequestVerb::Create;
        let leads = other.says_that_it_leads() || both && limited.says_that_it_leads();
        assert!(leads, "{verb:?}: {}", lock_holder(&cluster));
    }
}

/// One that takes over has watched for as long as the one before it: the lease of a leader that died with the active
/// elector is granted when both have been silent for their durations, and not one wait after the other.
#[tokio::test(start_paused = true)]
async fn a_standby_that_takes_over_acts_at_once() {
    let cluster = TestCluster::with_gate();
    let (active, standby) = Replica::pair(&cluster, "standby").await;
    let leader = ScriptedCandidate::start(&cluster, "ns", "leader", "l", "1.0.0");
    cluster.held_by("ns", "l", "leader").await;
    let _next = ScriptedCandidate::start(&cluster, "ns", "next", "l", "1.1.0");
    pass(seconds(30)).await;
    drop((active, leader));
    let took = cluster.held_by("ns", "l", "next").await;
    assert!(took <= millis(15_500), "{took:?}");
    assert!(standby.leads());
    // And a lease that was never seen needs no wait either.
    let _other = ScriptedCandidate::start(&cluster, "ns", "other", "new", "1.0.0");
    let took = cluster.held_by("ns", "new", "other").await;
    assert!(took <= millis(200), "{took:?}");
}
