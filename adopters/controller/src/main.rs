//! A controller that writes a ConfigMap into the Namespace of each team. It was written with kube-leader-election, and
//! moved as docs/migrate.md of Elector says; that page shows its old form.

use std::sync::Arc;
use std::time::Duration;

use elector_candidate::{
    Candidate, Cluster, Config, Error, LeaderGate, Leadership, kube5, shutdown_signal,
};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::json;

async fn reconcile(
    namespace: Arc<Namespace>,
    client: Arc<Client>,
    _: Leadership,
) -> kube::Result<Action> {
    let maps = Api::<ConfigMap>::namespaced(Client::clone(&client), &namespace.name_any());
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "team"},
        "data": {"team": namespace.labels().get("team")},
    });
    let by = PatchParams::apply("teams").force();
    maps.patch("team", &by, &Patch::Apply(map)).await?;
    Ok(Action::requeue(Duration::from_secs(300)))
}

/// All of the program but its connections, which a test makes otherwise.
async fn program(cluster: Cluster, client: Client, shutdown: impl Future) -> Result<(), Error> {
    let config = Config::new("controller", env!("CARGO_PKG_VERSION")).namespace("default");
    let candidate = Candidate::new(config, cluster)?;
    let client = kube5::guarded(&client, &candidate.handle().leader_only());
    let gate = LeaderGate::new();
    let namespaces = Api::<Namespace>::all(client.clone());
    let controller = Controller::new(namespaces, watcher::Config::default().labels("team"))
        .reconcile_all_on(gate.starts())
        .run(
            gate.reconciler(reconcile, Action::await_change),
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            Arc::new(client),
        )
        .for_each(|_| async {});
    let candidate = candidate.alongside("controller", |_| controller);
    candidate
        .run(move |leadership| gate.lead(leadership), shutdown)
        .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shutdown = shutdown_signal()?;
    let (cluster, client) = (Cluster::connect().await?, Client::try_default().await?);
    Ok(program(cluster, client, shutdown).await?)
}

#[cfg(test)]
mod tests;
