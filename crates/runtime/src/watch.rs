//! Watches in the shells' own terms: what is complete, what changed, where something may have been missed.
//!
//! Built on plain list and watch requests, so that the list's own version is known (R4), a failing server is asked
//! ever less often up to a cap, and one that closes watches early is not asked in a busy loop.

mod pace;
mod part;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::{LeaseKey, ResourceVersion};
use futures::stream::{self, BoxStream, SelectAll, StreamExt};

use crate::cluster::Cluster;
use crate::request::RequestError;
use part::{Part, Watched};

/// Which objects to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of every namespace but `kube-node-lease`, where each node renews a Lease that nobody elects.
    Cluster,
    /// Those of these namespaces, each with a watch of its own.
    Namespaces(BTreeSet<Arc<str>>),
    /// The one object of that name.
    Object(LeaseKey),
}

/// How to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    /// How long one watch request lasts before it is opened anew; also, with five seconds on top, how long a
    /// connection that fell silent goes unnoticed. 30 s for the elector, 290 s for a candidate.
    pub timeout: Duration,
    /// How long a complete list may take, answer included. 30 s.
    pub list_timeout: Duration,
    /// The least time between two openings of the same watch. 1 s.
    pub floor: Duration,
    /// The pause after a first failure, doubled with each further one. 200 ms.
    pub backoff_min: Duration,
    /// The longest pause. 2 s for the elector, whose blindness delays everybody; 5 s for a candidate.
    pub backoff_max: Duration,
    /// Seeds the jitter of the pauses, so that many clients of one server spread and a simulation repeats.
    pub seed: u64,
}

/// What a watch tells.
///
/// `namespace` is `None` for a watch of the whole scope, and one of the namespaces of [`Scope::Namespaces`] otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent<T> {
    /// A list begins: what happened since the last event, if there was one, may never be told.
    Gap {
        /// Where.
        namespace: Option<Arc<str>>,
    },
    /// The store went back to a version below one that was seen: it was restored from a backup. Whoever decides
    /// starts as a new process (R4). A list follows.
    Rewound {
        /// Where.
        namespace: Option<Arc<str>>,
        /// The highest version that was seen.
        seen: ResourceVersion,
        /// The version of the store now.
        now: ResourceVersion,
    },
    /// Everything that exists; what was known and is not among it is gone.
    Listed {
        /// Where.
        namespace: Option<Arc<str>>,
        /// The version of the store at the time.
        version: ResourceVersion,
        /// The objects.
        items: Vec<T>,
    },
    /// Every part of the scope is listed: after the first lists, and after each later gap.
    Synced,
    /// An object was created or changed. May be older than what is known from one's own write.
    Applied(T),
    /// An object was deleted. This is its last revision.
    Deleted(T),
    /// A request failed. For the log: the watch goes on by itself, without a gap unless one is announced.
    Failed(RequestError),
}

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

// === impl Scope ===

impl Scope {
    /// These namespaces, or the whole cluster where none is named.
    pub fn of_namespaces(namespaces: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        let namespaces: BTreeSet<_> = namespaces.into_iter().map(Into::into).collect();
        if namespaces.is_empty() {
            return Self::Cluster;
        }
        Self::Namespaces(namespaces)
    }
}

// === impl WatchOptions ===

impl WatchOptions {
    /// Those of the elector: a dead connection is noticed within 35 s.
    pub fn elector(seed: u64) -> Self {
        Self {
            timeout: Duration::from_secs(30),
            list_timeout: Duration::from_secs(30),
            floor: Duration::from_secs(1),
            backoff_min: Duration::from_millis(200),
            backoff_max: Duration::from_secs(2),
            seed,
        }
    }

    /// Those of a candidate, of which there are many; its own renewals tell it about a dead server.
    pub fn candidate(seed: u64) -> Self {
        Self {
            timeout: Duration::from_secs(290),
            backoff_max: Duration::from_secs(5),
            ..Self::elector(seed)
        }
    }
}

// === impl Watch ===

#[expect(
    private_bounds,
    reason = "sealed: only Leases and LeaseCandidates are watched"
)]
impl<T: Watched> Watch<T> {
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
