//! The admission policies of `manifests/components/policies`: what accounts can do without them and cannot with them,
//! and elections that go on as before.

mod accounts;
mod attack_list;
mod attacks;
mod candidate_changes;
mod durations;
mod editors;
mod elections;
mod lease_changes;
mod namespaces;
mod plain_changes;
mod renewal_cost;
mod requests;
mod strategies;
mod tables;
mod trial;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use elector_api::CandidateApi;
use elector_cluster::paths;
use elector_tests::rig::{ClusterMode, Suite, Testbed, definition};

use self::accounts::Accounts;
use self::requests::Collection;
use crate::{GATE_OFF, MODES, OURS};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, MODES).every_change_on(GATE_OFF);
    own.add("policies_bind_accounts_and_no_election", 90, bind);
}

/// The accounts are played on one kind of cluster, which serves LeaseCandidates of either kind and has no elector yet.
async fn bind(testbed: Arc<Testbed>) -> Result<()> {
    let site = Arc::clone(testbed.site());
    site.apply("-k", &manifests("base")).await?;
    if site.mode() != ClusterMode::GateOff {
        let overlay = match site.mode() {
            ClusterMode::Custom => "overlays/crd",
            _ => "overlays/replace-builtin",
        };
        site.apply("-k", &manifests(overlay)).await?;
        return elections::go_on(&testbed).await;
    }
    definition::install(site.client()).await?;
    let attacked = testbed.open_beside("attacked").await?;
    let namespace = attacked.namespace();
    // The role that the exempt account is bound to is a part of the policies' manifests.
    let accounts = Accounts::create(&site, namespace).await?;
    attacks::succeed(&attacked, &accounts).await?;
    site.apply("-k", &manifests("overlays/native")).await?;
    attacks::fail(&attacked, &accounts).await?;

    let mut cells = 0;
    for api in [site.candidate_api(), CandidateApi::Elector] {
        let candidates = Collection::candidates(api, namespace);
        let rows = candidate_changes::ROWS;
        let heading = "change of a LeaseCandidate";
        cells += tables::play(heading, rows, site.client(), &accounts, &candidates).await?;
        candidates.remove(site.client(), accounts::HOLDER).await?;
        cells += durations::play(&attacked, &accounts, api).await?;
        cells += strategies::play(&attacked, &accounts, api).await?;
    }
    let leases = Collection::leases(namespace);
    let rows = lease_changes::ROWS;
    let heading = "change of a Lease";
    cells += tables::play(heading, rows, site.client(), &accounts, &leases).await?;
    let rows = plain_changes::ROWS;
    let heading = "change of a plain Lease";
    cells += tables::play(heading, rows, site.client(), &accounts, &leases).await?;
    leases.remove(site.client(), "work").await?;
    cells += durations::play_leases(&attacked, &accounts).await?;
    testbed.journal().note(format!("{cells} cells hold"));
    editors::can_be_a_pod(&attacked, &accounts).await?;
    trial::refuses_nothing(&attacked, &accounts).await?;
    namespaces::are_left_alone(&site, &accounts).await?;
    site.apply("-k", &manifests("overlays/replace-builtin"))
        .await?;
    namespaces::are_served(&site, &accounts).await?;
    renewal_cost::is_no_right(&attacked, &accounts).await?;
    elections::go_on(&testbed).await
}

fn manifests(folder: &str) -> PathBuf {
    paths::workspace().join("manifests").join(folder)
}
