//! Work that blocks the only thread of its executor, beside a server behind a socket, in real time.

#![cfg(feature = "connect")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::path::PathBuf;
use std::time::Duration;

use elector_apiserver::{ApiServer, Config as ServerConfig};
use elector_candidate::{
    Candidate, ClientArgs, Cluster, Config, Leadership, Outcome, TermEnd, Timing,
};

/// A server on a thread of its own, for as long as the test program runs, and the kubeconfig that leads to it.
fn server(name: &str) -> ClientArgs {
    let kubeconfig = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let server = ApiServer::new(ServerConfig::default());
    std::fs::write(&kubeconfig, elector_testing::listen(&server).to_string()).unwrap();
    ClientArgs::of_kubeconfig(kubeconfig)
}

/// A lease of two seconds, believed for one.
fn config() -> Config {
    let timing = Timing::new(Duration::from_secs(2), Duration::from_secs(1));
    Config::as_client_go("web").timing(timing)
}

/// Blocks its thread for longer than the lease lasts, and says whether it still leads then.
async fn block(leadership: Leadership) -> std::io::Result<bool> {
    std::thread::sleep(Duration::from_secs(4));
    Ok(leadership.is_leader())
}

/// The answer of the blocked work, and the end of its term.
async fn run(candidate: Candidate) -> Outcome<bool> {
    let run = candidate.run(block, std::future::pending::<()>());
    let ended = tokio::time::timeout(Duration::from_secs(60), run).await;
    ended.unwrap().unwrap()
}

#[tokio::test]
async fn work_that_blocks_its_executor_keeps_the_lease_where_renewals_have_a_thread() {
    let args = server("kept");
    let cluster = Cluster::connect_with(&args).await.unwrap();
    let outcome = run(Candidate::new(config(), cluster).unwrap()).await;
    assert_eq!(outcome.value, Some(true), "lost the lease");
    assert_eq!(outcome.term, Some(TermEnd::Released));
}

/// The same work with a client of the caller's: what the thread is for.
#[tokio::test]
async fn work_that_blocks_its_executor_loses_the_lease_where_renewals_share_it() {
    let cluster = elector_runtime::connect(&server("lost")).await.unwrap();
    let candidate = Candidate::new(config(), cluster.into()).unwrap();
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

/// A client that the program makes, on a thread of the crate.
#[tokio::test]
async fn a_client_of_the_program_renews_on_a_thread_too_and_its_error_is_kept() {
    let args = server("bridged");
    let bridge = move || async move { elector_runtime::connect(&args).await.map(Cluster::from) };
    let cluster = Cluster::on_own_thread(bridge).await.unwrap();
    let outcome = run(Candidate::new(config(), cluster).unwrap()).await;
    assert_eq!(outcome.value, Some(true), "lost the lease");
    let failed = Cluster::on_own_thread(|| async { Err::<Cluster, _>("no credentials") }).await;
    assert_eq!(failed.unwrap_err().to_string(), "no credentials");
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
    let cluster = Cluster::connect_with(&args).await.unwrap();
    let candidate = Candidate::new(config(), cluster).unwrap();
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
