//! Elector and candidates, the real ones, in virtual time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod groups;
mod migration;
mod slow_server;
mod two_watches;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use elector::{Config as ElectorConfig, Elector};
use elector_api::CandidateApi;
use elector_candidate::{Config, Error, Leadership, Outcome};
use elector_testing::{
    BackgroundTask, Faults, TestCluster, TestProgram, eventually, millis, pass, seconds,
};

/// A candidate whose work never fails.
type ElectedProgram = TestProgram<Result<Outcome<()>, Error>>;

/// An elector and [three candidates](NAMES) for a lease.
struct ElectedPrograms {
    cluster: TestCluster,
    _elector: BackgroundTask,
    candidates: BTreeMap<&'static str, ElectedProgram>,
    at_work: Arc<AtWork>,
}

/// The number of candidates that work, and the most that did so at a time.
#[derive(Default)]
struct AtWork {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// The time that a candidate works; it ends with the work, also with a crash.
struct WorkSpan(Arc<AtWork>);

/// The candidates for the lease.
const NAMES: [&str; 3] = ["a", "b", "c"];

const ELECTOR: &str = "elector";
const NAMESPACE: &str = "default";
const LEASE: &str = "work";

// === impl ElectedPrograms ===

impl ElectedPrograms {
    /// Starts them where candidates are served there; one of them leads.
    async fn start(served: &[CandidateApi]) -> Self {
        let cluster = TestCluster::new();
        cluster.serve(served);
        let elector = Elector::new(ElectorConfig::default(), cluster.connect(ELECTOR)).unwrap();
        let elector = elector.with_clock(cluster.clock());
        let elector = BackgroundTask::spawn(elector.run(std::future::pending::<()>()));
        pass(seconds(20)).await;
        let at_work = Arc::new(AtWork::default());
        let candidates = NAMES.map(|name| {
            let config = Config::new(LEASE, "1.0.0").identity(name);
            let at_work = Arc::clone(&at_work);
            let work = move |leadership: Leadership, _| {
                let at_work = Arc::clone(&at_work);
                async move {
                    let _span = WorkSpan::begin(at_work);
                    leadership.stopped().await;
                    // A little late, as work is.
                    pass(millis(300)).await;
                    Ok::<(), Infallible>(())
                }
            };
            (name, cluster.run(config, work))
        });
        let programs = Self {
            cluster,
            _elector: elector,
            candidates: candidates.into(),
            at_work,
        };
        programs.successor_of("", seconds(5)).await;
        programs
    }

    /// The faults of each process.
    fn faults(&self) -> impl Iterator<Item = Faults> {
        let programs = NAMES.into_iter().chain([ELECTOR]);
        programs.map(|program| self.cluster.faults(program))
    }

    /// The number of candidates that are registered as these objects.
    fn registered(&self, resource: &str) -> usize {
        let is_there = |name: &&str| self.cluster.read(resource, NAMESPACE, name).is_some();
        NAMES.into_iter().filter(is_there).count()
    }

    /// The leader, and its term.
    fn leader(&self) -> (String, i32) {
        let holder = self.cluster.holder(NAMESPACE, LEASE).unwrap_or_default();
        (
            holder,
            self.cluster.term(NAMESPACE, LEASE).unwrap_or_default(),
        )
    }

    fn working(&self) -> usize {
        self.at_work.now.load(Ordering::SeqCst)
    }

    /// Asserts that no two candidates were at work at a time.
    fn assert_one_at_work(&self) {
        assert_eq!(self.at_work.most.load(Ordering::SeqCst), 1);
    }

    /// Waits until another candidate than `who` leads.
    async fn successor_of(&self, who: &str, patience: Duration) -> String {
        let succeeded = eventually(|| {
            let leads = |holder: String| !holder.is_empty() && holder != who;
            self.working() > 0 && leads(self.leader().0)
        });
        let succeeded = tokio::time::timeout(patience, succeeded).await;
        assert!(succeeded.is_ok(), "{who} has no successor");
        self.leader().0
    }
}

// === impl WorkSpan ===

impl WorkSpan {
    fn begin(at_work: Arc<AtWork>) -> Self {
        let now = at_work.now.fetch_add(1, Ordering::SeqCst) + 1;
        at_work.most.fetch_max(now, Ordering::SeqCst);
        Self(at_work)
    }
}

impl Drop for WorkSpan {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}
