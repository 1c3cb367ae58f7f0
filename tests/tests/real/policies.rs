//! The admission policies of `manifests/components/policies`: what accounts can do without them and cannot with them,
//! and elections that go on as before.

mod accounts;
mod attack_list;
mod attacks;
mod candidate_changes;
mod cells;
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
use futures::FutureExt as _;

use self::accounts::Accounts;
use crate::{GATE_OFF, MODES, OURS, policy_mutants};

pub(crate) fn add(suite: &mut Suite) {
    let mut own = suite.own(OURS, MODES).every_change_on(GATE_OFF);
    own.add("policies_bind_accounts_and_no_election", 90, bind);
    let mut own = suite.own(OURS, GATE_OFF);
    let name = "a_changed_policy_is_noticed";
    own.add_long(name, 3600, changed);
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

    let mut cells = cells::of_leases(&attacked, &accounts).await?;
    for api in [site.candidate_api(), CandidateApi::Elector] {
        cells += cells::of_candidates(&attacked, &accounts, api).await?;
    }
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

/// Each expression of each policy is changed in each way, and a cell, a bound, a price or an attack tells.
async fn changed(testbed: Arc<Testbed>) -> Result<()> {
    let site = testbed.site();
    definition::install(site.client()).await?;
    let accounts = Arc::new(Accounts::create(site, testbed.namespace()).await?);
    site.apply("-k", &manifests("overlays/native")).await?;
    attacks::fail(&testbed, &accounts).await?;
    let reset = || {
        let (testbed, accounts) = (Arc::clone(&testbed), Arc::clone(&accounts));
        async move {
            let (admin, namespace) = (testbed.site().client(), testbed.namespace());
            for annotation in ["elector.dev/max-lease-duration", "elector.dev/strategies"] {
                durations::annotate_namespace(admin, namespace, annotation, None).await?;
            }
            renewal_cost::taken_back(&testbed, &accounts).await
        }
        .boxed()
    };
    let check = || {
        let (testbed, accounts) = (Arc::clone(&testbed), Arc::clone(&accounts));
        async move {
            cells::of_leases(&testbed, &accounts).await?;
            for api in [testbed.site().candidate_api(), CandidateApi::Elector] {
                cells::of_candidates(&testbed, &accounts, api).await?;
            }
            attacks::fail(&testbed, &accounts).await?;
            renewal_cost::is_no_right(&testbed, &accounts).await
        }
        .boxed()
    };
    let is_ours = |name: &str| name.starts_with("elector-");
    policy_mutants::play_each(&testbed, is_ours, reset, check).await
}

fn manifests(folder: &str) -> PathBuf {
    paths::workspace().join("manifests").join(folder)
}
