//! The accounts of a namespace, each with the columns of the tables of `manifests/components/policies/README.md`.

use anyhow::{Context as _, Result};
use elector_tests::rig::{TestAccount, TestSite};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

/// An account and the name under which it acts.
#[derive(Clone)]
pub(super) struct ActingAccount {
    /// The column of the tables.
    pub(super) column: &'static str,
    /// The name of its candidate, and its identity.
    pub(super) identity: &'static str,
    pub(super) client: Client,
}

/// The accounts of one namespace: all but the outsider may write every Lease and every LeaseCandidate in it, so that
/// nothing but the policies tells them apart.
pub(super) struct Accounts {
    pub(super) actors: Vec<ActingAccount>,
    /// May write LeaseCandidates and no Lease.
    pub(super) outsider: ActingAccount,
}

/// The candidate that holds the Leases of the tables, that of the Pod `web-0`.
pub(super) const HOLDER: &str = "web-0-0123456789abcdef";

/// The candidate that Leases prefer, that of the Pod `web-1`.
pub(super) const PREFERRED: &str = "web-1-0123456789abcdef";

/// A candidate of a Pod that is none of the accounts.
pub(super) const THIRD: &str = "web-3-0123456789abcdef";

// === impl Accounts ===

impl Accounts {
    /// Makes them.
    pub(super) async fn create(site: &TestSite, namespace: &str) -> Result<Self> {
        let elector = site
            .pod_account("elector-system", "elector", "elector-0")
            .await?;
        let holder = site.pod_account(namespace, "web", "web-0").await?;
        let preferred = site.pod_account(namespace, "web", "web-1").await?;
        let another = site.pod_account(namespace, "web", "web-2").await?;
        let editor = site.unbound_account(namespace, "editor").await?;
        let operator = site.unbound_account(namespace, "operator").await?;
        let exempt = site.user_account("component", Some("components")).await?;
        let controller = "system:serviceaccount:kube-system:generic-garbage-collector";
        let controller = site.user_account(controller, None).await?;
        let outsider = site
            .pod_account(namespace, "outsider", "outsider-0")
            .await?;
        let admin = site.client();
        let candidates = json!({
            "apiGroups": ["coordination.k8s.io", "elector.dev"], "resources": ["leasecandidates"], "verbs": ["*"],
        });
        let leases =
            json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]});
        let accounts = [
            subject("ServiceAccount", "web", Some(namespace)),
            subject("ServiceAccount", "elector", Some("elector-system")),
            subject(
                "ServiceAccount",
                "generic-garbage-collector",
                Some("kube-system"),
            ),
            subject("Group", "components", None),
            subject("ServiceAccount", "operator", Some(namespace)),
        ];
        let operates = [subject("ServiceAccount", "operator", Some(namespace))];
        let outside = [subject("ServiceAccount", "outsider", Some(namespace))];
        let edits = [subject("ServiceAccount", "editor", Some(namespace))];
        let exempted = [subject("Group", "components", None)];
        role(admin, namespace, "writers", &[&leases, &candidates]).await?;
        role(admin, namespace, "outsiders", &[&candidates]).await?;
        bind(admin, namespace, "writers", ("Role", "writers"), &accounts).await?;
        bind(
            admin,
            namespace,
            "outsiders",
            ("Role", "outsiders"),
            &outside,
        )
        .await?;
        // The content of the role `edit`, where a controller aggregates; `elector-candidates-edit` does not exist yet.
        let edit = ("ClusterRole", "system:aggregate-to-edit");
        bind(admin, namespace, "editors", edit, &edits).await?;
        let aggregated = ("Role", "outsiders");
        bind(admin, namespace, "aggregated", aggregated, &edits).await?;
        let impersonate = ("ClusterRole", "elector-impersonate");
        bind(admin, namespace, "exempt", impersonate, &exempted).await?;
        let operate = ("ClusterRole", "elector-operate");
        bind(admin, namespace, "operators", operate, &operates).await?;
        let actor = |column, identity, account: &TestAccount| ActingAccount {
            column,
            identity,
            client: account.client().clone(),
        };
        let administrator = ActingAccount {
            column: "administrator",
            identity: "anything",
            client: admin.clone(),
        };
        Ok(Self {
            actors: vec![
                actor("elector", "elector-0", &elector),
                actor("its holder", HOLDER, &holder),
                actor("preferred", PREFERRED, &preferred),
                actor("another Pod", "web-2-0123456789abcdef", &another),
                actor("editor", "editor", &editor),
                actor("operator", "operator", &operator),
                actor("exempt", "node-1-component", &exempt),
                actor("controllers", "controller", &controller),
                administrator,
            ],
            outsider: actor("outsider", "outsider-0", &outsider),
        })
    }

    /// The account of that column; the Pod of the LeaseCandidates is the one of the holder.
    pub(super) fn of(&self, column: &str) -> Result<&ActingAccount> {
        let column = if column == "its Pod" {
            "its holder"
        } else {
            column
        };
        let found = self.actors.iter().find(|actor| actor.column == column);
        found.with_context(|| format!("no account is called {column:?}"))
    }
}

/// An account or a group, as a binding names it.
pub(super) fn subject(kind: &str, name: &str, namespace: Option<&str>) -> Value {
    match namespace {
        Some(namespace) => json!({"kind": kind, "name": name, "namespace": namespace}),
        None => json!({"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"}),
    }
}

/// Creates a Role of those rules.
pub(super) async fn role(
    admin: &Client,
    namespace: &str,
    name: &str,
    rules: &[&Value],
) -> Result<()> {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    create_access(admin, namespace, "roles", &role).await
}

/// Binds a role to accounts of a namespace.
pub(super) async fn bind(
    admin: &Client,
    namespace: &str,
    name: &str,
    (kind, role): (&str, &str),
    subjects: &[Value],
) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": name}, "roleRef": {"apiGroup": group, "kind": kind, "name": role}, "subjects": subjects,
    });
    create_access(admin, namespace, "rolebindings", &binding).await
}

async fn create_access(admin: &Client, namespace: &str, kind: &str, object: &Value) -> Result<()> {
    let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{kind}");
    let request = Request::post(path).body(serde_json::to_vec(object)?)?;
    admin.request::<Value>(request).await?;
    Ok(())
}
