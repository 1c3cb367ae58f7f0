//! A controller of ConfigMaps under leadership: `cargo run -p elector-candidate --features controller --example controller`.
//!
//! It labels each ConfigMap that asks for it by the label `example.elector.dev/observe` with the token of its term.

use std::sync::Arc;
use std::time::Duration;

use elector_candidate::{Candidate, ClientArgs, Config, LeaderGate, Leadership, shutdown_signal};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::json;

const OBSERVED: &str = "example.elector.dev/observe";

async fn reconcile(
    object: Arc<ConfigMap>,
    client: Arc<Client>,
    leadership: Leadership,
) -> kube::Result<Action> {
    let namespace = object.namespace().unwrap_or_default();
    let api = Api::<ConfigMap>::namespaced(Client::clone(&client), &namespace);
    let token = leadership.token().to_string();
    let patch = Patch::Merge(json!({"metadata": {"labels": {"example.elector.dev/token": token}}}));
    api.patch(&object.name_any(), &PatchParams::default(), &patch)
        .await?;
    Ok(Action::await_change())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let shutdown = shutdown_signal()?;
    let config = Config::new("example", env!("CARGO_PKG_VERSION").parse()?);
    // Renewals have a thread and a client of their own; the controller has the usual one, which retries.
    let candidate = Candidate::connect(config, &ClientArgs::default()).await?;
    let guard = candidate.handle().write_guard();
    let client = guard.client(&Client::try_default().await?);
    let gate = LeaderGate::new();
    let objects = Api::<ConfigMap>::all(client.clone());
    let controller = Controller::new(objects, watcher::Config::default().labels(OBSERVED))
        .reconcile_all_on(gate.term_starts())
        .run(
            gate.reconciler(reconcile),
            |_, _, _| Action::requeue(Duration::from_secs(5)),
            Arc::new(client),
        )
        .for_each(|result| async move { println!("{result:?}") });
    let candidate = candidate.alongside("controller", |_| controller);
    println!("{:?}", candidate.run(gate.work(), shutdown).await?);
    Ok(())
}
