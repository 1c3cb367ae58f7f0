//! Pods, as far as they are looked at, and which candidate is of which Pod.

use std::collections::BTreeMap;

use elector_api::LeaseCandidate;
use elector_protocol::Identity;
use elector_runtime::{Cluster, RequestError};
use serde::Deserialize;

use super::pages::list_all;

/// A Pod.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Pod {
    pub(super) metadata: PodMetadata,
    #[serde(default)]
    pub(super) spec: PodSpec,
    #[serde(default)]
    pub(super) status: PodStatus,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PodMetadata {
    pub(super) name: String,
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default)]
    pub(super) uid: String,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    pub(super) node_name: String,
    pub(super) service_account_name: String,
    pub(super) host_network: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodStatus {
    pub(super) phase: String,
    pub(super) conditions: Vec<PodCondition>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct PodCondition {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) status: String,
}

/// The Pods of a namespace, or of all, that `query` selects: empty, or `&fieldSelector=…`.
pub(super) async fn list_pods(
    cluster: &Cluster,
    namespace: Option<&str>,
    query: &str,
) -> Result<Vec<Pod>, RequestError> {
    let path = match namespace {
        Some(namespace) => format!("/api/v1/namespaces/{namespace}/pods"),
        None => "/api/v1/pods".to_owned(),
    };
    list_all(cluster, "pods", namespace, &path, query).await
}

// === impl Pod ===

impl Pod {
    /// True if a candidate is this Pod's: the candidate belongs to it, or has a name that the admission policies let no
    /// other Pod write.
    pub(super) fn is_author(&self, candidate: &LeaseCandidate) -> bool {
        if !self.is_in_namespace_of(candidate) {
            return false;
        }
        let owners = candidate.metadata.owner_references.iter().flatten();
        let mut pods = owners.filter(|owner| owner.kind == "Pod").peekable();
        if pods.peek().is_some() {
            return pods.any(|owner| owner.uid == self.metadata.uid);
        }
        is_named_for(candidate, &self.metadata.name)
    }

    /// True if a candidate may be this Pod's by the name of the host, which a Pod in the network of its node has: so it is
    /// with the components of the control plane. Other such Pods of the node are not told apart.
    pub(super) fn shares_host(&self, candidate: &LeaseCandidate) -> bool {
        let is_owned = candidate.metadata.owner_references.is_some();
        self.spec.host_network
            && !is_owned
            && self.is_in_namespace_of(candidate)
            && is_named_for(candidate, &self.spec.node_name)
    }

    /// True once all its containers have ended for good.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    pub(super) fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| condition.kind == "Ready" && condition.status == "True")
    }

    fn is_in_namespace_of(&self, candidate: &LeaseCandidate) -> bool {
        candidate.metadata.namespace.as_deref() == Some(&self.metadata.namespace)
    }
}

/// True for the names that a process on that host gives its candidates: the host's, alone, before an underscore as
/// client-go's, or as [`Identity::pod`] finds it in Elector's.
fn is_named_for(candidate: &LeaseCandidate, host: &str) -> bool {
    let name = candidate.metadata.name.as_deref().unwrap_or_default();
    let Some(rest) = name.strip_prefix(host).filter(|_| !host.is_empty()) else {
        return false;
    };
    let is_of_host = |name: Identity| name.pod() == Some(host);
    rest.is_empty() || rest.starts_with('_') || Identity::new(name).is_some_and(is_of_host)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, spec: &Value) -> Pod {
        let metadata = json!({"name": name, "namespace": "shop", "uid": format!("uid-{name}")});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn candidate(name: &str, owner: Option<(&str, &str)>) -> LeaseCandidate {
        let owners = owner.map(
            |(kind, uid)| json!([{"apiVersion": "v1", "kind": kind, "name": "x", "uid": uid}]),
        );
        let mut metadata = json!({"name": name, "namespace": "shop"});
        if let Some(owners) = owners {
            metadata["ownerReferences"] = owners;
        }
        LeaseCandidate::from_value(json!({
            "apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate", "metadata": metadata,
        }))
    }

    #[test]
    fn a_candidate_is_of_the_pod_that_may_write_it() {
        let pod = pod("web-0", &json!({}));
        for (name, is_its) in [
            ("web-0", true),
            ("web-0_5b1f", true),
            ("web-0-0123456789abcdef", true),
            ("web-0-0123456789abcdef.maps-03-of-16", true),
            ("web-0-0123456789abcdeg", false),
            ("web-0-1", false),
            ("web-01", false),
            ("web", false),
            ("other", false),
        ] {
            assert_eq!(pod.is_author(&candidate(name, None)), is_its, "{name}");
        }
        let mut elsewhere = candidate("web-0", None);
        elsewhere.metadata.namespace = Some("other".to_owned());
        assert!(!pod.is_author(&elsewhere));
    }

    #[test]
    fn an_owner_decides_before_a_name() {
        let pod = pod("web-0", &json!({}));
        assert!(pod.is_author(&candidate("leader", Some(("Pod", "uid-web-0")))));
        assert!(!pod.is_author(&candidate("web-0", Some(("Pod", "uid-earlier")))));
        assert!(pod.is_author(&candidate("web-0", Some(("ConfigMap", "u")))));
    }

    #[test]
    fn a_pod_in_the_network_of_its_node_has_the_name_of_the_node() {
        let in_network = json!({"nodeName": "node-a", "hostNetwork": true});
        let scheduler = candidate("node-a_5b1f", None);
        assert!(pod("kube-scheduler-node-a", &in_network).shares_host(&scheduler));
        let beside = pod("web-0", &json!({"nodeName": "node-a"}));
        assert!(!beside.shares_host(&scheduler));
    }
}
