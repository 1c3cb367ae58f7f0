//! A term that a test makes and ends, for work that is tested without an election.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use elector_protocol::holder::{Belief, Loss, StopReason};
use elector_protocol::{
    Identity, LeaseRecord, LeaseSnapshot, OperatorOverrides, ResourceVersion, Term, Timestamp,
    Token, Uid,
};
use elector_runtime::{Clock as _, TokioClock};

use crate::config::{Config, ConfigError};
use crate::handle::CandidateHandle;
use crate::leadership::Leadership;
use crate::resolved_config::ResolvedConfig;
use crate::status::StatusPublisher;
use crate::term_tasks::TermTasks;

/// A term that a test makes and ends, for unit tests of what takes a [`Leadership`]. There is no candidate, no server and
/// no election.
///
/// It leads at once, and until the test says otherwise. Its clock is that of tokio's timers, which a test may pause; it
/// needs no runtime, unless what is tested spawns or waits. Nothing is dropped where the time to stop is over:
/// [`Leadership::time_to_stop`] says how much a run would leave, and the crate `elector-testing` has runs. When the term is
/// dropped, its guard leads no more, and the tasks that were spawned by the guard are aborted.
///
/// ```
/// use elector_candidate::{Leadership, Loss, StopReason, TestTerm};
///
/// /// What is to be tested.
/// fn write_row(leadership: &Leadership, rows: &mut Vec<String>) -> bool {
///     if leadership.is_leader() {
///         rows.push(format!("written under {}", leadership.token()));
///     }
///     leadership.is_leader()
/// }
///
/// let term = TestTerm::new().with_token(7);
/// let (leadership, mut rows) = (term.leadership(), Vec::new());
/// assert!(write_row(&leadership, &mut rows));
///
/// // Told to stop, it leads until it has stopped; after a loss it does not.
/// term.stop(StopReason::ShutDown);
/// assert!(write_row(&leadership, &mut rows));
/// term.stop(StopReason::Lost(Loss::Deleted));
/// assert!(!write_row(&leadership, &mut rows));
/// assert_eq!(rows, ["written under 7", "written under 7"]);
/// ```
#[derive(Debug)]
#[must_use = "a term that is dropped leads no more"]
pub struct TestTerm {
    config: ResolvedConfig,
    clock: Arc<TokioClock>,
    token: Token,
    status: StatusPublisher,
    tasks: TermTasks,
    /// The newest revision of the Lease.
    revision: AtomicU64,
}

/// The term and the token of the first candidate that ever led.
const TERM: Term = Term(1);
const TOKEN: Token = Token(ResourceVersion(1));

// === impl TestTerm ===

impl TestTerm {
    /// A term of the process `me` on the lease `default/test`, number 1, under token 1, with the usual grace and timing.
    pub fn new() -> Self {
        Self::of(Config::new("test", "1.0.0").identity("me"))
            .expect("the lease and the identity are valid, and the rest is the default")
    }

    /// A term as a candidate of that configuration has it: with its lease, its identity, its grace and its timing.
    ///
    /// # Errors
    ///
    /// When the configuration breaks a rule; the text names it.
    pub fn of(config: Config) -> Result<Self, ConfigError> {
        let config = ResolvedConfig::new(config, "default", Duration::MAX)?;
        let clock = Arc::new(TokioClock::start(Timestamp::MIN));
        let term = Self {
            status: StatusPublisher::new(&config, clock.clone()),
            config,
            clock,
            token: TOKEN,
            tasks: TermTasks::default(),
            revision: AtomicU64::new(1),
        };
        term.expire_after(Duration::MAX);
        Ok(term)
    }

    /// The same under this fencing token. Guards that were obtained before keep theirs.
    pub fn with_token(mut self, token: u64) -> Self {
        self.token = Token(ResourceVersion(token));
        self
    }

    /// Has the belief end so long from now, by the clock alone, as where no later renewal succeeds. Called again, it plays
    /// one that does. A belief that has been lost does not come back.
    pub fn expire_after(&self, belief: Duration) {
        let now = self.clock.holder();
        let belief = Belief {
            term: TERM,
            token: self.token,
            deadline: now.after(belief),
        };
        self.status.publish(now, Some(belief), None, None, None);
        self.status.belief().state().tasks = Some(self.tasks.clone());
    }

    /// The guard of the term, as the work is given it.
    pub fn leadership(&self) -> Leadership {
        let number = self.status.belief().number().unwrap_or_default();
        let (reader, tasks) = (self.status.reader(), self.tasks.clone());
        Leadership::new(reader, number, TERM, self.token, tasks)
    }

    /// The handle of its candidate, for routes and layers.
    pub fn handle(&self) -> CandidateHandle {
        CandidateHandle::new(self.status.reader())
    }

    /// Has the Lease name another holder from now on, which ends the term: what a standby knows.
    pub fn led_by(&self, holder: impl Into<String>) {
        let by = Identity::new(holder.into());
        self.stop(StopReason::Lost(Loss::Taken { by: by.clone() }));
        let now = self.clock.holder();
        let duration = self.config.timing.lease_duration.as_secs();
        let snapshot = LeaseSnapshot {
            uid: Uid::new("test"),
            version: ResourceVersion(self.revision.fetch_add(1, Ordering::Relaxed)),
            record: LeaseRecord {
                holder: by,
                duration_seconds: i32::try_from(duration).ok(),
                term: Term(TERM.0 + 1),
                ..LeaseRecord::default()
            },
            overrides: OperatorOverrides::default(),
        };
        self.status.note_heard(now);
        self.status.publish(now, None, None, Some(&snapshot), None);
    }

    /// Tells the work to stop. It leads on while it stops, unless the reason is a loss, which ends the belief at once.
    pub fn stop(&self, reason: StopReason) {
        let now = self.clock.holder();
        self.status.change_term(|term| {
            if let StopReason::Lost(_) = reason {
                term.lose_at(now, self.config.given.stop_budget());
            }
            let by = self.config.stop_by(&reason, term.limits, now);
            term.tell(reason, by);
        });
    }
}

impl Default for TestTerm {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TestTerm {
    fn drop(&mut self) {
        // A guard keeps the tasks, and must not keep them alive.
        self.tasks.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A term whose belief ends so many seconds from now, and its guard.
    fn term(lasts: u64) -> (TestTerm, Leadership) {
        let config = Config::new("web", "1.0.0").grace(seconds(8));
        let term = TestTerm::of(config).unwrap();
        term.expire_after(seconds(lasts));
        let guard = term.leadership();
        (term, guard)
    }

    #[tokio::test(start_paused = true)]
    async fn it_leads_until_the_test_says_otherwise() {
        let term = TestTerm::new().with_token(7);
        let guard = term.leadership();
        assert_eq!(guard.token(), 7);
        assert_eq!(guard.lease().to_string(), "default/test");
        tokio::time::sleep(seconds(1_000_000)).await;
        assert!(guard.is_leader() && guard.stop_reason().is_none());
        let waiting = tokio::spawn({
            let guard = guard.clone();
            async move { guard.stopped().await }
        });
        let to = Identity::new("other").unwrap();
        term.stop(StopReason::HandOver { to: to.clone() });
        assert_eq!(waiting.await.unwrap(), StopReason::HandOver { to });
        assert!(guard.is_leader(), "a draining holder still leads");
        assert_eq!(guard.time_to_stop(), seconds(10));
        drop(term);
        assert!(!guard.is_leader());
    }

    /// As a route or a layer of a standby sees it.
    #[tokio::test(start_paused = true)]
    async fn another_holder_is_shown_until_its_record_expires() {
        let term = TestTerm::new();
        let (handle, guard) = (term.handle(), term.leadership());
        assert!(handle.is_leader() && handle.leadership().is_some());
        for other in ["web-1", "web-2"] {
            term.led_by(other);
            let status = handle.status();
            assert_eq!(status.holder().map(Identity::as_str), Some(other));
            assert_eq!((status.term(), status.token()), (Some(2), None));
            assert!(!status.is_stale() && !status.is_leader() && !guard.is_leader());
            assert_eq!(guard.time_to_stop(), Duration::ZERO);
        }
        tokio::time::advance(seconds(15)).await;
        let status = handle.status();
        assert!(status.holder().is_none() && status.is_stale());
    }

    #[tokio::test(start_paused = true)]
    async fn a_loss_ends_the_belief_and_leaves_what_a_run_leaves() {
        let by = Identity::new("other");
        for (loss, left) in [
            (Loss::DeadlinePassed, 3_750),
            (Loss::Deleted, 3_750),
            (Loss::Taken { by }, 0),
        ] {
            let term = TestTerm::new();
            let guard = term.leadership();
            term.stop(StopReason::Lost(loss.clone()));
            assert!(!guard.is_leader());
            assert_eq!(guard.stopped().await, StopReason::Lost(loss));
            assert_eq!(guard.time_to_stop().as_millis(), left);
            term.expire_after(seconds(10));
            assert!(!guard.is_leader(), "what is lost does not come back");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_guard_leads_no_more_by_the_clock_alone() {
        let config = Config::plain("web").identity("web-0");
        let term = TestTerm::of(config).unwrap();
        term.expire_after(seconds(10));
        let guard = term.leadership();
        assert_eq!(guard.identity().as_str(), "web-0");
        tokio::time::advance(seconds(9)).await;
        assert!(guard.is_leader());
        term.expire_after(seconds(10));
        tokio::time::advance(Duration::from_millis(9_999)).await;
        assert!(guard.is_leader() && guard.stop_reason().is_none());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!guard.is_leader());
        let lost = StopReason::Lost(Loss::DeadlinePassed);
        assert_eq!(guard.stop_reason(), Some(lost.clone()));
        assert_eq!(guard.stopped().await, lost);
        // Plain candidates count on client-go, which writes whole seconds.
        assert_eq!(guard.time_to_stop().as_millis(), 2_750);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_to_stop_is_the_grace_and_no_more_than_the_lease_leaves() {
        let (term, guard) = term(10);
        let left = || guard.time_to_stop().as_secs();
        assert_eq!(left(), 8);
        tokio::time::advance(seconds(7)).await;
        assert_eq!(left(), 6);
        let by = term.clock.holder().after(seconds(2));
        term.status
            .change_term(|term| term.stop = Some((StopReason::ShutDown, by)));
        assert_eq!(left(), 2);
        tokio::time::advance(seconds(3)).await;
        assert_eq!(left(), 0);
        term.status.change_term(|term| term.stop = None);
        assert_eq!(left(), 3);
        drop(term);
        assert_eq!(left(), 0);
    }

    /// The time that was given counts although work that was asked now would have less, and the lease bounds both.
    #[tokio::test(start_paused = true)]
    async fn the_time_to_stop_that_was_told_is_not_that_of_work_that_is_told_now() {
        let (term, guard) = term(100);
        let told = |after| {
            let by = term.clock.holder().after(seconds(after));
            term.status
                .change_term(|term| term.stop = Some((StopReason::ShutDown, by)));
            guard.time_to_stop().as_secs()
        };
        assert_eq!([told(5), told(20), told(200)], [5, 20, 103]);
        tokio::time::advance(seconds(100)).await;
        assert_eq!(guard.time_to_stop().as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_moves_the_deadline_of_those_who_wait() {
        let (term, guard) = term(10);
        let waiting = guard.clone();
        let stopped = tokio::spawn(async move { waiting.stopped().await });
        tokio::time::sleep(seconds(9)).await;
        let later = term.clock.holder().after(seconds(10));
        term.expire_after(seconds(10));
        let limit = later.after(Duration::from_millis(3_750));
        assert_eq!(guard.lease_limit(), Some(limit));
        tokio::time::sleep(seconds(9)).await;
        assert!(guard.is_leader() && !stopped.is_finished());
        term.status
            .change_term(|term| term.stop = Some((StopReason::ShutDown, later)));
        assert_eq!(stopped.await.unwrap(), StopReason::ShutDown);
        assert!(guard.is_leader(), "a draining holder still leads");
    }

    #[tokio::test(start_paused = true)]
    async fn a_guard_without_its_candidate_does_not_lead() {
        let (term, guard) = term(10);
        let task = guard.spawn(std::future::pending::<()>());
        let waiting = tokio::spawn(guard.stopped());
        drop(term);
        assert!(!guard.is_leader());
        assert_eq!(guard.stop_reason(), Some(StopReason::ShutDown));
        waiting.await.unwrap();
        let ended = tokio::time::timeout(seconds(10), task).await;
        assert!(ended.unwrap().unwrap_err().is_cancelled());
    }
}
