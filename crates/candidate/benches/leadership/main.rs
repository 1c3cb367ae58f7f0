//! The cost of asking who leads, and the time until a warm controller reconciles once its process leads.
//!
//! `cargo xtask bench leadership` runs it, and records the table that it prints.

#![expect(
    clippy::unwrap_used,
    reason = "a measurement that fails says where, and nothing else"
)]

mod renewal_thread;

use std::convert::Infallible;
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use elector_api::{CandidateApi, Lease};
use elector_candidate::{
    Candidate, CandidateHandle, Cluster, Config, Event, GroupCandidate, GroupHandle, LeaderGate,
    Leadership, Mode, ObjectKey, Parts,
};
use elector_protocol::Identity;
use elector_testing::{OneLease, eventually};
use futures::{StreamExt as _, future};
use kube::api::Api;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use serde_json::json;
use tokio::task::JoinHandle;

/// The repetitions of a call in one sample, and the number of samples.
const CALLS: u32 = 100_000;
const SAMPLES: usize = 101;
/// The number of objects in the cache of the controller.
const OBJECTS: usize = 10_000;
/// The number of times that the lease is won.
const TERMS: usize = 21;
/// The number of ranges of the group.
const RANGES: u16 = 16;
const NAMESPACE: &str = "objects";

#[tokio::main]
async fn main() {
    let mut rows = vec![("measured".to_owned(), String::new())];
    let cluster = OneLease::new(&[CandidateApi::V1Beta1]);
    let (won, controller) = (Arc::default(), MeasuredController::start(&cluster).await);
    let lease = OneLease::key();
    let config = Config::new(&*lease.name, "1.0.0")
        .namespace(&*lease.namespace)
        .identity("me");
    let told = Arc::clone(&won);
    let candidate = Candidate::new(config, cluster.cluster().into()).unwrap();
    let candidate = candidate.observed_by(move |_, event| note_win(&told, event));
    let handle = candidate.handle();
    let gate = controller.gate.clone();
    let work = move |leadership| gate.lead(leadership);
    let run = tokio::spawn(candidate.run(work, future::pending::<()>()));
    eventually(|| cluster.candidate(CandidateApi::V1Beta1).is_some()).await;

    let (mut first, mut all) = (Vec::new(), Vec::new());
    for term in 0..TERMS {
        controller.reset();
        cluster.grant("me");
        eventually(|| controller.count.load(Ordering::Acquire) >= OBJECTS).await;
        let won: Instant = won.lock().unwrap().unwrap();
        first.push(controller.first().duration_since(won));
        all.push(won.elapsed());
        if term + 1 < TERMS {
            cluster.prefer("other");
            eventually(|| cluster.record().holder == Identity::new("other")).await;
        }
    }
    assert!(handle.is_leader());
    for call in [MeasuredCall::IsLeader, MeasuredCall::Status] {
        for threads in [1, 4] {
            let took = tokio::task::block_in_place(|| nanos(threads, || call.make(&handle)));
            let name = match threads {
                1 => format!("`{}`", call.name()),
                _ => format!("`{}`, {threads} threads at once", call.name()),
            };
            rows.push((name, format!("{took:.0} ns")));
        }
    }
    let (group, group_run) = led_group().await;
    let key = ObjectKey::new("5b4eba3a-7b7f-4b5e-a1d6-7d9bf07a6c0e");
    let owns = || {
        black_box(group.owns(black_box(key)));
    };
    let took = tokio::task::block_in_place(|| nanos(1, owns));
    let name = format!("`owns`, one of {RANGES} ranges by a uid");
    rows.push((name, format!("{took:.0} ns")));
    group_run.abort();
    let what = format!("from winning the lease to the first reconcile, {OBJECTS} objects cached");
    rows.push((what, spread(&mut first)));
    rows.push((
        format!("to the last of {OBJECTS} reconciles"),
        spread(&mut all),
    ));
    run.abort();
    rows.extend(renewal_thread::rows().await);
    print!("{}", table(&rows));
}

#[derive(Clone, Copy)]
enum MeasuredCall {
    IsLeader,
    Status,
}

// === impl MeasuredCall ===

impl MeasuredCall {
    const fn name(self) -> &'static str {
        match self {
            Self::IsLeader => "is_leader",
            Self::Status => "status",
        }
    }

    fn make(self, handle: &CandidateHandle) {
        match self {
            Self::IsLeader => {
                black_box(handle.is_leader());
            }
            Self::Status => {
                black_box(handle.status());
            }
        }
    }
}

/// A controller whose reconciles count and tell when the first of them began.
struct MeasuredController {
    gate: LeaderGate,
    count: Arc<AtomicUsize>,
    first: Arc<Mutex<Option<Instant>>>,
}

// === impl MeasuredController ===

impl MeasuredController {
    /// Starts it, and waits until its cache is full.
    async fn start(cluster: &OneLease) -> Self {
        for object in 0..OBJECTS {
            cluster.put_lease(NAMESPACE, &format!("object-{object}"), json!({}));
        }
        let this = Self {
            gate: LeaderGate::new(),
            count: Arc::default(),
            first: Arc::default(),
        };
        let (count, first) = (Arc::clone(&this.count), Arc::clone(&this.first));
        let reconcile = move |_: Arc<Lease>, _: Arc<()>, _| {
            if count.fetch_add(1, Ordering::AcqRel) == 0 {
                *first.lock().unwrap() = Some(Instant::now());
            }
            future::ready(Ok::<_, Infallible>(Action::await_change()))
        };
        let client = cluster.connect("controller").client().clone();
        let api = Api::<Lease>::namespaced_with(client, NAMESPACE, &());
        let controller = Controller::new(api, watcher::Config::default());
        let store = controller.store();
        let run = controller
            .reconcile_all_on(this.gate.starts())
            .run(
                this.gate.reconciler(reconcile, Action::await_change),
                |_, error, _| match *error {},
                Arc::new(()),
            )
            .for_each(|_| future::ready(()));
        tokio::spawn(run);
        eventually(|| store.len() == OBJECTS).await;
        this
    }

    fn reset(&self) {
        self.count.store(0, Ordering::Release);
    }

    fn first(&self) -> Instant {
        self.first.lock().unwrap().unwrap()
    }
}

/// A group without an election, whose ranges are all led here.
async fn led_group() -> (GroupHandle, JoinHandle<()>) {
    let config = Config::new("group", "1.0.0").mode(Mode::Disabled);
    let group = GroupCandidate::new(config, Parts::by_uid(RANGES), Cluster::none()).unwrap();
    let handle = group.handle();
    let run = tokio::spawn(async move {
        let work = |leadership: Leadership| async move {
            leadership.stopped().await;
            Ok::<(), Infallible>(())
        };
        group.run(work, future::pending::<()>()).await.unwrap();
    });
    eventually(|| {
        handle
            .parts()
            .iter()
            .all(|part| part.leadership().is_some())
    })
    .await;
    (handle, run)
}

fn note_win(won: &Mutex<Option<Instant>>, event: &Event) {
    if let Event::Leading { .. } = event {
        *won.lock().unwrap() = Some(Instant::now());
    }
}

/// The nanoseconds of one call, made by `threads` at once: of one thread the sample that was disturbed least, of
/// several, which disturb each other, the median.
fn nanos(threads: usize, call: impl Fn() + Sync) -> f64 {
    let sample = || {
        let begin = Instant::now();
        for _ in 0..CALLS {
            call();
        }
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    let mut samples: Vec<f64> = thread::scope(|scope| {
        let spawn = |_| scope.spawn(|| (0..SAMPLES).map(|_| sample()).collect::<Vec<_>>());
        let running: Vec<_> = (0..threads).map(spawn).collect();
        let samples = running.into_iter().map(|thread| thread.join().unwrap());
        samples.flatten().collect()
    });
    samples.sort_by(f64::total_cmp);
    samples[if threads == 1 { 0 } else { samples.len() / 2 }]
}

fn spread(samples: &mut [Duration]) -> String {
    samples.sort();
    let millis = |duration: &Duration| duration.as_secs_f64() * 1e3;
    let (median, most) = (&samples[samples.len() / 2], &samples[samples.len() - 1]);
    format!(
        "median {:.2} ms, at most {:.2} ms of {} times",
        millis(median),
        millis(most),
        samples.len()
    )
}

fn table(rows: &[(String, String)]) -> String {
    let mut table = String::new();
    for (at, (name, value)) in rows.iter().enumerate() {
        let rule = if at == 0 { "|---|---|\n" } else { "" };
        write!(table, "| {name} | {value} |\n{rule}").unwrap();
    }
    table
}
