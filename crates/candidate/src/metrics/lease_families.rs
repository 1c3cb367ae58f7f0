//! The figures that sessions feed.

use std::borrow::Cow;

use elector_protocol::LeaseKey;
use elector_runtime::{HistogramFamily, LabelSet, MetricSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

pub(super) const NAMESPACE: &str = "namespace";
pub(super) const LEASE: &str = "lease";

/// The figures that sessions feed, of all leases.
pub(super) struct LeaseFamilies {
    pub(super) renew_duration: HistogramFamily,
    pub(super) writes: Family<LabelSet, Counter>,
    pub(super) failures: Family<LabelSet, Counter>,
    pub(super) terms_begun: Family<LabelSet, Counter>,
    pub(super) terms_ended: Family<LabelSet, Counter>,
    pub(super) handover_duration: HistogramFamily,
    pub(super) slow_path: Family<LabelSet, Counter>,
}

/// From a server on the same machine to the longest timeout of a request.
const REQUEST_BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
];

/// A hand-over takes as long as the work drains.
const HANDOVER_BUCKETS: &[f64] = &[
    0.0025, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

// === impl LeaseFamilies ===

impl LeaseFamilies {
    pub(super) fn new(set: &mut MetricSet) -> Self {
        Self {
            renew_duration: set.histograms(
                "elector_candidate_renew_duration",
                &[NAMESPACE, LEASE],
                REQUEST_BUCKETS,
                "From the send of a renewal to its answer, for those that succeeded",
            ),
            writes: set.counter(
                "elector_candidate_writes",
                &[NAMESPACE, LEASE, "purpose", "outcome"],
                "Writes of the Lease by what they were for and how they ended",
            ),
            failures: set.counter(
                "elector_candidate_request_failures",
                &[NAMESPACE, LEASE, "resource", "verb", "cause"],
                "Requests and watches that failed, by the cause",
            ),
            terms_begun: set.counter(
                "elector_candidate_terms_begun",
                &[NAMESPACE, LEASE, "by"],
                "Terms of this process that began: granted by an elector, or acquired without one",
            ),
            terms_ended: set.counter(
                "elector_candidate_terms_ended",
                &[NAMESPACE, LEASE, "cause"],
                "Terms of this process that ended, by the cause that the outcome and the log name",
            ),
            handover_duration: set.histograms(
                "elector_candidate_handover_duration",
                &[NAMESPACE, LEASE],
                HANDOVER_BUCKETS,
                "From the stop of the work for a hand-over until the lease was the successor's",
            ),
            slow_path: set.counter(
                "leader_election_slowpath",
                &["name"],
                "Reads of the Lease that this process needed while it led",
            ),
        }
    }
}

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
