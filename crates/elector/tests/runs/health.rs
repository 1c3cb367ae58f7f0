//! An elector's answers to probes.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use elector::{Config, Elector, Health, Metrics};
use elector_apiserver::{Fault, Rule};
use elector_testing::{CapturedLog, ScriptedCandidate, TestCluster, millis, pass, seconds};
use tokio::task::JoinHandle;

use crate::leader_election::electing;
use crate::{refuse, seed_of};

/// An elector that reports its health, and whose thread can be held. Dropping it is a crash.
struct ProbedElector {
    health: Health,
    metrics: Metrics,
    held: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

// === impl ProbedElector ===

impl ProbedElector {
    fn start(cluster: &TestCluster) -> Self {
        Self::start_with(cluster, "program", Config::default())
    }

    fn start_with(cluster: &TestCluster, client: &'static str, config: Config) -> Self {
        CapturedLog::prepare();
        let (health, metrics) = (Health::default(), Metrics::default());
        let held = Arc::new(AtomicBool::new(false));
        let elector = Elector::new(config, cluster.connect(client))
            .unwrap()
            .with_clock(cluster.clock())
            .with_seed(seed_of(client))
            .with_health(health.clone())
            .with_metrics(metrics.clone());
        let hold = Arc::clone(&held);
        let task = tokio::spawn(async move {
            let mut run = pin!(elector.run(std::future::pending::<()>()));
            std::future::poll_fn(|context| match hold.load(Ordering::Relaxed) {
                // As if its thread were busy with something else, it is not polled, and looked at again a second later.
                true => {
                    let waker = context.waker().clone();
                    tokio::spawn(async move {
                        pass(seconds(1)).await;
                        waker.wake();
                    });
                    Poll::Pending
                }
                false => run.as_mut().poll(context),
            })
            .await;
        });
        Self {
            health,
            metrics,
            held,
            task,
        }
    }

    /// The status and the body for a path and query.
    fn probe(&self, path: &str) -> (u16, String) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let reply = self.health.checks().answer(path, Some(query));
        (reply.code(), reply.body().to_owned())
    }

    fn is_live(&self) -> bool {
        self.probe("/livez").0 == 200
    }

    fn is_ready(&self) -> bool {
        self.probe("/readyz").0 == 200
    }

    /// True if its figures say that it is ready.
    fn is_shown_as_ready(&self) -> bool {
        self.metrics.encode().contains("\nelector_ready 1\n")
    }

    /// The checks of `/readyz` that fail.
    fn failing(&self) -> Vec<String> {
        let (_, body) = self.probe("/readyz?verbose");
        let lines = body.lines().filter_map(|line| line.strip_prefix("[-]"));
        lines
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect()
    }
}

impl Drop for ProbedElector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Being alive does not depend on the API server, and being ready does.
#[tokio::test(start_paused = true)]
async fn an_elector_is_ready_once_all_is_listed() {
    let cluster = TestCluster::with_gate();
    cluster.inject(Rule::new(Fault::HangBefore));
    let elector = ProbedElector::start(&cluster);
    pass(seconds(600)).await;
    assert!(elector.is_live());
    let expected = ["discovery", "lease-sync", "candidate-sync"];
    assert_eq!(elector.failing(), expected);
    cluster.heal();
    pass(seconds(60)).await;
    assert!(elector.is_live());
    assert_eq!(
        elector.probe("/readyz?verbose").1,
        "[+]ping ok\n[+]discovery ok\n[+]lease-sync ok\n[+]candidate-sync ok\n[+]permissions ok\n[+]shutdown ok\n\
         readyz check passed\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_stands_still_fails_and_one_that_is_idle_does_not() {
    let cluster = TestCluster::with_gate();
    let elector = ProbedElector::start(&cluster);
    for _ in 0..360 {
        pass(seconds(10)).await;
        assert!(elector.is_live());
    }
    elector.held.store(true, Ordering::Relaxed);
    pass(Health::LOOP_BOUND - seconds(6)).await;
    assert!(elector.is_live(), "within the bound");
    pass(seconds(12)).await;
    let (code, body) = elector.probe("/livez");
    assert_eq!(
        (code, body.as_str()),
        (
            500,
            "[+]ping ok\n[-]loop failed: reason withheld\n[+]credentials ok\nlivez check failed\n"
        )
    );
    let (_, why) = elector.probe("/livez/loop");
    assert!(why.contains("has not turned for"), "{why}");
    assert!(elector.is_ready(), "what it knows is complete");
    elector.held.store(false, Ordering::Relaxed);
    pass(seconds(2)).await;
    assert!(elector.is_live());
}

#[tokio::test(start_paused = true)]
async fn a_standby_is_ready() {
    let cluster = TestCluster::with_gate();
    let electors =
        ["one", "two"].map(|name| ProbedElector::start_with(&cluster, name, electing(name)));
    pass(seconds(60)).await;
    let lock = cluster.lease("elector-system", "elector").object().unwrap();
    assert!(
        lock.spec
            .holder_identity
            .is_some_and(|holder| !holder.is_empty())
    );
    assert!(
        electors
            .iter()
            .all(|elector| elector.is_live() && elector.is_ready())
    );
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_is_no_readiness_until_it_is_granted() {
    let cluster = TestCluster::with_gate();
    let elector = ProbedElector::start(&cluster);
    pass(seconds(20)).await;
    assert!(elector.is_ready() && elector.is_shown_as_ready());
    cluster.inject(refuse(401));
    let _candidate = ScriptedCandidate::start(&cluster, "ns", "a", "l", "1.0.0");
    pass(seconds(60)).await;
    assert_eq!(elector.failing(), ["permissions"]);
    assert!(!elector.is_shown_as_ready());
    let (_, why) = elector.probe("/readyz/permissions");
    let holds = why.contains("the API server forbids this elector to ");
    assert!(holds, "{why}");
    assert!(elector.is_live());
    cluster.heal();
    pass(Duration::from_secs(120)).await;
    assert!(elector.is_ready());
}

/// A token that is not renewed, or a certificate that has expired: it is told where a kubelet looks, and an outage is not.
#[tokio::test(start_paused = true)]
async fn credentials_that_the_server_does_not_know_are_no_life() {
    let cluster = TestCluster::with_gate();
    let elector = ProbedElector::start(&cluster);
    pass(seconds(20)).await;
    cluster.inject(refuse(500));
    pass(Health::REFUSED_BOUND * 2).await;
    assert!(elector.is_live(), "a server that is out of order");
    cluster.heal();
    cluster.inject(refuse(401));
    cluster.faults("program").break_watches();
    pass(Health::REFUSED_BOUND - seconds(10)).await;
    assert!(elector.is_live(), "within the bound");
    pass(seconds(60)).await;
    let (code, why) = elector.probe("/livez/credentials");
    assert_eq!(code, 500);
    let holds = why.contains("the API server has answered 401 for 3");
    assert!(holds, "{why}");
    cluster.heal();
    pass(seconds(10)).await;
    assert!(elector.is_live());
}

#[tokio::test(start_paused = true)]
async fn a_gap_of_a_watch_is_no_readiness_until_all_is_listed_again() {
    let cluster = TestCluster::with_gate();
    let elector = ProbedElector::start(&cluster);
    pass(seconds(20)).await;
    assert!(elector.is_ready());
    // The history is gone, so the watches that break find no way on but a new list.
    cluster.slow(millis(200), Duration::ZERO);
    cluster.register("ns", "a", "l", "1.0.0");
    cluster.compact();
    cluster.faults("program").break_watches();
    let mut failed = BTreeSet::new();
    for _ in 0..400 {
        pass(millis(50)).await;
        failed.extend(elector.failing());
    }
    assert_eq!(Vec::from_iter(failed), ["candidate-sync", "lease-sync"]);
    assert!(elector.is_ready());
}

#[tokio::test(start_paused = true)]
async fn an_elector_that_ends_is_not_ready() {
    CapturedLog::prepare();
    let (cluster, health) = (TestCluster::with_gate(), Health::default());
    let elector = Elector::new(Config::default(), cluster.connect("program"))
        .unwrap()
        .with_clock(cluster.clock())
        .with_seed(seed_of("program"))
        .with_health(health.clone());
    elector.run(pass(seconds(20))).await;
    let reply = health.checks().answer("/readyz", None);
    assert!(reply.body().contains("[-]shutdown"), "{}", reply.body());
}
