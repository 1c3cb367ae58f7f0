//! The policies on trial, and lifted by the command of their README: nothing is refused, and the server counts what would be.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use elector_cluster::paths;
use elector_tests::rig::Testbed;
use http::Request;

use super::accounts::Accounts;
use super::lease_changes::{led, release};
use super::requests::{Collection, until};

/// Applies `components/policies-audit` beside an overlay, and goes back; then the one command.
pub(super) async fn refuses_nothing(testbed: &Testbed, accounts: &Accounts) -> Result<()> {
    let site = testbed.site();
    let leases = Collection::leases(testbed.namespace());
    let before = led().context("a Lease that is led")?;
    let before = leases.reset(site.client(), &before).await?;
    let release = release(Some(before), |_| {});
    let editor = &accounts.of("editor")?.client;
    let trial = testbed.folder().join("on-trial");
    fs::create_dir_all(&trial)?;
    // kustomize takes no absolute path.
    let up = "../".repeat(trial.canonicalize()?.components().count() - 1);
    let manifests = paths::workspace().canonicalize()?.join("manifests");
    let manifests = format!(
        "{up}{}",
        manifests.display().to_string().trim_start_matches('/')
    );
    let kustomization = format!(
        "resources: ['{manifests}/overlays/native']\ncomponents: ['{manifests}/components/policies-audit']\n"
    );
    fs::write(trial.join("kustomization.yaml"), kustomization)?;
    site.apply("-k", &trial).await?;
    until(editor, &leases, &release, true).await?;
    let metrics = site
        .client()
        .request_text(Request::get("/metrics").body(Vec::new())?)
        .await?;
    let is_counted = |line: &str| {
        line.starts_with("apiserver_validating_admission_policy_check_total{")
            && line.contains("enforcement_action=\"audit\"")
            && line.contains("policy=\"elector-lease\"")
    };
    ensure!(
        metrics.lines().any(is_counted),
        "the API server counts no refusal that it would have made"
    );
    let native = paths::workspace().join("manifests/overlays/native");
    site.apply("-k", &native).await?;
    until(editor, &leases, &release, false).await?;
    site.shell(&lift()?).await?;
    until(editor, &leases, &release, true).await?;
    site.apply("-k", &native).await?;
    until(editor, &leases, &release, false).await?;
    leases.remove(site.client(), "work").await
}

/// The command by which the README lifts all policies.
fn lift() -> Result<String> {
    let path = paths::workspace().join("manifests/components/policies/README.md");
    let document = fs::read_to_string(path)?;
    let (_, from) = document
        .split_once("$ kubectl get validatingadmissionpolicybinding ")
        .context("the README lifts no policies")?;
    let (command, _) = from.split_once("```").context("a command without an end")?;
    Ok(format!(
        "kubectl get validatingadmissionpolicybinding {command}"
    ))
}
