//! The cost of a thread of its own for the renewals of a candidate with a client of its own.

use std::fs;
use std::future::pending;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use elector_apiserver::{ApiServer, Config as ServerConfig};
use elector_candidate::{Candidate, CandidateHandle, ClientArgs, Cluster, Config};
use elector_runtime::connect;
use elector_testing::{eventually, listen};
use tokio::task::JoinSet;

use crate::{note_win, spread};

/// The number of candidates that lead at once where memory is measured, and of wins where time is.
const CANDIDATES: u32 = 20;
const TERMS: u32 = 101;

/// Where requests and renewals run.
#[derive(Clone, Copy, Debug)]
enum RenewalPlace {
    /// On the executor of the program, by `Candidate::new`.
    Executor,
    /// On a thread of their own, by `Candidate::connect`.
    OwnThread,
}

/// Rows for the table.
pub(crate) async fn rows() -> Vec<(String, String)> {
    let args = server();
    let places = [RenewalPlace::Executor, RenewalPlace::OwnThread];
    // Memory that the first ones of their kind leave behind for all others counts for none.
    for place in places {
        let _ = resident(&args, place, "warm").await;
    }
    let mut rows = Vec::new();
    let mut memory = Vec::new();
    for place in places {
        memory.push(resident(&args, place, "measured").await);
    }
    let more = memory[1].saturating_sub(memory[0]) / u64::from(CANDIDATES);
    rows.push((
        "memory of a thread for renewals, by `Candidate::connect`".to_owned(),
        format!("{more} KiB"),
    ));
    for place in places {
        let mut delays = Vec::new();
        for term in 0..TERMS {
            delays.push(delay(&args, place, term).await);
        }
        let what = match place {
            RenewalPlace::Executor => "without a thread for renewals",
            RenewalPlace::OwnThread => "with one",
        };
        rows.push((
            format!("from winning the lease to the beginning of the work, {what}"),
            spread(&mut delays),
        ));
    }
    rows
}

/// A server on a thread of its own, for as long as this program runs.
fn server() -> ClientArgs {
    let kubeconfig = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("leadership");
    let server = ApiServer::new(ServerConfig::default());
    fs::write(&kubeconfig, listen(&server).to_string()).unwrap();
    ClientArgs::of_kubeconfig(kubeconfig)
}

/// A candidate that takes a free lease at once.
async fn candidate(args: &ClientArgs, place: RenewalPlace, lease: String) -> Candidate {
    let cluster = match place {
        RenewalPlace::Executor => connect(args).await.unwrap().into(),
        RenewalPlace::OwnThread => Cluster::connect_with(args).await.unwrap(),
    };
    Candidate::new(Config::as_client_go(lease), cluster).unwrap()
}

/// The KiB by which resident memory grows when `CANDIDATES` lead.
async fn resident(args: &ClientArgs, place: RenewalPlace, name: &str) -> u64 {
    let before = resident_kib();
    let mut runs = JoinSet::new();
    let mut handles = Vec::new();
    for number in 0..CANDIDATES {
        let lease = format!("{name}-{place:?}-{number}").to_lowercase();
        let candidate = candidate(args, place, lease).await;
        handles.push(candidate.handle());
        runs.spawn(candidate.run(
            |leadership| async move {
                leadership.stopped().await;
                Ok::<(), std::io::Error>(())
            },
            pending::<()>(),
        ));
    }
    eventually(|| handles.iter().all(CandidateHandle::is_leader)).await;
    let after = resident_kib();
    runs.shutdown().await;
    after.saturating_sub(before)
}

/// The time from winning to the beginning of its work.
async fn delay(args: &ClientArgs, place: RenewalPlace, term: u32) -> Duration {
    let won = Arc::new(Mutex::new(None));
    let told = Arc::clone(&won);
    let candidate = candidate(args, place, format!("{place:?}-{term}").to_lowercase()).await;
    let candidate = candidate.observed_by(move |_, event| note_win(&told, event));
    let run = candidate.run(
        |_| async { Ok::<Instant, std::io::Error>(Instant::now()) },
        pending::<()>(),
    );
    let began = run.await.unwrap().value.unwrap();
    let won: Instant = won.lock().unwrap().unwrap();
    began.duration_since(won)
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse().unwrap()
}
