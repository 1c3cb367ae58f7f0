//! What the work of a term holds: whether it still leads, until when, and under which token.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use elector_protocol::holder::{Loss, StopReason};
use elector_protocol::{Identity, Instant, LeaseKey, Term, Token};
use elector_runtime::Clock;
use tokio::sync::watch;

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
}

/// The state of a leadership, as the session passes it on to the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeadershipState {
    /// When the belief is over, `None` once it is.
    pub(crate) deadline: Option<Instant>,
    /// Why the work is to stop, once it is.
    pub(crate) stop: Option<StopReason>,
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
        self.receiver.state.borrow().deadline
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

    /// Waits until the work is to stop, and says why. Returns at once when it already is.
    ///
    /// From then on the work has the grace period to end. It is dropped afterwards.
    pub async fn stopped(&self) -> StopReason {
        let mut state = self.receiver.state.clone();
        loop {
            let LeadershipState { deadline, stop } = state.borrow_and_update().clone();
            if let Some(why) = stop {
                return why;
            }
            let Some(deadline) = deadline.filter(|deadline| self.clock.holder() < *deadline) else {
                self.receiver.over.store(true, Ordering::Release);
                return StopReason::Lost(Loss::DeadlinePassed);
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
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership")
            .field("lease", &self.lease)
            .field("identity", &self.identity)
            .field("term", &self.term)
            .field("token", &self.token)
            .field("state", &*self.receiver.state.borrow())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use elector_protocol::{ResourceVersion, Timestamp};
    use elector_runtime::TokioClock;

    use super::*;

    fn guard(deadline: Duration) -> (watch::Sender<LeadershipState>, Leadership, Arc<dyn Clock>) {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::start(Timestamp::MIN));
        let (sender, receiver) = watch::channel(LeadershipState {
            deadline: Some(clock.holder().after(deadline)),
            stop: None,
        });
        let guard = Leadership::new(
            LeaseKey::new("ns", "web"),
            Identity::new("me").unwrap(),
            (Term(3), Token(ResourceVersion(7))),
            clock.clone(),
            LeadershipReceiver {
                state: receiver,
                over: Arc::default(),
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
    async fn a_renewal_moves_the_deadline_of_those_who_wait() {
        let (sender, guard, clock) = guard(Duration::from_secs(10));
        let waiting = guard.clone();
        let stopped = tokio::spawn(async move { waiting.stopped().await });
        tokio::time::sleep(Duration::from_secs(9)).await;
        let later = clock.holder().after(Duration::from_secs(10));
        sender.send_modify(|state| state.deadline = Some(later));
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
