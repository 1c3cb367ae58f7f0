//! The figures of an elector after elections of which all is known.

use std::collections::BTreeSet;

use elector::{Config, Metrics};
use elector_api::Carrier;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_runtime::Clock as _;
use elector_testing::{
    CANDIDATES, LEASES, ScriptedCandidate, TestCluster, assert_described, described_metrics,
    documented_metrics, millis, pass, seconds,
};
use serde_json::json;

use crate::leader_election::electing;
use crate::{RunningElector, refuse};

/// The only candidate leads, a better one is handed the lease and crashes, the first follows and crashes too.
#[tokio::test(start_paused = true)]
async fn an_election_a_hand_over_and_two_crashes_are_counted_and_timed() {
    let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.1.0");
    pass(seconds(10)).await;
    let best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    pass(seconds(10)).await;
    let by = |metric: &str, label| elector.scrape().by(metric, label);
    let duration = |of: &str| {
        let value = |part| format!("elector_{of}_duration_seconds_{part}");
        ["count", "sum"].map(|part| elector.scrape().value(&value(part), &[]))
    };
    let leaderless = || {
        let labels = [("namespace", "ns")];
        let metric = "elector_leaderless_seconds_total";
        elector.scrape().value(metric, &labels)
    };
    let changes = || by("elector_leader_changes_total", "reason");
    assert_eq!(changes(), [("first", 1.0), ("handed_over", 1.0)].map(named));
    assert_eq!(duration("failover"), [0.0, 0.0]);
    let [count, took] = duration("handover");
    // Both of them write at once.
    assert!(count == 1.0 && took < 0.05, "{took}");
    assert!((took..0.2).contains(&leaderless()));
    // The leader was asked to make room, and did at once.
    let [count, took] = duration("preference");
    assert!(count == 1.0 && took < 0.05, "{took}");
    let expected = [("leading", 1.0), ("ready", 1.0)].map(named);
    assert_eq!(by("elector_candidates", "state"), expected);

    drop(best);
    pass(seconds(30)).await;
    let expected = [("expired", 1.0), ("first", 1.0), ("handed_over", 1.0)];
    assert_eq!(changes(), expected.map(named));
    let [count, took] = duration("failover");
    assert!(count == 1.0 && (15.0..15.2).contains(&took), "{took}");
    let expected = [("leaderless", 0.0), ("led", 1.0)].map(named);
    assert_eq!(by("elector_leases", "state"), expected);
    let states = by("elector_candidates", "state");
    for state in ["leading", "pinged"] {
        assert!(states.contains(&named((state, 1.0))), "{states:?}");
    }
    // The one that is left was pinged before the lease expired.
    let [acks, took] = duration("ack");
    let pings = count_writes(&cluster, "PATCH leasecandidates/ns/");
    assert!(acks >= 1.0 && acks <= pings && took < 0.5 * acks, "{took}");

    drop(old);
    pass(seconds(20)).await;
    let before = leaderless();
    pass(seconds(60)).await;
    let passed = leaderless() - before;
    assert!((54.9..65.1).contains(&passed), "{passed}");
    let expected = [("leaderless", 1.0), ("led", 0.0)].map(named);
    assert_eq!(by("elector_leases", "state"), expected);
    // The writes are those that the server saw.
    for (verb, resource, write) in [
        ("create", "leases", "POST leases/ns/l"),
        ("update", "leases", "PUT leases/ns/l"),
        ("patch", "leasecandidates", "PATCH leasecandidates/ns/"),
    ] {
        let labels = [("outcome", "done"), ("resource", resource), ("verb", verb)];
        let counted = elector.scrape().value("elector_writes_total", &labels);
        assert_eq!(counted, count_writes(&cluster, write), "{write}");
    }
}

/// A lease that no candidate names any more is in no figure, unless it was led and its Lease is there still.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_gone_is_in_no_figure() {
    let ends: [&[&str]; 3] = [&[CANDIDATES], &[CANDIDATES, LEASES], &[LEASES, CANDIDATES]];
    for (led, deleted) in [false, true]
        .into_iter()
        .flat_map(|led| ends.map(|it| (led, it)))
    {
        let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
        let leader = led.then(|| ScriptedCandidate::start(&cluster, "ns", "c", "l", "1.0.0"));
        if !led {
            cluster.register("ns", "c", "l", "1.0.0");
        }
        pass(seconds(20)).await;
        assert_eq!(figures(&elector), [1.0, 1.0, f64::from(!led)]);
        drop(leader);
        if led && !deleted.contains(&LEASES) {
            continue;
        }
        for resource in deleted {
            let name = if *resource == LEASES { "l" } else { "c" };
            cluster.delete(resource, "ns", name);
            pass(seconds(2)).await;
        }
        assert_eq!(figures(&elector), [0.0; 3], "{led} {deleted:?}");
        let namespace = [("namespace", "ns")];
        let leaderless = || {
            elector
                .scrape()
                .value("elector_leaderless_seconds_total", &namespace)
        };
        let before = leaderless();
        pass(seconds(60)).await;
        assert_eq!(leaderless(), before, "{led} {deleted:?}");
    }
}

/// A lease that was led and is not goes on being shown when its candidates are gone, also by an elector that starts then.
#[tokio::test(start_paused = true)]
async fn a_lease_that_lost_its_leader_and_all_candidates_is_abandoned() {
    let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let leader = ScriptedCandidate::start(&cluster, "ns", "c", "l", "1.0.0");
    pass(seconds(20)).await;
    drop(leader);
    cluster.delete(CANDIDATES, "ns", "c");
    pass(seconds(5)).await;
    assert_eq!(state(&elector), "led", "it is, until it expires");
    pass(seconds(15)).await;
    assert_eq!(state(&elector), "abandoned");
    pass(seconds(60)).await;
    let longest = longest(&elector, "longest_leaderless");
    assert!((60.0..85.0).contains(&longest), "{longest}");
    let second = RunningElector::start_client(&cluster, "two", Config::default());
    pass(seconds(40)).await;
    assert_eq!(state(&second), "abandoned");

    let _next = ScriptedCandidate::start(&cluster, "ns", "d", "l", "1.0.0");
    pass(seconds(60)).await;
    for elector in [&elector, &second] {
        assert_eq!(state(elector), "led");
    }
}

/// A grant that was not accepted hides nothing of that.
#[tokio::test(start_paused = true)]
async fn a_lease_whose_next_leader_went_before_it_accepted_is_abandoned_too() {
    let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let leader = ScriptedCandidate::start(&cluster, "ns", "c", "l", "1.0.0");
    pass(seconds(20)).await;
    let _next = cluster.candidate("ns", "d", "l", "1.1.0");
    drop(leader);
    cluster.held_by("ns", "l", "d").await;
    for name in ["c", "d"] {
        cluster.delete(CANDIDATES, "ns", name);
    }
    pass(seconds(60)).await;
    assert_eq!(state(&elector), "abandoned");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_cannot_be_elected_is_counted_and_is_an_obstacle() {
    let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
    cluster.register("ns", "bad", "l", "one");
    pass(seconds(5)).await;
    for (metric, label, value) in [
        ("elector_candidates", "state", "ineligible"),
        ("elector_obstructed_leases", "obstacle", "no_eligible"),
    ] {
        let figures = elector.scrape().by(metric, label);
        assert_eq!(figures, [(value, 1.0)].map(named));
    }
}

/// A component that is scaled to zero lacks nothing, though its candidates are there until they are collected.
#[tokio::test(start_paused = true)]
async fn a_lease_that_was_given_up_and_has_no_candidate_that_answers_is_released() {
    let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let leader = ScriptedCandidate::start(&cluster, "ns", "c", "l", "1.0.0");
    pass(seconds(5)).await;
    cluster.register("ns", "silent", "l", "1.1.0");
    pass(seconds(5)).await;
    drop(leader);
    let lease = cluster.lease("ns", "l").object().unwrap();
    let released = lease.record().unwrap().released(cluster.clock().wall());
    let released = serde_json::to_value(lease.with_record(&released, Carrier::Unknown)).unwrap();
    cluster.edit(LEASES, "ns", "l", |fields| {
        for part in ["metadata", "spec"] {
            fields[part] = released[part].clone();
        }
    });
    pass(seconds(30)).await;
    let is_at_rest = || {
        assert_eq!(state(&elector), "released");
        assert_eq!(longest(&elector, "longest_leaderless"), 0.0);
        assert_eq!(figures(&elector)[2], 0.0, "nothing is in the way");
    };
    is_at_rest();
    for candidate in ["c", "silent"] {
        cluster.delete(CANDIDATES, "ns", candidate);
    }
    pass(seconds(30)).await;
    is_at_rest();
    // A component that comes back has waited from then on.
    let _answers = cluster.candidate("ns", "answers", "l", "1.1.0");
    pass(seconds(10)).await;
    let waited = longest(&elector, "longest_leaderless");
    assert!((5.0..=10.0).contains(&waited), "{waited}");
    let _late = ScriptedCandidate::start(&cluster, "ns", "late", "l", "1.0.0");
    pass(seconds(20)).await;
    assert_eq!(state(&elector), "led");
    let metric = "elector_leaderless_seconds_total";
    let missed = elector.scrape().value(metric, &[("namespace", "ns")]);
    assert!(missed - waited < 15.0, "{missed}");
}

/// A leader that makes no room is shown for as long as it is asked to.
#[tokio::test(start_paused = true)]
async fn the_oldest_preference_is_shown_until_the_leader_is_gone() {
    let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let deaf = ScriptedCandidate::start_unmarked(&cluster, "ns", "old", "l", "1.1.0");
    pass(seconds(10)).await;
    assert_eq!(longest(&elector, "oldest_preference"), 0.0);
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    pass(seconds(30)).await;
    let oldest = longest(&elector, "oldest_preference");
    assert!((20.0..30.0).contains(&oldest), "{oldest}");
    drop(deaf);
    pass(seconds(30)).await;
    assert_eq!(longest(&elector, "oldest_preference"), 0.0);
    let part = |part| format!("elector_preference_duration_seconds_{part}");
    let [count, took] = ["count", "sum"].map(|it| elector.scrape().value(&part(it), &[]));
    assert!(count == 1.0 && (oldest..60.0).contains(&took), "{took}");
}

/// Obstacles are in no figure of an elector that stands by, and nothing is of what an earlier session knew.
#[tokio::test(start_paused = true)]
async fn figures_end_with_the_lock_and_with_the_store() {
    for (restored, left) in [(false, [1.0, 1.0, 0.0]), (true, [0.0; 3])] {
        let cluster = TestCluster::with_gate();
        let empty = cluster.backup();
        cluster.make_revisions(200);
        let elector = RunningElector::start_client(&cluster, "one", electing("one"));
        pass(seconds(20)).await;
        cluster.register("ns", "silent", "l", "1.0.0");
        pass(seconds(20)).await;
        assert_eq!(figures(&elector), [1.0, 1.0, 1.0]);
        if restored {
            cluster.restore(&empty);
            cluster.faults("one").break_watches();
        } else {
            let cut_off = Rule::new(Fault::HangBefore).verb(RequestVerb::Update);
            cluster.faults("one").inject(cut_off);
        }
        pass(seconds(20)).await;
        assert_eq!(figures(&elector), left);
        let is_labelled = elector.metrics.encode().contains("\"ns\"");
        assert_eq!(is_labelled, !restored);
    }
}

#[tokio::test(start_paused = true)]
async fn conflicts_retries_and_broken_watches_are_counted() {
    let cluster = TestCluster::with_gate();
    let elector = RunningElector::start(&cluster, Config::default());
    let queue = |metric| elector.scrape().value(metric, &[("name", "elections")]);
    let restarts = || {
        elector
            .scrape()
            .by("elector_watch_restarts_total", "resource")
    };
    pass(seconds(20)).await;
    assert_eq!(restarts(), []);
    cluster.before_next_put(LEASES, |cluster| {
        cluster.edit(LEASES, "ns", "l", |lease| {
            lease["metadata"]["labels"] = json!({"a": "b"});
        });
    });
    let _one = ScriptedCandidate::start(&cluster, "ns", "one", "l", "1.0.0");
    pass(seconds(10)).await;
    assert!(!cluster.awaits_put());
    let conflict = [
        ("outcome", "conflict"),
        ("resource", "leases"),
        ("verb", "update"),
    ];
    let conflicts = elector.scrape().value("elector_writes_total", &conflict);
    assert_eq!(conflicts, 1.0);
    assert_eq!(queue("workqueue_retries_total"), 0.0, "no failure");
    assert!(queue("workqueue_adds_total") >= 2.0);
    assert_eq!(queue("workqueue_depth"), 0.0);
    let times = ["queue", "work"].map(|of| format!("workqueue_{of}_duration_seconds_count"));
    assert_eq!(queue(&times[0]), queue(&times[1]));
    let took = queue("workqueue_work_duration_seconds_sum");
    assert!(took > 0.001, "requests take time");

    cluster.inject(refuse(500).verb(RequestVerb::Create).resource(LEASES));
    cluster.register("ns", "other", "m", "1.0.0");
    pass(seconds(1)).await;
    cluster.heal();
    assert!(queue("workqueue_retries_total") >= 1.0);

    cluster.make_revisions(1);
    cluster.register("ns", "two", "l", "1.0.0");
    cluster.compact();
    cluster.faults("program").break_watches();
    pass(seconds(20)).await;
    let expected = [("leasecandidates", 1.0), ("leases", 1.0)].map(named);
    assert_eq!(restarts(), expected);
}

/// The time for an accept, once that has come.
#[tokio::test(start_paused = true)]
async fn a_lease_is_not_decided_again_for_what_is_not_waited_for_any_more() {
    let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
    let _one = ScriptedCandidate::start(&cluster, "ns", "one", "l", "1.0.0");
    let labels = [("name", "elections")];
    let decided = || elector.scrape().value("workqueue_adds_total", &labels);
    let revision = || cluster.get(LEASES, "ns", "l");
    let (mut decisions, mut revisions) = (0.0, 0.0);
    for _ in 0..250 {
        let (before, was) = (decided(), revision());
        pass(millis(100)).await;
        let is_accepted = was
            .as_ref()
            .is_some_and(|lease| lease["spec"]["leaseDurationSeconds"] == 15);
        if is_accepted {
            decisions += decided() - before;
            revisions += f64::from(u8::from(was != revision()));
        }
    }
    assert!(revisions > 2.0, "it is renewed");
    assert_eq!(decisions, revisions);
}

#[tokio::test(start_paused = true)]
async fn a_standby_sees_the_same_and_says_that_it_stands_by() {
    let cluster = TestCluster::with_gate();
    let electors =
        ["one", "two"].map(|name| RunningElector::start_client(&cluster, name, electing(name)));
    pass(seconds(20)).await;
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(10)).await;
    let mut status = Vec::new();
    for elector in &electors {
        let scrape = elector.scrape();
        let acting = scrape.value("elector_acting", &[]);
        let leads = scrape.value("leader_election_master_status", &[("name", "elector")]);
        assert_eq!(acting, leads);
        status.push(acting);
        let changes = scrape.by("elector_leader_changes_total", "reason");
        assert_eq!(changes, [("first", 1.0)].map(named));
        let expected = [("leaderless", 0.0), ("led", 1.0)].map(named);
        assert_eq!(scrape.by("elector_leases", "state"), expected);
    }
    let leader = usize::from(status == [0.0, 1.0]);
    let status = || {
        let labels = [("name", "elector")];
        let value = |elector: &RunningElector| {
            elector
                .scrape()
                .value("leader_election_master_status", &labels)
        };
        [leader, 1 - leader].map(|number| value(&electors[number]))
    };
    assert_eq!(status(), [1.0, 0.0]);

    cluster.faults(["one", "two"][leader]).partition(true);
    pass(seconds(60)).await;
    cluster.faults(["one", "two"][leader]).partition(false);
    pass(seconds(60)).await;
    assert_eq!(status(), [0.0, 1.0], "the first one is back");
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_told_apart_up_to_a_number_and_no_other_text_is_a_label() {
    let (cluster, elector) = RunningElector::settled(TestCluster::with_gate()).await;
    for index in 0..150 {
        let namespace = format!("tenant-{index}");
        cluster.register(&namespace, "secret-candidate", "secret-lease", "1.0.0");
    }
    pass(seconds(60)).await;
    let scrape = elector.scrape();
    let namespaces = scrape.by("elector_leases", "namespace");
    let named: BTreeSet<_> = namespaces.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(named.len(), 101);
    let other = namespaces.iter().find(|(name, _)| name == "_other_");
    assert_eq!(other.map(|(_, leases)| *leases), Some(50.0));
    assert!(!elector.metrics.encode().contains("secret"));

    // A namespace whose leases are gone leaves nothing, not even the limits that it hit, and its place to the next.
    for index in 0..64 {
        let name = format!("secret-{index}");
        cluster.register("tenant-0", &name, "secret-lease", "1.0.0");
    }
    pass(seconds(5)).await;
    let hits = elector.scrape().by("elector_limits_hit_total", "namespace");
    assert_eq!(hits, [("tenant-0".to_owned(), 1.0)]);
    cluster.delete(CANDIDATES, "tenant-0", "secret-candidate");
    for index in 0..64 {
        cluster.delete(CANDIDATES, "tenant-0", &format!("secret-{index}"));
    }
    pass(seconds(5)).await;
    assert!(!elector.metrics.encode().contains("\"tenant-0\""));
    cluster.register("late", "secret-candidate", "secret-lease", "1.0.0");
    pass(seconds(5)).await;
    let namespaces = elector.scrape().by("elector_leases", "namespace");
    let leases = |of| namespaces.iter().find(|(name, _)| name == of);
    assert_eq!(leases("late").map(|(_, leases)| *leases), Some(1.0));
    assert_eq!(leases("_other_").map(|(_, leases)| *leases), Some(50.0));
}

/// The document describes what is served, and nothing else.
#[tokio::test(start_paused = true)]
async fn the_document_names_what_is_served() {
    let document = include_str!("../../../../docs/metrics.md");
    let of_elector = document.split("\n## Candidates\n").next().unwrap();
    let documented = documented_metrics(of_elector);
    let metrics = Metrics::default();
    let registered = described_metrics(metrics.descriptions());
    assert_eq!(documented, registered);

    // Metrics served are those registered: every sample has a description, and every description a sample.
    let cluster = TestCluster::with_gate();
    let elector = RunningElector::start_client(&cluster, "one", electing("one"));
    pass(seconds(20)).await;
    let _good = ScriptedCandidate::start(&cluster, "ns", "good", "l", "1.1.0");
    let _part = ScriptedCandidate::start_member(&cluster, "ns", "web", "a", "web-0", "1.1.0");
    pass(seconds(10)).await;
    let _bad = cluster.candidate("ns", "bad", "l", "1.0.0");
    pass(seconds(30)).await;
    let _late = cluster.candidate("ns", "late", "l", "0.9.0");
    pass(seconds(30)).await;
    for index in 0..65 {
        cluster.register("ns", &format!("many-{index}"), "many", "1.0.0");
    }
    cluster.make_revisions(1);
    cluster.compact();
    cluster.faults("one").inject(refuse(500));
    cluster.faults("one").break_watches();
    pass(seconds(5)).await;
    cluster.faults("one").clear();
    pass(seconds(60)).await;
    // The server in memory takes no client certificates.
    let described = metrics.descriptions().iter();
    let described = described.filter(|metric| !metric.name.contains("_certificate_"));
    let described: Vec<_> = described.cloned().collect();
    assert_described(&elector.scrape().names(), &described);
}

/// The numbers of leases, candidates and leases with an obstacle by the figures.
fn figures(elector: &RunningElector) -> [f64; 3] {
    let scrape = elector.scrape();
    ["leases", "candidates", "obstructed_leases"].map(|name| {
        let by_namespace = scrape.by(&format!("elector_{name}"), "namespace");
        by_namespace.iter().map(|(_, value)| value).sum()
    })
}

/// The one state in which there is a lease, by the figures.
fn state(elector: &RunningElector) -> String {
    let states = elector.scrape().by("elector_leases", "state");
    let leases: f64 = states.iter().map(|(_, leases)| leases).sum();
    let mut states = states.into_iter().filter(|(_, leases)| *leases == 1.0);
    assert_eq!(leases, 1.0);
    states.next().unwrap().0
}

/// A figure of the lease for which something has gone on for the longest.
fn longest(elector: &RunningElector, of: &str) -> f64 {
    let metric = format!("elector_{of}_seconds");
    elector.scrape().value(&metric, &[("namespace", "ns")])
}

/// The number of carried-out writes that begin so.
fn count_writes(cluster: &TestCluster, start: &str) -> f64 {
    let writes = cluster.writes();
    let count = writes
        .iter()
        .filter(|write| write.starts_with(start))
        .count();
    f64::from(u32::try_from(count).unwrap())
}

fn named((name, value): (&str, f64)) -> (String, f64) {
    (name.to_owned(), value)
}
