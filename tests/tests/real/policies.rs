//! The admission policies of `manifests/components/policies`: what accounts can do without them and cannot with them,
//! and elections that go on as before.

mod accounts;
mod attacks;
mod candidate_changes;
mod durations;
mod elections;
mod lease_changes;
mod requests;
mod tables;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use elector_api::CandidateApi;
use elector_tests::rig::{ClusterChoice, ClusterMode, Suite, TestSite, Testbed, definition};
use tokio::task::spawn_blocking;
use xtask::paths;

use self::accounts::Accounts;
use self::requests::Collection;
use crate::{MODES, OURS};

pub(crate) fn add(suite: &mut Suite) {
    suite.add(
        "policies_bind_accounts_and_no_election",
        ClusterChoice::Own,
        OURS,
        MODES,
        Duration::from_secs(90),
        |testbed| Box::pin(bind(testbed)),
    );
}

/// The accounts are played on one kind of cluster, which serves LeaseCandidates of either kind and has no elector yet.
async fn bind(testbed: Arc<Testbed>) -> Result<()> {
    let site = Arc::clone(testbed.site());
    apply(&site, "manifests/base").await?;
    if site.mode() != ClusterMode::GateOff {
        apply(&site, overlay(site.mode())).await?;
        return elections::go_on(&testbed).await;
    }
    definition::install(site.client()).await?;
    let attacked = Testbed::open(Arc::clone(&site), "attacked", testbed.implementation()).await?;
    let namespace = attacked.namespace();
    // The role that the exempt account is bound to is a part of the policies' manifests.
    let accounts = Accounts::create(&site, namespace).await?;
    attacks::succeed(&attacked, &accounts).await?;
    apply(&site, overlay(site.mode())).await?;
    attacks::fail(&attacked, &accounts).await?;

    let parties = (site.client(), &accounts);
    let mut cells = 0;
    for api in [site.candidate_api(), CandidateApi::Elector] {
        let candidates = Collection::candidates(api, namespace);
        let rows = candidate_changes::ROWS;
        cells += tables::play("change of a LeaseCandidate", rows, parties, &candidates).await?;
        candidates.remove(site.client(), accounts::HOLDER).await?;
        cells += durations::play(&attacked, &accounts, api).await?;
    }
    let leases = Collection::leases(namespace);
    let rows = lease_changes::ROWS;
    cells += tables::play("change of a Lease", rows, parties, &leases).await?;
    leases.remove(site.client(), "work").await?;
    testbed.journal().note(format!("{cells} cells hold"));
    elections::go_on(&testbed).await
}

fn overlay(mode: ClusterMode) -> &'static str {
    match mode {
        ClusterMode::Custom => "manifests/overlays/crd",
        _ => "manifests/overlays/native",
    }
}

/// `kubectl apply -k`.
async fn apply(site: &TestSite, folder: &str) -> Result<()> {
    kubectl(site, "-k", &paths::workspace().join(folder)).await
}

async fn kubectl(site: &TestSite, flag: &str, path: &Path) -> Result<()> {
    let mut command = site.command(&site.programs().kubectl);
    command.args(["apply", flag]).arg(path);
    let output = spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl apply: {said}");
    Ok(())
}
