//! The watchers of a table, each with a bounded queue of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::event::Event;
use super::object::ObjectKey;

/// Which objects are followed. A watcher of one object is not woken by others.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Scope {
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

/// The events of one follower. The channel closes when the follower is too slow.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) id: u64,
    pub(crate) events: mpsc::Receiver<Arc<Event>>,
}

/// The watchers of a table.
#[derive(Debug)]
pub(super) struct Watchers {
    scopes: BTreeMap<Scope, BTreeMap<u64, mpsc::Sender<Arc<Event>>>>,
    /// The watchers of a store that is gone: their channels stay open, and nothing comes.
    silent: BTreeMap<u64, mpsc::Sender<Arc<Event>>>,
    next: u64,
    queue: usize,
}

// === impl Scope ===

impl Scope {
    /// The scopes that an object is in.
    fn of(key: &ObjectKey) -> [Self; 4] {
        let (namespace, name) = (Some(key.namespace.clone()), Some(key.name.clone()));
        [
            Self::default(),
            Self {
                namespace: namespace.clone(),
                name: None,
            },
            Self {
                namespace: None,
                name: name.clone(),
            },
            Self { namespace, name },
        ]
    }
}

// === impl Watchers ===

impl Watchers {
    pub(super) fn new(queue: usize) -> Self {
        Self {
            scopes: BTreeMap::new(),
            silent: BTreeMap::new(),
            next: 0,
            queue: queue.max(1),
        }
    }

    pub(super) fn subscribe(&mut self, scope: Scope) -> Subscription {
        let (sender, events) = mpsc::channel(self.queue);
        let id = self.next;
        self.next += 1;
        self.scopes.entry(scope).or_default().insert(id, sender);
        Subscription { id, events }
    }

    pub(super) fn unsubscribe(&mut self, scope: &Scope, id: u64) {
        self.silent.remove(&id);
        if let Some(watchers) = self.scopes.get_mut(scope) {
            watchers.remove(&id);
            if watchers.is_empty() {
                self.scopes.remove(scope);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.silent.len() + self.scopes.values().map(BTreeMap::len).sum::<usize>()
    }

    /// Tells the present watchers nothing any more, and leaves their channels open.
    pub(super) fn silence(&mut self) {
        let scopes = std::mem::take(&mut self.scopes);
        self.silent.extend(scopes.into_values().flatten());
    }

    /// Tells the watchers of the object. A watcher with a full queue is cut off: its channel closes once it has read the
    /// rest.
    pub(super) fn tell(&mut self, event: &Arc<Event>) {
        for scope in Scope::of(event.object.key()) {
            if let Some(watchers) = self.scopes.get_mut(&scope) {
                watchers.retain(|_, sender| match sender.try_send(event.clone()) {
                    Ok(()) => true,
                    Err(TrySendError::Full(_) | TrySendError::Closed(_)) => false,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::super::event::ChangeKind;
    use super::super::object::Stored;
    use super::*;

    fn event(namespace: &str, name: &str, revision: u64) -> Arc<Event> {
        let object = Arc::new(Stored::new(
            ObjectKey::new(namespace, name),
            Map::new(),
            revision,
        ));
        Arc::new(Event::now(ChangeKind::Added, object, None))
    }

    #[test]
    fn a_watcher_gets_the_events_of_its_scope() {
        let mut watchers = Watchers::new(9);
        let scope = |namespace: Option<&str>, name: Option<&str>| Scope {
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
        };
        let scopes = [
            (None, None),
            (Some("ns"), None),
            (None, Some("a")),
            (Some("ns"), Some("a")),
        ];
        let mut subscriptions =
            scopes.map(|(namespace, name)| watchers.subscribe(scope(namespace, name)));
        for (revision, (namespace, name)) in
            [("ns", "a"), ("ns", "b"), ("other", "a"), ("other", "b")]
                .into_iter()
                .enumerate()
        {
            watchers.tell(&event(namespace, name, revision as u64));
        }
        let heard = subscriptions.each_mut().map(|subscription| {
            let mut revisions = Vec::new();
            while let Ok(event) = subscription.events.try_recv() {
                revisions.push(event.revision());
            }
            revisions
        });
        assert_eq!(heard, [vec![0, 1, 2, 3], vec![0, 1], vec![0, 2], vec![0]]);
        watchers.unsubscribe(&scope(Some("ns"), None), subscriptions[1].id);
        assert_eq!(watchers.len(), 3);
    }

    #[test]
    fn a_slow_watcher_is_cut_off_after_the_events_in_its_queue() {
        let mut watchers = Watchers::new(2);
        let mut subscription = watchers.subscribe(Scope::default());
        for revision in 0..4 {
            watchers.tell(&event("ns", "a", revision));
        }
        assert_eq!(watchers.len(), 0);
        let received: Vec<_> = std::iter::from_fn(|| subscription.events.try_recv().ok())
            .map(|event| event.revision())
            .collect();
        assert_eq!(received, [0, 1]);
        assert!(subscription.events.is_closed());
    }
}
