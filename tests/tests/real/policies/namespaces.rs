//! Leases that are no elector's business: those of nodes, and those of the control plane where it is not served.

use anyhow::Result;
use elector_tests::rig::TestSite;
use kube::Client;
use serde_json::{Value, json};

use super::accounts::{Accounts, bind, role, subject};
use super::lease_changes::{led, plain, release, renewal, term, unheld};
use super::requests::{Collection, until};

const NODES: &str = "kube-node-lease";
const SYSTEM: &str = "kube-system";
const MANAGER: &str = "kube-controller-manager";
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";

/// An elector that does not serve kube-system, with a token that may update every Lease: it can neither keep a dead node
/// alive nor take a Lease of the control plane. A kubelet and the control plane go on, and are not judged at all.
pub(super) async fn are_left_alone(site: &TestSite, accounts: &Accounts) -> Result<()> {
    let admin = site.client();
    let (nodes, system) = (Collection::leases(NODES), Collection::leases(SYSTEM));
    let elector = &accounts.of("elector")?.client;
    let node = nodes
        .reset(admin, &named(plain("node-1"), "node-1"))
        .await?;
    let beat = renewal(Some(node), |_| {});
    until(elector, &nodes, &beat, false).await?;
    let (node_name, nodes_group) = ("system:node:node-1", "system:nodes");
    let kubelet = site.user_account(node_name, Some(nodes_group)).await?;
    let leases =
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]});
    role(admin, NODES, "kubelets", &[&leases]).await?;
    let kubelets = [subject("Group", nodes_group, None)];
    bind(admin, NODES, "kubelets", ("Role", "kubelets"), &kubelets).await?;
    until(kubelet.client(), &nodes, &beat, true).await?;
    nodes.remove(admin, "node-1").await?;

    let before = system.reset(admin, &named(unheld(), MANAGER)).await?;
    let grant = term(Some(before.clone()), "any", 5, None);
    until(elector, &system, &grant, false).await?;
    // It has the rights of Kubernetes' own roles, and no other.
    let manager = site.user_account(CONTROLLER_MANAGER, None).await?;
    let acquisition = term(Some(before), "node-1_manager", 15, None);
    until(manager.client(), &system, &acquisition, true).await?;
    let before = system
        .reset(admin, &named(plain("node-1_manager"), MANAGER))
        .await?;
    let beat = renewal(Some(before), |_| {});
    until(manager.client(), &system, &beat, true).await?;
    system.remove(admin, MANAGER).await
}

/// Where kube-system is served, the elector grants there, its policies judge, and the control plane is known by its names.
pub(super) async fn are_served(site: &TestSite, accounts: &Accounts) -> Result<()> {
    let admin = site.client();
    let system = Collection::leases(SYSTEM);
    let elector = &accounts.of("elector")?.client;
    let manager = site.user_account(CONTROLLER_MANAGER, None).await?;
    let before = system.reset(admin, &named(unheld(), MANAGER)).await?;
    let grant = term(Some(before.clone()), "any", 5, None);
    until(elector, &system, &grant, true).await?;
    let acquisition = term(Some(before), "node-1_manager", 15, None);
    until(manager.client(), &system, &acquisition, true).await?;
    let before = system.reset(admin, &named(led(), MANAGER)).await?;
    let beat = renewal(Some(before.clone()), |_| {});
    until(manager.client(), &system, &beat, true).await?;
    let released = release(Some(before), |_| {});
    until(manager.client(), &system, &released, true).await?;
    // The scheduler has a right for a Lease of its own only.
    let scheduler = site.user_account("system:kube-scheduler", None).await?;
    role_for(admin, "system:kube-scheduler").await?;
    until(scheduler.client(), &system, &beat, false).await?;
    system.remove(admin, MANAGER).await
}

/// Lets that user write every Lease of kube-system.
async fn role_for(admin: &Client, user: &str) -> Result<()> {
    let leases =
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]});
    role(admin, SYSTEM, "writers", &[&leases]).await?;
    let subjects = [subject("User", user, None)];
    bind(admin, SYSTEM, "writers", ("Role", "writers"), &subjects).await
}

fn named(lease: Option<Value>, name: &str) -> Value {
    let mut lease = lease.unwrap_or_default();
    lease["metadata"]["name"] = json!(name);
    lease
}
