//! Accounts with no more rights than they are given: Pods with a token of their own, and users.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::Client;
use kube::api::{Api, PostParams};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::rig::site::{TestSite, client_of, command};

/// An account with its way to the cluster.
#[derive(Clone)]
pub struct TestAccount {
    /// The Pod that its token is bound to; empty for none.
    pod: String,
    kubeconfig: PathBuf,
    client: Client,
}

// === impl TestSite ===

impl TestSite {
    /// A Pod of that name and its service account, with a token that is bound to both. The Pod is an object and no
    /// process: there is no kubelet.
    pub async fn pod_account(
        &self,
        namespace: &str,
        service_account: &str,
        pod: &str,
    ) -> Result<TestAccount> {
        self.make(namespace, service_account).await?;
        let pods: Api<Pod> = Api::namespaced(self.client().clone(), namespace);
        let object = json!({
            "metadata": {"name": pod},
            "spec": {
                "serviceAccountName": service_account,
                "automountServiceAccountToken": false,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [{
                    "name": "none", "image": "none",
                    "securityContext": {
                        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
                    },
                }],
            },
        });
        create(&pods, object).await?;
        let token = self.token(self.client(), namespace, service_account, bound_to(pod));
        let account = self
            .account(&format!("{namespace}-{pod}"), &token.await?)
            .await?;
        Ok(TestAccount {
            pod: pod.to_owned(),
            ..account
        })
    }

    /// A Pod that is there, by a token that another account requests for itself, with rights of its own.
    pub async fn borrowed_pod(
        &self,
        by: &Client,
        namespace: &str,
        service_account: &str,
        pod: &str,
    ) -> Result<TestAccount> {
        let token = self.token(by, namespace, service_account, bound_to(pod));
        let name = format!("{namespace}-{pod}-borrowed");
        self.account(&name, &token.await?).await
    }

    /// A service account with a token that names no Pod.
    pub async fn unbound_account(
        &self,
        namespace: &str,
        service_account: &str,
    ) -> Result<TestAccount> {
        self.make(namespace, service_account).await?;
        let request = json!({"spec": {"audiences": []}});
        let token = self.token(self.client(), namespace, service_account, request);
        let token = token.await?;
        let name = format!("{namespace}-{service_account}");
        self.account(&name, &token).await
    }

    /// A user, in that group if any, by a client certificate.
    pub async fn user_account(&self, user: &str, group: Option<&str>) -> Result<TestAccount> {
        let kubeconfig = self.client_kubeconfig(user, group).await?;
        let client = client_of(&kubeconfig).await?;
        Ok(TestAccount {
            pod: String::new(),
            kubeconfig,
            client,
        })
    }

    /// Makes a service account, if it is not there.
    async fn make(&self, namespace: &str, service_account: &str) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().clone(), namespace);
        create(&accounts, json!({"metadata": {"name": service_account}})).await
    }

    async fn token(
        &self,
        by: &Client,
        namespace: &str,
        service_account: &str,
        mut request: serde_json::Value,
    ) -> Result<String> {
        // A soak lasts for hours, and tokens end after one by default.
        request["spec"]["expirationSeconds"] = json!(86_400);
        let accounts: Api<ServiceAccount> = Api::namespaced(by.clone(), namespace);
        let request: TokenRequest = serde_json::from_value(request)?;
        let parameters = PostParams::default();
        let issued = accounts.create_token_request(service_account, &parameters, &request);
        let issued = issued.await;
        let issued = issued.with_context(|| format!("no token for {service_account}"))?;
        let status = issued.status.context("a token request without an answer")?;
        status.token.context("an answer without a token")
    }

    /// The administrator's kubeconfig with another token.
    async fn account(&self, name: &str, token: &str) -> Result<TestAccount> {
        let text = fs::read_to_string(self.kubeconfig())?;
        let kubeconfig = self.folder().join(format!("{name}.kubeconfig"));
        let own = token_line(&text)?;
        fs::write(
            &kubeconfig,
            text.replacen(own, &format!("token: {token:?}"), 1),
        )?;
        let client = client_of(&kubeconfig).await?;
        Ok(TestAccount {
            pod: String::new(),
            kubeconfig,
            client,
        })
    }
}

/// The request for a token of that Pod.
fn bound_to(pod: &str) -> serde_json::Value {
    json!({
        "spec": {"audiences": [], "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod}},
    })
}

/// The line of a kubeconfig of the test cluster that names its account.
fn token_line(kubeconfig: &str) -> Result<&str> {
    kubeconfig
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("token:"))
        .context("the kubeconfig has no token")
}

/// Creates an object, unless it is there.
async fn create<K>(api: &Api<K>, object: serde_json::Value) -> Result<()>
where
    K: Clone + fmt::Debug + DeserializeOwned + serde::Serialize,
{
    let object: K = serde_json::from_value(object)?;
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        done => done.map(drop).context("failed to create an account"),
    }
}

// === impl TestAccount ===

impl TestAccount {
    /// A command that reaches the cluster under this account, as in its Pod.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = command(program, &self.kubeconfig);
        if !self.pod.is_empty() {
            command.env("POD_NAME", &self.pod);
        }
        command
    }

    /// Its kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Its client.
    pub fn client(&self) -> &Client {
        &self.client
    }
}
