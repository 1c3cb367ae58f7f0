//! A job on kube 4: while it leads, it keeps a copy of the ConfigMap `trust-bundle` of its namespace in every other.

mod elector;

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use elector_candidate::{Candidate, Cluster, Config, Leadership, shutdown_signal};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

const BUNDLE: &str = "trust-bundle";
const PERIOD: Duration = Duration::from_secs(60);

/// Copies it once.
async fn copy(client: &Client) -> kube::Result<()> {
    let own = Api::<ConfigMap>::default_namespaced(client.clone());
    let Some(bundle) = own.get_opt(BUNDLE).await? else {
        return Ok(());
    };
    let map = Patch::Apply(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": BUNDLE},
        "data": bundle.data,
    }));
    let namespaces = Api::<Namespace>::all(client.clone());
    for namespace in namespaces.list(&ListParams::default()).await? {
        let name = namespace.name_any();
        if name != client.default_namespace() {
            let maps = Api::<ConfigMap>::namespaced(client.clone(), &name);
            let by = PatchParams::apply(BUNDLE).force();
            maps.patch(BUNDLE, &by, &map).await?;
        }
    }
    Ok(())
}

async fn copy_each_minute(client: &Client) {
    let mut minute = tokio::time::interval(PERIOD);
    loop {
        minute.tick().await;
        if let Err(error) = copy(client).await {
            eprintln!("failed to copy {BUNDLE}: {error}");
        }
    }
}

/// The work of a term.
async fn work(leadership: Leadership, client: Client) -> Result<(), Infallible> {
    let client = elector::guarded(&client, &leadership.leader_only());
    tokio::select! {
        biased;
        _ = leadership.stopped() => {}
        () = copy_each_minute(&client) => {}
    }
    Ok(())
}

/// All of the program but its connections, which a test makes otherwise.
async fn program(
    cluster: Cluster,
    client: Client,
    shutdown: impl Future,
) -> Result<(), elector_candidate::Error> {
    let candidate = Candidate::new(Config::new("kube4", env!("CARGO_PKG_VERSION")), cluster)?;
    let work = |leadership| work(leadership, client.clone());
    candidate.run(work, shutdown).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let shutdown = shutdown_signal()?;
    let cluster = Cluster::on_own_thread(elector::connect).await?;
    Ok(program(cluster, Client::try_default().await?, shutdown).await?)
}

#[cfg(test)]
mod tests {
    use elector_testing::{TestCluster, eventually};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_standby_copies_when_the_leader_is_cut_off() {
        let world = TestCluster::new();
        world.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
        let renew = |bundle: &str| {
            world.put(json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": BUNDLE, "namespace": "default"}, "data": {"ca.crt": bundle},
            }));
        };
        let copied = |bundle: &str| {
            let copy = world.get("configmaps", "shop", BUNDLE);
            copy.is_some_and(|copy| copy["data"]["ca.crt"] == bundle)
        };
        let start = |name| {
            let (cluster, service) = (world.cluster(name), world.service(name));
            let client = Client::new(service, "default");
            world.start(name, |shutdown| program(cluster, client, shutdown))
        };

        renew("old");
        let mut first = start("job-0");
        first.leads().await;
        let second = start("job-1");
        eventually(|| copied("old")).await;

        first.faults().partition(true);
        renew("new");
        second.leads().await;
        eventually(|| copied("new")).await;
        let report = first.term_report().await;
        report.assert_nothing_late();
        report.assert_returned();
    }
}
