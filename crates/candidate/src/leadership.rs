//! What the work of a term holds: whether it still leads, until when, and under which token.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use elector_protocol::holder::{Loss, StopReason};
use elector_protocol::{Identity, Instant, LeaseKey, Term, Token};
use elector_runtime::Clock;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::stop_limits::StopLimits;
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
    lease: LeaseKey,
    identity: Identity,
    term: Term,
    token: Token,
    clock: Arc<dyn Clock>,
    receiver: LeadershipReceiver,
}

/// What the work learns of its leadership.
#[derive(Clone)]
pub(crate) struct LeadershipReceiver {
    pub(crate) state: watch::Receiver<LeadershipState>,
    /// Whether the work has been answered that its belief is over. After a pause it may learn that from the clock
    /// before the candidate has come round to tell it.
    pub(crate) over: Arc<AtomicBool>,
    /// Where the work spawns its tasks.
    pub(crate) tasks: TermTasks,
    /// How long the work may take to stop while the lease is held.
    pub(crate) grace: Duration,
}

/// The state of a leadership, as the session passes it on to the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeadershipState {
    /// Until when the work may act, by the last deadline of the belief.
    pub(crate) limits: StopLimits,
    /// Whether the belief is over, be it before that deadline.
    pub(crate) lost: bool,
    /// Why the work is to stop, once it is.
    pub(crate) stop: Option<StopReason>,
    /// When it is dropped, once it was told.
    pub(crate) stop_by: Option<Instant>,
}

// === impl Leadership ===

impl Leadership {
    pub(crate) fn new(
        lease: LeaseKey,
        identity: Identity,
        (term, token): (Term, Token),
        clock: Arc<dyn Clock>,
        receiver: LeadershipReceiver,
    ) -> Self {
        Self {
            lease,
            identity,
            term,
            token,
            clock,
            receiver,
        }
    }

    /// The lease that is led.
    pub const fn lease(&self) -> &LeaseKey {
        &self.lease
    }

    /// The identity of the leader, this process.
    pub const fn identity(&self) -> &Identity {
        &self.identity
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

    /// Whether this process may still believe that it leads, by its clock, now.
    ///
    /// It stays true while the work drains for a hand-over or a shutdown: the lease is not given up before.
    pub fn is_leader(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// When the belief ends unless another renewal succeeds, on the holder's clock. `None` once it has ended.
    pub fn deadline(&self) -> Option<Instant> {
        // A candidate that is gone renews nothing and has stopped its work.
        self.receiver.state.has_changed().ok()?;
        self.receiver.state.borrow().deadline()
    }

    /// How long the belief lasts unless another renewal succeeds. Zero once it has ended.
    pub fn remaining(&self) -> Duration {
        let now = self.clock.holder();
        let remaining = self
            .deadline()
            .map_or(Duration::ZERO, |deadline| deadline.since(now));
        if remaining.is_zero() {
            self.receiver.over.store(true, Ordering::Release);
        }
        remaining
    }

    /// How long what runs now may take to stop: until it is dropped, if it was told to stop, or if it were told now.
    ///
    /// While the lease is held that is the grace period. After a loss it is what the lease leaves, on the holder's
    /// clock: [`Config::stop_budget`](crate::Config::stop_budget) from the last [`Self::deadline`] on. It is zero after
    /// a pause that was longer, and once another holder is known.
    pub fn time_to_stop(&self) -> Duration {
        if self.receiver.state.has_changed().is_err() {
            return Duration::ZERO;
        }
        let now = self.clock.holder();
        let state = self.receiver.state.borrow();
        let untold = state.limits.stop_by(now, self.receiver.grace);
        let by = state
            .stop_by
            .map_or(untold, |by| by.min(state.limits.lease_limit));
        by.since(now)
    }

    /// Until when the work may act unless another renewal succeeds, for work that runs outside of this process.
    pub fn stop_limits(&self) -> StopLimits {
        self.receiver.state.borrow().limits
    }

    /// Waits until [`Self::stop_limits`] are others than `known`, as they are after each renewal.
    pub async fn stop_limits_after(&self, known: StopLimits) -> StopLimits {
        let mut state = self.receiver.state.clone();
        let renewed = state.wait_for(|state| state.limits != known).await;
        match renewed.map(|state| state.limits) {
            Ok(limits) => limits,
            // The candidate is gone, and renews nothing.
            Err(_) => std::future::pending().await,
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
    /// What is spawned by `tokio::spawn` is not known here and goes on beside the next leader.
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
        self.receiver.tasks.spawn(future)
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
        self.receiver.tasks.spawn_blocking(function)
    }

    /// What keeps the lease from being given away as long as it is there, as a task does that cannot be aborted. `None`
    /// once the term is over.
    pub(crate) fn hold(&self) -> Option<TaskEntry> {
        self.receiver.tasks.enter()
    }

    /// Waits until the work is to stop, and says why. Returns at once when it already is.
    ///
    /// From then on the work has [`Self::time_to_stop`] to end. It is dropped afterwards, which may be at once.
    pub async fn stopped(&self) -> StopReason {
        let mut state = self.receiver.state.clone();
        loop {
            let told = state.borrow_and_update().clone();
            let deadline = match self.judge(&told) {
                Ok(deadline) => deadline,
                Err(reason) => return reason,
            };
            tokio::select! {
                biased;
                told = state.changed() => if told.is_err() {
                    return StopReason::ShutDown;
                },
                () = self.clock.sleep_until_holder(deadline) => {}
            }
        }
    }

    /// Why the work is to stop, `None` while it is not. What [`Self::stopped`] would say, without waiting for it.
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        let told = self.receiver.state.borrow().clone();
        let gone = || self.receiver.state.has_changed().is_err();
        let reason = self.judge(&told).err();
        reason.or_else(|| gone().then_some(StopReason::ShutDown))
    }

    /// Why the work is to stop, or when the belief ends that lets it go on.
    fn judge(&self, told: &LeadershipState) -> Result<Instant, StopReason> {
        if let Some(reason) = &told.stop {
            return Err(reason.clone());
        }
        let believed = |deadline: &Instant| self.clock.holder() < *deadline;
        told.deadline().filter(believed).ok_or_else(|| {
            self.receiver.over.store(true, Ordering::Release);
            StopReason::Lost(Loss::DeadlinePassed)
        })
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("lease", &self.lease)
            .field("identity", &self.identity)
            .field("term", &self.term)
            .field("token", &self.token)
            .field("state", &*self.receiver.state.borrow())
            .field("tasks", &self.receiver.tasks)
            .finish_non_exhaustive()
    }
}

// === impl LeadershipState ===

impl LeadershipState {
    /// When the belief is over, `None` once it is.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        (!self.lost).then_some(self.limits.deadline)
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::{ResourceVersion, Timestamp};
    use elector_runtime::TokioClock;

    use super::*;

    fn guard(deadline: Duration) -> (watch::Sender<LeadershipState>, Leadership, Arc<dyn Clock>) {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::start(Timestamp::MIN));
        let deadline = clock.holder().after(deadline);
        let (sender, receiver) = watch::channel(LeadershipState {
            limits: StopLimits::of(deadline, Duration::from_secs(3)),
            lost: false,
            stop: None,
            stop_by: None,
        });
        let guard = Leadership::new(
            LeaseKey::new("ns", "web"),
            Identity::new("me").unwrap(),
            (Term(3), Token(ResourceVersion(7))),
            clock.clone(),
            LeadershipReceiver {
                state: receiver,
                over: Arc::default(),
                tasks: TermTasks::default(),
                grace: Duration::from_secs(8),
            },
        );
        (sender, guard, clock)
    }

    #[tokio::test(start_paused = true)]
    async fn leadership_ends_by_the_clock_alone() {
        let (_sender, guard, _) = guard(Duration::from_secs(10));
        assert!(guard.is_leader());
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(guard.is_leader());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!guard.is_leader());
        assert_eq!(
            guard.stopped().await,
            StopReason::Lost(Loss::DeadlinePassed)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_to_stop_is_the_grace_and_no_more_than_the_lease_leaves() {
        let (sender, guard, clock) = guard(Duration::from_secs(10));
        let left = || guard.time_to_stop().as_secs();
        assert_eq!(left(), 8);
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(left(), 6);
        let by = clock.holder().after(Duration::from_secs(2));
        sender.send_modify(|state| state.stop_by = Some(by));
        assert_eq!(left(), 2);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(left(), 0);
        sender.send_modify(|state| state.stop_by = None);
        assert_eq!(left(), 3);
        drop(sender);
        assert_eq!(left(), 0);
    }

    /// The time that was told counts although work that was told now would have less, and the lease bounds both.
    #[tokio::test(start_paused = true)]
    async fn the_time_to_stop_that_was_told_is_not_that_of_work_that_is_told_now() {
        let (sender, guard, clock) = guard(Duration::from_secs(100));
        let told = |after| {
            let by = clock.holder().after(Duration::from_secs(after));
            sender.send_modify(|state| state.stop_by = Some(by));
            guard.time_to_stop().as_secs()
        };
        assert_eq!([told(5), told(20), told(200)], [5, 20, 103]);
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(guard.time_to_stop().as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_moves_the_deadline_of_those_who_wait() {
        let (sender, guard, clock) = guard(Duration::from_secs(10));
        let waiting = guard.clone();
        let stopped = tokio::spawn(async move { waiting.stopped().await });
        tokio::time::sleep(Duration::from_secs(9)).await;
        let later = clock.holder().after(Duration::from_secs(10));
        let limits = guard.stop_limits();
        let renewed = StopLimits::of(later, Duration::from_secs(3));
        sender.send_modify(|state| state.limits = renewed);
        assert_eq!(guard.stop_limits_after(limits).await, renewed);
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert!(guard.is_leader() && !stopped.is_finished());
        sender.send_modify(|state| state.stop = Some(StopReason::ShutDown));
        assert_eq!(stopped.await.unwrap(), StopReason::ShutDown);
        assert!(guard.is_leader(), "a draining holder still leads");
    }

    #[tokio::test(start_paused = true)]
    async fn a_guard_without_its_candidate_does_not_lead() {
        let (sender, guard, _) = guard(Duration::from_secs(10));
        drop(sender);
        assert!(!guard.is_leader());
        assert_eq!(guard.stopped().await, StopReason::ShutDown);
    }
}
