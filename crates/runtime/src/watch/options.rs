//! The scope of a watch, and its options.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use elector_protocol::LeaseKey;

/// Which objects to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of every namespace but `kube-node-lease`, where each node renews a Lease that is never elected.
    Cluster,
    /// Those of these namespaces, each with a watch of its own.
    Namespaces(BTreeSet<Arc<str>>),
    /// The one object of that name.
    Object(LeaseKey),
}

/// The options of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    /// The life of one watch request before it is opened anew; also, with five seconds on top, the time for which a
    /// connection that fell silent goes unnoticed. 30 s for the elector, 290 s for a candidate.
    pub timeout: Duration,
    /// The time that one page of a list may take, answer included. 30 s.
    pub list_timeout: Duration,
    /// The least time between two openings of the same watch. 1 s.
    pub floor: Duration,
    /// The pause after a first failure, doubled with each further one. 200 ms.
    pub backoff_min: Duration,
    /// The longest pause. 2 s for the elector, whose blindness delays every election; 5 s for a candidate.
    pub backoff_max: Duration,
    /// True if a list takes the place of a watch that is refused for lack of rights, each time that it is tried again.
    /// For a candidate, which can do with the newest state alone. An elector has to know what it may have missed.
    pub lists_unwatched: bool,
    /// The labels that an object has to have, as a selector of the API: all objects where it is `None`. A label that is
    /// removed looks like a deletion.
    pub labels: Option<String>,
    /// Seeds the jitter of the pauses, so that many clients of one server spread and a simulation repeats.
    pub seed: u64,
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
            lists_unwatched: false,
            labels: None,
            seed,
        }
    }

    /// Those of a candidate, of which there are many; its own renewals tell it about a dead server.
    pub fn candidate(seed: u64) -> Self {
        Self {
            timeout: Duration::from_secs(290),
            backoff_max: Duration::from_secs(5),
            lists_unwatched: true,
            ..Self::elector(seed)
        }
    }
}
