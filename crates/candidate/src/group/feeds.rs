//! Two watches for all parts of a group: what they bring, by the name of the object, to the session that it is about.
//!
//! ```text
//!   watch of the Leases of the namespace ──────────> ┌───────────┐ ──> session of part a
//!   watch of the LeaseCandidates of the group ─────> │ FeedTable │ ──> session of part b
//!   discovery of their API ────────────────────────> └───────────┘ ──> …
//! ```
//!
//! The Leases are watched without a label selector and picked by name. Under a selector, a label that is removed looks like
//! a deletion, and would prove an absence that never was (R6 a): the label goes at 0 s, another process is granted the
//! Lease at 15 s, the label and an emptied spec are written back at 20 s, and two lead. A LeaseCandidate proves nothing, so
//! those are watched by the label of the group: where it goes, the candidate is created again, found, and repaired.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use elector_api::{CandidateApi, Lease, LeaseCandidate};
use elector_protocol::ResourceVersion;
use elector_runtime::WatchEvent;
use tokio::sync::{mpsc, watch};

/// The feeds of all parts. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct GroupFeeds(Arc<FeedTables>);

struct FeedTables {
    leases: Mutex<FeedTable<Lease>>,
    candidates: Mutex<FeedTable<LeaseCandidate>>,
    /// The API of LeaseCandidates, once one is known.
    api: watch::Sender<Option<CandidateApi>>,
}

/// The feeds of objects of one kind, by their names.
struct FeedTable<T>(BTreeMap<String, Feed<T>>);

struct Feed<T> {
    /// The session that follows the object.
    session: Option<EventSender<T>>,
    /// The content of a list now: at this version, this object or none. `None` before the first list, and while another one
    /// is awaited.
    shown: Option<(ResourceVersion, Option<T>)>,
}

type EventSender<T> = mpsc::Sender<WatchEvent<T>>;

/// An event on its way to a session.
type Delivery<T> = (EventSender<T>, WatchEvent<T>);

/// An object that is watched.
pub(crate) trait FedObject: Clone {
    /// `metadata.name`.
    fn name(&self) -> &str;

    /// `metadata.resourceVersion`.
    fn version(&self) -> Option<ResourceVersion>;
}

/// The events that wait for a session. It takes them at once, unless it is being polled for something else.
const ROOM: usize = 16;

// === impl GroupFeeds ===

impl GroupFeeds {
    /// Feeds for Leases and LeaseCandidates of these names.
    pub(crate) fn new(names: impl Iterator<Item = (String, String)>) -> Self {
        let (leases, candidates) = names.unzip();
        Self(Arc::new(FeedTables {
            leases: Mutex::new(FeedTable::new(leases)),
            candidates: Mutex::new(FeedTable::new(candidates)),
            api: watch::Sender::new(None),
        }))
    }

    /// The events about the Lease of that name from now on, beginning with what is known of it.
    pub(crate) fn lease(&self, name: &str) -> mpsc::Receiver<WatchEvent<Lease>> {
        lock(&self.0.leases).follow(name)
    }

    /// The same of the LeaseCandidate of that name in this API.
    pub(crate) fn candidate(&self, name: &str) -> mpsc::Receiver<WatchEvent<LeaseCandidate>> {
        lock(&self.0.candidates).follow(name)
    }

    /// The API of LeaseCandidates, once one is known, and each that replaces it.
    pub(crate) fn api(&self) -> watch::Receiver<Option<CandidateApi>> {
        self.0.api.subscribe()
    }

    /// LeaseCandidates are watched in this API from now on. What is known of those of another says nothing of these.
    pub(super) fn use_api(&self, api: CandidateApi) {
        lock(&self.0.candidates).forget();
        self.0.api.send_replace(Some(api));
    }

    /// Passes on an event of the watch of the Leases.
    pub(super) async fn deliver_lease(&self, event: WatchEvent<Lease>) {
        let deliveries = lock(&self.0.leases).take_in(event);
        deliver(deliveries).await;
    }

    /// Passes on an event of the watch of the LeaseCandidates.
    pub(super) async fn deliver_candidate(&self, event: WatchEvent<LeaseCandidate>) {
        let deliveries = lock(&self.0.candidates).take_in(event);
        deliver(deliveries).await;
    }
}

async fn deliver<T>(deliveries: Vec<Delivery<T>>) {
    for (session, event) in deliveries {
        // A session that has ended hears no more; the next one of its part begins with what is known.
        let _: Result<(), mpsc::error::SendError<_>> = session.send(event).await;
    }
}

fn lock<T>(table: &Mutex<FeedTable<T>>) -> std::sync::MutexGuard<'_, FeedTable<T>> {
    // A poisoned lock holds a valid state: every section takes in one event.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl FeedTable ===

impl<T: FedObject> FeedTable<T> {
    fn new(names: Vec<String>) -> Self {
        let silent = || Feed {
            session: None,
            shown: None,
        };
        Self(names.into_iter().map(|name| (name, silent())).collect())
    }

    fn follow(&mut self, name: &str) -> mpsc::Receiver<WatchEvent<T>> {
        let (session, events) = mpsc::channel(ROOM);
        if let Some(feed) = self.0.get_mut(name) {
            if let Some((version, object)) = feed.shown.clone() {
                // An empty queue has room.
                let _: Result<(), mpsc::error::TrySendError<_>> =
                    session.try_send(listed(version, object));
            }
            feed.session = Some(session);
        }
        events
    }

    fn forget(&mut self) {
        for feed in self.0.values_mut() {
            feed.shown = None;
        }
    }

    /// Takes in an event of the watch. What it says of the objects is for these sessions.
    fn take_in(&mut self, event: WatchEvent<T>) -> Vec<Delivery<T>> {
        match event {
            WatchEvent::Listed { version, items, .. } => {
                let mut items: BTreeMap<String, T> = items
                    .into_iter()
                    .filter(|item| self.0.contains_key(item.name()))
                    .map(|item| (item.name().to_owned(), item))
                    .collect();
                let feeds = self.0.iter_mut().filter_map(|(name, feed)| {
                    let object = items.remove(name);
                    feed.shown = Some((version, object.clone()));
                    Some((feed.session.clone()?, listed(version, object)))
                });
                feeds.collect()
            }
            WatchEvent::Applied(object) => {
                let shown = Some(object.clone());
                self.take_in_change(object, shown, WatchEvent::Applied)
            }
            WatchEvent::Deleted(object) => self.take_in_change(object, None, WatchEvent::Deleted),
            WatchEvent::Rewound { seen, now, .. } => {
                self.forget();
                let sessions = self.0.values().filter_map(|feed| feed.session.clone());
                let rewound = |session| {
                    let namespace = None;
                    (
                        session,
                        WatchEvent::Rewound {
                            namespace,
                            seen,
                            now,
                        },
                    )
                };
                sessions.map(rewound).collect()
            }
            WatchEvent::Gap { .. } => {
                self.forget();
                Vec::new()
            }
            WatchEvent::Synced | WatchEvent::Failed(_) => Vec::new(),
        }
    }

    fn take_in_change(
        &mut self,
        object: T,
        shown: Option<T>,
        event: impl FnOnce(T) -> WatchEvent<T>,
    ) -> Vec<Delivery<T>> {
        let Some(feed) = self.0.get_mut(object.name()) else {
            return Vec::new();
        };
        // Before a list, a session would take an event for all that there is to know.
        if let (Some(known), Some(version)) = (&mut feed.shown, object.version()) {
            *known = (version, shown);
        }
        let delivery = feed.session.clone().map(|session| (session, event(object)));
        delivery.into_iter().collect()
    }
}

/// A list of the one object that a session follows.
fn listed<T>(version: ResourceVersion, object: Option<T>) -> WatchEvent<T> {
    WatchEvent::Listed {
        namespace: None,
        version,
        items: object.into_iter().collect(),
    }
}

impl FedObject for Lease {
    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    fn version(&self) -> Option<ResourceVersion> {
        parsed_version(self.metadata.resource_version.as_deref())
    }
}

impl FedObject for LeaseCandidate {
    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    fn version(&self) -> Option<ResourceVersion> {
        parsed_version(self.metadata.resource_version.as_deref())
    }
}

fn parsed_version(text: Option<&str>) -> Option<ResourceVersion> {
    text?.parse().map(ResourceVersion).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(name: &str, version: u64) -> Lease {
        Lease::from_value(json!({
            "metadata": {"namespace": "ns", "name": name, "uid": "u", "resourceVersion": version.to_string()},
        }))
    }

    fn list(version: u64, items: Vec<Lease>) -> WatchEvent<Lease> {
        WatchEvent::Listed {
            namespace: Some("ns".into()),
            version: ResourceVersion(version),
            items,
        }
    }

    fn next(events: &mut mpsc::Receiver<WatchEvent<Lease>>) -> Option<WatchEvent<Lease>> {
        events.try_recv().ok()
    }

    fn alone(version: u64, object: Option<Lease>) -> Option<WatchEvent<Lease>> {
        Some(listed(ResourceVersion(version), object))
    }

    /// The Leases of strangers, and those whose names begin alike, are those of nobody here.
    #[tokio::test]
    async fn each_session_hears_of_its_own_lease_alone() {
        let names = ["web-a", "web-b"].map(|name| (name.to_owned(), format!("me.{name}")));
        let feeds = GroupFeeds::new(names.into_iter());
        let (mut a, mut b) = (feeds.lease("web-a"), feeds.lease("web-b"));
        assert_eq!((next(&mut a), next(&mut b)), (None, None));
        let all = vec![lease("other", 3), lease("web-a", 5), lease("web-a-b", 6)];
        feeds.deliver_lease(list(7, all)).await;
        assert_eq!(next(&mut a), alone(7, Some(lease("web-a", 5))));
        assert_eq!(next(&mut b), alone(7, None));
        let applied = WatchEvent::Applied(lease("web-b", 9));
        feeds.deliver_lease(applied.clone()).await;
        assert_eq!((next(&mut a), next(&mut b)), (None, Some(applied)));
        let stranger = WatchEvent::Deleted(lease("other", 10));
        feeds.deliver_lease(stranger).await;
        assert_eq!((next(&mut a), next(&mut b)), (None, None));
    }

    /// A part that was given back is stood for again after a pause, in which its Lease went on.
    #[tokio::test]
    async fn a_later_session_begins_with_what_is_known_and_with_nothing_after_a_gap() {
        let feeds = GroupFeeds::new([("web-a".to_owned(), "me.web-a".to_owned())].into_iter());
        feeds
            .deliver_lease(WatchEvent::Applied(lease("web-a", 4)))
            .await;
        assert_eq!(
            next(&mut feeds.lease("web-a")),
            None,
            "before the first list"
        );
        feeds.deliver_lease(list(7, vec![])).await;
        assert_eq!(next(&mut feeds.lease("web-a")), alone(7, None));
        feeds
            .deliver_lease(WatchEvent::Applied(lease("web-a", 9)))
            .await;
        let shown = alone(9, Some(lease("web-a", 9)));
        assert_eq!(next(&mut feeds.lease("web-a")), shown);
        feeds
            .deliver_lease(WatchEvent::Deleted(lease("web-a", 11)))
            .await;
        let mut events = feeds.lease("web-a");
        assert_eq!(next(&mut events), alone(11, None));
        let gap = WatchEvent::Gap { namespace: None };
        feeds.deliver_lease(gap).await;
        assert_eq!(next(&mut events), None);
        assert_eq!(next(&mut feeds.lease("web-a")), None);
    }
}
