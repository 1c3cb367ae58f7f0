//! A controller of kube-runtime under leadership: warm before it leads, awaited before another one does.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elector_api::Lease;
use elector_candidate::{Candidate, Config, Event, LeaderGate, Leadership, TestTerm};
use elector_protocol::Identity;
use elector_testing::{BackgroundTask, OneLease, eventually, seconds};
use futures::{StreamExt as _, future};
use kube::api::Api;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::{V1BETA1, connected, elected, pass};

/// Where the objects are that the controllers reconcile.
const OBJECTS: &str = "objects";

/// A process with two controllers of the same objects: one under leadership, one that always reconciles.
struct Process {
    cluster: OneLease,
    /// The objects reconciled under leadership, each with its term and the time.
    reconciled: Arc<Mutex<Vec<(String, i32, Instant)>>>,
    /// Reconciles under leadership that have ended.
    ended: Arc<Mutex<Vec<Instant>>>,
    always: Arc<Mutex<Vec<String>>>,
    terms: Arc<Mutex<Vec<Instant>>>,
    shutdown: Option<oneshot::Sender<()>>,
    controller: BackgroundTask,
    _always: BackgroundTask,
}

// === impl Process ===

impl Process {
    /// Starts it on a cluster with so many objects; a reconcile under leadership takes that long.
    async fn start(objects: usize, config: Config, takes: Duration) -> Self {
        let cluster = OneLease::new(&[V1BETA1]);
        for object in 0..objects {
            cluster.put_lease(OBJECTS, &format!("object-{object}"), json!({}));
        }
        let (reconciled, ended, always, terms) = Default::default();
        let gate = LeaderGate::new();
        let (book, ends) = (Arc::clone(&reconciled), Arc::clone(&ended));
        let reconcile = move |object: Arc<Lease>, _: Arc<()>, leadership: Leadership| {
            let (book, ends): (Arc<Mutex<Vec<_>>>, Arc<Mutex<Vec<_>>>) =
                (Arc::clone(&book), Arc::clone(&ends));
            async move {
                let term = leadership.term();
                book.lock()
                    .unwrap()
                    .push((name(&object), term, Instant::now()));
                tokio::time::sleep(takes).await;
                ends.lock().unwrap().push(Instant::now());
                Ok(Action::requeue(seconds(3600)))
            }
        };
        let controlled = Controller::new(api(&cluster, "controller"), watcher::Config::default())
            .reconcile_all_on(gate.starts())
            .run(
                gate.reconciler(reconcile, Action::await_change),
                policy,
                Arc::new(()),
            )
            .for_each(|_| future::ready(()));
        let observed = Arc::clone(&always);
        let observe = move |object: Arc<Lease>, _: Arc<()>| {
            let observed: &Mutex<Vec<String>> = &observed;
            observed.lock().unwrap().push(name(&object));
            future::ready(Ok::<_, Infallible>(Action::await_change()))
        };
        let observing = Controller::new(api(&cluster, "always"), watcher::Config::default())
            .run(observe, policy, Arc::new(()))
            .for_each(|_| future::ready(()));
        let begun: Arc<Mutex<Vec<Instant>>> = Arc::clone(&terms);
        let candidate = Candidate::new(config, connected(&cluster))
            .unwrap()
            .observed_by(move |_, event| {
                if let Event::Leading { .. } = event {
                    begun.lock().unwrap().push(Instant::now());
                }
            });
        let (shutdown, stopped) = oneshot::channel::<()>();
        tokio::spawn({
            let work = move |leadership| gate.lead(leadership);
            async move {
                let mut stopped = pin!(stopped);
                candidate.run(work, &mut stopped).await.unwrap()
            }
        });
        let process = Self {
            controller: BackgroundTask::spawn(controlled),
            _always: BackgroundTask::spawn(observing),
            cluster,
            reconciled,
            ended,
            always,
            terms,
            shutdown: Some(shutdown),
        };
        eventually(|| process.cluster.candidate(V1BETA1).is_some()).await;
        eventually(|| process.always.lock().unwrap().len() == objects).await;
        pass(1_000).await;
        process
    }

    async fn is_granted(&self) {
        let terms = || self.terms.lock().unwrap().len();
        let before = terms();
        self.cluster.grant("me");
        eventually(|| terms() > before).await;
    }

    fn count(&self) -> usize {
        self.reconciled.lock().unwrap().len()
    }

    fn holder_is(&self, name: &str) -> bool {
        self.cluster.record().holder == Identity::new(name)
    }

    fn touch(&self, object: usize) {
        let name = format!("object-{object}");
        self.cluster.put_lease(
            OBJECTS,
            &name,
            json!({"leaseTransitions": self.cluster.now().since_epoch().as_millis() as i32}),
        );
    }
}

fn api(cluster: &OneLease, client: &'static str) -> Api<Lease> {
    let client = cluster.connect(client).client().clone();
    Api::namespaced_with(client, OBJECTS, &())
}

fn name(object: &Lease) -> String {
    object.metadata.name.clone().unwrap()
}

fn policy(_: Arc<Lease>, error: &Infallible, _: Arc<()>) -> Action {
    match *error {}
}

/// P-M3 and P-K5: the caches are full before the lease is won, each term begins with all that is in them, and another
/// controller of the process notices none of it.
#[tokio::test(start_paused = true)]
async fn a_controller_is_warm_before_it_leads_and_others_always_run() {
    let process = Process::start(20, elected(), Duration::ZERO).await;
    process.touch(0);
    pass(1_000).await;
    assert_eq!(process.count(), 0, "a standby reconciles nothing");
    assert_eq!(process.always.lock().unwrap().len(), 21);
    process.is_granted().await;
    let won = process.cluster.now();
    eventually(|| process.count() == 20).await;
    let first = process.reconciled.lock().unwrap()[0].2;
    assert!(first - process.terms.lock().unwrap()[0] < Duration::from_millis(50));
    let listed = process.cluster.requests_of("controller");
    assert!(listed.iter().all(|request| request.at < won), "{listed:?}");
    // An object that changes is reconciled now.
    process.touch(7);
    eventually(|| process.count() == 21).await;
    process.cluster.prefer("other");
    eventually(|| process.holder_is("other")).await;
    process.touch(8);
    pass(5_000).await;
    assert_eq!(process.count(), 21);
    process.is_granted().await;
    eventually(|| process.count() == 41).await;
    let terms: Vec<i32> = process
        .reconciled
        .lock()
        .unwrap()
        .iter()
        .map(|it| it.1)
        .collect();
    assert!(terms[..21].iter().all(|term| *term == terms[0]));
    assert!(terms[21..].iter().all(|term| *term == terms[21]) && terms[0] < terms[21]);
    assert_eq!(process.always.lock().unwrap().len(), 23);
}

#[tokio::test(start_paused = true)]
async fn reconciles_are_awaited_before_the_lease_is_given_up_and_none_begins_meanwhile() {
    for shuts_down in [false, true] {
        let mut process = Process::start(3, elected(), seconds(4)).await;
        process.is_granted().await;
        eventually(|| process.count() == 3).await;
        pass(1_000).await;
        if shuts_down {
            drop(process.shutdown.take());
        } else {
            process.cluster.prefer("other");
        }
        pass(500).await;
        process.touch(1);
        process.touch(2);
        pass(2_000).await;
        assert!(process.holder_is("me"));
        assert_eq!(process.ended.lock().unwrap().len(), 0);
        eventually(|| !process.holder_is("me")).await;
        assert_eq!(process.ended.lock().unwrap().len(), 3);
        let last = *process.ended.lock().unwrap().last().unwrap();
        assert!(
            last.elapsed() < Duration::from_millis(50),
            "{:?}",
            last.elapsed()
        );
        pass(10_000).await;
        assert_eq!(process.count(), 3, "none began after the stop");
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_dropped_takes_its_reconciles_with_it() {
    let process = Process::start(1, elected(), seconds(5)).await;
    process.is_granted().await;
    eventually(|| process.count() == 1).await;
    drop(process.controller);
    pass(20_000).await;
    assert_eq!(process.ended.lock().unwrap().len(), 0);
    // Nothing is left to wait for.
    process.cluster.prefer("other");
    let told = Instant::now();
    eventually(|| process.cluster.record().holder == Identity::new("other")).await;
    assert!(told.elapsed() < Duration::from_millis(100));
}

/// The gate knows no kube: what it answers with is the caller's.
#[tokio::test(start_paused = true)]
async fn a_standby_observes_and_so_does_a_reconcile_that_its_term_cuts_short() {
    let gate = LeaderGate::new();
    let reconcile = |takes: Arc<Duration>, _: Arc<()>, _: Leadership| async move {
        tokio::time::sleep(*takes).await;
        Ok::<_, Infallible>("reconciled")
    };
    let observe = |_: Arc<Duration>, _: Arc<()>| async { Ok("observed") };
    let mut reconciler = gate.observing_reconciler(reconcile, observe);
    let mut answer = |takes| reconciler(Arc::new(seconds(takes)), Arc::new(()));
    assert_eq!(answer(1).await, Ok("observed"));
    let term = TestTerm::new();
    let leading = tokio::spawn(gate.lead(term.leadership()));
    pass(1).await;
    assert_eq!(answer(1).await, Ok("reconciled"));
    let cut_short = tokio::spawn(answer(3_600));
    pass(1_000).await;
    drop(term);
    assert_eq!(cut_short.await.unwrap(), Ok("observed"));
    leading.await.unwrap().unwrap();
    assert_eq!(answer(1).await, Ok("observed"));
}
