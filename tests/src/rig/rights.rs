//! The rights of the manifests: what electors and candidates of scenarios on a real server may do, and no more.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use elector_cluster::paths;
use tokio::task::spawn_blocking;

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
    ///
    /// # Errors
    /// When the server refuses one of them.
    pub(super) async fn install_rights(&self) -> Result<()> {
        let base = paths::workspace().join("manifests/base");
        for file in ["namespace.yaml", "service-account.yaml", "rbac.yaml"] {
            self.apply("-f", &base.join(file)).await?;
        }
        Ok(())
    }

    /// The service account of the elector in a Pod of that name; `None` where the server asks nobody who they are.
    ///
    /// # Errors
    /// When its token cannot be had.
    pub async fn elector_account(&self, pod: &str) -> Result<Option<TestAccount>> {
        if self.mode().is_embedded() {
            return Ok(None);
        }
        let (namespace, service_account) = ELECTOR;
        let account = self.pod_account(namespace, service_account, pod).await?;
        Ok(Some(account))
    }

    /// The same for a candidate in that namespace.
    ///
    /// # Errors
    /// When its token cannot be had.
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
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn elector<'a>(
        &self,
        name: &str,
        flags: impl IntoIterator<Item = &'a str>,
    ) -> Result<TestProcess> {
        let account = self.elector_account(name).await?;
        self.elector_under(account.as_ref(), name, flags)
    }

    /// The same under this account, which the API server need not be asked for.
    ///
    /// # Errors
    /// When it cannot be started.
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
    ///
    /// # Errors
    /// When it cannot be started.
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

    /// `kubectl apply` with `-f` or `-k`.
    ///
    /// # Errors
    /// When it fails, with what it says.
    pub async fn apply(&self, flag: &str, path: &Path) -> Result<()> {
        let mut command = self.command(&self.programs().kubectl);
        command.args(["apply", flag]).arg(path);
        let output = spawn_blocking(move || command.output()).await??;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl apply: {said}");
        Ok(())
    }
}

// === impl Testbed ===

impl Testbed {
    /// Gives the candidates of this namespace the Role of `manifests/candidate`, for these Leases.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn admit(&self, leases: &[impl AsRef<str> + Sync]) -> Result<()> {
        if self.site().mode().is_embedded() {
            return Ok(());
        }
        let role = fs::read_to_string(paths::workspace().join("manifests/candidate/role.yaml"))?;
        let path = self.folder().join("role.yaml");
        let leases: Vec<&str> = leases.iter().map(AsRef::as_ref).collect();
        fs::write(&path, role_for(&role, self.namespace(), &leases))?;
        self.site().apply("-f", &path).await
    }

    /// Lets the candidates of this namespace write Events, as the manifests do.
    ///
    /// # Errors
    /// When the server refuses it.
    pub async fn admit_events(&self) -> Result<()> {
        let role = fs::read_to_string(paths::workspace().join("manifests/candidate/events.yaml"))?;
        let path = self.folder().join("events.yaml");
        fs::write(
            &path,
            role_for(&role, self.namespace(), &[self.lease_name()]),
        )?;
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
