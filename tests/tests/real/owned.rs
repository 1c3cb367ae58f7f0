//! A LeaseCandidate that belongs to the Pod of its process, for the garbage collector of Kubernetes to see.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_candidate::{Candidate, ClientArgs, Config, Leadership, OwnerPod, connect};
use elector_protocol::Identity;
use elector_tests::rig::{ClusterChoice, ClusterMode, Implementation, OwnThreads, Suite, Testbed};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::Api;
use tokio::time::{sleep, timeout};

use crate::{OURS, PROMPTLY};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "candidate_belongs_to_its_pod",
        ClusterChoice::Shared,
        OURS,
        &[ClusterMode::GateOff, ClusterMode::Custom],
        Duration::from_secs(20),
        |testbed| Box::pin(belongs(testbed)),
    );
}

const NAME: &str = "owned-0";
const POLL: Duration = Duration::from_millis(20);

async fn belongs(testbed: Arc<Testbed>) -> Result<()> {
    let lease = testbed.lease_name();
    testbed.admit(&[lease]).await?;
    let site = testbed.site();
    site.pod_account(testbed.namespace(), "owned", NAME).await?;
    let pods = Api::<Pod>::namespaced(site.client().clone(), testbed.namespace());
    let uid = pods.get(NAME).await?.uid().context("a Pod without a uid")?;

    testbed.add_participant(NAME, Implementation::Elector, lease);
    let mut config = Config::new(lease, "1.0.0".parse()?)
        .in_namespace(testbed.namespace())
        .identified_as(Identity::new(NAME).context("an empty name")?);
    config.owner = Some(OwnerPod::new(NAME, uid.as_str()));
    let arguments = ClientArgs::of_kubeconfig(testbed.candidate_kubeconfig());
    let candidate = Candidate::new(config, connect(&arguments).await?)?;
    let work = |leadership: Leadership| async move {
        leadership.stopped().await;
        Ok::<(), Infallible>(())
    };
    let threads = OwnThreads::start()?;
    let run = threads.spawn(candidate.run(work, std::future::pending::<()>()))?;

    let registered = async {
        loop {
            if let Some(object) = testbed.candidates().get_opt(NAME).await? {
                return Ok::<_, kube::Error>(object);
            }
            sleep(POLL).await;
        }
    };
    let object = timeout(PROMPTLY, registered).await??;
    let owners = object.owner_references();
    ensure!(
        matches!(owners, [pod] if (pod.api_version.as_str(), pod.kind.as_str()) == ("v1", "Pod")
            && pod.name == NAME && pod.uid == uid && pod.block_owner_deletion.is_none()),
        "{owners:?}"
    );
    run.abort();
    Ok(())
}
