//! The answers to a liveness probe, which fails while work runs that may act no more.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use elector_candidate::{Leadership, TermEnd, Timing};
use elector_protocol::Identity;
use elector_testing::{OneLease, eventually, seconds};

use crate::{RunOutcome, V1BETA1, config, leader, leader_that_stands_still, obedient, pass, start};

#[tokio::test(start_paused = true)]
async fn a_standby_a_leader_and_one_that_has_lost_are_alive() {
    let cluster = OneLease::new(&[V1BETA1]);
    let running = start(&cluster, config(), obedient);
    assert_eq!(running.handle.check_live(), Ok(()));
    running.registered().await;
    assert_eq!(running.handle.check_live(), Ok(()));
    cluster.grant("me");
    running.leads(1).await;
    // Twice as long as work may act without a renewal.
    pass(28_000).await;
    assert!(running.handle.is_leader());
    assert_eq!(running.handle.check_live(), Ok(()));
    cluster.faults().partition(true);
    for _ in 0..300 {
        pass(100).await;
        assert_eq!(running.handle.check_live(), Ok(()));
    }
    assert!(!running.handle.is_leader());
}

/// P-K8: a session that does not turn cannot stop its work, and the probe sees it by the clock alone.
#[tokio::test(start_paused = true)]
async fn a_leader_that_stands_still_is_not_alive_once_its_work_should_have_stopped() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (mut run, handle) = leader_that_stands_still(&cluster).await;
    // The belief ends after 10 s, and 3.75 s later the time to stop.
    pass(13_700).await;
    assert!(!handle.is_leader());
    assert_eq!(handle.check_live(), Ok(()));
    pass(1_050).await;
    let overdue = handle.check_live().unwrap_err();
    let overdue = overdue.to_string();
    let since = overdue.strip_prefix("the lease was lost, and the work should have stopped ");
    let since = elector_api::parse_duration(since.unwrap().strip_suffix(" ago").unwrap()).unwrap();
    let holds = (Duration::from_millis(900)..=Duration::from_millis(1_100)).contains(&since);
    assert!(holds, "{overdue}");
    // Polled again, it stops its work.
    tokio::select! {
        biased;
        _ = &mut run => unreachable!(),
        () = eventually(|| handle.check_live().is_ok()) => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_is_left_behind_keeps_the_probe_failing_after_the_run() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let config = config()
        .grace(Duration::from_millis(10))
        .timing(Timing::new(seconds(2), seconds(1)));
    let mut running = leader(&cluster, config, move |_: Leadership| {
        let blocked = Arc::clone(&blocked);
        async move {
            let _ = blocked.lock().unwrap().recv();
            Ok(0)
        }
    })
    .await;
    let handle = running.handle.clone();
    running.shut_down();
    let expected = RunOutcome::TermEnded(TermEnd::WorkStillRuns);
    assert_eq!(running.outcome().await, expected);
    assert_eq!(cluster.record().holder, Identity::new("me"));
    eventually(|| handle.check_live().is_err()).await;
    drop(release);
}
