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
    let lift = lift()?;
    let arguments: Vec<&str> = lift.iter().map(String::as_str).collect();
    site.kubectl(&arguments).await?;
    until(editor, &leases, &release, true).await?;
    site.apply("-k", &native).await?;
    until(editor, &leases, &release, false).await?;
    leases.remove(site.client(), "work").await
}

/// The command by which the README lifts all policies, without `kubectl` itself.
fn lift() -> Result<Vec<String>> {
    let path = paths::workspace().join("manifests/components/policies/README.md");
    let document = fs::read_to_string(path)?;
    let mut lines = document
        .lines()
        .skip_while(|line| !line.starts_with("$ kubectl patch "));
    let mut command = String::new();
    for line in lines.by_ref() {
        let (part, goes_on) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        command.push_str(part);
        command.push(' ');
        if !goes_on {
            break;
        }
    }
    let words = command.split_whitespace().skip(2);
    Ok(words
        .map(|word| word.trim_matches('\'').to_owned())
        .collect())
}
