//! Objects that can be watched.

use std::fmt::Debug;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use kube::Resource;
use kube::core::DynamicResourceScope;
use serde::de::DeserializeOwned;

/// A kind of object that the elector and the candidates watch.
pub(crate) trait WatchedObject:
    Resource<Scope = DynamicResourceScope, DynamicType: Clone + Debug + Unpin>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + 'static
{
    /// Fills in what an object of a list or a watch does not say of itself.
    fn complete(&mut self, kind: &Self::DynamicType);
}

// === impl WatchedObject ===

impl WatchedObject for Lease {
    fn complete(&mut self, (): &()) {}
}

impl WatchedObject for LeaseCandidate {
    fn complete(&mut self, kind: &CandidateApi) {
        self.api = *kind;
    }
}
