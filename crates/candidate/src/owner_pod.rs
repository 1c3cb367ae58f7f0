//! The Pod that a LeaseCandidate belongs to.

/// The Pod of this process, to which its LeaseCandidate is to belong ([`Config::owner`](crate::Config::owner)).
///
/// When the Pod is gone, Kubernetes deletes the LeaseCandidate, and electors know at once that nobody stands there any
/// more: without it they find that out by an unanswered ping. A leader is not replaced for it, since a Pod that is gone
/// for the API server may still run on a node that is cut off (R13): its lease expires.
///
/// The Pod has to be in the namespace of the lease: Kubernetes takes an owner in another one for missing, and deletes what
/// it owns. So it is with a static Pod, which is known to the API server under another uid. That is why nothing of this is
/// found by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnerPod {
    /// Its name, `metadata.name`.
    pub name: String,
    /// Its uid, `metadata.uid`, which the downward API tells.
    pub uid: String,
}

// === impl OwnerPod ===

impl OwnerPod {
    /// The Pod of that name and uid.
    pub fn new(name: impl Into<String>, uid: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            uid: uid.into(),
        }
    }
}
