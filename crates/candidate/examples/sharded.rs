//! A controller of ConfigMaps whose replicas share the objects: start as many as you like of
//! `cargo run -p elector-candidate --features connect,kube5 --example sharded`.
//!
//! It labels each ConfigMap that has the label `observe` with the part and the token under which it was reconciled. There
//! are sixteen ranges of objects, each with one leader. On Kubernetes 1.36 with the feature gate ShardedListAndWatch each
//! replica is sent the objects of its ranges alone.

use std::sync::Arc;
use std::time::Duration;

use elector_candidate::{
    Config, GroupCandidate, Leadership, Parts, ShardGate, kube5, shutdown_signal,
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
    let client = kube5::guarded(&client, &leadership.leader_only());
    let api = Api::<ConfigMap>::namespaced(client, &map.namespace().unwrap_or_default());
    let (part, token) = (leadership.part(), leadership.token().to_string());
    let patch = Patch::Merge(json!({"metadata": {"labels": {"part": part, "token": token}}}));
    let params = PatchParams::default();
    api.patch(&map.name_any(), &params, &patch).await?;
    Ok(Action::requeue(Duration::from_secs(300)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config::new("maps", env!("CARGO_PKG_VERSION"));
    let group = GroupCandidate::connect(config, Parts::by_uid(16)).await?;
    let (client, gate) = (
        Client::try_default().await?,
        ShardGate::new(&group.handle()),
    );
    let sharded = kube5::sharded(&client, &group.handle(), &["configmaps"]);
    let maps = Api::<ConfigMap>::all(sharded);
    let controller = Controller::new(maps, watcher::Config::default().labels("observe"))
        .reconcile_all_on(gate.starts())
        .run(
            gate.reconciler(kube5::key, reconcile, Action::await_change),
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            Arc::new(client),
        )
        .for_each(|result| async move { tracing::debug!(?result) });
    let group = group.alongside("controller", |_| controller);
    let ended = group.run(move |leadership| gate.lead(leadership), shutdown_signal()?);
    Ok(ended.await?)
}
