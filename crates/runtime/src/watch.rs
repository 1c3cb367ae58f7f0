//! Watches in the shells' own terms: what is complete, what changed, where something may have been missed.
//!
//! Lists are read in pages, of a bounded number of bytes, and each object goes into what is kept of the list as it is
//! read: no list is in memory whole unless its reader keeps it whole.
//!
//! Built on plain list and watch requests, so that the list's own version is known (R4), a failing server is asked
//! ever less often up to a cap, and one that closes watches early is not asked in a busy loop.

mod connection;
mod event;
mod namespace_watch;
mod object;
mod options;
mod pace;
mod page;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use futures::stream::{self, BoxStream, SelectAll, StreamExt};
use tokio::sync::Semaphore;

use crate::cluster::Cluster;
use namespace_watch::NamespaceWatch;

pub use event::WatchEvent;
pub(crate) use object::WatchedObject;
pub use options::{Scope, WatchOptions};

/// A watch of Leases or LeaseCandidates. It never ends; dropping it closes its connections.
///
/// A list is gathered in an `L`, which gets each object as soon as it is read and may keep as little of it as it needs. What
/// is gathered is delivered when the list is complete, and dropped where it fails on the way.
pub struct Watch<T, L = Vec<T>> {
    watches: SelectAll<BoxStream<'static, WatchEvent<T, L>>>,
    incomplete: BTreeSet<Option<Arc<str>>>,
    synced: bool,
}

/// The number of namespaces that have a page of their lists in memory at a time.
const READERS: usize = 4;

/// Watches Leases.
pub fn watch_leases<L>(cluster: &Cluster, scope: &Scope, options: &WatchOptions) -> Watch<Lease, L>
where
    L: Default + Extend<Lease> + Send + 'static,
{
    Watch::new(cluster, &(), scope, options)
}

/// Watches the LeaseCandidates that this API serves.
pub fn watch_candidates<L>(
    cluster: &Cluster,
    api: CandidateApi,
    scope: &Scope,
    options: &WatchOptions,
) -> Watch<LeaseCandidate, L>
where
    L: Default + Extend<LeaseCandidate> + Send + 'static,
{
    Watch::new(cluster, &api, scope, options)
}

// === impl Watch ===

#[expect(
    private_bounds,
    reason = "sealed: only Leases and LeaseCandidates are watched"
)]
impl<T: WatchedObject, L: Default + Extend<T> + Send + 'static> Watch<T, L> {
    fn new(
        cluster: &Cluster,
        kind: &T::DynamicType,
        scope: &Scope,
        options: &WatchOptions,
    ) -> Self {
        let names: Vec<Option<Arc<str>>> = match scope {
            Scope::Cluster | Scope::Object(_) => vec![None],
            Scope::Namespaces(names) => names.iter().cloned().map(Some).collect(),
        };
        let readers = Arc::new(Semaphore::new(READERS));
        let watches = names.iter().zip(options.seed..).map(|(namespace, seed)| {
            let options = WatchOptions {
                seed,
                ..options.clone()
            };
            let (kind, namespace) = (kind.clone(), namespace.clone());
            let watch = NamespaceWatch::<T, L>::new(
                cluster,
                kind,
                scope,
                namespace,
                options,
                readers.clone(),
            );
            stream::unfold(watch, |mut watch| async move {
                Some((watch.next().await, watch))
            })
            .boxed()
        });
        Self {
            watches: stream::select_all(watches),
            incomplete: names.iter().cloned().collect(),
            synced: false,
        }
    }

    /// The next event. Dropping this future loses nothing.
    pub async fn next(&mut self) -> WatchEvent<T, L> {
        if self.incomplete.is_empty() && !self.synced {
            self.synced = true;
            return WatchEvent::Synced;
        }
        let Some(event) = self.watches.next().await else {
            // A scope without namespaces has nothing to tell.
            return std::future::pending().await;
        };
        match &event {
            WatchEvent::Gap { namespace } => {
                self.incomplete.insert(namespace.clone());
                self.synced = false;
            }
            WatchEvent::Listed { namespace, .. } => {
                self.incomplete.remove(namespace);
            }
            _ => {}
        }
        event
    }
}

impl<T, L> fmt::Debug for Watch<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("watches", &self.watches.len())
            .field("incomplete", &self.incomplete)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
