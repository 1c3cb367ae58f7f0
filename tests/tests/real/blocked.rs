//! Work that blocks its executor for longer than its lease lasts: where the crate makes the client, renewals go on.

use std::convert::Infallible;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use elector_candidate::{
    AfterTerm, Candidate, ClientArgs, Config, Leadership, RunOutcome, TermEnd,
};
use elector_protocol::Identity;
use elector_tests::rig::{ClusterChoice, ClusterMode, Implementation, Suite, Testbed};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::OURS;
use crate::hosted::{Host, tell};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "work_that_blocks_its_executor_keeps_its_lease",
        ClusterChoice::Shared,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(30),
        |testbed| Box::pin(blocks(testbed)),
    );
}

/// For how long the only thread of the leader's executor does nothing else: longer than the renew deadline of 10 s.
const BLOCKED: Duration = Duration::from_secs(12);
const LEASE: &str = "blocked";
const LEADER: &str = "blocked-leader";
const RIVAL: &str = "blocked-rival";

async fn blocks(testbed: Arc<Testbed>) -> Result<()> {
    testbed.admit(&[LEASE]).await?;
    let (tell_begun, begun) = oneshot::channel();
    let leader = {
        let testbed = Arc::clone(&testbed);
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(lead(&testbed, tell_begun))
        })
    };
    begun.await.context("it does not lead")?;
    let host = Host::connect(&testbed).await?;
    let _rival = host.start(LEASE, RIVAL, "1.0.0")?;
    let ended = tokio::task::spawn_blocking(|| leader.join()).await?;
    let outcome = ended.map_err(|_| anyhow!("the leader panicked"))??;
    // The guard said yes when the work was blocked no more.
    let kept = RunOutcome::WorkEnded {
        value: true,
        term: TermEnd::Released,
    };
    ensure!(outcome == kept, "{outcome:?}");
    Ok(())
}

/// Leads on the only thread of this executor, with a client that the crate makes, and blocks it.
async fn lead(
    testbed: &Testbed,
    begun: oneshot::Sender<()>,
) -> Result<RunOutcome<bool, Infallible>> {
    testbed.add_participant(LEADER, Implementation::Elector, LEASE);
    let mut config = Config::new(LEASE, "1.0.0".parse()?)
        .in_namespace(testbed.namespace())
        .identified_as(Identity::new(LEADER).context("an empty name")?);
    config.after_term = AfterTerm::Return;
    let arguments = ClientArgs::of_kubeconfig(testbed.candidate_kubeconfig());
    let candidate = Candidate::connect(config, &arguments).await?;
    let (journal, lease) = (Arc::clone(testbed.journal()), candidate.lease().clone());
    let candidate = candidate.observed_by(move |told| tell(&journal, LEADER, &lease, told));
    let mut begun = Some(begun);
    let work = move |leadership: Leadership| {
        let begun = begun.take();
        async move {
            if let Some(begun) = begun {
                let _ = begun.send(());
            }
            thread::sleep(BLOCKED);
            Ok(leadership.is_leader())
        }
    };
    Ok(candidate.run(work, std::future::pending::<()>()).await?)
}
