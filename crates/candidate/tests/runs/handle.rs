//! The handle of a candidate: before, between and after the terms, and where the candidate stands still.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use elector_candidate::{Candidate, CandidateHandle, Leadership, LeadershipStatus};
use elector_protocol::{Identity, Term};
use elector_testing::{OneLease, eventually, seconds};
use futures::FutureExt as _;
use tokio::time::Instant;

use crate::{V1BETA1, config, elected, leader_that_stands_still, obedient, pass, start};

/// A handle whose changes are recorded.
struct Follower {
    changes: Arc<Mutex<Vec<StatusChange>>>,
}

struct StatusChange {
    /// `None` for the end of the run.
    status: Option<LeadershipStatus>,
    at: Instant,
}

// === impl Follower ===

impl Follower {
    /// Follows what changes from now on.
    fn of(handle: &CandidateHandle) -> Self {
        let changes = Arc::new(Mutex::new(Vec::new()));
        let (told, mut handle) = (Arc::clone(&changes), handle.clone());
        while handle.changed().now_or_never().is_some() {}
        tokio::spawn(async move {
            loop {
                let status = handle.changed().await;
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

    /// Each change as its holder, whether this process leads, and whether what is known is stale; `None` for the end.
    fn told(&self) -> Vec<Option<(Option<String>, bool, bool)>> {
        let changes = self.changes.lock().unwrap();
        let brief = |status: &LeadershipStatus| {
            let holder = status
                .holder
                .as_ref()
                .map(|holder| holder.as_str().to_owned());
            (holder, status.is_leader(), status.stale)
        };
        let statuses = changes.iter().map(|change| change.status.as_ref());
        statuses.map(|status| status.map(brief)).collect()
    }

    async fn is_told(&self, changes: usize) {
        eventually(|| self.changes.lock().unwrap().len() >= changes).await;
    }

    fn last_at(&self) -> Instant {
        self.changes.lock().unwrap().last().unwrap().at
    }
}

fn change(holder: Option<&str>, leads: bool, stale: bool) -> Option<(Option<String>, bool, bool)> {
    Some((holder.map(str::to_owned), leads, stale))
}

#[tokio::test(start_paused = true)]
async fn a_handle_tells_of_every_leader_before_between_and_after_the_terms() {
    let cluster = OneLease::new(&[V1BETA1]);
    let candidate = Candidate::new(config(), cluster.cluster()).unwrap();
    let handle = candidate.handle();
    let status = handle.status();
    assert!(!handle.is_leader() && status.stale, "{status:?}");
    assert_eq!((status.holder, status.term), (None, None));
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
    assert!(handle.is_leader() && handle.is_leader_under(guard.token()));
    assert_eq!(status.term, Some(Term(2)));
    assert_eq!(status.token, Some(guard.token()));
    assert_eq!(status.deadline, guard.deadline());
    assert_eq!(status.remaining, guard.remaining());
    // Renewals are no change.
    pass(60_000).await;
    assert!(handle.is_leader());
    running.shut_down();
    let _ = running.outcome().await;
    assert!(!handle.is_leader());
    let status = handle.status();
    assert!(status.stale && status.deadline.is_none(), "{status:?}");
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
async fn a_handle_tells_one_term_from_the_next() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config(), obedient);
    running.registered().await;
    cluster.grant("me");
    running.leads(1).await;
    let first = running.guard().token();
    assert!(running.handle.is_leader_under(first));
    cluster.prefer("other");
    eventually(|| cluster.record().holder == Identity::new("other")).await;
    assert!(!running.handle.is_leader());
    cluster.grant("me");
    running.leads(2).await;
    assert!(running.handle.is_leader());
    assert!(!running.handle.is_leader_under(first));
    assert!(running.handle.is_leader_under(running.guard().token()));
}

#[tokio::test(start_paused = true)]
async fn without_a_server_the_clock_ends_first_the_belief_then_the_holder_and_news_mend_it() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, elected(), obedient);
    running.registered().await;
    cluster.grant("me");
    running.leads(1).await;
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
    assert_eq!(
        follower.told(),
        [
            change(Some("me"), false, false),
            change(None, false, true),
            change(None, false, false),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_holder_of_a_record_that_stands_still_is_not_told_although_the_server_answers() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, elected(), obedient);
    running.registered().await;
    cluster.grant("other"); // For 5 s, and never accepted.
    let follower = Follower::of(&running.handle);
    follower.is_told(1).await;
    let granted = Instant::now();
    follower.is_told(2).await;
    assert!((granted.elapsed().as_secs_f64() - 5.0).abs() < 0.05);
    pass(60_000).await;
    assert_eq!(
        follower.told(),
        [
            change(Some("other"), false, false),
            change(None, false, false)
        ]
    );
}

/// P-X-R5: the check is computed from the clock, so a session that is not polled prolongs nothing.
#[tokio::test(start_paused = true)]
async fn a_session_that_stands_still_does_not_prolong_the_belief() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (mut run, handle) = leader_that_stands_still(&cluster).await;
    let token = handle.status().token.unwrap();
    pass(9_900).await;
    assert!(handle.is_leader() && handle.is_leader_under(token));
    pass(100).await;
    assert!(!handle.is_leader() && !handle.is_leader_under(token));
    assert_eq!(handle.status().remaining, Duration::ZERO);
    // Polled again, it tells nothing that the clock has not.
    poll_fn(|context| {
        assert!(run.poll_unpin(context).is_pending());
        Poll::Ready(())
    })
    .await;
    assert!(!handle.is_leader());
}

/// P-X-R4: a run that ends without a word takes the belief with it.
#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_leads_no_more() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config(), obedient);
    running.registered().await;
    cluster.grant("me");
    running.leads(1).await;
    let mut handle = running.handle.clone();
    assert!(handle.is_leader());
    running.run.abort();
    let _ = running.run.await;
    assert!(!handle.is_leader());
    assert_eq!(handle.changed().await, None);
    // Once more, and of a clone.
    assert_eq!(handle.clone().changed().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_draining_leader_leads_until_its_work_has_stopped() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config(), |leadership: Leadership| async move {
        leadership.stopped().await;
        tokio::time::sleep(seconds(3)).await;
        Ok(0)
    });
    running.registered().await;
    cluster.grant("me");
    running.leads(1).await;
    cluster.prefer("other");
    pass(2_900).await;
    assert!(running.handle.is_leader());
    eventually(|| cluster.record().holder == Identity::new("other")).await;
    assert!(!running.handle.is_leader());
}

#[tokio::test(start_paused = true)]
async fn an_overwrite_or_a_deletion_ends_the_belief_with_its_event() {
    for delete in [false, true] {
        let cluster = OneLease::new(&[V1BETA1]);
        let running = start(&cluster, elected(), obedient);
        running.registered().await;
        cluster.grant("me");
        running.leads(1).await;
        pass(1_000).await;
        assert!(running.handle.is_leader());
        if delete {
            cluster.delete_lease();
        } else {
            cluster.overwrite_lease("holderIdentity", "other".into());
        }
        let done = Instant::now();
        eventually(|| !running.handle.is_leader()).await;
        assert!(
            done.elapsed() < Duration::from_millis(10),
            "{:?}",
            done.elapsed()
        );
        let holder = running.handle.status().holder;
        assert_eq!(holder, (!delete).then(|| Identity::new("other").unwrap()));
    }
}
