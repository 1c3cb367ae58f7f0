//! The labels of figures.

use std::borrow::Cow;

use elector_protocol::LeaseKey;
use elector_runtime::LabelSet;

pub(super) const NAMESPACE: &str = "namespace";
pub(super) const LEASE: &str = "lease";

/// The labels of all figures of a lease.
pub(super) fn lease_labels(lease: &LeaseKey) -> LabelSet {
    vec![
        (NAMESPACE, Cow::Owned(lease.namespace.to_string())),
        (LEASE, Cow::Owned(lease.name.to_string())),
    ]
}

/// The label of client-go's figures.
pub(super) fn name_label(lease: &LeaseKey) -> LabelSet {
    vec![("name", Cow::Owned(lease.name.to_string()))]
}
