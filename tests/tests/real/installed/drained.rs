//! A node is drained by kubectl: the leader on it and the elector that acts are evicted and asked to end, as by a
//! kubelet, and those of the other node take over. The disruption budget keeps an elector there until another is ready.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use elector_tests::rig::{StartedCandidate, TestProcess, TestSite, Testbed, between, eventually};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::installed::candidates::{NAMESPACE, candidate};
use crate::installed::installation::{Installation, controllers};
use crate::{LEASE_DURATION, PROMPTLY};

/// The node that is drained, and the one that stays.
const DRAINED: &str = "node-a";
const STAYS: &str = "node-b";
/// Where the electors are.
const SYSTEM: &str = "elector-system";
/// For controllers and kubectl, which look again every few seconds.
const SOON: Duration = Duration::from_secs(60);

/// A node and its kubelet, as far as they are needed.
pub(crate) struct Kubelet<'a> {
    site: &'a TestSite,
    node: &'static str,
}

pub(super) async fn node_is_drained(outer: Arc<Testbed>) -> Result<()> {
    let site = outer.site();
    // The quota of the electors' priority lets no Pod in before its controller has counted them.
    let names = "deployment-controller,replicaset-controller,disruption-controller,resourcequota-controller";
    let _controllers = controllers(site, names).await?;
    let installation = Installation::of(site, site.programs().version(), "native")?;
    installation.apply().await?;
    let testbed = outer.open_beside(NAMESPACE).await?;
    let drained = drain(&installation, &testbed).await;
    outer.conclude(&testbed, drained).await
}

async fn drain(installation: &Installation, testbed: &Testbed) -> Result<()> {
    let site = testbed.site();
    let (drained, stays) = (Kubelet::of(site, DRAINED), Kubelet::of(site, STAYS));
    drained.join().await?;
    stays.join().await?;
    let [acting, standby] = elector_pods(site).await?;
    drained.bind(SYSTEM, &acting).await?;
    stays.bind(SYSTEM, &standby).await?;
    let mut acts = installation.another(testbed, &acting).await?;
    drained.ready(SYSTEM, &acting).await?;

    let leader = candidate(testbed, "leader", "1.2.0").await?;
    drained.bind(NAMESPACE, "leader").await?;
    let mut leader = leader.start()?;
    leader.leads(LEASE_DURATION * 2 + PROMPTLY).await?;
    let next = candidate(testbed, "next", "1.3.0").await?;
    stays.bind(NAMESPACE, "next").await?;
    let next = next.start()?;
    testbed.stays("leader", 2).await?;

    testbed.note("drain the node");
    let mut draining =
        TestProcess::spawn("kubectl-drain", drain_command(site), site.folder(), |_| {})?;
    let took = leader_moves(testbed, &drained, &mut leader, &next).await?;
    testbed.figure("the leader is drained, until the next leads", took);
    draining.writes(&["disruption budget"], SOON).await?;
    let holds = acts.ended()?.is_none() && !drained.is_evicted(SYSTEM, &acting).await?;
    ensure!(holds, "the only elector was evicted");

    let mut takes_over = installation.another(testbed, &standby).await?;
    stays.ready(SYSTEM, &standby).await?;
    drained.evicted(SYSTEM, &acting).await?;
    let asked = testbed.note("end the acting elector");
    let took = acts.ends_promptly().await?;
    testbed.figure("the elector is drained, until it has ended", took);
    let acts = "leading the electors";
    takes_over.writes(&[acts], PROMPTLY).await?;
    let figure = "the elector is drained, until the other acts";
    testbed.figure(figure, asked.elapsed());
    drained.forget(SYSTEM, &acting).await?;
    let status = draining.exit(SOON).await?;
    ensure!(status.success(), "kubectl drain: {}", draining.output()?);
    testbed.stays("next", 1).await?;

    let arrival = testbed.note("a better candidate starts");
    let better = candidate(testbed, "better", "1.1.0").await?.start()?;
    let led = better.leads(PROMPTLY).await?;
    testbed.figure("the other hands over", between(arrival.at, led));
    testbed.stays("better", 1).await?;
    testbed.has_begun_terms(3)
}

/// Waits for the eviction of the leader's Pod, and ends it as a kubelet does; how long there was no leader.
async fn leader_moves(
    testbed: &Testbed,
    kubelet: &Kubelet<'_>,
    leader: &mut StartedCandidate,
    next: &StartedCandidate,
) -> Result<Duration> {
    kubelet.evicted(NAMESPACE, "leader").await?;
    let asked = leader.terminate()?;
    let led = next.leads(PROMPTLY).await?;
    leader.ends_well().await?;
    kubelet.forget(NAMESPACE, "leader").await?;
    testbed.stays("next", 1).await?;
    Ok(between(asked.at, led))
}

fn drain_command(site: &TestSite) -> Command {
    let mut command = site.command(&site.programs().kubectl);
    // The leader is a Pod without a controller; in a cluster a Deployment has it.
    command.args(["drain", DRAINED, "--force", "--timeout=120s"]);
    command
}

/// The names of the two Pods that Kubernetes has made of the Deployment.
async fn elector_pods(site: &TestSite) -> Result<[String; 2]> {
    let pods: Api<Pod> = Api::namespaced(site.client().clone(), SYSTEM);
    let of_electors = ListParams::default().labels("app.kubernetes.io/instance=elector");
    let ask = || async {
        let found = pods.list(&of_electors).await?.items;
        let names: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
        <[String; 2]>::try_from(names).map_err(|names| anyhow!("there are the Pods {names:?}"))
    };
    eventually(SOON, ask).await
}

// === impl Kubelet ===

impl<'a> Kubelet<'a> {
    pub(crate) fn of(site: &'a TestSite, node: &'static str) -> Self {
        Self { site, node }
    }

    /// Makes its node known.
    pub(crate) async fn join(&self) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.site.client().clone());
        let node = serde_json::from_value(json!({"metadata": {"name": self.node}}))?;
        let made = nodes.create(&PostParams::default(), &node).await;
        made.map(drop).context("failed to make a node")
    }

    /// Has a Pod run here, as a scheduler does.
    pub(crate) async fn bind(&self, namespace: &str, pod: &str) -> Result<()> {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.node},
        });
        let pods = self.pods(namespace);
        let bound: Result<Value, _> = pods
            .create_subresource("binding", pod, &PostParams::default(), &binding)
            .await;
        bound
            .map(drop)
            .with_context(|| format!("failed to bind {pod}"))
    }

    /// Says that a Pod runs and is ready.
    async fn ready(&self, namespace: &str, pod: &str) -> Result<()> {
        let status = json!({"status": {
            "phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        }});
        let pods = self.pods(namespace);
        let parameters = PatchParams::default();
        let said = pods
            .patch_status(pod, &parameters, &Patch::Merge(status))
            .await;
        said.map(drop)
            .with_context(|| format!("failed to say that {pod} is ready"))
    }

    /// Waits until a Pod is to end.
    async fn evicted(&self, namespace: &str, pod: &str) -> Result<()> {
        let ask = || async {
            let evicted = self.is_evicted(namespace, pod).await?;
            ensure!(evicted, "{pod} was not evicted");
            Ok(())
        };
        eventually(SOON, ask).await
    }

    async fn is_evicted(&self, namespace: &str, pod: &str) -> Result<bool> {
        let pod = self.pods(namespace).get(pod).await?;
        Ok(pod.metadata.deletion_timestamp.is_some())
    }

    /// Says that a Pod has ended.
    async fn forget(&self, namespace: &str, pod: &str) -> Result<()> {
        let at_once = DeleteParams::default().grace_period(0);
        let gone = self.pods(namespace).delete(pod, &at_once).await;
        gone.map(drop)
            .with_context(|| format!("failed to delete {pod}"))
    }

    fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.site.client().clone(), namespace)
    }
}
