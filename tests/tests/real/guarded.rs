//! A guarded client on a real API server: what its process may no longer write when a stranger takes or deletes the Lease.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use elector_candidate::{Candidate, CandidateHandle, Config, Leadership, NotLeading};
use elector_protocol::Identity;
use elector_runtime::{ClientArgs, connect};
use elector_tests::rig::{ClusterChoice, ClusterMode, Implementation, OwnThreads, Suite, Testbed};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::{OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "guarded_writes_end_with_the_event_of_a_loss",
        ClusterChoice::Shared,
        OURS,
        &[ClusterMode::GateOff],
        Duration::from_secs(20),
        |testbed| Box::pin(stops_writing(testbed)),
    );
}

/// The time limit for the event of a loss on a busy machine. The belief would last for 6.7 s more at least.
const AT_ONCE: Duration = Duration::from_secs(3);

async fn stops_writing(testbed: Arc<Testbed>) -> Result<()> {
    let leases = ["overwritten", "deleted"];
    testbed.admit(&leases).await?;
    let threads = OwnThreads::start()?;
    for lease in leases {
        let took = refused_after(&testbed, &threads, lease, lease == "deleted").await?;
        testbed.figure(
            &format!("{lease}: from the answer to the first refused write"),
            took,
        );
    }
    Ok(())
}

/// Leads that lease and writes an object again and again; how long after the deed of a stranger a write is refused.
async fn refused_after(
    testbed: &Testbed,
    threads: &OwnThreads,
    lease: &str,
    delete: bool,
) -> Result<Duration> {
    let name = format!("{lease}-leader");
    testbed.add_participant(&name, Implementation::Elector, lease);
    let arguments = ClientArgs::of_kubeconfig(testbed.candidate_kubeconfig());
    let config = Config::new(lease, "1.0.0".parse()?)
        .in_namespace(testbed.namespace())
        .identified_as(Identity::new(name.as_str()).context("an empty name")?);
    let candidate = Candidate::new(config, connect(&arguments).await?)?;
    let mut handle = candidate.handle();
    let work = |leadership: Leadership| async move {
        leadership.stopped().await;
        Ok::<(), Infallible>(())
    };
    let run = threads.spawn(candidate.run(work, std::future::pending::<()>()))?;
    timeout(PROMPTLY * 2, leads(&mut handle)).await??;

    let client = handle.write_guard().client(testbed.site().client());
    let api = Api::<ConfigMap>::namespaced(client, testbed.namespace());
    let object: ConfigMap = serde_json::from_value(json!({"metadata": {"name": lease}}))?;
    api.create(&PostParams::default(), &object).await?;
    // It has renewed, so the deadline is far away.
    let remaining = handle.status().remaining;
    ensure!(remaining > AT_ONCE * 2, "{remaining:?} are left");
    if delete {
        testbed
            .leases()
            .delete(lease, &DeleteParams::default())
            .await?;
    } else {
        take(testbed, lease).await?;
    }
    let begin = Instant::now();
    let refusal = loop {
        let patch = Patch::Merge(json!({"data": {"at": begin.elapsed().as_micros().to_string()}}));
        match api.patch(lease, &PatchParams::default(), &patch).await {
            Ok(_) => ensure!(begin.elapsed() < AT_ONCE, "still writing"),
            Err(error) => match NotLeading::find(&error) {
                Some(refusal) => break refusal.clone(),
                None => bail!(error),
            },
        }
    };
    let took = begin.elapsed();
    let expected = if delete {
        None
    } else {
        Identity::new(STRANGER)
    };
    ensure!(refusal.holder == expected, "{refusal}");
    // Reads go on.
    api.list(&ListParams::default()).await?;
    run.abort();
    Ok(took)
}

async fn leads(handle: &mut CandidateHandle) -> Result<()> {
    while !handle.is_leader() {
        handle.changed().await.context("the run has ended")?;
    }
    Ok(())
}

const STRANGER: &str = "stranger";

/// Names a stranger as the holder, as often as the holder is quicker.
async fn take(testbed: &Testbed, lease: &str) -> Result<()> {
    loop {
        let mut object = testbed.leases().get(lease).await?;
        object.spec.holder_identity = Some(STRANGER.to_owned());
        match testbed.write(&object).await {
            Ok(_) => return Ok(()),
            Err(error) => match error.downcast_ref() {
                Some(kube::Error::Api(status)) if status.is_conflict() => {
                    sleep(Duration::from_millis(1)).await;
                }
                _ => return Err(error),
            },
        }
    }
}
