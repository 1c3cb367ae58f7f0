//! The custom resource definition of LeaseCandidates on a real server: installed, awaited, removed.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use elector_api::{CANDIDATE_CRD, CandidateApi, LeaseCandidate};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};

use crate::rig::eventually::eventually;

/// The time within which a server serves a new resource, or ends an old one.
const PATIENCE: Duration = Duration::from_secs(30);

fn definition() -> Result<CustomResourceDefinition> {
    serde_json::from_str(CANDIDATE_CRD).context("failed to read the definition")
}

/// Installs it, and waits until its objects can be listed.
pub async fn install(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    match definitions
        .create(&PostParams::default(), &definition()?)
        .await
    {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        created => drop(created.context("failed to create the definition")?),
    }
    let candidates: Api<LeaseCandidate> = Api::all_with(client.clone(), &CandidateApi::Elector);
    let listed = || async {
        let listed = candidates.list(&ListParams::default()).await;
        listed.map(drop).context("candidates are not served")
    };
    eventually(PATIENCE, listed).await
}

/// Removes it with all of its objects, and waits until it is gone.
pub async fn remove(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = &definition()?.name_any();
    let deleted = definitions.delete(name, &DeleteParams::default()).await;
    deleted.context("failed to delete the definition")?;
    let gone = || async {
        let found = definitions.get_opt(name).await?;
        ensure!(found.is_none(), "the definition is still there");
        Ok(())
    };
    eventually(PATIENCE, gone).await
}
