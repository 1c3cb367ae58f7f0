//! A controller of ConfigMaps under leadership:
//! `cargo run -p elector-candidate --features connect,kube5 --example controller`.
//!
//! It labels each ConfigMap that has the label `observe` with the token of its term. The run owns the controller;
//! renewals share neither its executor nor its client.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use elector_candidate::{
    Candidate, Cluster, Config, Error, LeaderGate, Leadership, kube5, shutdown_signal,
};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::json;

async fn reconcile(
    map: Arc<ConfigMap>,
    client: Arc<Client>,
    leadership: Leadership,
) -> kube::Result<Action> {
    let namespace = map.namespace().unwrap_or_default();
    let api = Api::<ConfigMap>::namespaced(Client::clone(&client), &namespace);
    let token = leadership.token().to_string();
    let patch = Patch::Merge(json!({"metadata": {"labels": {"token": token}}}));
    let params = PatchParams::default();
    api.patch(&map.name_any(), &params, &patch).await?;
    Ok(Action::requeue(Duration::from_secs(300)))
}

pub(crate) async fn program(
    cluster: Cluster,
    client: Client,
    shutdown: impl Future,
) -> Result<(), Error> {
    let candidate = Candidate::new(Config::new("maps", env!("CARGO_PKG_VERSION")), cluster)?;
    let gate = LeaderGate::new();
    let client = kube5::guarded(&client, &candidate.handle().leader_only());
    let maps = Api::<ConfigMap>::all(client.clone());
    let controller = Controller::new(maps, watcher::Config::default().labels("observe"))
        .reconcile_all_on(gate.starts())
        .run(
            gate.reconciler(reconcile, Action::await_change),
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            Arc::new(client),
        )
        .for_each(|result| async move { tracing::debug!(?result) });
    let candidate = candidate
        .alongside("controller", |_| controller)
        .with_health(|| async { fs::metadata("/tmp").map(drop) });
    candidate
        .run(move |leadership| gate.lead(leadership), shutdown)
        .await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (cluster, client) = (Cluster::connect().await?, Client::try_default().await?);
    Ok(program(cluster, client, shutdown_signal()?).await?)
}
