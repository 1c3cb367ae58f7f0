//! The rights of the manifests: what electors and candidates of scenarios on a real server may do, and no more.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use elector_cluster::paths;
use elector_verify::Implementation;
use serde_json::json;

use crate::rig::account::TestAccount;
use crate::rig::process::TestProcess;
use crate::rig::site::TestSite;
use crate::rig::testbed::Testbed;

/// The namespace and the service account of `manifests/base`.
const ELECTOR: (&str, &str) = ("elector-system", "elector");

/// The service account of `manifests/candidate`.
const CANDIDATE: &str = "web";

// === impl TestSite ===

impl TestSite {
    /// Installs the namespace, the service account and the roles of the elector.
    pub(super) async fn install_rights(&self) -> Result<()> {
        let base = paths::workspace().join("manifests/base");
        for file in ["namespace.yaml", "service-account.yaml", "rbac.yaml"] {
            self.apply("-f", &base.join(file)).await?;
        }
        Ok(())
    }

    /// The service account of the elector in a Pod of that name; `None` where the server asks nobody who they are.
    pub async fn elector_account(&self, pod: &str) -> Result<Option<TestAccount>> {
        if self.mode().is_embedded() {
            return Ok(None);
        }
        let (namespace, service_account) = ELECTOR;
        let account = self.pod_account(namespace, service_account, pod).await?;
        Ok(Some(account))
    }

    /// The same for a candidate in that namespace.
    pub async fn candidate_account(
        &self,
        namespace: &str,
        pod: &str,
    ) -> Result<Option<TestAccount>> {
        if self.mode().is_embedded() {
            return Ok(None);
        }
        Ok(Some(self.pod_account(namespace, CANDIDATE, pod).await?))
    }

    /// Starts `elector run` with these flags, in a Pod of that name with the rights of the manifests where there are any.
    pub async fn elector<'a>(
        &self,
        name: &str,
        flags: impl IntoIterator<Item = &'a str>,
    ) -> Result<TestProcess> {
        let account = self.elector_account(name).await?;
        self.elector_under(account.as_ref(), name, flags)
    }

    /// The same with the flags that this kind of cluster needs.
    pub async fn start_elector(&self, name: &str) -> Result<TestProcess> {
        let flags = self.mode().elector_flags().iter().copied();
        self.elector(name, flags).await
    }

    /// The same under this account, which the API server need not be asked for.
    pub fn elector_under<'a>(
        &self,
        account: Option<&TestAccount>,
        name: &str,
        flags: impl IntoIterator<Item = &'a str>,
    ) -> Result<TestProcess> {
        let program = &self.programs().elector;
        let mut command = match account {
            Some(account) => account.command(program),
            None => self.command(program),
        };
        command.arg("run").args(flags);
        TestProcess::spawn(name, command, self.folder(), |_| {})
    }

    /// Starts `elector run` of that build with these flags. It may do everything: the rights that another build needs are
    /// in the manifests of its own commit.
    pub fn elector_of<'a>(
        &self,
        build: &Path,
        name: &str,
        flags: impl IntoIterator<Item = &'a str>,
    ) -> Result<TestProcess> {
        let mut command = self.command(build);
        command.arg("run").args(flags);
        TestProcess::spawn(name, command, self.folder(), |_| {})
    }
}

// === impl Testbed ===

impl Testbed {
    /// Gives the candidates of this namespace the Role of `manifests/candidate`, for these Leases.
    pub async fn admit(&self, leases: &[impl AsRef<str> + Sync]) -> Result<()> {
        let leases: Vec<&str> = leases.iter().map(AsRef::as_ref).collect();
        self.grant("role.yaml", &leases).await?;
        self.admit_early_client_go().await
    }

    /// The client-go of Kubernetes 1.31 and 1.32 lists LeaseCandidates of all namespaces, for which the Role is not enough.
    async fn admit_early_client_go(&self) -> Result<()> {
        let release = self.site().release();
        if self.implementation() != Implementation::ClientGo
            || release.is_none_or(|release| !matches!(release.minor(), 31 | 32))
        {
            return Ok(());
        }
        let namespace = self.namespace();
        let metadata = json!({"name": format!("{namespace}-reads-all-candidates")});
        let group = "rbac.authorization.k8s.io";
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": metadata,
            "rules": [{
                "apiGroups": ["coordination.k8s.io"], "resources": ["leasecandidates"],
                "verbs": ["get", "list", "watch"],
            }],
        });
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": CANDIDATE, "namespace": namespace}],
        });
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [role, binding]});
        let path = self.folder().join("reads-all-candidates.json");
        fs::write(&path, list.to_string())?;
        self.site().apply("-f", &path).await
    }

    /// The same for the members of a group with these Leases, which watch all Leases of the namespace.
    pub async fn admit_group(&self, leases: &[impl AsRef<str> + Sync]) -> Result<()> {
        self.admit(leases).await?;
        self.grant("group.yaml", &[self.lease_name()]).await
    }

    /// Lets the candidates of this namespace write Events, as the manifests do.
    pub async fn admit_events(&self) -> Result<()> {
        self.grant("events.yaml", &[self.lease_name()]).await
    }

    /// Makes the Service `web`, and lets the candidates of this namespace name the leader in its EndpointSlices, as the
    /// manifests do.
    pub async fn admit_routing(&self) -> Result<()> {
        let name = "endpoint-slice.yaml";
        let file = paths::workspace().join("manifests/candidate").join(name);
        let namespace = format!("namespace: {}", self.namespace());
        let objects = fs::read_to_string(file)?.replace("namespace: default", &namespace);
        let path = self.folder().join(name);
        fs::write(&path, objects)?;
        self.site().apply("-f", &path).await
    }

    async fn grant(&self, file: &str, leases: &[&str]) -> Result<()> {
        if self.site().mode().is_embedded() {
            return Ok(());
        }
        let role = paths::workspace().join("manifests/candidate").join(file);
        let role = role_for(&fs::read_to_string(role)?, self.namespace(), leases);
        let path = self.folder().join(file);
        fs::write(&path, role)?;
        self.site().apply("-f", &path).await
    }

    /// The kubeconfig of a candidate of this namespace.
    pub fn candidate_kubeconfig(&self) -> PathBuf {
        match self.candidate_account() {
            Some(account) => account.kubeconfig().to_owned(),
            None => self.site().kubeconfig(),
        }
    }
}

/// The Role of the manifests with these names in the place of its own.
fn role_for(role: &str, namespace: &str, leases: &[&str]) -> String {
    let name = leases.first().copied().unwrap_or_default();
    role.replace("namespace: default", &format!("namespace: {namespace}"))
        .replace("name: web-candidate", &format!("name: candidate-{name}"))
        .replace(
            "resourceNames: [web]",
            &format!("resourceNames: [{}]", leases.join(", ")),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_of_the_manifests_is_for_these_leases_alone() {
        let path = paths::workspace().join("manifests/candidate/role.yaml");
        let shipped = fs::read_to_string(path).unwrap();
        let role = role_for(&shipped, "tenant", &["one", "two"]);
        assert_eq!(role.matches("name: candidate-one").count(), 3, "{role}");
        assert_eq!(role.matches("namespace: tenant").count(), 3, "{role}");
        assert!(role.contains("resourceNames: [one, two]"), "{role}");
        assert!(!role.contains("namespace: default"), "{role}");
        assert!(!role.contains("resourceNames: [web]"), "{role}");
    }
}
