//! A leader whose work blocks the only thread of its executor for good: its lease is left to expire, another one leads, and
//! only its liveness probe fails.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use elector_candidate::{
    Candidate, CandidateHandle, CandidateTiming, ClientArgs, Config, Leadership, RunOutcome,
    TermEnd,
};
use elector_protocol::Identity;
use elector_runtime::{BindAddress, HealthCheck, HealthChecks, HttpServer};
use elector_tests::rig::{
    ClusterChoice, ClusterMode, Implementation, OwnThreads, Suite, Testbed, between, now,
};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::ProbedCandidate;
use crate::hosted::tell;
use crate::scraped::get;
use crate::{OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "wedged_leader_fails_its_liveness_probe",
        ClusterChoice::Shared,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(20),
        |testbed| Box::pin(wedged(testbed)),
    );
}

const LEADER: &str = "wedged";

/// W and H of the candidates here.
const SHORT: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(2));

async fn wedged(testbed: Arc<Testbed>) -> Result<()> {
    // It says nothing more once it is wedged.
    testbed.judge_by_lease(LEADER);
    let (tell_begun, begun) = oneshot::channel();
    let (release, blocked) = mpsc::channel::<()>();
    let leader = {
        let testbed = Arc::clone(&testbed);
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(lead(&testbed, tell_begun, blocked))
        })
    };
    let handle = begun.await.context("it does not lead")?;
    let wedged = now();
    let (_threads, address) = serve(handle).await?;
    let flags = ["--lease-duration=3s", "--renew-deadline=2s"];
    let standby = ProbedCandidate::start(&testbed, "standby", &flags, &["sleep", "100000"]).await?;
    // The work of nobody else is in question.
    let live = get(address, "/livez").await?;
    ensure!(live.0 == 200, "{live:?}");

    let next = standby.candidate.leads(SHORT.0 + PROMPTLY).await?;
    testbed.figure("from the wedge to the next leader", between(wedged, next));
    let deadline = Instant::now() + PROMPTLY;
    while get(address, "/livez").await?.0 == 200 {
        ensure!(Instant::now() < deadline, "a wedged leader is live");
        sleep(Duration::from_millis(20)).await;
    }
    let (_, said) = get(address, "/livez/work").await?;
    ensure!(said.contains("the work should have stopped"), "{said}");
    standby.answers("/livez", 200).await?;
    standby.answers("/readyz", 200).await?;

    drop(release);
    let ended = tokio::task::spawn_blocking(|| leader.join()).await?;
    let outcome = ended.map_err(|_| anyhow!("the leader panicked"))??;
    let RunOutcome::Unwell { error, term } = outcome else {
        return Err(anyhow!("{outcome:?}"));
    };
    ensure!(error == "no answer within 200ms", "{error}");
    ensure!(term == TermEnd::WorkStillRuns, "{term}");
    Ok(())
}

/// Leads on the only thread of this executor, with a client that the crate makes, and blocks it until `blocked` ends. The
/// renewals would go on, but its probe has no thread to answer on.
async fn lead(
    testbed: &Testbed,
    begun: oneshot::Sender<CandidateHandle>,
    blocked: mpsc::Receiver<()>,
) -> Result<RunOutcome<(), Infallible>> {
    let lease = testbed.lease_name();
    testbed.add_participant(LEADER, Implementation::Elector, lease);
    let mut config = Config::new(lease, "1.0.0".parse()?)
        .in_namespace(testbed.namespace())
        .identified_as(Identity::new(LEADER).context("an empty name")?);
    config.timing = CandidateTiming::of(SHORT.0, SHORT.1);
    config.grace = Duration::from_millis(500);
    config.health.period = Duration::from_millis(200);
    config.health.timeout = Duration::from_millis(200);
    let arguments = ClientArgs::of_kubeconfig(testbed.candidate_kubeconfig());
    let candidate = Candidate::connect(config, &arguments).await?;
    let (journal, key) = (Arc::clone(testbed.journal()), candidate.lease().clone());
    let handle = candidate.handle();
    let candidate = candidate
        .observed_by(move |told| tell(&journal, LEADER, &key, told))
        .with_health(|| async { Ok::<_, Infallible>(()) });
    let mut begun = Some((begun, handle));
    let blocked = Arc::new(Mutex::new(blocked));
    let work = move |_: Leadership| {
        let (begun, blocked) = (begun.take(), Arc::clone(&blocked));
        async move {
            if let Some((begun, handle)) = begun {
                let _ = begun.send(handle);
            }
            if let Ok(blocked) = blocked.lock() {
                let _ = blocked.recv();
            }
            Ok(())
        }
    };
    Ok(candidate.run(work, std::future::pending::<()>()).await?)
}

/// Answers `/livez` on threads of its own, as a program does whose work may block.
async fn serve(handle: CandidateHandle) -> Result<(OwnThreads, SocketAddr)> {
    let work = move || handle.check_work().map_err(|overdue| overdue.to_string());
    let checks = HealthChecks {
        live: vec![HealthCheck::new("work", work)],
        ready: Vec::new(),
    };
    let threads = OwnThreads::start()?;
    let address = BindAddress::Socket(([127, 0, 0, 1], 0).into());
    let bind = HttpServer::bind(address, move |path, query| checks.answer(path, query));
    let server = threads.spawn(bind)?.await??.context("it is off")?;
    let address = server.local_address()?;
    drop(threads.spawn(server.serve())?);
    Ok((threads, address))
}
