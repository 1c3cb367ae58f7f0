//! The events of a watch.

use std::sync::Arc;

use elector_protocol::ResourceVersion;

use crate::request::RequestError;

/// An event of a watch.
///
/// `namespace` is `None` for a watch of the whole scope, and one of those of [`Scope::Namespaces`](crate::Scope::Namespaces)
/// otherwise. `L` is what a list is read into, object by object: [`Watch`](crate::Watch) says what for.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent<T, L = Vec<T>> {
    /// A list begins: what happened since the last event, if there was one, may never be reported.
    Gap {
        /// Where.
        namespace: Option<Arc<str>>,
    },
    /// The store went back to a version below one that was seen: it was restored from a backup. A shell that decides
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
        /// The objects, or what was kept of them.
        items: L,
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
