//! A controller of ConfigMaps that reconciles while this process leads, in thirty lines.

use std::{convert::Infallible, sync::Arc, time::Duration};

use elector_candidate::{Candidate, Config, LeaderGate, Leadership, kube5};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::controller::{Action, Controller};
use kube::{Api, Client, ResourceExt as _};

async fn reconcile(
    object: Arc<ConfigMap>,
    _: Arc<Client>,
    leadership: Leadership,
) -> Result<Action, Infallible> {
    println!("{} under token {}", object.name_any(), leadership.token());
    Ok(Action::requeue(Duration::from_secs(300)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shutdown = elector_candidate::shutdown_signal()?;
    let config = Config::new("controller", env!("CARGO_PKG_VERSION"));
    let candidate = Candidate::connect(config).await?;
    let leader_only = candidate.handle().leader_only();
    let client = kube5::guarded(&Client::try_default().await?, &leader_only);
    let gate = LeaderGate::new();
    let controller = Controller::new(Api::<ConfigMap>::all(client.clone()), Default::default())
        .reconcile_all_on(gate.starts())
        .run(
            gate.reconciler(reconcile, Action::await_change),
            |_, error, _| match *error {},
            Arc::new(client),
        );
    let controller = controller.for_each(|_| async {});
    let candidate = candidate.alongside("controller", |_| controller);
    let work = move |leadership| gate.lead(leadership);
    candidate.run(work, shutdown).await?;
    Ok(())
}
