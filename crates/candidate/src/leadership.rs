//! The guard of a term, held by its work: the belief, its deadline, and the token.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use elector_protocol::holder::{Loss, StopReason};
use elector_protocol::{Identity, Instant, LeaseKey, Term, Token};
use tokio::task::JoinHandle;

use crate::status::{KnownStatus, StatusReader};
use crate::term_state::{StopLimits, TermState};
use crate::term_tasks::{TaskEntry, TermTasks};

/// The guard of one term, handed to the work that the term owns. Clones are the same guard.
///
/// Leadership is a belief with a deadline. [`Self::is_leader`] compares that deadline with the clock on every call, so
/// neither a blocked executor nor a dead candidate can prolong a term. Between the deadline and the first instant at
/// which another candidate may lead lies the *effect grace*, lease duration minus renew deadline (5 s by default): give
/// requests that must not outlive the term a timeout of no more than that, or send the token along and let the
/// resource check it.
#[derive(Clone)]
pub struct Leadership {
    reader: StatusReader,
    /// Which of the terms that are published is that of this guard.
    number: u64,
    term: Term,
    token: Token,
    /// True once the work has been answered that its belief is over. After a pause it may learn that from the clock
    /// before the candidate has come round to tell it.
    over: Arc<AtomicBool>,
    /// Where the work spawns its tasks.
    pub(crate) tasks: TermTasks,
    /// The time that the work has to stop while the lease is held.
    grace: Duration,
}

// === impl Leadership ===

impl Leadership {
    /// The guard of the term that was published last.
    pub(crate) fn new(
        reader: StatusReader,
        term: Term,
        token: Token,
        tasks: TermTasks,
        grace: Duration,
    ) -> Self {
        let number = reader.known.borrow().term.as_ref().map(|it| it.number);
        Self {
            reader,
            number: number.unwrap_or_default(),
            term,
            token,
            over: Arc::default(),
            tasks,
            grace,
        }
    }

    /// The lease that is led.
    pub const fn lease(&self) -> &LeaseKey {
        &self.reader.lease
    }

    /// The identity of the leader, this process.
    pub const fn identity(&self) -> &Identity {
        &self.reader.identity
    }

    /// The number of the term, for people. It restarts when the Lease is deleted, so it does not fence.
    pub const fn term(&self) -> Term {
        self.term
    }

    /// The fencing token: grows from leader to leader, also over a deletion of the Lease. Send it along with every
    /// effect, and have the resource refuse a token below the highest one that it has seen.
    pub const fn token(&self) -> Token {
        self.token
    }

    /// True if this process may still believe that it leads, by its clock, now.
    ///
    /// It stays true while the work drains for a hand-over or a shutdown: the lease is not given up before.
    pub fn is_leader(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// When the belief ends unless another renewal succeeds, on the holder's clock. `None` once it has ended.
    pub fn deadline(&self) -> Option<Instant> {
        self.read(TermState::deadline)?
    }

    /// The time that the belief lasts unless another renewal succeeds. Zero once it has ended.
    pub fn remaining(&self) -> Duration {
        // The deadline first: the later the clock is read, the better.
        let deadline = self.deadline();
        let remaining = deadline.map(|deadline| deadline.since(self.reader.clock.holder()));
        let remaining = remaining.unwrap_or_default();
        if remaining.is_zero() {
            self.over.store(true, Ordering::Release);
        }
        remaining
    }

    /// The time that the running work has to stop: until it is dropped, if it was asked to stop, or if it were asked now.
    ///
    /// While the lease is held that is the grace period. After a loss it is what the lease leaves, on the holder's
    /// clock: [`Config::stop_budget`](crate::Config::stop_budget) from the last [`Self::deadline`] on. It is zero after
    /// a pause that was longer, and once another holder is known.
    pub fn time_to_stop(&self) -> Duration {
        let now = self.reader.clock.holder();
        let left = self.read(|term| term.time_to_stop(now, self.grace));
        left.unwrap_or_default()
    }

    /// Until when the work may act unless another renewal succeeds, for work that runs outside of this process.
    pub fn stop_limits(&self) -> StopLimits {
        let limits = self.read(|term| term.limits);
        limits
            .unwrap_or_else(|| StopLimits::of(Instant::from_epoch(Duration::ZERO), Duration::ZERO))
    }

    /// Waits until [`Self::stop_limits`] are others than `known`, as they are after each renewal.
    pub async fn stop_limits_after(&self, known: StopLimits) -> StopLimits {
        let mut status = self.reader.known.clone();
        let limits = |status: &KnownStatus| self.own_term(status).map(|term| term.limits);
        let renewed = |status: &KnownStatus| limits(status).is_some_and(|limits| limits != known);
        let limits = status
            .wait_for(|it| renewed(it))
            .await
            .ok()
            .and_then(|it| limits(&it));
        match limits {
            Some(limits) => limits,
            // The candidate is gone, and renews nothing.
            None => std::future::pending().await,
        }
    }

    /// Spawns a task that the term owns, as `tokio::spawn` does one that nothing owns.
    ///
    /// It ends with the term: it is aborted when the work has returned, or is dropped, and the lease is neither handed
    /// over nor released before it is gone. A task that has to finish something first asks [`Self::stopped`], and the
    /// work awaits its handle before it returns. A panic of the task ends the run, as one of the work does
    /// ([`RunOutcome::WorkPanicked`](crate::RunOutcome::WorkPanicked)). Once the term is over, the future is dropped
    /// without being run, and the handle is that of a cancelled task.
    ///
    /// A task spawned by `tokio::spawn` is not known here and goes on beside the next leader.
    ///
    /// ```
    /// use elector_candidate::Leadership;
    ///
    /// async fn work(leadership: Leadership) -> std::io::Result<()> {
    ///     let guard = leadership.clone();
    ///     let collector = leadership.spawn(async move {
    ///         while guard.is_leader() {
    ///             // Collect something.
    ///             tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ///         }
    ///     });
    ///     leadership.stopped().await;
    ///     // Without this line the task is aborted where it awaits something.
    ///     let _ = collector.await;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Panics
    ///
    /// When it is called outside of a Tokio runtime.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tasks.spawn(future)
    }

    /// Runs a function that blocks its thread as a task that the term owns, as `tokio::task::spawn_blocking` does one
    /// that nothing owns.
    ///
    /// It cannot be aborted: it has to ask [`Self::is_leader`] and return in time. If it has not returned when the work
    /// is to be gone, the lease is left to expire, and the run ends ([`TermEnd::WorkStillRuns`]).
    ///
    /// ```
    /// use elector_candidate::Leadership;
    ///
    /// async fn work(leadership: Leadership) -> Result<u32, tokio::task::JoinError> {
    ///     let guard = leadership.clone();
    ///     let count = leadership.spawn_blocking(move || {
    ///         (0..1_000).take_while(|_| guard.is_leader()).count() as u32
    ///     });
    ///     count.await
    /// }
    /// ```
    ///
    /// [`TermEnd::WorkStillRuns`]: crate::TermEnd::WorkStillRuns
    ///
    /// # Panics
    ///
    /// When it is called outside of a Tokio runtime.
    pub fn spawn_blocking<T>(&self, function: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T>
    where
        T: Send + 'static,
    {
        self.tasks.spawn_blocking(function)
    }

    /// An entry that keeps the lease from being given away as long as it is there, as a task does that cannot be
    /// aborted. `None` once the term is over.
    pub(crate) fn hold(&self) -> Option<TaskEntry> {
        self.tasks.enter()
    }

    /// Waits until the work is to stop, and says why. Returns at once when it already is.
    ///
    /// From then on the work has [`Self::time_to_stop`] to end. It is dropped afterwards, which may be at once.
    pub async fn stopped(&self) -> StopReason {
        let mut known = self.reader.known.clone();
        loop {
            let judged = self.judge(&known.borrow_and_update());
            let deadline = match judged {
                Ok(deadline) => deadline,
                Err(reason) => return reason,
            };
            tokio::select! {
                biased;
                told = known.changed() => if told.is_err() {
                    return StopReason::ShutDown;
                },
                () = self.reader.clock.sleep_until_holder(deadline) => {}
            }
        }
    }

    /// Why the work is to stop, `None` while it is not. What [`Self::stopped`] would say, without waiting for it.
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        self.judge(&self.reader.known.borrow()).err()
    }

    /// When the work is dropped, once it was asked to stop.
    pub(crate) fn stop_by(&self) -> Option<Instant> {
        self.read(|term| term.stop.as_ref().map(|(_, by)| *by))?
    }

    /// True once the work was asked to stop, be it by the clock alone.
    pub(crate) fn is_told(&self) -> bool {
        self.stop_by().is_some() || self.over.load(Ordering::Acquire)
    }

    /// Why the work is to stop, or when the belief ends that lets it go on.
    fn judge(&self, known: &KnownStatus) -> Result<Instant, StopReason> {
        let term = self.own_term(known).ok_or(StopReason::ShutDown)?;
        match &term.stop {
            Some((reason, _)) => return Err(reason.clone()),
            // A candidate that is gone renews nothing and has stopped its work.
            None if term.is_over() => return Err(StopReason::ShutDown),
            None => {}
        }
        let believed = |deadline: &Instant| self.reader.clock.holder() < *deadline;
        term.deadline().filter(believed).ok_or_else(|| {
            self.over.store(true, Ordering::Release);
            StopReason::Lost(Loss::DeadlinePassed)
        })
    }

    fn read<T>(&self, read: impl FnOnce(&TermState) -> T) -> Option<T> {
        self.own_term(&self.reader.known.borrow()).map(read)
    }

    /// The term of this guard, until another one follows.
    fn own_term<'a>(&self, known: &'a KnownStatus) -> Option<&'a TermState> {
        known
            .term
            .as_ref()
            .filter(|term| term.number == self.number)
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("lease", &self.reader.lease)
            .field("identity", &self.reader.identity)
            .field("term", &self.term)
            .field("token", &self.token)
            .field("state", &self.read(TermState::clone))
            .field("tasks", &self.tasks)
            .finish_non_exhaustive()
    }
}
