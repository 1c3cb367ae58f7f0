//! The custom resource definition of LeaseCandidates on a real server: installed, awaited, removed.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use elector_api::{CANDIDATE_CRD, CandidateApi, LeaseCandidate};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use tokio::time::{Instant, sleep};

/// The time within which a server serves a new resource, or ends an old one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Installs it, and waits until its objects can be listed.
///
/// # Errors
/// When the server refuses it, or does not serve it in time.
pub async fn install(client: &Client) -> Result<()> {
    let crd: CustomResourceDefinition =
        serde_json::from_str(CANDIDATE_CRD).context("failed to read the definition")?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    match definitions.create(&PostParams::default(), &crd).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => return Err(error).context("failed to create the definition"),
    }
    let candidates: Api<LeaseCandidate> = Api::all_with(client.clone(), &CandidateApi::Elector);
    let parameters = ListParams::default();
    until("candidates are served as custom resources", || async {
        candidates.list(&parameters).await.is_ok()
    })
    .await
}

/// Removes it with all of its objects, and waits until it is gone.
///
/// # Errors
/// When the server refuses that, or takes too long.
pub async fn remove(client: &Client) -> Result<()> {
    let crd: CustomResourceDefinition =
        serde_json::from_str(CANDIDATE_CRD).context("failed to read the definition")?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = crd.name_any();
    definitions
        .delete(&name, &DeleteParams::default())
        .await
        .context("failed to delete the definition")?;
    until("the definition is gone", || async {
        matches!(definitions.get_opt(&name).await, Ok(None))
    })
    .await
}

async fn until<F: Future<Output = bool>>(what: &str, done: impl Fn() -> F) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !done().await {
        if Instant::now() >= deadline {
            bail!("not within {PATIENCE:?}: {what}");
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
