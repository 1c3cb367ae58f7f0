//! Watches in the shells' own terms: what is complete, what changed, where something may have been missed.
//!
//! Built on plain list and watch requests, so that the list's own version is known (R4), a failing server is asked
//! ever less often up to a cap, and one that closes watches early is not asked in a busy loop.

mod event;
mod options;
mod pace;
mod part;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use futures::stream::{self, BoxStream, SelectAll, StreamExt};

use crate::cluster::Cluster;
use part::{Part, WatchedObject};

pub use event::WatchEvent;
pub use options::{Scope, WatchOptions};

/// A watch of Leases or LeaseCandidates. It never ends; dropping it closes its connections.
pub struct Watch<T> {
    parts: SelectAll<BoxStream<'static, WatchEvent<T>>>,
    incomplete: BTreeSet<Option<Arc<str>>>,
    synced: bool,
    queue: VecDeque<WatchEvent<T>>,
}

/// Watches Leases.
pub fn watch_leases(cluster: &Cluster, scope: &Scope, options: &WatchOptions) -> Watch<Lease> {
    Watch::new(cluster, &(), scope, options)
}

/// Watches the LeaseCandidates that this API serves.
pub fn watch_candidates(
    cluster: &Cluster,
    api: CandidateApi,
    scope: &Scope,
    options: &WatchOptions,
) -> Watch<LeaseCandidate> {
    Watch::new(cluster, &api, scope, options)
}

// === impl Watch ===

#[expect(
    private_bounds,
    reason = "sealed: only Leases and LeaseCandidates are watched"
)]
impl<T: WatchedObject> Watch<T> {
    fn new(
        cluster: &Cluster,
        kind: &T::DynamicType,
        scope: &Scope,
        options: &WatchOptions,
    ) -> Self {
        let namespaces: Vec<Option<Arc<str>>> = match scope {
            Scope::Cluster | Scope::Object(_) => vec![None],
            Scope::Namespaces(names) => names.iter().cloned().map(Some).collect(),
        };
        let parts = namespaces
            .iter()
            .zip(options.seed..)
            .map(|(namespace, seed)| {
                let options = WatchOptions {
                    seed,
                    ..options.clone()
                };
                let part = Part::<T>::new(cluster, kind.clone(), scope, namespace.clone(), options);
                stream::unfold(
                    part,
                    |mut part| async move { Some((part.next().await, part)) },
                )
                .boxed()
            });
        Self {
            parts: stream::select_all(parts),
            incomplete: namespaces.iter().cloned().collect(),
            synced: false,
            queue: VecDeque::new(),
        }
    }

    /// The next event. Dropping this future loses nothing.
    pub async fn next(&mut self) -> WatchEvent<T> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return event;
            }
            if self.incomplete.is_empty() && !self.synced {
                self.synced = true;
                return WatchEvent::Synced;
            }
            let Some(event) = self.parts.next().await else {
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
            self.queue.push_back(event);
        }
    }
}

impl<T> fmt::Debug for Watch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("parts", &self.parts.len())
            .field("incomplete", &self.incomplete)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
