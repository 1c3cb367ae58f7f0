//! The admission policies of `manifests/components/policies`: what accounts can do without them and cannot with them,
//! and elections that go on as before.

mod accounts;
mod attack_list;
mod attacks;
mod candidate_changes;
mod durations;
mod elections;
mod lease_changes;
mod requests;
mod tables;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use elector_api::CandidateApi;
use elector_cluster::paths;
use elector_tests::rig::{ClusterChoice, ClusterMode, Suite, Testbed, definition};

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
    site.apply("-k", &manifests("base")).await?;
    if site.mode() != ClusterMode::GateOff {
        site.apply("-k", &overlay(site.mode())).await?;
        return elections::go_on(&testbed).await;
    }
    definition::install(site.client()).await?;
    let attacked = Testbed::open(Arc::clone(&site), "attacked", testbed.implementation()).await?;
    let namespace = attacked.namespace();
    // The role that the exempt account is bound to is a part of the policies' manifests.
    let accounts = Accounts::create(&site, namespace).await?;
    attacks::succeed(&attacked, &accounts).await?;
    site.apply("-k", &overlay(site.mode())).await?;
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
    cells += durations::play_leases(&attacked, &accounts).await?;
    testbed.journal().note(format!("{cells} cells hold"));
    elections::go_on(&testbed).await
}

fn overlay(mode: ClusterMode) -> PathBuf {
    manifests(match mode {
        ClusterMode::Custom => "overlays/crd",
        _ => "overlays/native",
    })
}

fn manifests(folder: &str) -> PathBuf {
    paths::workspace().join("manifests").join(folder)
}
