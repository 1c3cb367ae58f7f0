//! A program that runs on a cluster in memory.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use elector_apiserver::Faults;
use elector_candidate::{Candidate, CandidateHandle, Config, Error, Leadership, Outcome};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::effect_log::EffectLog;
use crate::program_record::{ProgramRecord, TrackedCandidate};
use crate::stored_lease::StoredLease;
use crate::term_report::TermReport;
use crate::test_cluster::{PROGRAM, TestCluster};
use crate::time::{PATIENCE, holds_within, pass};

/// A program that runs on a [`TestCluster`], with what the test does to it. When it is dropped, it is killed: its future is
/// dropped, what it left behind reaches the API server no more, and its lease is left to expire.
///
/// Where a program has several candidates, this is about the first that it made, unless a method says otherwise.
#[must_use = "dropping it kills the program"]
pub struct TestProgram<O> {
    cluster: TestCluster,
    name: String,
    record: Arc<ProgramRecord>,
    /// The number of terms reported.
    reported: usize,
    shutdown: Option<oneshot::Sender<()>>,
    run: JoinHandle<O>,
}

/// The limit for a term to end.
const LONGEST_TERM: Duration = Duration::from_secs(600);

// === impl TestCluster ===

impl TestCluster {
    /// Runs work: a candidate of that configuration, whose work is called once for each term, with its guard and a log of
    /// what it does. The end of the program is the outcome of the candidate's run.
    ///
    /// Its namespace is `default` and its identity `program` where the configuration names none. Programs of one cluster
    /// need identities of their own.
    ///
    /// # Panics
    ///
    /// When the configuration breaks a rule; the message names it. When there is no Tokio runtime.
    pub fn run<F, T, E>(
        &self,
        config: Config,
        mut work: impl FnMut(Leadership, EffectLog) -> F + Send + 'static,
    ) -> TestProgram<Result<Outcome<T>, Error>>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    {
        let name = config.given_identity().unwrap_or(PROGRAM).to_owned();
        self.start(&name, |shutdown| {
            let candidate = Candidate::new(config, self.cluster(&name));
            let candidate = candidate.unwrap_or_else(|error| panic!("configure {name}: {error}"));
            let record = self.record_of(&name);
            let work = move |leadership: Leadership| {
                let candidate = record.candidate(None);
                let log = candidate.and_then(|candidate| candidate.newest_log());
                work(leadership, log.expect("the term has begun"))
            };
            candidate.run(work, shutdown)
        })
    }

    /// Starts a whole program of that name, which is given its shutdown, and takes its connections from
    /// [`cluster`](Self::cluster) and [`service`](Self::service) by the same name.
    ///
    /// The program is a task of the test's runtime. A program of the same name that was started before should have ended,
    /// or been dropped: this one is its next process, with a connection that is well.
    ///
    /// # Panics
    ///
    /// When there is no Tokio runtime.
    pub fn start<F>(
        &self,
        name: &str,
        program: impl FnOnce(BoxFuture<'static, ()>) -> F,
    ) -> TestProgram<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let record = self.begin_record(name);
        let (shutdown, told) = oneshot::channel::<()>();
        let told = async move {
            // The end of the test is no shutdown.
            if told.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        TestProgram {
            cluster: self.clone(),
            name: name.to_owned(),
            record,
            reported: 0,
            shutdown: Some(shutdown),
            run: tokio::spawn(program(told.boxed())),
        }
    }

    /// The record of a program that begins to run.
    fn begin_record(&self, name: &str) -> Arc<ProgramRecord> {
        let record = self.record_of(name);
        if record.claim() {
            return record;
        }
        // Another program of this name runs: this one is on its own.
        record.close();
        let record = self.record_of(name);
        record.claim();
        record
    }
}

// === impl TestProgram ===

impl<O> TestProgram<O> {
    /// Waits until it leads, and its work has begun. Returns at once where that is so.
    ///
    /// # Panics
    ///
    /// When it does not lead within two minutes, or has ended.
    pub async fn leads(&self) {
        let leads = || {
            let candidate = self.record.candidate(None);
            candidate.is_some_and(|candidate| candidate.leads())
        };
        let reached = holds_within(PATIENCE, || leads() || self.run.is_finished()).await;
        if reached && leads() {
            return;
        }
        let name = &self.name;
        let Some(candidate) = self.record.candidate(None) else {
            panic!("{name} does not lead: {}", self.without_candidate());
        };
        let lease = candidate.handle.lease();
        assert!(
            !self.run.is_finished(),
            "{name} does not lead {lease}: it has ended"
        );
        panic!(
            "{name} does not lead {lease} within {PATIENCE:?}; the holder is {:?}; the configuration is {:?}",
            self.lease().holder(),
            candidate.config,
        );
    }

    /// The handle of its candidate.
    ///
    /// # Panics
    ///
    /// When it has made no candidate yet: [`leads`](Self::leads) waits for one.
    #[must_use]
    pub fn handle(&self) -> CandidateHandle {
        self.candidate().handle.clone()
    }

    /// The handle of its candidate for the lease of that name; `namespace/name` tells two of one name apart.
    ///
    /// # Panics
    ///
    /// When it has made none yet.
    #[must_use]
    pub fn handle_of(&self, lease: &str) -> CandidateHandle {
        let candidate = self.record.candidate(Some(lease));
        let candidate = candidate.unwrap_or_else(|| {
            panic!("{} has made no candidate for a lease {lease}", self.name);
        });
        candidate.handle.clone()
    }

    /// The Lease that it wants.
    ///
    /// # Panics
    ///
    /// When it has made no candidate yet.
    #[must_use]
    pub fn lease(&self) -> StoredLease {
        let candidate = self.candidate();
        let key = candidate.handle.lease();
        self.cluster.lease(&key.namespace, &key.name)
    }

    /// The faults that befall its requests and its watches.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.cluster.faults(&self.name)
    }

    /// From now on every request and every watch of it fares well.
    pub fn heal(&self) {
        self.cluster.heal_program(&self.name);
    }

    /// Starts another process that wants the same lease, `rival`: a candidate like this one, with a connection of its own,
    /// whose work does nothing and stops at once.
    ///
    /// # Panics
    ///
    /// When it has made no candidate yet.
    pub fn start_rival(&self) -> TestProgram<Result<Outcome<()>, Error>> {
        let candidate = self.candidate();
        let config = candidate.config.clone().identity("rival");
        let config = config.namespace(candidate.handle.lease().namespace.to_string());
        self.cluster.run(config, |leadership, _| async move {
            leadership.stopped().await;
            Ok::<(), std::convert::Infallible>(())
        })
    }

    /// Tells it to end, as SIGTERM does.
    pub fn shut_down(&mut self) {
        if let Some(shutdown) = self.shutdown.take() {
            // It may have ended already.
            let _ = shutdown.send(());
        }
    }

    /// Waits until its next term has ended, the first at the first call, and one lease duration longer, in which nothing
    /// of the work should act any more. Says how its work stopped.
    ///
    /// # Panics
    ///
    /// When no such term ends within ten minutes: the test has to take the lease away, or to shut the program down.
    pub async fn term_report(&mut self) -> TermReport {
        let index = self.reported;
        let ended = || {
            let candidate = self.record.candidate(None);
            candidate.filter(|candidate| candidate.has_ended(index))
        };
        holds_within(LONGEST_TERM, || ended().is_some()).await;
        let Some(candidate) = ended() else {
            panic!(
                "term {} of {} has not ended within {LONGEST_TERM:?}: has the test taken the lease away, or shut it down?",
                index + 1,
                self.name,
            );
        };
        pass(candidate.config.given_lease_duration()).await;
        self.reported += 1;
        candidate.report(index).expect("the term has ended")
    }

    /// Waits until it has ended, and gives what it returned.
    ///
    /// # Panics
    ///
    /// When it does not end within two minutes. A panic of the program goes on here.
    pub async fn ended(mut self) -> O {
        match tokio::time::timeout(PATIENCE, &mut self.run).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => resume_unwind(error.into_panic()),
            Err(_) => panic!(
                "{} has not ended within {PATIENCE:?}: has the test shut it down?",
                self.name
            ),
        }
    }

    fn candidate(&self) -> Arc<TrackedCandidate> {
        let candidate = self.record.candidate(None);
        candidate.unwrap_or_else(|| panic!("{}: {}", self.name, self.without_candidate()))
    }

    fn without_candidate(&self) -> String {
        format!(
            "it has made no candidate on `cluster({:?})`{}",
            self.name,
            if self.run.is_finished() {
                ", and has ended"
            } else {
                " yet"
            }
        )
    }
}

impl<O> Drop for TestProgram<O> {
    fn drop(&mut self) {
        self.record.close();
        if !self.run.is_finished() {
            self.run.abort();
            // The tasks that it has spawned are not known, and go on.
            self.faults().partition(true);
        }
    }
}

impl<O> fmt::Debug for TestProgram<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestProgram")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
