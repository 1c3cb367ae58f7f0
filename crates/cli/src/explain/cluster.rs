//! Objects from the cluster: one complete list of each kind.

use anyhow::bail;
use elector_api::{Lease, LeaseCandidate};
use elector_runtime::{
    ClientArgs, Scope, Watch, WatchEvent, WatchOptions, connect, list_hold_backs, watch_candidates,
    watch_leases,
};

use super::input::{Collector, InputObjects};
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

/// Reads all leases and candidates, of one namespace or of all but `kube-node-lease`, and what electors told in Events.
/// Events that cannot be read are one line on standard error, and the leases are explained without them.
pub(super) async fn read(
    args: &ClientArgs,
    namespace: Option<&str>,
) -> anyhow::Result<InputObjects> {
    let cluster = connect(args).await?;
    let api = cluster.candidate_api().await?;
    let scope = Scope::of_namespaces(namespace);
    // The first list of a watch is all that is needed, and has the watch's field selector.
    let options = WatchOptions::elector(0);
    let mut collector = Collector::default();
    let mut candidates: Watch<LeaseCandidate> = watch_candidates(&cluster, api, &scope, &options);
    for candidate in listed!(candidates) {
        collector.candidate(&candidate);
    }
    let mut leases: Watch<Lease> = watch_leases(&cluster, &scope, &options);
    for lease in listed!(leases) {
        collector.lease(lease);
    }
    match list_hold_backs(&cluster, namespace).await {
        Ok(events) => events
            .into_iter()
            .for_each(|event| collector.hold_back(event)),
        Err(error) => output::print_error(format_args!(
            "failed to {error}; what is held back is not known"
        )),
    }
    Ok(collector.finish())
}
