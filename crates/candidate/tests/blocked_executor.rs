//! Work that blocks the only thread of its executor, beside a server behind a socket, in real time.

#![cfg(feature = "connect")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that panics fails, its helpers included"
)]

use std::path::PathBuf;
use std::time::Duration;

use elector_apiserver::{ApiServer, Config as ServerConfig};
use elector_candidate::{
    Candidate, ClientArgs, Config, Leadership, Mode, RunError, RunOutcome, TermEnd, connect,
};
use elector_protocol::CandidateTiming;

/// A server on a thread of its own, for as long as the test program runs, and the kubeconfig that leads to it.
fn server(name: &str) -> ClientArgs {
    let kubeconfig = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let server = ApiServer::new(ServerConfig::default());
    std::fs::write(&kubeconfig, elector_testing::listen(&server).to_string()).unwrap();
    ClientArgs::of_kubeconfig(kubeconfig)
}

/// A lease of two seconds, believed for one.
fn config() -> Config {
    let mut config = Config::plain("web");
    config.mode = Mode::Plain;
    config.timing = CandidateTiming::of(Duration::from_secs(2), Duration::from_secs(1));
    config.absent_lease_grace = Some(Duration::ZERO);
    config
}

/// Blocks its thread for longer than the lease lasts, and says whether it still leads then.
async fn block(leadership: Leadership) -> std::io::Result<bool> {
    std::thread::sleep(Duration::from_secs(4));
    Ok(leadership.is_leader())
}

/// The answer of the blocked work, and the end of its term.
async fn run(candidate: Candidate) -> RunOutcome<bool, std::io::Error> {
    let run = candidate.run(block, std::future::pending::<()>());
    let ended = tokio::time::timeout(Duration::from_secs(60), run).await;
    ended.unwrap().unwrap()
}

#[tokio::test]
async fn work_that_blocks_its_executor_keeps_the_lease_where_renewals_have_a_thread() {
    let args = server("kept");
    let candidate = Candidate::connect(config(), &args).await.unwrap();
    let outcome = run(candidate).await;
    let RunOutcome::WorkEnded { value, term } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(value, "lost the lease");
    assert_eq!(term, TermEnd::Released);
}

/// A controller whose reconciles block their executor.
#[tokio::test]
async fn a_part_that_blocks_its_executor_keeps_the_lease_where_renewals_have_a_thread() {
    let candidate = Candidate::connect(config(), &server("part")).await.unwrap();
    let handle = candidate.handle();
    let (led, leads) = tokio::sync::oneshot::channel();
    let candidate = candidate.alongside("controller", |_| async move {
        let leadership: Leadership = leads.await.unwrap();
        let kept = block(leadership.clone()).await.unwrap();
        (kept, leadership.term() == handle.status().term.unwrap())
    });
    let mut led = Some(led);
    let work = move |leadership: Leadership| {
        let _ = led.take().unwrap().send(leadership.clone());
        async move {
            leadership.stopped().await;
            Ok::<(), std::io::Error>(())
        }
    };
    let run = candidate.run(work, std::future::pending::<()>());
    let ended = tokio::time::timeout(Duration::from_secs(60), run).await;
    let RunError::PartEnded { how, term, .. } = ended.unwrap().unwrap_err() else {
        panic!("another error");
    };
    assert_eq!(how, "ended: (true, true)");
    assert_eq!(term, Some(TermEnd::Released));
}

/// The same by a guard that the caller holds.
#[tokio::test]
async fn a_caller_that_blocks_its_executor_keeps_the_lease_whose_guard_it_holds() {
    let candidate = Candidate::connect(config(), &server("guard"))
        .await
        .unwrap();
    let waiting = candidate.become_leader();
    let guard = tokio::time::timeout(Duration::from_secs(60), waiting).await;
    let guard = guard.unwrap().unwrap();
    assert!(block(guard.clone()).await.unwrap(), "lost the lease");
    let outcome = guard.release().await.unwrap();
    let term = TermEnd::Released;
    assert_eq!(outcome, RunOutcome::WorkEnded { value: (), term });
}

/// The same work with a client of the caller's: what the thread is for.
#[tokio::test]
async fn work_that_blocks_its_executor_loses_the_lease_where_renewals_share_it() {
    let cluster = connect(&server("lost")).await.unwrap();
    let candidate = Candidate::new(config(), cluster).unwrap();
    let lost = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&lost);
    let work = move |leadership: Leadership| {
        let seen = std::sync::Arc::clone(&seen);
        async move {
            let leads = block(leadership).await?;
            seen.store(!leads, std::sync::atomic::Ordering::SeqCst);
            Err::<(), _>(std::io::Error::other("end the run"))
        }
    };
    let run = candidate.run(work, std::future::pending::<()>());
    let ended = tokio::time::timeout(Duration::from_secs(60), run).await;
    assert!(ended.is_ok());
    assert!(lost.load(std::sync::atomic::Ordering::SeqCst));
}

/// The number of threads of this program that send requests of candidates.
fn renewal_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name == b"elector\n").count()
}

/// Nothing of a run that is dropped is left: neither the work nor the thread.
#[tokio::test]
async fn a_run_that_is_dropped_stops_its_work_and_its_thread() {
    let args = server("dropped");
    let candidate = Candidate::connect(config(), &args).await.unwrap();
    let handle = candidate.handle();
    let (tell, gone) = tokio::sync::oneshot::channel::<()>();
    let mut tell = Some(tell);
    let work = move |leadership: Leadership| {
        let tell = tell.take();
        async move {
            leadership.stopped().await;
            // Dropped with the work, and not before.
            std::future::pending::<()>().await;
            drop(tell);
            Ok::<(), std::io::Error>(())
        }
    };
    let run = tokio::spawn(candidate.run(work, std::future::pending::<()>()));
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    let until = async |condition: &dyn Fn() -> bool| {
        while !condition() {
            assert!(std::time::Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    until(&|| handle.is_leader()).await;
    assert!(renewal_threads() > 0);
    run.abort();
    let gone = tokio::time::timeout(Duration::from_secs(60), gone).await;
    assert!(gone.unwrap().is_err());
    until(&|| !handle.is_leader()).await;
    // Those of other tests end too.
    until(&|| renewal_threads() == 0).await;
}
