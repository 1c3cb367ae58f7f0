//! The figures of an elector after elections of which all is known.

use std::collections::BTreeSet;

use elector::{Config, Elector, Metrics};
use elector_api::format_freeze;
use elector_apiserver::{Fault, RequestVerb, Rule};
use elector_testing::{
    CANDIDATES, CapturedLog, EmbeddedCluster, LEASES, Scrape, ScriptedCandidate, assert_described,
    described_metrics, documented_metrics, pass, seconds,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::leader_election::electing;
use crate::operators::in_seconds;
use crate::refuse;

/// An elector that keeps figures. Dropping it is a crash.
struct MeasuredElector {
    metrics: Metrics,
    task: JoinHandle<()>,
}

// === impl MeasuredElector ===

impl MeasuredElector {
    fn start(cluster: &EmbeddedCluster) -> Self {
        Self::start_with(cluster, "program", Config::default())
    }

    fn start_with(cluster: &EmbeddedCluster, client: &'static str, config: Config) -> Self {
        CapturedLog::prepare();
        let metrics = Metrics::default();
        let elector = Elector::new(config, cluster.connect(client))
            .unwrap()
            .with_clock(cluster.clock())
            .with_seed(client.bytes().map(u64::from).sum())
            .with_metrics(metrics.clone());
        let task = tokio::spawn(elector.run(std::future::pending::<()>()));
        Self { metrics, task }
    }

    fn scrape(&self) -> Scrape {
        Scrape::parse(&self.metrics.encode())
    }
}

impl Drop for MeasuredElector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The only candidate leads, a better one is handed the lease and crashes, the first follows and crashes too.
#[tokio::test(start_paused = true)]
async fn an_election_a_hand_over_and_two_crashes_are_counted_and_timed() {
    let cluster = EmbeddedCluster::with_gate();
    let elector = MeasuredElector::start(&cluster);
    pass(seconds(20)).await;
    let old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.1.0");
    pass(seconds(10)).await;
    let best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    pass(seconds(10)).await;

    let scrape = elector.scrape();
    let changes = |scrape: &Scrape| scrape.by("elector_leader_changes_total", "reason");
    assert_eq!(
        changes(&scrape),
        [("first", 1.0), ("handed_over", 1.0)].map(named)
    );
    assert_eq!(
        scrape.value("elector_handover_duration_seconds_count", &[]),
        1.0
    );
    assert_eq!(
        scrape.value("elector_failover_duration_seconds_count", &[]),
        0.0
    );
    let took = scrape.value("elector_handover_duration_seconds_sum", &[]);
    // Both of them write at once.
    assert!((0.0..0.05).contains(&took), "{took}");
    let candidates = scrape.by("elector_candidates", "state");
    assert_eq!(candidates, [("leading", 1.0), ("ready", 1.0)].map(named));
    let without = scrape.value("elector_leaderless_seconds_total", &[("namespace", "ns")]);
    assert!((took..0.2).contains(&without), "{without}");

    drop(best);
    pass(seconds(30)).await;
    let scrape = elector.scrape();
    let expected = [("expired", 1.0), ("first", 1.0), ("handed_over", 1.0)];
    assert_eq!(changes(&scrape), expected.map(named));
    assert_eq!(
        scrape.value("elector_failover_duration_seconds_count", &[]),
        1.0
    );
    let took = scrape.value("elector_failover_duration_seconds_sum", &[]);
    assert!((15.0..15.2).contains(&took), "{took}");
    assert_eq!(
        scrape.by("elector_leases", "state"),
        [("leaderless", 0.0), ("led", 1.0)].map(named)
    );
    let candidates = scrape.by("elector_candidates", "state");
    assert!(
        candidates.contains(&named(("leading", 1.0))),
        "{candidates:?}"
    );
    assert!(
        candidates.contains(&named(("pinged", 1.0))),
        "{candidates:?}"
    );

    // The one that is left was pinged before the lease expired.
    let acks = scrape.value("elector_ack_duration_seconds_count", &[]);
    let took = scrape.value("elector_ack_duration_seconds_sum", &[]);
    let pings = count(&cluster, "PATCH leasecandidates/ns/");
    assert!(acks >= 1.0 && acks <= pings, "{acks} of {pings}");
    assert!(took < 0.5 * acks, "{took}");

    drop(old);
    pass(seconds(20)).await;
    let leaderless = || {
        elector
            .scrape()
            .value("elector_leaderless_seconds_total", &[("namespace", "ns")])
    };
    let before = leaderless();
    pass(seconds(60)).await;
    let passed = leaderless() - before;
    assert!((54.9..65.1).contains(&passed), "{passed}");
    let scrape = elector.scrape();
    assert_eq!(
        scrape.by("elector_leases", "state"),
        [("leaderless", 1.0), ("led", 0.0)].map(named)
    );

    // The writes are those that the server saw.
    let writes = |verb, resource| {
        let labels = [("outcome", "done"), ("resource", resource), ("verb", verb)];
        elector.scrape().value("elector_writes_total", &labels)
    };
    assert_eq!(
        writes("create", "leases"),
        count(&cluster, "POST leases/ns/l")
    );
    assert_eq!(
        writes("update", "leases"),
        count(&cluster, "PUT leases/ns/l")
    );
    assert_eq!(
        writes("patch", "leasecandidates"),
        count(&cluster, "PATCH leasecandidates/ns/")
    );

    cluster.delete(CANDIDATES, "ns", "old");
    cluster.delete(CANDIDATES, "ns", "best");
    pass(seconds(5)).await;
    let scrape = elector.scrape();
    for metric in ["elector_leases", "elector_candidates"] {
        let left: f64 = scrape
            .by(metric, "state")
            .iter()
            .map(|(_, value)| value)
            .sum();
        assert_eq!(left, 0.0, "{metric}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_is_a_hand_over_and_what_others_do_has_a_reason_of_its_own() {
    let cluster = EmbeddedCluster::with_gate();
    let elector = MeasuredElector::start(&cluster);
    pass(seconds(20)).await;
    let _one = ScriptedCandidate::start(&cluster, "ns", "one", "l", "1.0.0");
    pass(seconds(10)).await;
    cluster.delete(LEASES, "ns", "l");
    pass(seconds(40)).await;
    let changes = elector
        .scrape()
        .by("elector_leader_changes_total", "reason");
    assert_eq!(changes, [("deleted", 1.0), ("first", 1.0)].map(named));
}

/// (R16) For as long as it is frozen.
#[tokio::test(start_paused = true)]
async fn a_frozen_lease_is_shown_while_a_better_candidate_waits() {
    let cluster = EmbeddedCluster::with_gate();
    let elector = MeasuredElector::start(&cluster);
    pass(seconds(20)).await;
    let _old = ScriptedCandidate::start(&cluster, "ns", "old", "l", "1.1.0");
    pass(seconds(10)).await;
    let freeze = |until: Value| {
        cluster.put(LEASES, "ns", "l", |lease| {
            lease["metadata"]["annotations"]["elector.dev/freeze"] = until;
        });
    };
    let frozen = || {
        let labels = [("namespace", "ns"), ("obstacle", "frozen")];
        elector.scrape().value("elector_obstructed_leases", &labels)
    };
    freeze(json!(format_freeze(in_seconds(Instant::now(), 3600))));
    let _best = ScriptedCandidate::start(&cluster, "ns", "best", "l", "1.0.0");
    pass(seconds(10)).await;
    assert_eq!(frozen(), 1.0);
    freeze(json!(""));
    pass(seconds(10)).await;
    assert_eq!(frozen(), 0.0);
}

/// A lease that no candidate names any more is in no figure, whether it was led or not, and whatever became of its Lease.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_gone_is_in_no_figure() {
    let ends: [&[&str]; 3] = [&[CANDIDATES], &[CANDIDATES, LEASES], &[LEASES, CANDIDATES]];
    for (led, deleted) in [false, true]
        .into_iter()
        .flat_map(|led| ends.map(|it| (led, it)))
    {
        let cluster = EmbeddedCluster::with_gate();
        let elector = MeasuredElector::start(&cluster);
        pass(seconds(20)).await;
        let leader = led.then(|| ScriptedCandidate::start(&cluster, "ns", "c", "l", "1.0.0"));
        if !led {
            cluster.register("ns", "c", "l", "1.0.0");
        }
        pass(seconds(20)).await;
        assert_eq!(figures(&elector), [1.0, 1.0, f64::from(!led)]);
        drop(leader);
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

/// Obstacles are in no figure of an elector that stands by.
#[tokio::test(start_paused = true)]
async fn obstacles_end_with_the_lock() {
    let cluster = EmbeddedCluster::with_gate();
    let elector = MeasuredElector::start_with(&cluster, "one", electing("one"));
    pass(seconds(20)).await;
    cluster.register("ns", "silent", "l", "1.0.0");
    pass(seconds(20)).await;
    assert_eq!(figures(&elector), [1.0, 1.0, 1.0]);
    let cut_off = Rule::new(Fault::HangBefore).verb(RequestVerb::Update);
    cluster.faults_of("one").inject(cut_off);
    pass(seconds(20)).await;
    assert_eq!(figures(&elector), [1.0, 1.0, 0.0]);
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_session_knew_is_in_no_figure() {
    let cluster = EmbeddedCluster::with_gate();
    let empty = cluster.backup();
    cluster.make_revisions(200);
    let elector = MeasuredElector::start(&cluster);
    pass(seconds(20)).await;
    cluster.register("ns", "silent", "l", "1.0.0");
    pass(seconds(20)).await;
    assert_eq!(figures(&elector), [1.0, 1.0, 1.0]);
    cluster.restore(&empty);
    cluster.faults().break_watches();
    pass(seconds(20)).await;
    assert_eq!(figures(&elector), [0.0; 3]);
}

/// It acks and never accepts what it is handed (R23).
#[tokio::test(start_paused = true)]
async fn a_preference_that_is_held_back_is_shown() {
    let cluster = EmbeddedCluster::with_gate();
    let elector = MeasuredElector::start(&cluster);
    pass(seconds(20)).await;
    let _good = ScriptedCandidate::start(&cluster, "ns", "good", "l", "1.1.0");
    pass(seconds(10)).await;
    let bad = cluster.candidate("ns", "bad", "l", "1.0.0");
    pass(seconds(30)).await;
    // A newcomer after a hand-over in vain is not preferred for a while.
    let late = cluster.candidate("ns", "late", "l", "0.9.0");
    let held_back = || {
        let labels = [("namespace", "ns"), ("obstacle", "held_back")];
        elector.scrape().value("elector_obstructed_leases", &labels)
    };
    pass(seconds(30)).await;
    assert_eq!(held_back(), 1.0);
    drop((bad, late));
    cluster.delete(CANDIDATES, "ns", "bad");
    cluster.delete(CANDIDATES, "ns", "late");
    pass(seconds(10)).await;
    assert_eq!(held_back(), 0.0);
}

#[tokio::test(start_paused = true)]
async fn conflicts_retries_and_broken_watches_are_counted() {
    let cluster = EmbeddedCluster::with_gate();
    let elector = MeasuredElector::start(&cluster);
    pass(seconds(20)).await;
    let scrape = elector.scrape();
    assert_eq!(
        scrape.value("workqueue_retries_total", &[("name", "elections")]),
        0.0
    );
    let restarts = |scrape: &Scrape| scrape.by("elector_watch_restarts_total", "resource");
    assert_eq!(restarts(&scrape), []);
    cluster.before_next_put(LEASES, |cluster| {
        cluster.put(LEASES, "ns", "l", |lease| {
            lease["metadata"]["labels"] = serde_json::json!({"a": "b"});
        });
    });
    let _one = ScriptedCandidate::start(&cluster, "ns", "one", "l", "1.0.0");
    pass(seconds(10)).await;
    assert!(!cluster.awaits_put());
    let scrape = elector.scrape();
    let conflict = [
        ("outcome", "conflict"),
        ("resource", "leases"),
        ("verb", "update"),
    ];
    assert_eq!(scrape.value("elector_writes_total", &conflict), 1.0);
    let queue = |metric: &str| scrape.value(metric, &[("name", "elections")]);
    assert_eq!(queue("workqueue_retries_total"), 0.0, "no failure");
    assert!(queue("workqueue_adds_total") >= 2.0);
    assert_eq!(queue("workqueue_depth"), 0.0);
    assert_eq!(
        queue("workqueue_queue_duration_seconds_count"),
        queue("workqueue_work_duration_seconds_count")
    );
    assert!(
        queue("workqueue_work_duration_seconds_sum") > 0.001,
        "requests take time"
    );

    cluster.inject(refuse(500).verb(RequestVerb::Create).resource(LEASES));
    cluster.register("ns", "other", "m", "1.0.0");
    pass(seconds(1)).await;
    cluster.heal();
    let scrape = elector.scrape();
    let retries = scrape.value("workqueue_retries_total", &[("name", "elections")]);
    assert!(retries >= 1.0, "{retries}");

    cluster.make_revisions(1);
    cluster.register("ns", "two", "l", "1.0.0");
    cluster.compact();
    cluster.faults().break_watches();
    pass(seconds(20)).await;
    let expected = [("leasecandidates", 1.0), ("leases", 1.0)].map(named);
    assert_eq!(restarts(&elector.scrape()), expected);
}

#[tokio::test(start_paused = true)]
async fn a_standby_sees_the_same_and_says_that_it_stands_by() {
    let cluster = EmbeddedCluster::with_gate();
    let electors =
        ["one", "two"].map(|name| MeasuredElector::start_with(&cluster, name, electing(name)));
    pass(seconds(20)).await;
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(10)).await;
    let mut status = Vec::new();
    for elector in &electors {
        let scrape = elector.scrape();
        status.push(scrape.value("leader_election_master_status", &[("name", "elector")]));
        let changes = scrape.by("elector_leader_changes_total", "reason");
        assert_eq!(changes, [("first", 1.0)].map(named));
        assert_eq!(
            scrape.by("elector_leases", "state"),
            [("leaderless", 0.0), ("led", 1.0)].map(named)
        );
    }
    status.sort_by(f64::total_cmp);
    assert_eq!(status, [0.0, 1.0]);
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_told_apart_up_to_a_number_and_no_other_text_is_a_label() {
    let cluster = EmbeddedCluster::with_gate();
    let elector = MeasuredElector::start(&cluster);
    pass(seconds(20)).await;
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
}

/// The document tells what is served, and nothing else.
#[tokio::test(start_paused = true)]
async fn the_document_names_what_is_served() {
    let document = include_str!("../../../../docs/metrics.md");
    let of_elector = document.split("\n## Candidates\n").next().unwrap();
    let documented = documented_metrics(of_elector);
    let metrics = Metrics::default();
    let registered = described_metrics(metrics.descriptions());
    assert_eq!(documented, registered);

    // Metrics served are those registered: every sample has a description, and every description a sample.
    let cluster = EmbeddedCluster::with_gate();
    let elector = MeasuredElector::start_with(&cluster, "one", electing("one"));
    pass(seconds(20)).await;
    let _good = ScriptedCandidate::start(&cluster, "ns", "good", "l", "1.1.0");
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
    cluster.faults_of("one").inject(refuse(500));
    cluster.faults_of("one").break_watches();
    pass(seconds(5)).await;
    cluster.faults_of("one").clear();
    pass(seconds(60)).await;
    assert_described(&elector.scrape().names(), metrics.descriptions());
}

/// The numbers of leases, candidates and leases with an obstacle by the figures.
fn figures(elector: &MeasuredElector) -> [f64; 3] {
    let scrape = elector.scrape();
    ["leases", "candidates", "obstructed_leases"].map(|name| {
        let by_namespace = scrape.by(&format!("elector_{name}"), "namespace");
        by_namespace.iter().map(|(_, value)| value).sum()
    })
}

/// The number of carried-out writes that begin so.
fn count(cluster: &EmbeddedCluster, start: &str) -> f64 {
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
