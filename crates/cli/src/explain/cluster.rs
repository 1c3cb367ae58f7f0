//! Objects from the cluster: one complete list of each kind.

use anyhow::bail;
use elector_api::{HoldBackEvent, Lease, LeaseCandidate};
use elector_runtime::{
    Cluster, Scope, Watch, WatchEvent, WatchOptions, list_hold_backs, watch_candidates,
    watch_leases,
};

use super::input::{Collector, InputObjects, LeaseChoice};
use crate::output;

/// The first complete list of a watch; a failure ends the sub-command rather than be retried.
macro_rules! listed {
    ($watch:expr) => {
        loop {
            match $watch.next().await {
                WatchEvent::Listed { items, .. } => break items,
                WatchEvent::Failed(error) => bail!(error),
                _ => {}
            }
        }
    };
}

/// All leases and candidates, as they stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListedObjects {
    pub(crate) leases: Vec<Lease>,
    pub(crate) candidates: Vec<LeaseCandidate>,
}

/// Reads all leases and candidates, of one namespace or of all but `kube-node-lease`, and what electors reported in Events.
/// Events that cannot be read are one line on standard error, and the leases are explained without them.
pub(crate) async fn read(
    cluster: &Cluster,
    namespace: Option<&str>,
    choice: LeaseChoice,
) -> anyhow::Result<InputObjects> {
    let listed = list(cluster, namespace).await?;
    let hold_backs = hold_backs(cluster, namespace).await;
    Ok(listed.collect(choice, hold_backs))
}

/// Lists all leases and candidates, of one namespace or of all but `kube-node-lease`.
pub(crate) async fn list(
    cluster: &Cluster,
    namespace: Option<&str>,
) -> anyhow::Result<ListedObjects> {
    let api = cluster.candidate_api().await?;
    let scope = Scope::of_namespaces(namespace);
    // The first list of a watch is all that is needed, and has the watch's field selector.
    let options = WatchOptions::elector(0);
    let mut candidates: Watch<LeaseCandidate> = watch_candidates(cluster, api, &scope, &options);
    let candidates = listed!(candidates);
    let mut leases: Watch<Lease> = watch_leases(cluster, &scope, &options);
    Ok(ListedObjects {
        leases: listed!(leases),
        candidates,
    })
}

/// The hold-backs in Events of electors; one line on standard error where these cannot be read.
pub(crate) async fn hold_backs(cluster: &Cluster, namespace: Option<&str>) -> Vec<HoldBackEvent> {
    match list_hold_backs(cluster, namespace).await {
        Ok(events) => events,
        Err(error) => {
            output::print_error(format_args!(
                "failed to {error}; held-back preferences are unknown"
            ));
            Vec::new()
        }
    }
}

// === impl ListedObjects ===

impl ListedObjects {
    /// The elections that they make up.
    pub(crate) fn collect(
        self,
        choice: LeaseChoice,
        hold_backs: Vec<HoldBackEvent>,
    ) -> InputObjects {
        let mut collector = Collector::new(choice);
        for candidate in &self.candidates {
            collector.candidate(candidate);
        }
        for lease in self.leases {
            collector.lease(lease);
        }
        for event in hold_backs {
            collector.hold_back(event);
        }
        collector.finish()
    }
}
