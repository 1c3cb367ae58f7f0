//! A program that runs on a cluster in memory, and the record of its terms.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use elector_apiserver::Switches;
use elector_candidate::{
    Candidate, CandidateHandle, Cluster, Config, Error, Event, Leadership, Outcome, StopReason,
    TermEnd,
};
use elector_protocol::Instant;
use elector_runtime::{Clock as _, TokioClock};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::effect_log::EffectLog;
use crate::embedded_cluster::{EmbeddedCluster, PROGRAM};
use crate::stored_lease::StoredLease;
use crate::term_report::{TermReport, WorkStop};
use crate::time::{PATIENCE, holds_within, pass};

/// A program that runs on an [`EmbeddedCluster`]: a candidate with its work. When it is dropped, all of it is dropped, as
/// if the process were killed; the lease is left to expire.
pub struct ProgramUnderTest<T> {
    cluster: EmbeddedCluster,
    config: Config,
    handle: CandidateHandle,
    terms: Arc<Mutex<Vec<ObservedTerm>>>,
    /// The number of terms reported.
    reported: usize,
    shutdown: Option<oneshot::Sender<()>>,
    run: JoinHandle<Result<Outcome<T>, Error>>,
}

/// A term as observed.
struct ObservedTerm {
    leadership: Leadership,
    effects: EffectLog,
    told: Option<(StopReason, Instant)>,
    work: Option<(WorkStop, Instant)>,
    limit: Option<Instant>,
    end: Option<TermEnd>,
}

/// Notes how the future of the work ends. Lives as long as that does.
struct WorkObserver {
    clock: Arc<TokioClock>,
    terms: Arc<Mutex<Vec<ObservedTerm>>>,
    /// The place of the term in the list.
    index: usize,
    returned: bool,
}

// === impl EmbeddedCluster ===

impl EmbeddedCluster {
    /// Runs a program: a candidate of that configuration, whose work is called once per term, with its guard and a log of
    /// what it does.
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
    ) -> ProgramUnderTest<T>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    {
        let name = config.given_identity().unwrap_or(PROGRAM).to_owned();
        let config = config.identity(&*name);
        let cluster = Cluster::from(self.connect(&name));
        let cluster = cluster.with_clock(self.clock()).with_seed(seed(&name));
        let candidate = Candidate::new(config.clone(), cluster);
        let candidate = candidate.unwrap_or_else(|error| panic!("configure {name}: {error}"));
        let (terms, clock) = (Arc::new(Mutex::new(Vec::new())), self.clock());
        let (made, seen, grace) = (Arc::clone(&terms), Arc::clone(&terms), config.given_grace());
        let cluster = self.clone();
        let candidate = candidate.observed_by(move |_, event| {
            observe(&mut lock(&seen), event, (cluster.now(), grace));
        });
        let handle = candidate.handle();
        let (shutdown, told) = oneshot::channel::<()>();
        let work = move |leadership: Leadership| {
            let effects = EffectLog::new(Arc::clone(&clock));
            let mut observer = {
                let mut terms = lock(&made);
                terms.push(ObservedTerm::new(leadership.clone(), effects.clone()));
                WorkObserver {
                    clock: Arc::clone(&clock),
                    terms: Arc::clone(&made),
                    index: terms.len() - 1,
                    returned: false,
                }
            };
            let work = work(leadership, effects);
            async move {
                let result = work.await;
                observer.note_return();
                result
            }
        };
        let run = tokio::spawn(candidate.run(work, async move {
            // The end of the test is no shutdown.
            if told.await.is_err() {
                std::future::pending::<()>().await;
            }
        }));
        ProgramUnderTest {
            cluster: self.clone(),
            config,
            handle,
            terms,
            reported: 0,
            shutdown: Some(shutdown),
            run,
        }
    }
}

// === impl ProgramUnderTest ===

impl<T> ProgramUnderTest<T> {
    /// Waits until it leads. Returns at once where it does.
    ///
    /// # Panics
    ///
    /// When it does not lead within two minutes.
    pub async fn leads(&self) {
        let leads = || {
            let terms = lock(&self.terms);
            let newest = terms.last().map(|term| &term.leadership);
            newest.is_some_and(Leadership::is_leader)
        };
        let reached = holds_within(PATIENCE, leads).await;
        assert!(
            reached,
            "{} does not lead {} within {PATIENCE:?}; the holder is {:?}; the configuration is {:?}",
            self.handle.identity(),
            self.handle.lease(),
            self.lease().holder(),
            self.config,
        );
    }

    /// The handle of its candidate.
    #[must_use]
    pub const fn handle(&self) -> &CandidateHandle {
        &self.handle
    }

    /// The Lease that it wants.
    #[must_use]
    pub fn lease(&self) -> StoredLease {
        let key = self.handle.lease();
        self.cluster.lease(&key.namespace, &key.name)
    }

    /// The faults that befall its requests and its watches.
    #[must_use]
    pub fn faults(&self) -> Switches {
        self.cluster.faults_of(self.name())
    }

    /// From now on every request and every watch of it fares well.
    pub fn heal(&self) {
        self.cluster.heal_program(self.name());
    }

    /// Starts another process that wants the same lease, `rival`: a candidate like this one, with a connection of its own,
    /// whose work does nothing and stops at once.
    #[must_use]
    pub fn start_rival(&self) -> ProgramUnderTest<()> {
        let config = self.config.clone().identity("rival");
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
            let terms = lock(&self.terms);
            terms.get(index).is_some_and(|term| term.end.is_some())
        };
        let reached = holds_within(LONGEST_TERM, ended).await;
        assert!(
            reached,
            "term {} of {} has not ended within {LONGEST_TERM:?}: has the test taken the lease away, or shut it down?",
            index + 1,
            self.handle.identity(),
        );
        pass(self.config.given_lease_duration()).await;
        self.reported += 1;
        let terms = lock(&self.terms);
        terms[index].report(self.cluster.now())
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    ///
    /// When its run ended otherwise than by a shutdown or by work that was done.
    ///
    /// # Panics
    ///
    /// When it does not end within two minutes.
    pub async fn outcome(mut self) -> Result<Outcome<T>, Error> {
        match tokio::time::timeout(PATIENCE, &mut self.run).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => resume_unwind(error.into_panic()),
            Err(_) => panic!(
                "{} has not ended within {PATIENCE:?}: has the test shut it down?",
                self.handle.identity()
            ),
        }
    }

    fn name(&self) -> &str {
        self.handle.identity().as_str()
    }
}

impl<T> Drop for ProgramUnderTest<T> {
    fn drop(&mut self) {
        self.run.abort();
    }
}

impl<T> fmt::Debug for ProgramUnderTest<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramUnderTest")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

/// The limit for a term to end.
const LONGEST_TERM: Duration = Duration::from_secs(600);

// === impl ObservedTerm ===

impl ObservedTerm {
    fn new(leadership: Leadership, effects: EffectLog) -> Self {
        Self {
            leadership,
            effects,
            told: None,
            work: None,
            limit: None,
            end: None,
        }
    }

    /// Nothing of the work may act after this instant, nor after one that was noted before.
    fn limit_to(&mut self, limit: Instant) {
        self.limit = Some(self.limit.map_or(limit, |before| before.min(limit)));
    }

    fn report(&self, now: Instant) -> TermReport {
        TermReport {
            term: self.leadership.term(),
            token: self.leadership.token(),
            end: self.end.clone().unwrap_or(TermEnd::Unconfirmed),
            told: self.told.clone(),
            work: self.work,
            limit: self.limit.unwrap_or(now),
            effects: self.effects.effects(),
        }
    }
}

// === impl WorkObserver ===

impl WorkObserver {
    fn note_return(&mut self) {
        self.returned = true;
    }
}

impl Drop for WorkObserver {
    fn drop(&mut self) {
        let stop = match (self.returned, std::thread::panicking()) {
            (true, _) => WorkStop::Returned,
            (false, true) => WorkStop::Panicked,
            (false, false) => WorkStop::Dropped,
        };
        let now = self.clock.holder();
        if let Some(term) = lock(&self.terms).get_mut(self.index) {
            term.work = Some((stop, now));
        }
    }
}

/// Notes what the candidate tells of its newest term.
fn observe(terms: &mut [ObservedTerm], event: &Event, (now, grace): (Instant, Duration)) {
    let Some(current) = terms.last_mut() else {
        return;
    };
    match event {
        Event::Stopping { reason, .. } => {
            let leadership = &current.leadership;
            current.limit_to(match reason {
                // After a pause that may have passed already.
                StopReason::Lost(_) => {
                    let limit = now.after(leadership.time_to_stop());
                    leadership.lease_limit().unwrap_or_default().min(limit)
                }
                // Renewals go on meanwhile.
                _ => now.after(grace),
            });
            current.told.get_or_insert((reason.clone(), now));
        }
        Event::WorkStopped { .. } => current.limit_to(now),
        Event::Ended { end, .. } => current.end = Some(end.clone()),
        _ => {}
    }
}

/// A number that differs from program to program, and is the same each time a test runs.
fn seed(name: &str) -> u64 {
    let add = |seed: u64, byte: u8| seed.wrapping_mul(31).wrapping_add(byte.into());
    name.bytes().fold(0, add)
}

fn lock(terms: &Mutex<Vec<ObservedTerm>>) -> MutexGuard<'_, Vec<ObservedTerm>> {
    // A poisoned lock holds a valid state: every section changes one thing.
    terms.lock().unwrap_or_else(PoisonError::into_inner)
}
