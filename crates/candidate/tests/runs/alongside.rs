//! Parts that have to run beside the work: a leader without them does not lead.

use std::future::{pending, ready};
use std::sync::{Arc, Mutex};

use elector_candidate::{Candidate, Config, Error, Outcome, TermEnd};
use elector_protocol::Occupancy;
use elector_testing::{OneLease, seconds};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::{
    RunOutcome, RunningCandidate, V1BETA1, config, connected, obedient, pass, start_changed,
};

/// A leader whose candidate has been given parts.
async fn leader_with(
    cluster: &OneLease,
    config: Config,
    parts: impl FnOnce(Candidate) -> Candidate,
) -> RunningCandidate {
    let running = start_changed(cluster, config, obedient, parts);
    running.is_granted(cluster).await;
    running
}

/// The end of the part `controller`, and that of the term.
fn part_ended(ended: Result<Outcome<u32>, Error>) -> (String, Option<TermEnd>) {
    match ended.unwrap_err() {
        Error::PartEnded { part, how, term } if part == "controller" => (how, term),
        error => panic!("{error}"),
    }
}

/// A part that ends when it is asked to, and does this then.
fn part_that<F, T>(
    end: F,
) -> (
    oneshot::Sender<()>,
    impl Future<Output = T> + Send + 'static,
)
where
    F: FnOnce() -> T + Send + 'static,
{
    let (tell, told) = oneshot::channel::<()>();
    let part = async move {
        let _ = told.await;
        end()
    };
    (tell, part)
}

/// The way in which a part ends.
type PartEnding = fn() -> Result<(), &'static str>;

/// A panic too, and although failed work is tried again: that would leave the part behind.
#[tokio::test(start_paused = true)]
async fn a_part_that_ends_gives_the_lease_up_and_is_named() {
    let ends: [(PartEnding, _); 2] = [
        (|| Err("no watch"), "ended: Err(\"no watch\")"),
        (|| panic!("as it should"), "panicked: as it should"),
    ];
    for (end, how) in ends {
        let cluster = OneLease::new(&[V1BETA1]);
        let (end, part) = part_that(end);
        let running = leader_with(&cluster, config().retry_work(true), |candidate| {
            candidate.alongside("controller", |_| part)
        })
        .await;
        end.send(()).unwrap();
        let ended = running.result().await;
        let text = format!("run controller alongside the work: it {how}; the term ended: released");
        assert_eq!(ended.as_ref().unwrap_err().to_string(), text);
        assert_eq!(part_ended(ended), (how.to_owned(), Some(TermEnd::Released)));
        assert_eq!(cluster.record().occupancy(), Occupancy::Released);
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_that_ends_on_a_standby_ends_its_run() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (end, part) = part_that(|| ());
    let running = start_changed(&cluster, config(), obedient, |candidate| {
        candidate.alongside("controller", |_| part)
    });
    running.registered().await;
    end.send(()).unwrap();
    let ended = part_ended(running.result().await);
    assert_eq!(ended, ("ended".to_owned(), None));
    assert!(cluster.candidate(V1BETA1).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_work_is_reported_before_the_end_of_a_part() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (end, part) = part_that(|| ());
    let fails = |leadership: elector_candidate::Leadership| async move {
        leadership.stopped().await;
        Err("disk full")
    };
    let running = start_changed(&cluster, config(), fails, |candidate| {
        candidate.alongside("controller", |_| part)
    });
    running.is_granted(&cluster).await;
    end.send(()).unwrap();
    let outcome = running.outcome().await;
    let term = TermEnd::Released;
    let error = "disk full".to_owned();
    assert_eq!(outcome, RunOutcome::WorkFailed { error, term });
}

/// Caches and probes stay until nothing of the work is left.
#[tokio::test(start_paused = true)]
async fn parts_stop_when_the_lease_is_given_up_and_have_the_grace_period_then() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (seen, record) = (Arc::new(Mutex::new(Vec::new())), cluster.clone());
    let noted = Arc::clone(&seen);
    let grace = seconds(10);
    let running = leader_with(&cluster, config(), |candidate| {
        let candidate = candidate.alongside("server", |stop| async move {
            stop.await;
            let released = record.record().occupancy() == Occupancy::Released;
            noted.lock().unwrap().push(released);
            sleep(grace - seconds(1)).await;
            noted.lock().unwrap().push(true);
        });
        candidate.alongside("endless", |_| pending::<()>())
    })
    .await;
    let begun = cluster.now();
    running.releases().await;
    assert_eq!(*seen.lock().unwrap(), [true, true]);
    let took = cluster.now().since(begun);
    assert!(
        took < grace,
        "the part that dropped its future is waited for: {took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_part_that_does_not_stop_is_dropped_after_the_grace_period() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (dropped, is_dropped) = oneshot::channel::<()>();
    let grace = seconds(10);
    let running = leader_with(&cluster, config(), |candidate| {
        candidate.alongside("controller", |stop| async move {
            let _kept = (stop, dropped);
            pending::<()>().await;
        })
    })
    .await;
    let begun = cluster.now();
    running.releases().await;
    assert!(is_dropped.await.is_err());
    let took = cluster.now().since(begun);
    assert!(took >= grace && took < grace + seconds(1), "{took:?}");
}

/// A caller that drops the run gets its executor back.
#[tokio::test(start_paused = true)]
async fn parts_are_dropped_with_their_run() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (dropped, is_dropped) = oneshot::channel::<()>();
    let running = leader_with(&cluster, config(), |candidate| {
        candidate.alongside("controller", |_| async move {
            let _kept = dropped;
            pending::<()>().await;
        })
    })
    .await;
    running.run.abort();
    pass(100).await;
    assert!(is_dropped.await.is_err());
}

/// A program ends its servers by the same signal as its run.
#[tokio::test(start_paused = true)]
async fn a_part_that_ends_with_the_shutdown_is_no_failure() {
    let cluster = OneLease::new(&[V1BETA1]);
    let (shutdown, stopped) = oneshot::channel::<()>();
    let candidate = Candidate::new(config(), connected(&cluster)).unwrap();
    let candidate = candidate.alongside("server", |_| ready(()));
    let run = candidate.run(obedient, stopped);
    drop(shutdown);
    assert_eq!(RunOutcome::from(run.await), RunOutcome::ShutDown(None));
}
