//! An elector that may not do everything.

use std::fs;
use std::sync::Arc;

use anyhow::{Result, ensure};
use elector_cluster::overlays;
use elector_cluster::paths;
use elector_tests::rig::{LONGEST_LEASE, Testbed};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::api::{Api, ObjectMeta, PostParams};

use super::program::{complaint, end, kubeconfig, start};
use crate::PROMPTLY;

/// In one namespace the elector may do everything, in the other it must not update Leases. The lock of the built-in
/// controller it may read only once the Role that its complaint names is there.
pub(super) async fn missing(testbed: Arc<Testbed>) -> Result<()> {
    let client = testbed.site().client().clone();
    let (free, bound) = ("permission-free", "permission-bound");
    let free = Testbed::open(Arc::clone(testbed.site()), free, testbed.implementation()).await?;
    let bound = Testbed::open(Arc::clone(testbed.site()), bound, testbed.implementation()).await?;
    let user = "limited";
    let rule = |resource: &str, verbs: &[&str]| PolicyRule {
        api_groups: Some(vec!["coordination.k8s.io".to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    let write = [
        "get", "list", "watch", "create", "update", "patch", "delete",
    ];
    for (namespace, leases, candidates) in [
        (free.namespace(), &write[..], &write[..]),
        (
            bound.namespace(),
            &["get", "list", "watch", "create"],
            &write[..],
        ),
    ] {
        let name = ObjectMeta {
            name: Some(user.to_owned()),
            ..ObjectMeta::default()
        };
        let role = Role {
            metadata: name.clone(),
            rules: Some(vec![
                rule("leases", leases),
                rule("leasecandidates", candidates),
            ]),
        };
        let api: Api<Role> = Api::namespaced(client.clone(), namespace);
        api.create(&PostParams::default(), &role).await?;
        let binding = RoleBinding {
            metadata: name,
            role_ref: RoleRef {
                api_group: Some("rbac.authorization.k8s.io".to_owned()),
                kind: "Role".to_owned(),
                name: user.to_owned(),
            },
            subjects: Some(vec![subject(user)]),
        };
        let api: Api<RoleBinding> = Api::namespaced(client.clone(), namespace);
        api.create(&PostParams::default(), &binding).await?;
    }
    let manifest = paths::workspace().join("manifests/components/builtin-lock/role.yaml");
    let objects = overlays::objects(&fs::read_to_string(manifest)?)?;
    let named = |kind| overlays::object(&objects, kind, "elector-builtin-lock").cloned();
    let role: Role = serde_json::from_value(named("Role")?)?;
    let mut binding: RoleBinding = serde_json::from_value(named("RoleBinding")?)?;
    binding.subjects = Some(vec![subject(user)]);
    let path = kubeconfig(&testbed, "limited", |text| {
        // The administrator may speak for any user.
        let impersonate =
            format!("    as: \"{user}\"\n    as-groups: [\"system:authenticated\"]\n    token:");
        text.replacen("    token:", &impersonate, 1)
    })?;
    let flags = [
        "run",
        "--namespace",
        free.namespace(),
        "--namespace",
        bound.namespace(),
    ];
    let mut elector = start(&testbed, "elector", &path, &flags)?;
    let lock = [
        "leader-election-controller",
        "a Role in the namespace kube-system",
        "list and watch",
    ];
    complaint(&mut elector, &lock).await?;
    let api: Api<Role> = Api::namespaced(client.clone(), "kube-system");
    api.create(&PostParams::default(), &role).await?;
    let api: Api<RoleBinding> = Api::namespaced(client.clone(), "kube-system");
    api.create(&PostParams::default(), &binding).await?;
    let affected = bound.candidate("affected").start()?;
    let unaffected = free.candidate("unaffected").start()?;
    // A new elector waits W_max for names it never saw.
    unaffected.leads(LONGEST_LEASE + PROMPTLY).await?;
    complaint(&mut elector, &["update", "leases", bound.namespace()]).await?;
    let holder = bound.lease()?.spec.holder_identity.clone();
    ensure!(
        holder.as_deref() == Some(""),
        "the forbidden lease is held by {holder:?}"
    );
    drop(affected);
    free.stays("unaffected", 2).await?;
    free.verdict().await?;
    bound.verdict().await?;
    end(elector, 40).await
}

/// A user to whom a Role is bound.
fn subject(user: &str) -> Subject {
    Subject {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: "User".to_owned(),
        name: user.to_owned(),
        namespace: None,
    }
}
