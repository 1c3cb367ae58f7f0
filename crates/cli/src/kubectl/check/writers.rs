//! The accounts that may write a Lease, by the roles and bindings of RBAC.

use std::collections::{BTreeMap, BTreeSet};

use elector_protocol::LeaseKey;
use elector_runtime::RequestError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::line::CheckLine;
use super::place::CheckedPlace;
use crate::kubectl::pages::list_all;

/// A Role or a ClusterRole.
#[derive(Clone, Debug, Deserialize)]
struct RbacRole {
    metadata: RbacName,
    /// `null` in a ClusterRole that nothing is aggregated into.
    #[serde(default)]
    rules: Option<Vec<RbacRule>>,
}

/// A RoleBinding or a ClusterRoleBinding.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RbacBinding {
    metadata: RbacName,
    role_ref: RbacRoleRef,
    #[serde(default)]
    subjects: Option<Vec<RbacSubject>>,
}

#[derive(Clone, Debug, Deserialize)]
struct RbacName {
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RbacRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct RbacRoleRef {
    kind: String,
    name: String,
}

#[derive(Clone, Debug, Deserialize)]
struct RbacSubject {
    kind: String,
    name: String,
    #[serde(default)]
    namespace: String,
}

/// The roles and bindings that count in one namespace.
#[derive(Clone, Debug, Default)]
struct NamespaceRbac {
    roles: Vec<RbacRole>,
    cluster_roles: Vec<RbacRole>,
    bindings: Vec<RbacBinding>,
    cluster_bindings: Vec<RbacBinding>,
}

/// The verbs that an account has on a Lease, and the bindings that give them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LeaseWriter {
    verbs: BTreeSet<&'static str>,
    bindings: BTreeSet<String>,
}

const CHECK: &str = "writers";
/// The verbs that change who leads.
const VERBS: [&str; 3] = ["update", "patch", "delete"];
/// Groups that every account, or every service account, is in.
const EVERYBODY: [&str; 4] = [
    "system:authenticated",
    "system:unauthenticated",
    "system:anonymous",
    "system:serviceaccounts",
];

/// Says who may write a Lease.
pub(super) async fn check(place: &CheckedPlace, lease: &LeaseKey, lines: &mut Vec<CheckLine>) {
    match NamespaceRbac::read(place, &lease.namespace).await {
        Ok(rbac) => {
            let writers = rbac.writers(&lease.name);
            lines.extend(writers.iter().map(|(name, writer)| judge(lease, name, writer)));
        }
        Err(error) => lines.push(CheckLine::warning(
            CHECK,
            format!("failed to {error}, so that it is not known who may write {lease}"),
            format!(
                "use an account with this permission: kubectl get roles,rolebindings,clusterroles,clusterrolebindings -n {}",
                lease.namespace
            ),
        )),
    }
}

fn judge(lease: &LeaseKey, name: &str, writer: &LeaseWriter) -> CheckLine {
    let verbs: Vec<_> = writer.verbs.iter().copied().collect();
    let bindings: Vec<_> = writer.bindings.iter().map(String::as_str).collect();
    let text = format!(
        "{name} may {} {lease}, by {}",
        verbs.join(", "),
        bindings.join(", ")
    );
    let group = name.strip_prefix("Group ").or(name.strip_prefix("User "));
    let is_wide =
        |group: &str| EVERYBODY.contains(&group) || group.starts_with("system:serviceaccounts:");
    if group.is_some_and(is_wide) {
        let fix = "an account that may update a Lease may lead: bind such a role to the candidates' accounts alone";
        return CheckLine::warning(CHECK, text, fix);
    }
    CheckLine::ok(CHECK, text)
}

// === impl NamespaceRbac ===

impl NamespaceRbac {
    async fn read(place: &CheckedPlace, namespace: &str) -> Result<Self, RequestError> {
        Ok(Self {
            roles: list(place, "roles", Some(namespace)).await?,
            cluster_roles: list(place, "clusterroles", None).await?,
            bindings: list(place, "rolebindings", Some(namespace)).await?,
            cluster_bindings: list(place, "clusterrolebindings", None).await?,
        })
    }

    /// The accounts that may write the Lease of that name.
    fn writers(&self, lease: &str) -> BTreeMap<String, LeaseWriter> {
        let mut writers: BTreeMap<String, LeaseWriter> = BTreeMap::new();
        let bindings = self.bindings.iter().map(|each| ("RoleBinding", each));
        let cluster = self.cluster_bindings.iter();
        let cluster = cluster.map(|each| ("ClusterRoleBinding", each));
        for (kind, binding) in bindings.chain(cluster) {
            let verbs = self.verbs(&binding.role_ref, lease);
            if verbs.is_empty() {
                continue;
            }
            let role = &binding.role_ref;
            let by = format!(
                "{kind} {} of {} {}",
                binding.metadata.name, role.kind, role.name
            );
            for subject in binding.subjects.iter().flatten() {
                let writer = writers.entry(subject.shown()).or_default();
                writer.verbs.extend(&verbs);
                writer.bindings.insert(by.clone());
            }
        }
        writers
    }

    /// The verbs that a role grants on the Lease of that name.
    fn verbs(&self, role: &RbacRoleRef, lease: &str) -> Vec<&'static str> {
        let roles = match role.kind.as_str() {
            "Role" => &self.roles,
            _ => &self.cluster_roles,
        };
        let found = roles.iter().find(|each| each.metadata.name == role.name);
        let rules: Vec<_> = found
            .into_iter()
            .flat_map(|role| role.rules.iter().flatten())
            .collect();
        let granted = |verb: &&'static str| rules.iter().any(|rule| rule.grants(verb, lease));
        VERBS.into_iter().filter(granted).collect()
    }
}

// === impl RbacRule ===

impl RbacRule {
    fn grants(&self, verb: &str, lease: &str) -> bool {
        let has =
            |all: &[String], wanted: &str| all.iter().any(|each| each == wanted || each == "*");
        has(&self.verbs, verb)
            && has(&self.api_groups, "coordination.k8s.io")
            && has(&self.resources, "leases")
            && (self.resource_names.is_empty()
                || self.resource_names.iter().any(|name| name == lease))
    }
}

// === impl RbacSubject ===

impl RbacSubject {
    fn shown(&self) -> String {
        match self.namespace.as_str() {
            "" => format!("{} {}", self.kind, self.name),
            namespace => format!("{} {namespace}/{}", self.kind, self.name),
        }
    }
}

async fn list<T: DeserializeOwned>(
    place: &CheckedPlace,
    plural: &str,
    namespace: Option<&str>,
) -> Result<Vec<T>, RequestError> {
    let resource = match plural {
        "roles" => "roles.rbac.authorization.k8s.io",
        "rolebindings" => "rolebindings.rbac.authorization.k8s.io",
        "clusterroles" => "clusterroles.rbac.authorization.k8s.io",
        _ => "clusterrolebindings.rbac.authorization.k8s.io",
    };
    let path = match namespace {
        Some(name) => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/{plural}"),
        None => format!("/apis/rbac.authorization.k8s.io/v1/{plural}"),
    };
    list_all(&place.cluster, resource, namespace, &path, "").await
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read<T: DeserializeOwned>(objects: Value) -> Vec<T> {
        serde_json::from_value(objects).unwrap()
    }

    fn role(name: &str, verbs: &[&str], names: &[&str]) -> Value {
        let rule = json!({
            "verbs": verbs, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": names,
        });
        json!({"metadata": {"name": name}, "rules": [rule]})
    }

    fn binding(name: &str, kind: &str, role: &str, subject: (&str, &str)) -> Value {
        let subject = json!({"kind": subject.0, "name": subject.1, "namespace": match subject.0 {
            "ServiceAccount" => "shop",
            _ => "",
        }});
        json!({"metadata": {"name": name}, "roleRef": {"kind": kind, "name": role}, "subjects": [subject]})
    }

    fn rbac() -> NamespaceRbac {
        let all = json!({"metadata": {"name": "cluster-admin"}, "rules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
        ]});
        let empty = json!({"metadata": {"name": "aggregated"}, "rules": null});
        NamespaceRbac {
            roles: read(json!([role("web", &["get", "update"], &["web"])])),
            cluster_roles: read(json!([
                all,
                empty,
                role("edit", &["update", "patch"], &[]),
                role("view", &["get"], &[])
            ])),
            bindings: read(json!([
                binding("web", "Role", "web", ("ServiceAccount", "web")),
                binding("web-edit", "ClusterRole", "edit", ("ServiceAccount", "web")),
                binding("view", "ClusterRole", "view", ("Group", "lookers")),
                binding("lost", "ClusterRole", "gone", ("User", "nobody")),
                json!({"metadata": {"name": "unbound"}, "roleRef": {"kind": "ClusterRole", "name": "edit"}}),
            ])),
            cluster_bindings: read(json!([
                binding(
                    "cluster-admin",
                    "ClusterRole",
                    "cluster-admin",
                    ("Group", "system:masters")
                ),
                binding(
                    "aggregated",
                    "ClusterRole",
                    "aggregated",
                    ("User", "nobody")
                ),
            ])),
        }
    }

    #[test]
    fn the_writers_of_a_lease_are_those_that_a_binding_gives_a_verb() {
        let found = rbac().writers("web");
        let names: Vec<_> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["Group system:masters", "ServiceAccount shop/web"]);
        let web = &found["ServiceAccount shop/web"];
        assert_eq!(web.verbs, BTreeSet::from(["update", "patch"]));
        assert_eq!(web.bindings.len(), 2);
        assert_eq!(found["Group system:masters"].verbs, BTreeSet::from(VERBS));
    }

    #[test]
    fn a_role_for_another_name_grants_nothing() {
        let found = rbac().writers("till");
        assert_eq!(found["ServiceAccount shop/web"].bindings.len(), 1);
    }

    #[test]
    fn a_right_of_everybody_is_a_warning() {
        let mut rbac = rbac();
        let everybody = binding(
            "all",
            "ClusterRole",
            "edit",
            ("Group", "system:authenticated"),
        );
        rbac.cluster_bindings.extend(read(json!([everybody])));
        let lease = LeaseKey::new("shop", "web");
        let warned = rbac.writers("web");
        let warned = warned
            .iter()
            .filter(|(name, writer)| judge(&lease, name, writer).fix.is_some());
        let names: Vec<_> = warned.map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Group system:authenticated"]);
    }
}
