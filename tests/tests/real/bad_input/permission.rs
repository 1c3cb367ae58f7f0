//! Electors and candidates that may not do everything.

use std::fs;
use std::sync::Arc;

use anyhow::{Result, ensure};
use elector_cluster::overlays;
use elector_cluster::paths;
use elector_tests::rig::{LONGEST_LEASE, Testbed, between};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use super::program::{complaint, end, kubeconfig, start};
use crate::PROMPTLY;

/// The user whose rights are limited.
const USER: &str = "limited";

/// In one namespace the elector may do everything, in the other it must not update Leases. The lock of the built-in
/// controller it may read only once the Role that its complaint names is there.
pub(super) async fn missing(testbed: Arc<Testbed>) -> Result<()> {
    let free = testbed.open_beside("permission-free").await?;
    let bound = testbed.open_beside("permission-bound").await?;
    let write = [
        "get", "list", "watch", "create", "update", "patch", "delete",
    ];
    for (limited, leases) in [(&free, &write[..]), (&bound, &write[..4])] {
        let rule = |resource: &str, verbs: &[&str]| json!({"apiGroups": ["coordination.k8s.io"], "resources": [resource], "verbs": verbs});
        let rules = [rule("leases", leases), rule("leasecandidates", &write)];
        let role = json!({"metadata": {"name": USER}, "rules": rules});
        let binding = json!({
            "metadata": {"name": USER},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": USER},
        });
        allow(&testbed, limited.namespace(), role, binding).await?;
    }
    let manifest = paths::workspace().join("manifests/components/builtin-lock/role.yaml");
    let objects = overlays::objects(&fs::read_to_string(manifest)?)?;
    let named = |kind| overlays::object(&objects, kind, "elector-builtin-lock").cloned();
    let path = kubeconfig(&testbed, "limited", |text| {
        // The administrator may speak for any user.
        let impersonate =
            format!("    as: \"{USER}\"\n    as-groups: [\"system:authenticated\"]\n    token:");
        text.replacen("    token:", &impersonate, 1)
    })?;
    let namespaces = [free.namespace(), bound.namespace()];
    let flags = [
        "run",
        "--namespace",
        namespaces[0],
        "--namespace",
        namespaces[1],
    ];
    let mut elector = start(&testbed, "elector", &path, &flags)?;
    let lock = [
        "leader-election-controller",
        "a Role in the namespace kube-system",
        "list and watch",
    ];
    complaint(&mut elector, &lock).await?;
    let (role, binding) = (named("Role")?, named("RoleBinding")?);
    allow(&testbed, "kube-system", role, binding).await?;
    let affected = bound.candidate("affected").start()?;
    let unaffected = free.candidate("unaffected").start()?;
    // A new elector waits W_max for names it never saw.
    unaffected.leads(LONGEST_LEASE + PROMPTLY).await?;
    complaint(&mut elector, &["update", "leases", bound.namespace()]).await?;
    let holder = bound.lease()?.spec.holder_identity.clone();
    let holds = holder.as_deref() == Some("");
    ensure!(holds, "the forbidden lease is held by {holder:?}");
    drop(affected);
    free.stays("unaffected", 2).await?;
    free.verdict().await?;
    bound.verdict().await?;
    end(elector, 40).await
}

/// Creates a role in a namespace, and binds it to the user.
async fn allow(testbed: &Testbed, namespace: &str, role: Value, mut binding: Value) -> Result<()> {
    let (client, parameters) = (testbed.site().client(), PostParams::default());
    let group = "rbac.authorization.k8s.io";
    binding["subjects"] = json!([{"apiGroup": group, "kind": "User", "name": USER}]);
    let api: Api<Role> = Api::namespaced(client.clone(), namespace);
    api.create(&parameters, &serde_json::from_value(role)?)
        .await?;
    let api: Api<RoleBinding> = Api::namespaced(client.clone(), namespace);
    api.create(&parameters, &serde_json::from_value(binding)?)
        .await?;
    Ok(())
}

/// Candidates that may not watch Leases list them instead, so that one follows the other all the same, and each says so
/// in one line.
pub(super) async fn unwatched(testbed: Arc<Testbed>) -> Result<()> {
    let roles: Api<Role> = Api::namespaced(testbed.site().client().clone(), testbed.namespace());
    let name = format!("candidate-{}", testbed.lease_name());
    let mut role = roles.get(&name).await?;
    for rule in role.rules.iter_mut().flatten() {
        let mut resources = rule.resources.iter().flatten();
        if resources.any(|resource| resource == "leases") {
            rule.verbs.retain(|verb| verb != "watch");
        }
    }
    roles.replace(&name, &PostParams::default(), &role).await?;

    // A Lease known to be released is taken at once.
    testbed.write_released(("example.com/note", "kept")).await?;
    let start = |name: &str| testbed.candidate(name).plain().start();
    let mut first = start("first")?;
    first.leads(PROMPTLY).await?;
    let second = start("second")?;
    second.begins().await?;
    testbed.stays("first", 2).await?;
    let ended = first.terminate()?;
    let stopped = first.stops(ended).await?;
    let led = second.leads(PROMPTLY).await?;
    testbed.figure("from the release to the next", between(stopped, led));
    testbed.stays("second", 2).await?;
    let line = format!(
        "failed to watch leases.coordination.k8s.io {}/{}: RBAC does not grant the verb watch",
        testbed.namespace(),
        testbed.lease_name()
    );
    for candidate in [&first, &second] {
        let said = candidate.process.output()?;
        let warnings: Vec<_> = said.lines().filter(|line| line.contains("WARN")).collect();
        ensure!(
            warnings.len() == 1
                && warnings[0].contains(&line)
                && warnings[0].contains("it is listed every few seconds instead"),
            "{}: {warnings:#?}",
            candidate.name()
        );
    }
    first.ends_well().await
}
