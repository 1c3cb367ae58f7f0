//! The handle of a candidate: before, between and after the terms, and where the candidate stands still.

use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use elector_candidate::{Candidate, CandidateHandle, Leadership, LeaseStatus};
use elector_testing::{OneLease, eventually};
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;

use crate::{
    V1BETA1, config, connected, elected, leader, leader_that_stands_still, obedient, pass, start,
};

/// A handle whose changes are recorded.
struct Follower {
    changes: Arc<Mutex<Vec<StatusChange>>>,
}

/// Holder, whether this process leads, and whether what is known is stale; `None` for the end of the run.
type BriefStatus = Option<(Option<String>, bool, bool)>;

struct StatusChange {
    status: BriefStatus,
    at: Instant,
}

// === impl Follower ===

impl Follower {
    /// Follows what changes from now on.
    fn of(handle: &CandidateHandle) -> Self {
        let changes = Arc::new(Mutex::new(Vec::new()));
        let (told, mut stream) = (Arc::clone(&changes), handle.changes());
        assert!(stream.next().now_or_never().is_some(), "the first at once");
        tokio::spawn(async move {
            loop {
                // A status that is kept becomes only more modest.
                let status = stream.next().await.map(|status| {
                    let holder = status.holder().map(|holder| holder.as_str().to_owned());
                    (holder, status.is_leader(), status.is_stale())
                });
                let over = status.is_none();
                let at = Instant::now();
                told.lock().unwrap().push(StatusChange { status, at });
                if over {
                    break;
                }
            }
        });
        Self { changes }
    }

    fn told(&self) -> Vec<BriefStatus> {
        let changes = self.changes.lock().unwrap();
        changes.iter().map(|change| change.status.clone()).collect()
    }

    async fn is_told(&self, changes: usize) {
        eventually(|| self.changes.lock().unwrap().len() >= changes).await;
    }

    fn last_at(&self) -> Instant {
        self.changes.lock().unwrap().last().unwrap().at
    }
}

fn change(holder: Option<&str>, leads: bool, stale: bool) -> BriefStatus {
    Some((holder.map(str::to_owned), leads, stale))
}

#[tokio::test(start_paused = true)]
async fn a_handle_tells_of_every_leader_before_between_and_after_the_terms() {
    let cluster = OneLease::new(&[V1BETA1]);
    let candidate = Candidate::new(config(), connected(&cluster)).unwrap();
    let handle = candidate.handle();
    let status = handle.status();
    assert!(!handle.is_leader() && status.is_stale(), "{status:?}");
    assert_eq!((status.holder(), status.term()), (None, None));
    drop(candidate);

    let mut running = start(&cluster, config(), obedient);
    let handle = running.handle.clone();
    let follower = Follower::of(&handle);
    running.registered().await;
    follower.is_told(1).await;
    cluster.grant("other");
    follower.is_told(2).await;
    assert!(!handle.is_leader());
    cluster.grant("me");
    running.leads(1).await;
    let (guard, status) = (running.guard(), handle.status());
    assert!(handle.is_leader() && handle.leadership().is_some());
    assert_eq!(status.term(), Some(2));
    assert_eq!(status.token(), Some(guard.token()));
    assert_eq!(status.remaining(), guard.remaining());
    // Renewals are no change.
    pass(60_000).await;
    assert!(handle.is_leader());
    running.shut_down();
    let _ = running.outcome().await;
    assert!(!handle.is_leader());
    let status = handle.status();
    assert!(status.is_stale() && !status.is_leader(), "{status:?}");
    pass(1).await;
    let told = follower.told();
    assert_eq!(told[0], change(None, false, false));
    assert_eq!(told[1], change(Some("other"), false, false));
    // The grant is known before it is accepted, and the lease is released before the run ends.
    assert_eq!(told[2], change(Some("me"), false, false));
    assert_eq!(told[3], change(Some("me"), true, false));
    assert_eq!(told.last().unwrap(), &None);
    assert!(told.len() <= 7, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_server_the_clock_ends_first_the_belief_then_the_holder_and_news_mend_it() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, elected(), obedient).await;
    let follower = Follower::of(&running.handle);
    let accepted = Instant::now();
    cluster.faults().partition(true);
    follower.is_told(1).await;
    let near = |at: u64, took: Duration| {
        let at = Duration::from_millis(at);
        assert!(at.abs_diff(took) < Duration::from_millis(20), "{took:?}");
    };
    near(10_000, follower.last_at() - accepted);
    follower.is_told(2).await;
    near(15_000, follower.last_at() - accepted);
    cluster.heal();
    follower.is_told(3).await;
    let held = change(Some("me"), false, false);
    let [stale, free] = [true, false].map(|stale| change(None, false, stale));
    assert_eq!(follower.told(), [held, stale, free]);
}

/// A record that stands still says nothing, so the clock wakes those who follow, and the session itself the channel.
#[tokio::test(start_paused = true)]
async fn the_holder_of_a_record_that_stands_still_is_not_told_although_the_server_answers() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, elected(), obedient);
    running.registered().await;
    let mut channel = running.handle.watch();
    cluster.grant("other"); // For 5 s, and never accepted.
    let follower = Follower::of(&running.handle);
    follower.is_told(1).await;
    let granted = Instant::now();
    let is_held = |status: &LeaseStatus| status.holder().is_some();
    channel.wait_for(is_held).await.unwrap();
    channel.wait_for(|status| !is_held(status)).await.unwrap();
    follower.is_told(2).await;
    assert!((granted.elapsed().as_secs_f64() - 5.0).abs() < 0.05);
    pass(60_000).await;
    let [held, free] = [Some("other"), None].map(|holder| change(holder, false, false));
    assert_eq!(follower.told(), [held, free]);
}

/// P-X-R5: the check is computed from the clock, so a session that is not polled prolongs nothing.
#[tokio::test(start_paused = true)]
async fn a_session_that_stands_still_does_not_prolong_the_belief() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (mut run, handle) = leader_that_stands_still(&cluster).await;
    let status = handle.status();
    pass(9_900).await;
    assert!(handle.is_leader() && status.is_leader());
    pass(100).await;
    assert!(!handle.is_leader() && !status.is_leader());
    assert_eq!(handle.status().remaining(), Duration::ZERO);
    // Polled again, it tells nothing that the clock has not.
    poll_fn(|context| {
        assert!(run.poll_unpin(context).is_pending());
        Poll::Ready(())
    })
    .await;
    assert!(!handle.is_leader());
}

/// A status holds no belief of its own: what was true of its term may end, and does not come back with a later one.
#[tokio::test(start_paused = true)]
async fn a_status_that_is_kept_says_no_after_its_term() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, elected(), obedient).await;
    let (kept, channel) = (running.handle.status(), running.handle.watch());
    assert!(kept.is_leader() && channel.borrow().is_leader());
    assert_eq!(kept.holder(), Some(running.handle.identity()));
    cluster.prefer("better");
    eventually(|| !running.handle.is_leader()).await;
    assert!(!kept.is_leader() && !channel.borrow().is_leader());
    assert_eq!(kept.remaining(), Duration::ZERO);
    cluster.grant("me");
    running.leads(2).await;
    assert!(!kept.is_leader(), "a later term is not its own");
    assert!(channel.borrow().is_leader());
}

#[tokio::test(start_paused = true)]
async fn new_work_may_begin_until_the_term_is_to_stop() {
    let cluster = OneLease::new(&[V1BETA1]);
    let drain = |leadership: Leadership| async move {
        leadership.stopped().await;
        pass(2_000).await;
        Ok(0)
    };
    let running = leader(&cluster, elected(), drain).await;
    let handle = &running.handle;
    let guard = handle.leadership().unwrap();
    assert_eq!(guard.token(), running.guard().token());
    let task = guard.spawn(pending::<()>());
    cluster.prefer("better");
    guard.stopped().await;
    assert!(handle.is_leader(), "it leads while it drains");
    assert!(handle.leadership().is_none());
    // The lease is not given away under a task of such a guard.
    assert!(task.await.unwrap_err().is_cancelled());
    eventually(|| !handle.is_leader()).await;
    assert!(handle.leadership().is_none());
}

#[cfg(feature = "tokio-util-0-7")]
#[tokio::test(start_paused = true)]
async fn a_cancellation_token_is_cancelled_when_the_work_is_to_stop() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = leader(&cluster, elected(), obedient).await;
    let (token, lost) = (running.guard().cancellation_token(), Instant::now());
    pass(1_000).await;
    assert!(!token.is_cancelled());
    cluster.faults().partition(true);
    token.cancelled().await;
    let took = lost.elapsed().as_millis();
    assert!((9_990..10_010).contains(&took), "{took} ms");
    assert!(running.guard().cancellation_token().is_cancelled());
}
