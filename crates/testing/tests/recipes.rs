//! The findings of the kit, in sound work and in work that is broken in one way each.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use elector_candidate::{
    Config, Error, Identity, Leadership, Loss, Mode, Outcome, StopReason, TermEnd,
};
use elector_testing::{
    EffectLog, Fault, Rule, TestCluster, TestProgram, WorkStop, eventually, millis, pass, seconds,
};

type ControllerProgram = TestProgram<Result<Outcome<()>, Error>>;

fn config() -> Config {
    Config::new("web", "1.0.0")
}

/// Writes a row a second until it is asked to stop, and takes so many milliseconds to close.
async fn controller(leadership: Leadership, rows: EffectLog, close: u64) -> Result<(), String> {
    let mut tick = tokio::time::interval(seconds(1));
    loop {
        tokio::select! {
            biased;
            _ = leadership.stopped() => break,
            _ = tick.tick() => rows.record("row"),
        }
    }
    pass(millis(close)).await;
    rows.record("closed");
    Ok(())
}

/// A program that leads, with such a controller as its work.
async fn leader(cluster: &TestCluster, close: u64) -> ControllerProgram {
    let program = cluster.run(config(), move |leadership, rows| {
        controller(leadership, rows, close)
    });
    program.leads().await;
    program
}

/// The message of a panic that this ends with.
fn failure(act: impl FnOnce()) -> String {
    let caught = catch_unwind(AssertUnwindSafe(act));
    let message = caught.expect_err("it should have failed");
    message.downcast_ref::<String>().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn work_that_takes_longer_than_the_lease_leaves_is_found() {
    let cluster = TestCluster::new();
    let mut program = leader(&cluster, 3_800).await;
    program.faults().partition(true);
    let report = program.term_report().await;
    report.assert_nothing_late();
    let message = failure(|| report.assert_returned());
    assert_eq!(
        message,
        "the work did not return in time, and was dropped (told to stop: no renewal succeeded within the renew \
         deadline; it had 3.75s)"
    );
}

#[tokio::test(start_paused = true)]
async fn a_task_that_the_work_leaves_behind_is_found() {
    for owned in [true, false] {
        let cluster = TestCluster::new();
        let mut program: ControllerProgram =
            cluster.run(config(), move |leadership, rows| async move {
                let write = async move {
                    loop {
                        rows.record("row");
                        pass(seconds(1)).await;
                    }
                };
                if owned {
                    leadership.spawn(write);
                } else {
                    tokio::spawn(write);
                }
                leadership.stopped().await;
                Ok::<(), String>(())
            });
        program.leads().await;
        program.faults().partition(true);
        let report = program.term_report().await;
        report.assert_returned();
        if owned {
            report.assert_nothing_late();
            continue;
        }
        let message = failure(|| report.assert_nothing_late());
        let holds = message.starts_with("the work acted when its time was over");
        assert!(holds, "{message}");
        let rows = report.late_effects().count();
        assert!((14..=16).contains(&rows), "{rows} rows");
        assert_eq!(message.matches("\"row\"").count(), rows);
    }
}

/// Work that finishes something after it was asked to stop may do so on a hand-over, and not when the lease is taken.
#[tokio::test(start_paused = true)]
async fn a_hand_over_leaves_the_grace_and_a_lease_that_is_taken_leaves_nothing() {
    let cluster = TestCluster::new();
    let mut program = leader(&cluster, 9_000).await;
    program.lease().prefer("another");
    let report = program.term_report().await;
    report.assert_nothing_late();
    report.assert_returned();
    let to = Identity::new("another").unwrap();
    assert_eq!(report.end, TermEnd::HandedOver { to });
    // The one that was preferred does not exist, and the lease is free again.
    program.leads().await;
    program.lease().overwrite_holder("another");
    let report = program.term_report().await;
    report.assert_nothing_late();
    assert_eq!(report.work.unwrap().0, WorkStop::Dropped);
    assert!(report.effects.iter().all(|effect| effect.1 == "row"));
    program.leads().await;
    program.lease().delete();
    let report = program.term_report().await;
    assert_eq!(report.end, TermEnd::Lost(Loss::Deleted));
    let (reason, told) = report.told.unwrap();
    assert_eq!(reason, StopReason::Lost(Loss::Deleted));
    assert!(report.limit - told > seconds(3));
}

#[tokio::test(start_paused = true)]
async fn refused_and_unanswered_renewals_cost_the_term_when_the_deadline_has_passed() {
    for fault in [Fault::Refuse(503), Fault::HangAfter] {
        let cluster = TestCluster::new();
        let mut program = leader(&cluster, 0).await;
        let rule = Rule::new(fault).verb("update");
        program.faults().inject(rule);
        program.faults().freeze_watches(true);
        pass(seconds(4)).await;
        assert!(program.handle().is_leader(), "{fault:?}");
        pass(seconds(10)).await;
        program.heal();
        let report = program.term_report().await;
        assert_eq!(report.end, TermEnd::Lost(Loss::DeadlinePassed), "{fault:?}");
        report.assert_nothing_late();
        report.assert_returned();
        program.leads().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_rival_leads_when_the_work_has_stopped() {
    let cluster = TestCluster::new();
    let mut program = leader(&cluster, 3_000).await;
    let rival = program.start_rival();
    program.faults().partition(true);
    rival.leads().await;
    assert_eq!(program.lease().holder().as_deref(), Some("rival"));
    let led = cluster.elapsed();
    let report = program.term_report().await;
    report.assert_nothing_late();
    assert!(report.limit < led);
    drop(rival);
    program.heal();
    program.leads().await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_the_program_and_its_term() {
    let cluster = TestCluster::new();
    let mut program = leader(&cluster, 1_000).await;
    program.shut_down();
    let report = program.term_report().await;
    report.assert_returned();
    assert_eq!(report.told.unwrap().0, StopReason::ShutDown);
    let outcome = program.ended().await.unwrap();
    let expected = (None, Some(TermEnd::Released));
    assert_eq!((outcome.value, outcome.term), expected);
    assert_eq!(cluster.lease("default", "web").holder(), None);
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_or_ends_by_itself_is_reported_so() {
    for panics in [true, false] {
        let cluster = TestCluster::new();
        let mut program: ControllerProgram = cluster.run(config(), move |_, _| async move {
            pass(seconds(1)).await;
            assert!(!panics, "as the test wants it");
            Ok::<(), String>(())
        });
        let report = program.term_report().await;
        let stop = report.work.unwrap().0;
        if panics {
            assert_eq!(stop, WorkStop::Panicked);
            failure(|| report.assert_returned());
        } else {
            assert_eq!(stop, WorkStop::Returned);
            report.assert_returned();
        }
        report.assert_nothing_late();
    }
}

/// The test plays the elector, which creates the Lease too.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_waits_for_an_elector_leads_when_it_is_granted_the_lease() {
    let cluster = TestCluster::new();
    let config = config().identity("me").mode(Mode::Elected);
    let program: ControllerProgram =
        cluster.run(config, |leadership, rows| controller(leadership, rows, 0));
    pass(seconds(60)).await;
    assert!(!program.handle().is_leader());
    cluster.lease("default", "web").grant("me");
    eventually(|| program.handle().is_leader()).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_test_does_wrong_is_said() {
    let cluster = TestCluster::new();
    let lease = cluster.lease("default", "web");
    let expected = "there is no Lease default/web: has its program led yet (`TestProgram::leads`)?";
    assert_eq!(failure(|| lease.delete()), expected);
    assert!(failure(|| lease.overwrite_holder("b")).starts_with("there is no Lease"));
    let expected = "\"\" is no identity: it is empty";
    assert_eq!(failure(|| lease.grant("")), expected);
    let bad = Config::new("web", "");
    let message = failure(|| {
        let _program: ControllerProgram =
            cluster.run(bad.clone(), |_, _| async { Ok::<(), String>(()) });
    });
    let holds = message.starts_with("configure program: version is missing");
    assert!(holds, "{message}");
}

/// A run of a test is like the last, the pauses after failures included, whose lengths are drawn at random elsewhere.
#[tokio::test(start_paused = true)]
async fn the_same_test_gives_the_same_history() {
    let mut histories = Vec::new();
    for _ in 0..2 {
        let cluster = TestCluster::new();
        let config = config().retry_work(true);
        let mut program: ControllerProgram = cluster.run(config, |_, _| async {
            pass(seconds(1)).await;
            Err("as the test wants it".to_owned())
        });
        for _ in 0..3 {
            program.term_report().await.assert_returned();
        }
        histories.push(cluster.server().changes());
    }
    assert_eq!(histories[0], histories[1]);
}
