//! The guard of a term, held by its work: the belief, the time that it lasts, and the token.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use elector_protocol::holder::StopReason;
use elector_protocol::{Identity, Instant, LeaseKey, Term, Token};
use tokio::task::JoinHandle;

use crate::belief::BeliefCell;
use crate::leader_only::LeaderOnlyLayer;
use crate::status::StatusReader;
use crate::stopped::Stopped;
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
    /// Where the work spawns its tasks.
    pub(crate) tasks: TermTasks,
}

// === impl Leadership ===

impl Leadership {
    /// The guard of the term of that number.
    pub(crate) const fn new(
        reader: StatusReader,
        number: u64,
        term: Term,
        token: Token,
        tasks: TermTasks,
    ) -> Self {
        Self {
            reader,
            number,
            term,
            token,
            tasks,
        }
    }

    /// The lease that is led.
    pub fn lease(&self) -> &LeaseKey {
        self.belief().lease()
    }

    /// The part of the group that is led: its name, or `03-of-16` where it is a range. `None` for a lease of its own
    /// ([`Candidate`](crate::Candidate)).
    pub fn part(&self) -> Option<&str> {
        self.belief().part()
    }

    /// The identity of the leader, this process.
    pub fn identity(&self) -> &Identity {
        self.belief().identity()
    }

    /// The number of the term, for people. It restarts when the Lease is deleted, so it does not fence.
    pub const fn term(&self) -> i32 {
        self.term.0
    }

    /// The fencing token: grows from leader to leader, also over a deletion of the Lease. Send it along with every
    /// effect, and have the resource refuse a token below the highest one that it has seen.
    pub const fn token(&self) -> u64 {
        self.token.0.0
    }

    /// True if this process may still believe that it leads, by its clock, now.
    ///
    /// It stays true while the work drains for a hand-over or a shutdown: the lease is not given up before.
    pub fn is_leader(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// The time that the belief lasts unless another renewal succeeds. Zero once it has ended.
    pub fn remaining(&self) -> Duration {
        self.belief().remaining(self.number)
    }

    /// The time that the running work has to stop: until it is dropped, if it was asked to stop, or if it were asked now.
    ///
    /// While the lease is held that is the grace period. After a loss it is what the lease leaves, on the holder's
    /// clock: [`Config::stop_budget`](crate::Config::stop_budget) from the end of the belief on. It is zero after
    /// a pause that was longer, and once another holder is known.
    pub fn time_to_stop(&self) -> Duration {
        self.belief().time_to_stop(self.number)
    }

    /// When the belief ends unless another renewal succeeds, on the holder's clock, for the judges of simulations.
    #[doc(hidden)]
    pub fn deadline(&self) -> Option<Instant> {
        self.belief().deadline(self.number)
    }

    /// Until when the work may act, on the holder's clock, for the test kit.
    #[doc(hidden)]
    pub fn lease_limit(&self) -> Option<Instant> {
        let limits = self.belief().limits(self.number);
        limits.map(|limits| limits.lease_limit)
    }

    /// A layer that lets writes of an HTTP client pass in this term alone: a later term of this process does not let pass
    /// what is left of an earlier one.
    #[must_use]
    pub fn leader_only(&self) -> LeaderOnlyLayer {
        let term = Some((self.number, self.token()));
        LeaderOnlyLayer::new(self.reader.clone(), term)
    }

    /// Spawns a task that the term owns, as `tokio::spawn` does one that nothing owns.
    ///
    /// It ends with the term: it is aborted when the work has returned, or is dropped, and the lease is neither handed
    /// over nor released before it is gone. A task that has to finish something first asks [`Self::stopped`], and the
    /// work awaits its handle before it returns. A panic of the task ends the run, as one of the work does
    /// ([`Error::Panicked`](crate::Error::Panicked)). Once the term is over, the future is dropped
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
        self.tasks.spawn(self.timely(future))
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
        self.tasks.spawn_blocking(|_| function())
    }

    /// An entry that keeps the lease from being given away as long as it is there, as a task does that cannot be
    /// aborted. `None` once the term is over.
    pub(crate) fn hold(&self) -> Option<TaskEntry> {
        self.tasks.enter()
    }

    /// Waits until the work is to stop, and says why. Is done at once when it already is.
    ///
    /// From then on the work has [`Self::time_to_stop`] to end. It is dropped afterwards, which may be at once, and is not
    /// polled once it may act no more, however late the executor is to drop it. The future borrows nothing, and may be sent
    /// and shared, as servers and controllers demand of what ends them:
    ///
    /// ```
    /// # use elector_candidate::Leadership;
    /// # async fn serve_with(shutdown: impl Future<Output = ()> + Send + Sync + 'static) -> std::io::Result<()> { Ok(()) }
    /// async fn work(leadership: Leadership) -> std::io::Result<()> {
    ///     let stopped = leadership.stopped();
    ///     serve_with(async { drop(stopped.await) }).await
    /// }
    /// ```
    ///
    /// It says when to stop. Whether an effect may still take place is for [`Self::is_leader`] to say, which stays true
    /// while the work drains.
    pub fn stopped(
        &self,
    ) -> impl Future<Output = StopReason> + Send + Sync + Unpin + 'static + use<> {
        let (reader, number) = (self.reader.clone(), self.number);
        Stopped::new(async move {
            let (belief, mut known) = (reader.belief, reader.known);
            loop {
                // From here on each publication wakes.
                known.mark_unchanged();
                let deadline = match belief.judge(number) {
                    Ok(deadline) => deadline,
                    Err(reason) => return reason,
                };
                tokio::select! {
                    biased;
                    told = known.changed() => if told.is_err() {
                        return StopReason::ShutDown;
                    },
                    () = belief.clock().sleep_until_holder(deadline) => {}
                }
            }
        })
    }

    /// Why the work is to stop, `None` while it is not: it was asked to, or the belief is over by the clock, now. What
    /// [`Self::stopped`] would say, without waiting for it.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.belief().judge(self.number).err()
    }

    /// A token that is cancelled when the work is to stop, for libraries that take one.
    ///
    /// It is late where the executor is blocked, or stands still: a task of it has to run. So ask [`Self::is_leader`]
    /// before each effect. To cancel the token stops what listens to it, and neither the work nor the term.
    ///
    /// # Panics
    ///
    /// When it is called outside of a Tokio runtime.
    #[cfg(feature = "tokio-util-0-7")]
    pub fn cancellation_token(&self) -> tokio_util::sync::CancellationToken {
        let token = tokio_util::sync::CancellationToken::new();
        if self.stop_reason().is_some() {
            token.cancel();
            return token;
        }
        let (stopped, cancels) = (self.stopped(), token.clone().drop_guard());
        tokio::spawn(async move {
            stopped.await;
            drop(cancels);
        });
        token
    }

    /// Work of the term, which is not polled once it may act no more. An executor that comes round late may do so to the work
    /// before the session, which drops it.
    pub(crate) fn timely<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        let (belief, number) = (self.belief().clone(), self.number);
        async move {
            let mut work = pin!(work);
            poll_fn(|context| match belief.holds_back(number, context.waker()) {
                true => Poll::Pending,
                false => work.as_mut().poll(context),
            })
            .await
        }
    }

    /// When the work is dropped, once it was asked to stop.
    pub(crate) fn stop_by(&self) -> Option<Instant> {
        self.belief().stop_by(self.number)
    }

    /// True once the work was asked to stop, be it by the clock alone.
    pub(crate) fn is_told(&self) -> bool {
        self.belief().is_told(self.number)
    }

    /// The published belief, and the number of the term in it.
    #[cfg(feature = "supervise")]
    pub(crate) const fn reader(&self) -> (&StatusReader, u64) {
        (&self.reader, self.number)
    }

    const fn belief(&self) -> &BeliefCell {
        &self.reader.belief
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("term", &self.term)
            .field("token", &self.token)
            .field("belief", self.belief())
            .field("tasks", &self.tasks)
            .finish_non_exhaustive()
    }
}
