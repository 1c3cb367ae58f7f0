//! The object that a LeaseCandidate or a Lease belongs to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

/// The object to which the LeaseCandidate of this process is to belong
/// ([`Config::candidate_owner`](crate::Config::candidate_owner)), which is its Pod most often, or the Lease
/// ([`Config::lease_owner`](crate::Config::lease_owner)). When the owner is gone, Kubernetes deletes what belongs to it.
///
/// Without its LeaseCandidate, electors know at once that the process is no candidate any more; else they find that out by
/// an unanswered ping. A leader is not replaced for it, since a Pod that is gone for the API server may still run on a node
/// that is cut off (R13): its lease expires.
///
/// The owner has to be in the namespace of the lease, or in none: Kubernetes takes an owner in another one for missing, and
/// deletes what it owns. So it is with a static Pod, which is known to the API server under another uid. That is why
/// nothing of this is found by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

// === impl Owner ===

impl Owner {
    /// The Pod of that `metadata.name` and `metadata.uid`, which the downward API tells.
    pub fn pod(name: impl Into<String>, uid: impl Into<String>) -> Self {
        Self::new("v1", "Pod", name, uid)
    }

    /// Any other object, such as the ReplicaSet of a Pod.
    pub fn new(
        api_version: impl Into<String>,
        kind: impl Into<String>,
        name: impl Into<String>,
        uid: impl Into<String>,
    ) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            uid: uid.into(),
        }
    }

    /// The owner as an object names it.
    pub(crate) fn reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            ..OwnerReference::default()
        }
    }

    /// The first of its parts that is empty.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        let Self {
            api_version,
            kind,
            name,
            uid,
        } = self;
        let parts = [
            ("apiVersion", api_version),
            ("kind", kind),
            ("name", name),
            ("uid", uid),
        ];
        let missing = parts.into_iter().find(|(_, text)| text.is_empty());
        missing.map(|(part, _)| part)
    }
}
