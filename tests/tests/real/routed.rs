//! Traffic to the leader, under the rights that the manifests give: the EndpointSlice names one leader, or none.

use std::sync::Arc;

use anyhow::{Result, ensure};
use elector_tests::rig::{Suite, Testbed, eventually};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;

use crate::{FALLBACK, GATE_OFF, OURS, PROMPTLY, SHORT_LEASE};

pub(crate) fn add(suite: &mut Suite) {
    let mut shared = suite.shared(OURS, GATE_OFF);
    shared.add("traffic_follows_the_leader", 30, traffic_follows);
}

/// Through a hand-over, a crash and a shutdown. The rights are by name, so that the slices are the only ones that may be
/// written.
async fn traffic_follows(testbed: Arc<Testbed>) -> Result<()> {
    testbed.admit_routing().await?;
    let start = |name, version, address: &str| {
        let candidate = testbed.candidate(name).version(version).short();
        let candidate = candidate.flag("--endpoint-slice=web");
        candidate.flag(&format!("--pod-ips={address}")).start()
    };
    let mut first = start("first", "1.1.0", "10.1.0.1")?;
    first.leads(PROMPTLY).await?;
    is_served_by(&testbed, &["10.1.0.1"]).await?;
    let mut better = start("better", "1.0.0", "10.1.0.2")?;
    better.leads(PROMPTLY).await?;
    is_served_by(&testbed, &["10.1.0.2"]).await?;

    // Nothing takes the name of the dead leader back before the next one writes its own.
    let killed = better.kill()?;
    ensure!(served_by(&testbed).await? == ["10.1.0.2"]);
    first
        .leads_since(killed, SHORT_LEASE + FALLBACK + PROMPTLY)
        .await?;
    is_served_by(&testbed, &["10.1.0.1"]).await?;

    first.ends().await?;
    let left = served_by(&testbed).await?;
    ensure!(left.is_empty(), "it ended, and traffic goes to {left:?}");
    Ok(())
}

async fn is_served_by(testbed: &Testbed, addresses: &[&str]) -> Result<()> {
    let ask = || async {
        let found = served_by(testbed).await?;
        ensure!(found == addresses, "traffic goes to {found:?}");
        Ok(())
    };
    eventually(PROMPTLY, ask).await
}

async fn served_by(testbed: &Testbed) -> Result<Vec<String>> {
    let client = testbed.site().client().clone();
    let slices: Api<EndpointSlice> = Api::namespaced(client, testbed.namespace());
    let slice = slices.get("web-leader-ipv4").await?;
    let endpoints = slice.endpoints.into_iter().flatten();
    Ok(endpoints.flat_map(|endpoint| endpoint.addresses).collect())
}
